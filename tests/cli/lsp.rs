//! `mcpd lsp`: a session with an editor over the pipes of the process, and its exit codes.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use mcpd_tests::Sandbox;
use serde_json::{Value, json};

/// An editor with the process that it has started.
struct Editor {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Editor {
    fn start(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let mut command = sandbox.command(&[&["lsp"], arguments].concat());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let mut editor = Self {
            input: process.stdin.take(),
            output: BufReader::new(process.stdout.take().unwrap()),
            process,
        };
        let capabilities = json!({"general": {"positionEncodings": ["utf-8"]}});
        editor.send(
            &json!({"id": 1, "method": "initialize", "params": {"capabilities": capabilities}}),
        );
        let answer = editor.receive();
        assert_eq!(answer["result"]["serverInfo"]["name"], "mcpd");
        assert_eq!(
            answer["result"]["capabilities"]["positionEncoding"],
            "utf-8"
        );
        editor.send(&json!({"method": "initialized", "params": {}}));
        editor
    }

    fn send(&mut self, message: &Value) {
        let mut message = message.clone();
        message["jsonrpc"] = json!("2.0");
        let text = message.to_string();
        let mut input = self.input.as_ref().unwrap();
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            match line.trim_end().strip_prefix("Content-Length: ") {
                Some(number) => length = number.parse().unwrap(),
                None if line.trim_end().is_empty() => break,
                None => {}
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    fn open(&mut self, uri: &str, text: &str) -> Value {
        let document = json!({"uri": uri, "languageId": "toml", "version": 1, "text": text});
        self.send(&json!({"method": "textDocument/didOpen", "params": {"textDocument": document}}));
        self.receive()["params"]["diagnostics"].clone()
    }

    /// Closes the input, and returns the exit code.
    fn wait(mut self) -> i32 {
        self.input = None;
        self.process.wait().unwrap().code().unwrap()
    }
}

const SIDECAR: &str = "file:///greet.mcpd.toml";

#[test]
fn editor_gets_problems_and_a_clean_end() {
    let sandbox = Sandbox::new();
    let mut editor = Editor::start(&sandbox, &["--stdio"]);
    let problems = editor.open(SIDECAR, "titel = 'x'\ndescription = 'x'\n");
    assert_eq!(problems[0]["code"], "unknown-field");
    assert_eq!(problems[0]["source"], "mcpd");
    editor.send(&json!({"id": 2, "method": "shutdown"}));
    assert_eq!(editor.receive()["result"], Value::Null);
    editor.send(&json!({"method": "exit"}));
    assert_eq!(editor.wait(), 0);
}

#[test]
fn exit_code_is_1_without_a_shutdown() {
    let sandbox = Sandbox::new();
    let mut editor = Editor::start(&sandbox, &[]);
    editor.send(&json!({"method": "exit"}));
    assert_eq!(editor.wait(), 1);
    assert_eq!(Editor::start(&sandbox, &[]).wait(), 1);
}

#[test]
fn rules_are_those_of_the_configuration_unless_it_is_faulty() {
    let sandbox = Sandbox::new();
    let config = sandbox.path().join("mcpd.toml");
    fs::write(&config, "[check]\nignore = ['unknown-field']\n").unwrap();
    let mut editor = Editor::start(&sandbox, &[]);
    assert_eq!(
        editor.open(SIDECAR, "titel = 'x'\ndescription = 'x'\n"),
        json!([])
    );
    drop(editor);
    fs::write(&config, "[chek]\n").unwrap();
    let mut editor = Editor::start(&sandbox, &[]);
    let uri = format!("file://{}", config.display());
    let problems = editor.open(&uri, "[chek]\n");
    let message = problems[0]["message"].as_str().unwrap();
    assert!(
        message.ends_with("unknown key `chek`; did you mean `check`?"),
        "{message}"
    );
    assert_eq!(editor.wait(), 1);
}
