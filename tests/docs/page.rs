//! Parser of a documentation page into the steps of its reader.

use std::fs;

use mcpd_tests::repository;

/// One step of a reader.
#[derive(Debug)]
pub(crate) enum Step {
    /// Runs commands. Their output is in the next block unless that is a block of commands.
    Run {
        commands: String,
        expected: Option<String>,
    },
    /// Writes a file: a block whose info string has a file name after the language.
    Write { name: String, text: String },
    /// Uses this text as `mcpd.toml`.
    Configure(String),
}

impl Step {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Run { commands: text, .. } | Self::Write { text, .. } | Self::Configure(text) => {
                text
            }
        }
    }
}

/// Returns the steps of a page in order.
pub(crate) fn steps(path: &str) -> Vec<Step> {
    let text = fs::read_to_string(repository().join(path)).expect("the page is there");
    let mut blocks = blocks(&text).into_iter().peekable();
    let mut steps = Vec::new();
    while let Some(block) = blocks.next() {
        match block.info.split_once(' ').unwrap_or((block.info, "")) {
            ("sh", "") => {
                let output =
                    blocks.next_if(|next| next.follows && ["text", "json"].contains(&next.info));
                steps.push(Step::Run {
                    commands: block.text.to_owned(),
                    expected: output.map(|output| output.text.to_owned()),
                });
            }
            ("console", "") => steps.extend(transcript(block.text)),
            ("toml", "") => steps.push(Step::Configure(block.text.to_owned())),
            (_, "") => {}
            (_, name) => steps.push(Step::Write {
                name: name.to_owned(),
                text: block.text.to_owned(),
            }),
        }
    }
    steps
}

/// Fenced block.
struct Block<'a> {
    info: &'a str,
    text: &'a str,
    /// Only blank lines separate it from the block before.
    follows: bool,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut parts = text.split("\n```");
    let mut between = parts.next();
    while let (Some(before), Some(block)) = (between, parts.next()) {
        // An empty block has no line end of its own.
        let (info, text) = block.split_once('\n').unwrap_or((block, ""));
        blocks.push(Block {
            info,
            text,
            follows: before.trim().is_empty(),
        });
        between = parts.next();
    }
    blocks
}

/// Returns the commands behind `$ `, or `> ` for continuation lines, each with the output below
/// it.
fn transcript(text: &str) -> Vec<Step> {
    let mut steps: Vec<(String, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push((command.to_owned(), Vec::new()));
            continue;
        }
        let (commands, printed) = steps.last_mut().expect("a transcript begins with `$ `");
        match line.strip_prefix("> ") {
            Some(more) if printed.is_empty() => *commands += &format!("\n{more}"),
            _ => printed.push(line),
        }
    }
    let steps = steps.into_iter().map(|(commands, printed)| Step::Run {
        commands,
        expected: Some(printed.join("\n")),
    });
    steps.collect()
}
