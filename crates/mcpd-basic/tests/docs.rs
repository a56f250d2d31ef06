//! What `docs/basic.md` shows is what happens: every program there runs, and prints what is below it.

#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use mcpd_basic::{Limits, compile};
use serde_json::{Map, Value};

const PAGE: &str = include_str!("../../../docs/basic.md");

/// The blocks of code on the page, each with its language.
fn blocks() -> Vec<(&'static str, String)> {
    let mut blocks = Vec::new();
    let mut lines = PAGE.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let code = lines.by_ref().take_while(|line| *line != "```");
            blocks.push((language, code.map(|line| format!("{line}\n")).collect()));
        }
    }
    blocks
}

/// The object that a command of the shell writes to the program.
fn parameters(command: &str) -> Map<String, Value> {
    let (_, json) = command.split_once("echo '").unwrap();
    let (json, _) = json.split_once('\'').unwrap();
    serde_json::from_str(json).unwrap()
}

/// What is to be seen of a run.
fn transcript(source: &str, parameters: &Map<String, Value>) -> String {
    let mut output = Vec::new();
    let program = compile(source).unwrap();
    let ended = program.run(parameters, &mut output, Limits::default());
    let mut transcript = String::from_utf8(output).unwrap();
    if let Err(mcpd_basic::RunError::Fault(fault)) = ended {
        for line in fault.report("example.bas").lines() {
            transcript += &format!("ERROR {line}\n");
        }
    }
    transcript
}

#[test]
fn every_example_prints_what_is_below_it() {
    let mut blocks = blocks().into_iter();
    let mut examples = 0;
    while let Some((language, source)) = blocks.next() {
        assert_eq!(language, "basic", "nothing prints this:\n{source}");
        let mut given = Map::new();
        let (mut language, mut expected) = blocks.next().unwrap();
        if language == "sh" {
            given = parameters(&expected);
            (language, expected) = blocks.next().unwrap();
        }
        assert_eq!(language, "text", "what does this print?\n{source}");
        assert_eq!(transcript(&source, &given), expected, "{source}");
        examples += 1;
    }
    assert!(examples >= 9, "only {examples} examples were found");
}
