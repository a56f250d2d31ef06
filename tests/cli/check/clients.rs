//! `mcpd check --as`: reports tools that a client would not forward.

use insta::assert_snapshot;
use mcpd_tests::Sandbox;
use serde_json::{Value, json};

use crate::HELLO;

/// Returns a script with this metadata.
fn describe_script(metadata: &Value) -> String {
    format!("#!/bin/sh\ncat <<'EOF'\n{metadata}\nEOF\n")
}

fn with_schema(schema: &Value) -> String {
    describe_script(&json!({"description": "Takes what it takes", "input_schema": schema}))
}

/// Returns a sandbox with tools that at least one client refuses.
fn hostile() -> Sandbox {
    let references = json!({
        "type": "object",
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {"a/b": {"type": "array"}},
        "properties": {"list": {"$ref": "#/$defs/a~1b"}, "größe": {"type": "string", "format": "date"}},
        "required": ["list"],
    });
    let alternatives = json!({
        "type": "object",
        "properties": {
            "format": {"type": "string", "default": {"format": "is a value here", "type": "array"}},
            "options": {"type": "object", "additionalProperties": {"anyOf": [{"type": "array"}]}},
        },
        "required": ["format", "options"],
        "anyOf": [{"required": ["format"]}],
    });
    let talkative = describe_script(&json!({"description": "x".repeat(1025)}));
    Sandbox::new()
        .with_script("references", &with_schema(&references))
        .with_script("alternatives", &with_schema(&alternatives))
        .with_script("talkative", &talkative)
        .with_script(
            "say/it-in-a-name-of-sixty-four-characters/is-too-long-for-others",
            HELLO,
        )
}

#[track_caller]
fn seen_by(client: &str) -> String {
    hostile().run(&["check", "scripts", "--as", client])
}

