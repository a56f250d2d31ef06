//! Editor sessions played against the server over its protocol.

use std::thread;
use std::time::Duration;

use super::*;

/// Time limit of a message from the server.
const TIMEOUT: Duration = Duration::from_secs(20);

/// An editor with a server of its own.
struct Editor {
    connection: Connection,
    server: thread::JoinHandle<Ending>,
    last_id: i32,
}

impl Editor {
    fn start(capabilities: Value) -> Self {
        let (connection, other) = Connection::memory();
        let server = thread::spawn(move || serve(&other, Selection::default()).unwrap());
        let mut editor = Self {
            connection,
            server,
            last_id: 0,
        };
        editor
            .request("initialize", json!({"capabilities": capabilities}))
            .unwrap();
        editor.notify("initialized", json!({}));
        editor
    }

    fn new() -> Self {
        Self::start(json!({}))
    }

    fn notify(&self, method: &str, params: Value) {
        let note = Notification::new(method.to_owned(), params);
        self.connection.sender.send(note.into()).unwrap();
    }

    fn receive(&self) -> Message {
        self.connection.receiver.recv_timeout(TIMEOUT).unwrap()
    }

    /// Sends a request, and returns its result or its error.
    fn request(&mut self, method: &str, params: Value) -> Result<Value, (i32, String)> {
        self.last_id += 1;
        let request = Request::new(self.last_id.into(), method.to_owned(), params);
        self.connection.sender.send(request.into()).unwrap();
        loop {
            if let Message::Response(response) = self.receive() {
                assert_eq!(response.id, self.last_id.into());
                let error = response.error.map(|error| (error.code, error.message));
                return error.map_or(Ok(response.result.unwrap_or_default()), Err);
            }
        }
    }

