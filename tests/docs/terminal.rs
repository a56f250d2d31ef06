//! Terminal recording of the README, `docs/terminal.svg`: real commands with their real output,
//! drawn as an SVG. It appears command by command; viewers without animation show all of it.
//! `UPDATE_DOCS=1` records it anew.

use std::fmt::Write as _;
use std::fs;

use mcpd_tests::{output, repository};

use crate::Reader;

/// Commands that prepare the session, unseen.
const SETUP: &str = r#"mkdir tools drafts
cat > tools/shout <<'SCRIPT'
#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Say something loudly."}'
  echo '{"text": {"description": "Words.", "value_type": "string", "required": true}}' >&2
  exit 0
fi
printf '%s\n' "$MCPD_OPT_text" | tr '[:lower:]' '[:upper:]'
SCRIPT
sed 's/"string"/"sting"/' tools/shout > drafts/whisper
chmod +x tools/shout drafts/whisper
"#;

/// Commands of the session, one after the other.
const SESSION: [&str; 5] = [
    "cat tools/shout",
    "mcpd list tools",
    "mcpd call tools shout text='$(reboot), she said'",
    "mcpd call tools shout",
    "mcpd check drafts",
];

/// Characters in a line; what is longer would be cut off, so it is a failure.
const COLUMNS: usize = 92;
/// Height of a line in pixels.
const LINE_HEIGHT: usize = 20;
/// Distance of the text from the edges in pixels.
const MARGIN: usize = 24;
/// Width of a character in pixels, as common monospaced fonts have it at this size.
const CHARACTER_WIDTH: usize = 9;
/// Seconds between a command and its output, and from there to the next command.
const PAUSES: (f32, f32) = (0.8, 1.6);

/// Picture that grows line by line.
#[derive(Default)]
struct Picture {
    body: String,
    lines: usize,
    seconds: f32,
}

impl Picture {
    /// Adds lines that appear together.
    fn add(&mut self, text: &str) {
        let seconds = self.seconds;
        self.body += "<g>";
        if seconds > 0.0 {
            write!(
                self.body,
                r#"<set attributeName="visibility" to="hidden" begin="0s" dur="{seconds:.1}s"/>"#
            )
            .unwrap();
        }
        for line in text.lines() {
            self.lines += 1;
            let y = MARGIN + self.lines * LINE_HEIGHT - 5;
            writeln!(
                self.body,
                r#"<text x="{MARGIN}" y="{y}">{}</text>"#,
                spans(line)
            )
            .unwrap();
        }
        self.body += "</g>\n";
    }

    fn finish(self) -> String {
        let width = COLUMNS * CHARACTER_WIDTH + 2 * MARGIN;
        let height = self.lines * LINE_HEIGHT + 2 * MARGIN;
        let body = self.body;
        format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" xml:space="preserve">
<title>A script is listed, called and checked by mcpd</title>
<style>text {{ font: 15px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d8dee9; white-space: pre; }}</style>
<rect width="100%" height="100%" rx="8" fill="#1e2430"/>
{body}</svg>
"##
        )
    }
}

/// Returns a line with its colours (SGR sequences) as spans.
fn spans(line: &str) -> String {
    let mut spans = String::new();
    let mut style = String::new();
    let mut columns = 0;
    for (index, part) in line.split("\u{1b}[").enumerate() {
        let mut text = part;
        if index > 0 {
            let (codes, rest) = part.split_once('m').expect("only colours are printed");
            style = apply_codes(style, codes);
            text = rest;
        }
        columns += text.chars().count();
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        match (text.is_empty(), style.is_empty()) {
            (true, _) => {}
            (_, true) => spans += &text,
            (_, false) => write!(spans, "<tspan{style}>{text}</tspan>").unwrap(),
        }
    }
    assert!(columns <= COLUMNS, "too long for the picture: {line}");
    spans
}

/// Returns the attributes of the text after an SGR sequence.
fn apply_codes(style: String, codes: &str) -> String {
    codes.split(';').fold(style, |style, code| match code {
        "" | "0" => String::new(),
        "1" => style + r#" font-weight="bold""#,
        "31" | "91" => style + r##" fill="#ff6b6b""##,
        "32" | "92" => style + r##" fill="#8fd694""##,
        "33" | "93" => style + r##" fill="#f2c572""##,
        "34" | "94" | "36" | "96" => style + r##" fill="#6cb6ff""##,
        other => panic!("no colour is known for SGR {other}"),
    })
}

#[test]
fn terminal_recording_shows_what_the_commands_print() {
    let mut reader = Reader::new();
    reader.run(SETUP, None);
    let mut picture = Picture::default();
    for command in SESSION {
        picture.add(&format!("\u{1b}[92m$\u{1b}[0m \u{1b}[1m{command}\u{1b}[0m"));
        picture.seconds += PAUSES.0;
        let shell = reader.shell(&format!("exec 2>&1\nexport CLICOLOR_FORCE=1\n{command}"));
        let printed = output(shell, b"").stdout;
        picture.add(&String::from_utf8(printed).unwrap());
        picture.seconds += PAUSES.1;
    }
    let drawn = picture.finish();
    let file = repository().join("docs/terminal.svg");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &drawn).unwrap();
    }
    assert!(
        fs::read_to_string(&file).is_ok_and(|recorded| recorded == drawn),
        "docs/terminal.svg is old: set UPDATE_DOCS=1 and test again"
    );
}
