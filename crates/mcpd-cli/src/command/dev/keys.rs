//! Keys of the author: one letter and Enter, so that the terminal needs no special mode.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::thread;

use mcpd_author::session::{Key, Sign};
use tokio::sync::mpsc;

use super::line;

/// Reads the keys from standard input if that is a terminal. The thread ends with the program: a
/// read from a terminal cannot be interrupted.
pub(super) fn read() -> mpsc::Receiver<Key> {
    let (sender, receiver) = mpsc::channel(1);
    if io::stdin().is_terminal() {
        let reader = thread::Builder::new().name("keys".to_owned());
        let started = reader.spawn(move || {
            for typed in io::stdin().lock().lines().map_while(Result::ok) {
                let Some(key) = parse(&typed) else {
                    line(
                        Sign::Note,
                        "r: make the last call again, i: open the MCP Inspector, q: end",
                    );
                    continue;
                };
                if sender.blocking_send(key).is_err() {
                    return;
                }
            }
        });
        if let Err(error) = started {
            line(Sign::Note, &format!("keys are not read: {error}"));
        }
    }
    receiver
}

fn parse(line: &str) -> Option<Key> {
    match line.trim() {
        "" | "r" => Some(Key::Again),
        "i" => Some(Key::Inspector),
        "q" => Some(Key::End),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_one_letter() {
        assert_eq!(parse(" r "), Some(Key::Again));
        assert_eq!(parse(""), Some(Key::Again));
        assert_eq!(parse("q"), Some(Key::End));
        assert_eq!(parse("run"), None);
    }
}
