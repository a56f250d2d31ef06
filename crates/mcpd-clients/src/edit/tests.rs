//! Edits of files with odd formatting, generated from parts, and of those that are refused.

use serde_json::json;

use super::*;

fn entry() -> Value {
    json!({ "command": "/bin/mcpd", "args": ["stdio", "a b"], "env": { "A": "b" } })
}

/// An insertion is there, a second changes nothing, and a removal restores the text.
#[track_caller]
fn check_round_trip(text: &str, format: Format, table: &Table) {
    let after = insert(text, format, table, "mcpd", &entry())
        .unwrap_or_else(|error| panic!("{error} in\n{text}"));
    assert_ne!(after, text);
    let again = insert(&after, format, table, "mcpd", &entry()).unwrap();
    assert_eq!(again, after);
    let removal = remove(&after, format, table, "mcpd").unwrap();
    assert_eq!(removal, Removal::Text(text.to_owned()), "from\n{after}");
}

/// An entry is changed, and everything else is not.
#[track_caller]
fn check_replacement(text: &str, format: Format, table: &Table) {
    let old = json!({ "command": "old" });
    let with_old = insert(text, format, table, "mcpd", &old).unwrap();
    let with_new = insert(&with_old, format, table, "mcpd", &entry()).unwrap();
    assert_eq!(
        with_new,
        insert(text, format, table, "mcpd", &entry()).unwrap()
    );
}

