//! Extraction of the cause from error output: the message that explains why a program ended,
//! without the stack trace around it and the trailer of an interpreter.

/// Prefixes of lines that interpreters write below the message.
const TRAILERS: [&str; 7] = [
    "Node.js v",
    "Bun v",
    "(Use `node --",
    "note: run with `RUST_BACKTRACE=",
    "exit status ",
    "BEGIN failed--",
    "Compilation failed in require",
];

/// Prefixes of the lines in a stack trace below the message, after their indentation.
const FRAMES: [&str; 2] = ["at ", "from "];

/// Prefixes of lines above such a stack trace.
const HEADERS: [&str; 3] = ["Stack trace:", "stack traceback:", "goroutine "];

/// Returns the line with the cause, or nothing if there is no line at all.
pub(super) fn cause(stderr: &str) -> Option<&str> {
    let lines: Vec<&str> = stderr.lines().map(str::trim_end).collect();
    if let Some(header) = lines.iter().rposition(|line| is_python_header(line)) {
        // Python's message follows the indented frames.
        let mut below = lines[header + 1..].iter();
        if let Some(message) = below.find(|line| !is_indented(line)) {
            return Some(message);
        }
    }
    let is_frame = |line: &&str| {
        let frame = line.trim_start();
        is_indented(line) && FRAMES.iter().any(|start| frame.starts_with(start))
            || HEADERS.iter().any(|start| line.starts_with(start))
    };
    match lines.iter().position(is_frame) {
        Some(frame) => message_above(&lines[..frame]),
        None => last_message(&lines),
    }
}

fn is_python_header(line: &str) -> bool {
    line == "Traceback (most recent call last):"
}

fn is_indented(line: &str) -> bool {
    line.starts_with([' ', '\t']) || line.is_empty()
}

/// Returns the message above a stack trace: the first line of its paragraph that names an error,
/// or the last that is no part of the source that some interpreters show.
fn message_above<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let end = lines.iter().rposition(|line| !line.is_empty())? + 1;
    let lines = &lines[..end];
    let start = lines.iter().rposition(|line| line.is_empty());
    let paragraph = &lines[start.map_or(0, |empty| empty + 1)..];
    let names_error = |line: &&&str| {
        let mut names = ["error", "exception", "panic"].into_iter();
        let line = line.to_ascii_lowercase();
        names.any(|name| line.contains(name))
    };
    let named = paragraph.iter().find(names_error).copied();
    named.or_else(|| last_message(paragraph))
}

/// Returns the last line that is neither indented nor added by an interpreter.
fn last_message<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let is_trailer = |line: &str| TRAILERS.iter().any(|trailer| line.starts_with(trailer));
    let mut messages = lines.iter().rev().copied();
    messages
        .find(|line| !is_indented(line) && !is_trailer(line) && *line != "^")
        .or_else(|| lines.iter().rev().copied().find(|line| !line.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stderr: &str, expected: &str) {
        assert_eq!(cause(stderr), Some(expected));
    }

    #[test]
    fn shell_cause_is_the_last_line() {
        check(
            "starting\nx: line 3: jq: command not found\n\n",
            "x: line 3: jq: command not found",
        );
        assert_eq!(cause("\n"), None);
        check("  indented\n", "  indented");
    }

    #[test]
    fn python_cause_is_below_the_frames() {
        let traceback = "Traceback (most recent call last):\n  File \"x\", line 2, in <module>\n    f()\n    ~^^\n";
        check(
            &format!("{traceback}ValueError: no id\n"),
            "ValueError: no id",
        );
        check(
            &format!(
                "{traceback}KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\n{traceback}app.Failed: 2 faults\nfield\n  is missing\n"
            ),
            "app.Failed: 2 faults",
        );
        check(
            "  File \"x\", line 3\n    f(\n     ^\nSyntaxError: '(' was never closed\n",
            "SyntaxError: '(' was never closed",
        );
    }

    #[test]
    fn node_cause_is_above_the_frames() {
        check(
            "/tools/x.js:3\nthrow new Error('no key');\n^\n\nError: no key\n    at Object.<anonymous> (/tools/x.js:3:7)\n    at node:internal/main\n\nNode.js v22.1.0\n",
            "Error: no key",
        );
        check(
            "node:internal/modules:1\n  throw err;\n  ^\n\nError: Cannot find module 'x'\nRequire stack:\n- /tools/x.js\n    at Module._resolve (node:internal:1:2) {\n  code: 'MODULE_NOT_FOUND'\n}\n\nNode.js v22.1.0\n",
            "Error: Cannot find module 'x'",
        );
        check(
            "/tools/x.js:1\nthrow 'boom'\n^\nboom\n(Use `node --trace-uncaught ...` to show where the exception was thrown)\n\nNode.js v22.1.0\n",
            "boom",
        );
        check(
            "/tools/x.js:1\nfoo bar\n    ^^^\n\nSyntaxError: Unexpected identifier 'bar'\n    at wrapSafe (node:internal)\n\nNode.js v22.1.0\n",
            "SyntaxError: Unexpected identifier 'bar'",
        );
    }

    #[test]
    fn cause_is_found_for_other_interpreters() {
        check(
            "x.rb:1:in 'open': no such file (Errno::ENOENT)\n\tfrom x.rb:1:in '<main>'\n",
            "x.rb:1:in 'open': no such file (Errno::ENOENT)",
        );
        check(
            "Exception in thread \"main\" java.lang.IllegalStateException: no\n\tat X.main(X.java:2)\n",
            "Exception in thread \"main\" java.lang.IllegalStateException: no",
        );
        check(
            "Can't locate Foo.pm in @INC at x line 2.\nBEGIN failed--compilation aborted at x line 2.\n",
            "Can't locate Foo.pm in @INC at x line 2.",
        );
        check(
            "error: Uncaught (in promise) Error: no\nthrow new Error('no')\n      ^\n    at file:///x.ts:1:7\n",
            "error: Uncaught (in promise) Error: no",
        );
        check(
            "lua: x.lua:1: no\nstack traceback:\n\t[C]: in ?\n",
            "lua: x.lua:1: no",
        );
        check(
            "\nthread 'main' panicked at src/main.rs:2:5:\nno key\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
            "no key",
        );
        check(
            "PHP Fatal error:  Uncaught Exception: no in /x:2\nStack trace:\n#0 {main}\n  thrown in /x on line 2\n",
            "PHP Fatal error:  Uncaught Exception: no in /x:2",
        );
        check(
            "panic: no key\n\ngoroutine 1 [running]:\nmain.main()\n\t/x.go:2 +0x1\nexit status 2\n",
            "panic: no key",
        );
    }
}
