//! `mcpd dev`: serves over HTTP, and shows its author what happens, a line for each event.

use std::env;
use std::path::{Path, PathBuf};

use jiff::Zoned;
use mcpd_author::session::{Inspector, Session, Shown, Sign};
use mcpd_check::render;
use mcpd_check::terminal;
use mcpd_config::listening::Address;
use mcpd_server::Server;

use crate::output;

mod keys;

/// Columns of a terminal whose width is unknown.
const DEFAULT_COLUMNS: usize = 100;

/// Session that is shown on standard error.
pub(super) fn session() -> Session {
    Session::new(show)
}

/// Follows changes and keys until the author ends the session.
pub(super) async fn follow(
    session: &Session,
    server: &Server,
    address: &Address,
    token_file: Option<&Path>,
) {
    let program = env::current_exe().unwrap_or_else(|_| PathBuf::from("mcpd"));
    let token_file = token_file.map(PathBuf::from);
    let inspector = Inspector::new(program, address.url(), token_file);
    session.follow(server, keys::read(), inspector).await;
}

fn show(shown: Shown<'_>) {
    match shown {
        Shown::Line(sign, text) => line(sign, text),
        Shown::Faults(findings, scripts) => {
            let columns = output::columns().unwrap_or(DEFAULT_COLUMNS);
            output::note_styled(&render::human(findings, scripts, columns));
        }
    }
}

/// Shows a line with the time. Control characters of scripts do not reach the terminal.
fn line(sign: Sign, text: &str) {
    let (character, colour) = style(sign);
    let time = Zoned::now().strftime("%H:%M:%S").to_string();
    let text = terminal::printable(text);
    output::note_styled(&format!("{time} \x1b[{colour}m{character}\x1b[0m {text}\n"));
}

/// Character and code of its colour.
fn style(sign: Sign) -> (char, u8) {
    match sign {
        Sign::Added => ('+', 32),
        Sign::Removed => ('-', 31),
        Sign::Changed => ('~', 33),
        Sign::Called => ('>', 36),
        Sign::Line => ('|', 2),
        Sign::Returned => ('<', 32),
        Sign::Failed => ('!', 31),
        Sign::Note => ('*', 2),
    }
}