#[track_caller]
fn check_error(text: &str, format: Format, table: &Table, expected: &str) {
    let error = insert(text, format, table, "mcpd", &entry()).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

fn servers() -> Table {
    Table::map(["servers"])
}

#[test]
fn json_of_any_layout_is_restored() {
    let mut count = 0;
    for newline in ["\n", "\r\n", " ", ""] {
        let comments = if newline.contains('\n') {
            ["", " // u: \"}\", http://x"]
        } else {
            [""; 2]
        };
        for comment in comments {
            for comma in ["", ","] {
                for block in ["", "/* , } */ "] {
                    for close in ["", newline] {
                        for rest in ["", "\"z\": [1, {}]"] {
                            let is_strict =
                                comment.is_empty() && comma.is_empty() && block.is_empty();
                            let last = format!("\"url\": \"http://x\"{comma}{comment}");
                            let last = if comment.is_empty() {
                                format!("{last}{close}")
                            } else {
                                format!("{last}{newline}")
                            };
                            let table = format!(
                                "\"servers\": {{{newline}\t\"a\": {{{last}}}, \"b\": {block}2{comma}{comment}{newline}}}"
                            );
                            let rest = if rest.is_empty() {
                                String::new()
                            } else {
                                format!(",{newline}{rest}")
                            };
                            let text = format!("{block}{{{newline}{table}{rest}{comma}{close}}}");
                            let format = if is_strict {
                                Format::Json
                            } else {
                                Format::Jsonc
                            };
                            check_round_trip(&text, format, &servers());
                            check_replacement(&text, format, &servers());
                            check_round_trip(&text, format, &Table::map(["z2", "deep"]));
                            count += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(count >= 128, "{count}");
}

#[test]
fn json_entry_between_others_is_cut_alone() {
    let table = servers();
    let text =
        "{\"servers\": {\n  // mine\n  \"mcpd\": {}, // here\n  \"b\": 1, \"c\": 2 // last\n}}\n";
    let removal = remove(text, Format::Jsonc, &table, "mcpd").unwrap();
    let rest = "{\"servers\": {\n  // mine // here\n  \"b\": 1, \"c\": 2 // last\n}}\n";
    assert_eq!(removal, Removal::Text(rest.to_owned()));
    let text = "{\"servers\": {\n  // mine\n  \"mcpd\": {}, \"b\": 1}}";
    let removal = remove(text, Format::Jsonc, &table, "mcpd").unwrap();
    assert_eq!(
        removal,
        Removal::Text("{\"servers\": {\n  // mine\n  \"b\": 1}}".to_owned())
    );
}

#[test]
fn json_entry_on_a_line_with_others_is_cut_with_its_space() {
    for (text, rest) in [
        (
            "{\"servers\": {\"mcpd\": {}, \"b\": 1}}",
            "{\"servers\": {\"b\": 1}}",
        ),
        (
            "{\"servers\": {\"a\": 1, \"mcpd\": {}, \"b\": 1}}",
            "{\"servers\": {\"a\": 1, \"b\": 1}}",
        ),
        (
            "{\"servers\":{\"a\":1,\"mcpd\":{}}}",
            "{\"servers\":{\"a\":1}}",
        ),
    ] {
        let removal = remove(text, Format::Json, &servers(), "mcpd").unwrap();
        assert_eq!(removal, Removal::Text(rest.to_owned()));
    }
    let text = insert(
        "{\"servers\":{\"a\":1}}",
        Format::Json,
        &servers(),
        "mcpd",
        &json!({}),
    )
    .unwrap();
    assert_eq!(text, "{\"servers\":{\"a\":1,\"mcpd\":{}}}");
}

#[test]
fn json_empty_table_is_filled() {
    let table = servers();
    for (text, expected) in [
        (
            "{\"servers\": {}, \"a\": 1}",
            "{\"servers\": {\"mcpd\": {}}, \"a\": 1}",
        ),
        (
            "{\n  \"servers\": {},\n  \"a\": 1\n}",
            "{\n  \"servers\": {\n    \"mcpd\": {}\n  },\n  \"a\": 1\n}",
        ),
        (
            "{\n  \"servers\": {\n  },\n  \"a\": 1\n}",
            "{\n  \"servers\": {\n    \"mcpd\": {}\n  },\n  \"a\": 1\n}",
        ),
        (
            "{\n  \"servers\": { // none\n  }\n}",
            "{\n  \"servers\": { // none\n    \"mcpd\": {}\n  }\n}",
        ),
        (
            "{\n  \"servers\": null\n}",
            "{\n  \"servers\": {\n    \"mcpd\": {}\n  }\n}",
        ),
        ("{}", "{\n  \"servers\": {\n    \"mcpd\": {}\n  }\n}"),
        (
            "// nothing\n",
            "// nothing\n{\n  \"servers\": {\n    \"mcpd\": {}\n  }\n}\n",
        ),
    ] {
        assert_eq!(
            insert(text, Format::Jsonc, &table, "mcpd", &json!({})).unwrap(),
            expected
        );
    }
    let filled = "{\n  \"servers\": {\n    \"mcpd\": {}\n  },\n  \"a\": 1\n}";
    let removal = remove(filled, Format::Json, &table, "mcpd").unwrap();
    assert_eq!(
        removal,
        Removal::Text("{\n  \"servers\": {},\n  \"a\": 1\n}".to_owned())
    );
    let alone = "{\n  \"servers\": {\n    \"mcpd\": {}\n  }\n}\n";
    let removal = remove(alone, Format::Json, &table, "mcpd").unwrap();
    assert_eq!(
        removal,
        Removal::Empty("{\n  \"servers\": {}\n}\n".to_owned())
    );
}

#[test]
fn json_that_cannot_be_edited_is_refused() {
    let table = servers();
    for (text, expected) in [
        (
            "[]",
            "line 1, column 1: the root of the file is a list, not a mapping; correct it and try again",
        ),
        (
            "{\n  \"servers\": []\n}",
            "line 2, column 14: `servers` is a list, not a mapping; correct it and try again",
        ),
        (
            "{\"servers\": {}, \"servers\": {}}",
            "line 1, column 17: `servers` is defined twice; delete one of them and try again",
        ),
        (
            "{\"servers\": {\"a\": 1, \"a\": 2}}",
            "line 1, column 22: `a` is defined twice; delete one of them and try again",
        ),
    ] {
        check_error(text, Format::Jsonc, &table, expected);
    }
    for text in [
        "{\"a\": 1} // c",
        "{\"a\": 1,}",
        "{a: 1}",
        "{'a': 1}",
        "{\"a\": 01}",
        "{\"a\": +1}",
    ] {
        let error = insert(text, Format::Json, &table, "mcpd", &entry()).unwrap_err();
        assert!(matches!(error, EditError::Syntax { .. }), "{text}: {error}");
    }
}

#[test]
fn yaml_of_any_layout_is_restored() {
    let table = Table::map(["servers"]);
    let list = Table::list(["servers"], "name");
    for newline in ["\n", "\r\n"] {
        for start in ["", "# c\n", "---\n", "a: 1\n\n"] {
            for value in [
                "2",
                "2 # c",
                "|\n      text\n\n      more",
                "{ x: 1 }",
                "\n      x:\n      - 1",
                "",
            ] {
                for end in ["", "\n", "\n\n# end\n", "\nz:\n- 1\n", "\n...\n"] {
                    let text = format!("{start}servers:\n  a: 1\n  b: {value}{end}");
                    check_round_trip(&text.replace('\n', newline), Format::Yaml, &table);
                    check_replacement(&text.replace('\n', newline), Format::Yaml, &table);
                    check_round_trip(
                        &text.replace('\n', newline),
                        Format::Yaml,
                        &Table::map(["new"]),
                    );
                    for indent in ["", "  "] {
                        let text = format!(
                            "{start}servers:\n{indent}- name: b\n{indent}  v: {value}{end}"
                        );
                        let text = text.replace('\n', newline);
                        let mut named = entry();
                        named["name"] = json!("mcpd");
                        let after = insert(&text, Format::Yaml, &list, "mcpd", &named)
                            .unwrap_or_else(|error| panic!("{error} in\n{text}"));
                        let removal = remove(&after, Format::Yaml, &list, "mcpd").unwrap();
                        assert_eq!(removal, Removal::Text(text));
                    }
                }
            }
        }
    }
}

#[test]
fn yaml_empty_table_is_filled() {
    let table = servers();
    for (text, expected) in [
        ("servers:\na: 1\n", "servers:\n  mcpd:\n    a: 1\na: 1\n"),
        (
            "servers: {}  # none\na: 1\n",
            "servers:  # none\n  mcpd:\n    a: 1\na: 1\n",
        ),
        ("servers: null", "servers:\n  mcpd:\n    a: 1"),
        ("# nothing\n", "# nothing\nservers:\n  mcpd:\n    a: 1\n"),
        ("{}\n", "servers:\n  mcpd:\n    a: 1\n"),
    ] {
        let after = insert(text, Format::Yaml, &table, "mcpd", &json!({ "a": 1 })).unwrap();
        assert_eq!(after, expected);
    }
    let text = "servers:\n  mcpd:\n    a: 1\nb: 1\n";
    let removal = remove(text, Format::Yaml, &table, "mcpd").unwrap();
    assert_eq!(removal, Removal::Text("servers: {}\nb: 1\n".to_owned()));
    let text = "servers:\n  mcpd:\n    a: 1\n";
    let removal = remove(text, Format::Yaml, &table, "mcpd").unwrap();
    assert_eq!(removal, Removal::Empty("servers: {}\n".to_owned()));
}

#[test]
fn yaml_that_cannot_be_edited_is_refused() {
    let table = servers();
    for (text, expected) in [
        (
            "servers: {a: 1}\n",
            "line 1, column 10: the settings are in braces; write them as indented lines and try again",
        ),
        (
            "servers: &all\n  a: 1\nb: *all\n",
            "line 1, column 10: the settings have an anchor (`&`) or an alias (`*`); edit the file by hand",
        ),
        (
            "servers:\n  a: &a\n    x: 1\n  b:\n    <<: *a\n",
            "line 2, column 3: the settings have an anchor (`&`) or an alias (`*`); edit the file by hand",
        ),
        (
            "a: 1\n---\nb: 1\n",
            "line 2, column 1: the file has a second document; edit the file by hand",
        ),
        (
            "- a\n",
            "line 1, column 1: the root of the file is a list, not a mapping; correct it and try again",
        ),
        (
            "servers: 1\n",
            "line 1, column 10: `servers` is a number, not a mapping; correct it and try again",
        ),
        (
            "servers:\n  a: 1\n  a: 2\n",
            "line 3, column 3: `a` is defined twice; delete one of them and try again",
        ),
    ] {
        check_error(text, Format::Yaml, &table, expected);
    }
}

#[test]
fn toml_of_any_layout_is_restored() {
    let table = servers();
    for newline in ["\n", "\r\n"] {
        for start in [
            "",
            "# c\na = 1\n\n",
            "[servers]\n",
            "[servers]\nx = { a = 1 }\n",
        ] {
            for value in ["2 # c", "'''\n# t\n[x]\n'''", "[\n  1, # c\n]"] {
                for end in ["", "\n", "\n\n# end\n", "\n\n[[z]]\na = 1\n"] {
                    let text = format!("{start}[servers.b]\nv = {value}{end}");
                    check_round_trip(&text.replace('\n', newline), Format::Toml, &table);
                    check_replacement(&text.replace('\n', newline), Format::Toml, &table);
                }
            }
        }
    }
    check_round_trip("servers.a.command = \"x\"\n", Format::Toml, &table);
}

#[test]
fn toml_entry_of_other_forms_is_replaced_and_cut() {
    let table = servers();
    let new = json!({ "a": 1 });
    let parts = "[servers.mcpd]\nx = 1\n\n# of a\n[servers.a]\n\n[servers.mcpd.env] # c\nA = \"b\"\n\n[z]\n";
    let after = insert(parts, Format::Toml, &table, "mcpd", &new).unwrap();
    assert_eq!(
        after,
        "[servers.mcpd]\na = 1\n\n# of a\n[servers.a]\n\n[z]\n"
    );
    let removal = remove(parts, Format::Toml, &table, "mcpd").unwrap();
    assert_eq!(
        removal,
        Removal::Text("\n# of a\n[servers.a]\n\n[z]\n".to_owned())
    );
    let inline = "[servers]\na = 1\nmcpd = { x = 1 } # c\n[z]\n";
    let after = insert(inline, Format::Toml, &table, "mcpd", &new).unwrap();
    assert_eq!(after, "[servers]\na = 1\nmcpd = { a = 1 } # c\n[z]\n");
    let removal = remove(inline, Format::Toml, &table, "mcpd").unwrap();
    assert_eq!(removal, Removal::Text("[servers]\na = 1\n[z]\n".to_owned()));
    let alone = "[servers.mcpd]\nx = 1\n";
    let removal = remove(alone, Format::Toml, &table, "mcpd").unwrap();
    assert_eq!(removal, Removal::Empty(String::new()));
}

#[test]
fn toml_that_cannot_be_edited_is_refused() {
    let table = servers();
    for (text, expected) in [
        (
            "servers = { a = 1 }\n",
            "line 1, column 11: `servers` is an inline table; write it under a [header] of its own and try again",
        ),
        (
            "\nservers = 1\n",
            "line 2, column 11: `servers` is integer, not a table; correct it and try again",
        ),
        (
            "[servers]\nmcpd.x = 1\n",
            "line 2, column 1: the entry is written with dotted keys; write it under a [header] of its own and try again",
        ),
    ] {
        check_error(text, Format::Toml, &table, expected);
    }
    let error = insert("a = 1\na = 2\n", Format::Toml, &table, "mcpd", &entry()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("line 2, column 1: not valid TOML: "),
        "{error}"
    );
}

#[test]
fn byte_order_mark_is_kept() {
    for (text, format) in [
        ("\u{feff}{\"servers\": {\"a\": 1}}", Format::Json),
        ("\u{feff}servers:\n  a: 1\n", Format::Yaml),
        ("\u{feff}[servers.a]\n", Format::Toml),
    ] {
        check_round_trip(text, format, &servers());
    }
}