#[test]
fn claude_refuses_all_tools_for_one_fault() {
    assert_snapshot!(seen_by("claude"), @r##"
    exit code: 1
    ----- stdout -----
    Claude Desktop and claude.ai
      alternatives as alternatives
        refused together with every other tool: `anyOf` at `#` (Anthropic's API refuses a request with these keywords at the root of a tool's schema)
        {"type":"object","properties":{"format":{"type":"string","default":{"format":"is a value here","type":"array"}},"options":{"type":"object","additionalProperties":{"anyOf":[{"type":"array","items":{}}]},"properties":{}}},"required":["format","options"],"anyOf":[{"required":["format"]}]}
      references as references
        refused by some versions or in some modes: `$ref` at `#/properties/list` (Anthropic's managed agents refuse tools with references)
        {"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"a/b":{"type":"array","items":{}}},"properties":{"list":{"$ref":"#/$defs/a~1b"},"grosse":{"type":"string","format":"date","description":"Called `größe`."}},"required":["list"]}
      say/it-in-a-name-of-sixty-four-characters/is-too-long-for-others as say_it-in-a-name-of-sixty-four-characters_is-too-long-for-others
        {"type":"object","properties":{},"additionalProperties":false}
      talkative as talkative
        {"type":"object","properties":{},"additionalProperties":false}
    "##);
}

#[test]
fn openai_has_a_strict_mode() {
    assert_snapshot!(seen_by("openai"), @r##"
    exit code: 1
    ----- stdout -----
    OpenAI's API
      alternatives as alternatives
        refused by some versions or in some modes: `any` at `#/properties/options/additionalProperties/anyOf/0/items` (strict mode requires a type for every property)
        {"type":"object","properties":{"format":{"type":"string","default":{"format":"is a value here","type":"array"}},"options":{"type":"object","additionalProperties":{"anyOf":[{"type":"array","items":{}}]},"properties":{}}},"required":["format","options"],"anyOf":[{"required":["format"]}]}
      references as references
        refused by some versions or in some modes: `grosse` at `#` (strict mode requires every property in `required`)
        refused by some versions or in some modes: `format` at `#/properties/grosse` (strict mode refuses this keyword)
        {"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"a/b":{"type":"array","items":{}}},"properties":{"list":{"$ref":"#/$defs/a~1b"},"grosse":{"type":"string","format":"date","description":"Called `größe`."}},"required":["list"]}
      say/it-in-a-name-of-sixty-four-characters/is-too-long-for-others as say_it-in-a-name-of-sixty-four-characters_is-too-long-for-others
        {"type":"object","properties":{},"additionalProperties":false}
      talkative as talkative
        refused together with every other tool: the description, of 1025 characters (a function description may have at most 1024 characters)
        {"type":"object","properties":{},"additionalProperties":false}
    "##);
}

#[test]
fn gemini_takes_keywords_and_the_middle_of_names_out() {
    assert_snapshot!(seen_by("gemini"), @r##"
    exit code: 0
    ----- stdout -----
    Gemini CLI
      alternatives as alternatives
        refused by some versions or in some modes: `default` at `#/properties/format` (Gemini's own schema format does not support this keyword, so clients that send that format remove it)
        changed: `additionalProperties` at `#/properties/options` (Gemini CLI removes this keyword)
        {"type":"object","properties":{"format":{"type":"string","default":{"format":"is a value here","type":"array"}},"options":{"type":"object","properties":{}}},"required":["format","options"],"anyOf":[{"required":["format"]}]}
      references as references
        changed: `$schema` at `#` (Gemini CLI removes this keyword)
        refused by some versions or in some modes: `format` at `#/properties/grosse` (Gemini's own schema format does not support this keyword, so clients that send that format remove it)
        {"type":"object","$defs":{"a/b":{"type":"array","items":{}}},"properties":{"list":{"$ref":"#/$defs/a~1b"},"grosse":{"type":"string","format":"date","description":"Called `größe`."}},"required":["list"]}
      say/it-in-a-name-of-sixty-four-characters/is-too-long-for-others as say_it-in-a-name-of-sixty-fo___haracters_is-too-long-for-others
        changed: the name, of 64 characters (Gemini CLI removes the middle of names of more than 63 characters)
        changed: `additionalProperties` at `#` (Gemini CLI removes this keyword)
        {"type":"object","properties":{}}
      talkative as talkative
        refused by some versions or in some modes: the description, of 1025 characters (a function description may have at most 1024 characters)
        changed: `additionalProperties` at `#` (Gemini CLI removes this keyword)
        {"type":"object","properties":{}}
    "##);
}

#[test]
fn cursor_counts_the_name_of_the_server() {
    assert_snapshot!(seen_by("cursor"), @r##"
    exit code: 1
    ----- stdout -----
    Cursor
      alternatives as alternatives
        {"type":"object","properties":{"format":{"type":"string","default":{"format":"is a value here","type":"array"}},"options":{"type":"object","additionalProperties":{"anyOf":[{"type":"array","items":{}}]},"properties":{}}},"required":["format","options"],"anyOf":[{"required":["format"]}]}
      references as references
        {"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"a/b":{"type":"array","items":{}}},"properties":{"list":{"$ref":"#/$defs/a~1b"},"grosse":{"type":"string","format":"date","description":"Called `größe`."}},"required":["list"]}
      say/it-in-a-name-of-sixty-four-characters/is-too-long-for-others as say_it-in-a-name-of-sixty-four-characters_is-too-long-for-others
        refused by some versions or in some modes: the name `say_it-in-a-name-of-sixty-four-characters_is-too-long-for-others` (Cursor warns about names outside `[a-zA-Z0-9_]`, and some versions drop the tool)
        refused: the name, of 64 characters (Cursor drops tools if the names of the server (here `mcpd`) and the tool have more than 60 characters together)
        {"type":"object","properties":{},"additionalProperties":false}
      talkative as talkative
        {"type":"object","properties":{},"additionalProperties":false}
    "##);
}

#[test]
fn vscode_prefixes_names_with_the_server() {
    assert_snapshot!(seen_by("vscode"), @r##"
    exit code: 0
    ----- stdout -----
    VS Code
      alternatives as mcp_mcpd_alternatives
        {"type":"object","properties":{"format":{"type":"string","default":{"format":"is a value here","type":"array"}},"options":{"type":"object","additionalProperties":{"anyOf":[{"type":"array","items":{}}]},"properties":{}}},"required":["format","options"],"anyOf":[{"required":["format"]}]}
      references as mcp_mcpd_references
        {"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"a/b":{"type":"array","items":{}}},"properties":{"list":{"$ref":"#/$defs/a~1b"},"grosse":{"type":"string","format":"date","description":"Called `größe`."}},"required":["list"]}
      say/it-in-a-name-of-sixty-four-characters/is-too-long-for-others as mcp_mcpd_say_it-in-a-name-of-sixty-four-characters_is-too-long-f
        changed: the name, of 73 characters (VS Code cuts names, including the prefix, after 64 characters)
        {"type":"object","properties":{},"additionalProperties":false}
      talkative as mcp_mcpd_talkative
        {"type":"object","properties":{},"additionalProperties":false}
    "##);
}

#[test]
fn ordinary_tools_pass_everywhere() {
    let sandbox = Sandbox::new().with_script("hello", HELLO);
    assert_snapshot!(sandbox.run(&["check", "scripts", "--as", "all", "--deny", "warnings"]), @r#"
    exit code: 0
    ----- stdout -----
    Claude Desktop and claude.ai
      hello as hello
        {"type":"object","properties":{},"additionalProperties":false}

    OpenAI's API
      hello as hello
        {"type":"object","properties":{},"additionalProperties":false}

    Gemini CLI
      hello as hello
        changed: `additionalProperties` at `#` (Gemini CLI removes this keyword)
        {"type":"object","properties":{}}

    Cursor
      hello as hello
        {"type":"object","properties":{},"additionalProperties":false}

    VS Code
      hello as mcp_mcpd_hello
        {"type":"object","properties":{},"additionalProperties":false}
    "#);
}

#[test]
fn json_has_the_forwarded_definition() {
    let sandbox = Sandbox::new().with_script("say/hello", HELLO);
    let check = [
        "check",
        "scripts",
        "--as",
        "vscode",
        "--tool-names",
        "path",
        "--format",
        "json",
    ];
    assert_snapshot!(sandbox.run(&check), @r#"
    exit code: 0
    ----- stdout -----
    [
      {
        "client": "vscode",
        "remarks": [],
        "tools": [
          {
            "path": "say/hello",
            "name": "mcp_mcpd_say_hello",
            "inputSchema": {
              "type": "object",
              "properties": {},
              "additionalProperties": false
            },
            "remarks": [
              {
                "what": "the name `mcp_mcpd_say/hello`",
                "effect": "changed",
                "why": "VS Code replaces every character outside `[a-zA-Z0-9_-]` with `_`"
              }
            ]
          }
        ]
      }
    ]
    "#);
}

#[test]
fn names_with_slashes_are_refused_by_some() {
    let sandbox = Sandbox::new().with_script("say/hello", HELLO);
    for (client, code) in [
        ("claude", 1),
        ("openai", 1),
        ("gemini", 0),
        ("cursor", 0),
        ("vscode", 0),
    ] {
        let check = ["check", "scripts", "--as", client, "--tool-names", "path"];
        let transcript = sandbox.run(&check);
        assert!(
            transcript.starts_with(&format!("exit code: {code}\n")),
            "{transcript}"
        );
    }
}

#[test]
fn too_many_tools_are_refused() {
    let sandbox = Sandbox::new();
    for number in 0..81 {
        sandbox.write_script(&format!("n{number}"), HELLO);
    }
    let transcript = sandbox.run(&["check", "scripts", "--as", "cursor"]);
    assert!(
        transcript.starts_with("exit code: 1\n----- stdout -----\nCursor\n  refused: 81 tools ("),
        "{transcript}"
    );
}

#[test]
fn other_formats_refuse_clients() {
    let refused = hostile().run(&["check", "scripts", "--as", "claude", "--format", "sarif"]);
    assert_snapshot!(refused, @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to show the tools as clients see them: `--as` supports only the formats human and json
    ");
}