    fn open(&self, uri: &str, text: &str) {
        let document = json!({"uri": uri, "languageId": "toml", "version": 1, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document}));
    }

    /// Replaces what is from the first to the second position, as line and character.
    fn edit(&self, uri: &str, version: i32, from: (u32, u32), to: (u32, u32), text: &str) {
        let position = |(line, character)| json!({"line": line, "character": character});
        let change = json!({"range": {"start": position(from), "end": position(to)}, "text": text});
        let document = json!({"uri": uri, "version": version});
        let params = json!({"textDocument": document, "contentChanges": [change]});
        self.notify("textDocument/didChange", params);
    }

    /// Waits for the problems of a version: code, line, first and last character.
    fn problems(&self, version: i32) -> Vec<(String, u64, u64, u64)> {
        loop {
            let Message::Notification(note) = self.receive() else {
                panic!("a notification");
            };
            assert_eq!(note.method, "textDocument/publishDiagnostics");
            if note.params["version"] == version {
                let problems = note.params["diagnostics"].as_array().unwrap().iter();
                let problem = |problem: &Value| {
                    let range = &problem["range"];
                    let number = |value: &Value| value.as_u64().unwrap();
                    let code = problem["code"].as_str().unwrap_or_default().to_owned();
                    let start = &range["start"];
                    (
                        code,
                        number(&start["line"]),
                        number(&start["character"]),
                        number(&range["end"]["character"]),
                    )
                };
                return problems.map(problem).collect();
            }
        }
    }

    fn at(&mut self, method: &str, uri: &str, line: u32, character: u32) -> Value {
        let position = json!({"line": line, "character": character});
        let params = json!({"textDocument": {"uri": uri}, "position": position});
        self.request(method, params).unwrap()
    }

    /// Returns the labels of completions, and the new text of each.
    fn completions(&mut self, uri: &str, line: u32, character: u32) -> Vec<(String, String)> {
        let list = self.at("textDocument/completion", uri, line, character);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let item = |item: &Value| (text(&item["label"]), text(&item["textEdit"]["newText"]));
        list.as_array().unwrap().iter().map(item).collect()
    }

    fn hover(&mut self, uri: &str, line: u32, character: u32) -> String {
        let hover = self.at("textDocument/hover", uri, line, character);
        hover["contents"]["value"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Returns the titles of code actions and their edits: start, end and new text.
    fn actions(&mut self, uri: &str, line: u32, only: Value) -> Vec<(String, Vec<Value>)> {
        let position = json!({"line": line, "character": 0});
        let end = json!({"line": line, "character": 999});
        let mut context = json!({"diagnostics": []});
        if !only.is_null() {
            context["only"] = only;
        }
        let params = json!({
            "textDocument": {"uri": uri},
            "range": {"start": position, "end": end},
            "context": context,
        });
        let list = self.request("textDocument/codeAction", params).unwrap();
        let action = |action: &Value| {
            let edits = action["edit"]["changes"][uri].as_array().unwrap().clone();
            (action["title"].as_str().unwrap().to_owned(), edits)
        };
        list.as_array().unwrap().iter().map(action).collect()
    }

    fn leave(mut self) {
        self.request("shutdown", Value::Null).unwrap();
        self.notify("exit", Value::Null);
        assert_eq!(self.server.join().unwrap(), Ending::Clean);
    }
}

const SIDECAR: &str = "file:///tools/greet.mcpd.toml";

/// Words of completions, without their texts.
fn labels(completions: &[(String, String)]) -> Vec<&str> {
    completions
        .iter()
        .map(|(label, _)| label.as_str())
        .collect()
}

#[test]
fn problems_keep_up_with_edits() {
    let editor = Editor::new();
    editor.open(
        SIDECAR,
        "titel = 'Grüße 😀' # 😀\ndescription = 'Says hello'\n",
    );
    let found = editor.problems(1);
    assert_eq!(found, [("unknown-field".to_owned(), 0, 0, 5)]);
    editor.edit(SIDECAR, 2, (0, 0), (0, 5), "title");
    assert_eq!(editor.problems(2), []);
    // Behind characters outside of the basic plane, which count twice.
    editor.edit(SIDECAR, 3, (0, 22), (0, 22), "\nversion = 2026-01-02 #");
    assert_eq!(
        editor.problems(3),
        [("field-type-mismatch".to_owned(), 1, 10, 20)]
    );
    editor.edit(SIDECAR, 4, (1, 9), (1, 20), "");
    let found = editor.problems(4);
    assert_eq!(found[0].0, "source-syntax");
    for version in 5..50 {
        editor.edit(SIDECAR, version, (1, 9), (1, 9), "'");
    }
    // Only the last of many versions is sure to be checked.
    assert!(!editor.problems(49).is_empty());
    editor.notify(
        "textDocument/didClose",
        json!({"textDocument": {"uri": SIDECAR}}),
    );
    let Message::Notification(note) = editor.receive() else {
        panic!("a notification");
    };
    assert_eq!(note.params, json!({"uri": SIDECAR, "diagnostics": []}));
    editor.leave();
}

#[test]
fn positions_count_bytes_if_the_editor_offers_it() {
    let editor = Editor::start(json!({"general": {"positionEncodings": ["utf-16", "utf-8"]}}));
    editor.open(SIDECAR, "description = 'ü😀'\ntags = ['ü😀', 3]\n");
    assert_eq!(
        editor.problems(1),
        [("field-type-mismatch".to_owned(), 1, 18, 19)]
    );
    editor.leave();
    let editor = Editor::new();
    editor.open(SIDECAR, "description = 'ü😀'\ntags = ['ü😀', 3]\n");
    assert_eq!(
        editor.problems(1),
        [("field-type-mismatch".to_owned(), 1, 15, 16)]
    );
    editor.leave();
}

#[test]
fn sidecar_is_completed_by_its_schema() {
    let mut editor = Editor::new();
    editor.open(
        SIDECAR,
        "description = 'x'\n\noutput = \nstate = t\n[options.name]\nvalue_type = \"\"\n\n",
    );
    let keys = editor.completions(SIDECAR, 1, 0);
    let names = labels(&keys);
    assert!(
        names.contains(&"title") && names.contains(&"annotations"),
        "{names:?}"
    );
    assert!(
        !names.contains(&"description") && !names.contains(&"output"),
        "{names:?}"
    );
    assert!(keys.contains(&("title".to_owned(), "title = ".to_owned())));
    assert!(keys.contains(&("annotations".to_owned(), "[annotations]".to_owned())));
    let outputs = editor.completions(SIDECAR, 2, 9);
    let expected = ["text", "json", "mcp"].map(|word| (word.to_owned(), format!("\"{word}\"")));
    assert_eq!(outputs, expected);
    assert_eq!(
        labels(&editor.completions(SIDECAR, 3, 9)),
        ["true", "false"]
    );
    let types = editor.completions(SIDECAR, 5, 14);
    assert!(
        types.contains(&("integer".to_owned(), "integer".to_owned())),
        "{types:?}"
    );
    let fields = editor.completions(SIDECAR, 6, 0);
    let names = labels(&fields);
    assert!(
        names.contains(&"required") && !names.contains(&"value_type"),
        "{names:?}"
    );
    assert!(fields.contains(&("size".to_owned(), "[options.name.size]".to_owned())));
    assert!(
        editor
            .hover(SIDECAR, 0, 3)
            .starts_with("What it does, for the model")
    );
    assert!(
        editor
            .hover(SIDECAR, 2, 2)
            .contains("Values: `text`, `json`, `mcp`.")
    );
    assert_eq!(editor.hover(SIDECAR, 1, 0), "");
    editor.leave();
}

#[test]
fn json_and_configurations_are_completed() {
    let mut editor = Editor::new();
    let json = "file:///tools/greet.mcpd.json";
    editor.open(json, "{\n  \"description\": \"x\",\n  \"out\"\n}");
    let keys = editor.completions(json, 2, 6);
    assert!(
        keys.contains(&("output".to_owned(), "\"output\"".to_owned())),
        "{keys:?}"
    );
    let directory = std::env::temp_dir();
    let config = format!("file://{}/mcpd.toml", directory.display());
    editor.open(
        &config,
        "tool_names = \n\n[[tool]]\n\n[log]\nfilter = 'nonsense='\n",
    );
    let names = editor.completions(&config, 0, 13);
    assert_eq!(labels(&names), ["path", "portable"]);
    let tables = editor.completions(&config, 1, 0);
    assert!(
        tables.contains(&("upstream".to_owned(), "[[upstream]]".to_owned())),
        "{tables:?}"
    );
    assert!(!labels(&tables).contains(&"tool_names"));
    assert!(labels(&editor.completions(&config, 3, 0)).contains(&"timeout"));
    assert!(
        editor
            .hover(&config, 5, 2)
            .starts_with("Filter of log messages")
    );
    editor.leave();
}

#[test]
fn configuration_shows_its_faults_with_fixes() {
    let directory = std::env::temp_dir();
    let uri = format!("file://{}/mcpd.toml", directory.display());
    let mut editor = Editor::new();
    editor.open(&uri, "timeot = 3\n");
    assert_eq!(editor.problems(1), [(String::new(), 0, 0, 6)]);
    let actions = editor.actions(&uri, 0, json!(["quickfix"]));
    assert_eq!(actions[0].0, "Write `timeout`");
    editor.edit(&uri, 2, (0, 0), (0, 6), "timeout");
    assert_eq!(editor.problems(2), []);
    editor.edit(&uri, 3, (0, 10), (0, 10), "\n[log]\nfilter = 'nonsense='");
    assert_eq!(editor.problems(3).len(), 1);
    editor.leave();
}

#[test]
fn header_of_a_script_is_like_a_sidecar() {
    let directory = std::env::temp_dir().join(format!("mcpd-lsp-{}", std::process::id()));
    let mark = directory.join("mark");
    let uri = "file:///tools/greet";
    let text = format!(
        "#!/bin/sh\ntouch {}\n# /// mcpd\n# titel = 'x'\n# description = 'x'\n#\n# \n# output = 'json'\n# ///\n",
        mark.display()
    );
    let mut editor = Editor::new();
    editor.open(uri, &text);
    assert_eq!(editor.problems(1), [("unknown-field".to_owned(), 3, 2, 7)]);
    let keys = editor.completions(uri, 6, 2);
    assert!(
        keys.contains(&("version".to_owned(), "version = ".to_owned())),
        "{keys:?}"
    );
    let keys = editor.completions(uri, 5, 1);
    assert!(
        keys.contains(&("version".to_owned(), " version = ".to_owned())),
        "{keys:?}"
    );
    assert_eq!(editor.completions(uri, 1, 3), []);
    assert!(editor.hover(uri, 7, 3).starts_with("What it prints."));
    let actions = editor.actions(uri, 3, Value::Null);
    let titles: Vec<_> = actions.iter().map(|(title, _)| title.as_str()).collect();
    assert_eq!(titles, ["Write `title`", "Fix all that needs no decision"]);
    let range = &actions[0].1[0]["range"];
    assert_eq!(
        *range,
        json!({"start": {"line": 3, "character": 2}, "end": {"line": 3, "character": 7}})
    );
    editor.leave();
    assert!(!mark.exists(), "no script is run");
    // PEP 723 has a table of ours.
    let mut editor = Editor::new();
    let uri = "file:///tools/greet.py";
    editor.open(
        uri,
        "# /// script\n# dependencies = []\n# [tool.mcpd]\n# description = 'x'\n# \n# ///\n",
    );
    assert_eq!(editor.problems(1), []);
    assert!(labels(&editor.completions(uri, 4, 2)).contains(&"title"));
    assert_eq!(editor.completions(uri, 1, 4), []);
    editor.leave();
}

#[test]
fn all_fixes_are_one_action() {
    let mut editor = Editor::new();
    editor.open(SIDECAR, "titel = 'x'\ndescripton = 'x'\noutput = 'JSON'\n");
    let actions = editor.actions(SIDECAR, 9, json!(["source.fixAll"]));
    let [(_, edits)] = &actions[..] else {
        panic!("one action: {actions:?}");
    };
    assert_eq!(edits.len(), 1);
    assert_eq!(
        edits[0]["newText"],
        "le = 'x'\ndescription = 'x'\noutput = 'json"
    );
    // A fix with a new error is not offered.
    editor.open(SIDECAR, "titel = 'x'\ntitle = 'x'\ndescription = 'x'\n");
    assert_eq!(editor.actions(SIDECAR, 0, Value::Null), []);
    editor.leave();
}

#[test]
fn comment_ignores_a_problem() {
    let editor = Editor::new();
    editor.open(
        SIDECAR,
        "colour = 1 # mcpd: ignore[unknown-field]\n# mcpd: ignore[missing-description, x]\n",
    );
    assert_eq!(
        editor.problems(1),
        [("unused-ignore".to_owned(), 1, 36, 37)]
    );
    editor.leave();
}

#[test]
fn session_ends_as_the_protocol_says() {
    let mut editor = Editor::new();
    let (code, message) = editor
        .request("textDocument/rename", json!({}))
        .unwrap_err();
    assert_eq!(
        (code, message.as_str()),
        (-32601, "there is no method `textDocument/rename`")
    );
    let (code, _) = editor
        .request("textDocument/hover", json!({"position": 3}))
        .unwrap_err();
    assert_eq!(code, -32602);
    editor.notify("textDocument/didChange", json!({"textDocument": "?"}));
    editor.notify("$/setTrace", json!({"value": "off"}));
    assert_eq!(
        editor.at("textDocument/hover", "file:///gone.mcpd.toml", 0, 0),
        Value::Null
    );
    editor.request("shutdown", Value::Null).unwrap();
    let (code, _) = editor.request("textDocument/hover", json!({})).unwrap_err();
    assert_eq!(code, -32600);
    editor.leave_at_once(Ending::Clean);
    Editor::new().leave_at_once(Ending::Abrupt);
    let editor = Editor::new();
    drop(editor.connection);
    assert_eq!(editor.server.join().unwrap(), Ending::Abrupt);
}

impl Editor {
    fn leave_at_once(self, expected: Ending) {
        self.notify("exit", Value::Null);
        assert_eq!(self.server.join().unwrap(), expected);
    }
}

#[test]
fn any_broken_text_is_survived() {
    let mut editor = Editor::new();
    let whole = "description = 'x'\n[options.a]\nvalue_type = { enum = [\"ü\"] }\nexamples = [\n'''x\n''']\n";
    for (end, _) in whole.char_indices() {
        let text = &whole[..end];
        editor.open(SIDECAR, text);
        let lines = u32::try_from(text.matches('\n').count()).unwrap();
        let last = text.rsplit('\n').next().unwrap_or_default();
        let column = u32::try_from(last.encode_utf16().count()).unwrap();
        editor.completions(SIDECAR, lines, column);
        editor.hover(SIDECAR, lines, column);
        editor.actions(SIDECAR, lines, Value::Null);
    }
    editor.leave();
}
