//! Properties of edits over generated files: no text makes them panic, and none loses a comment.

use mcpd_clients::edit::{Format, Removal, Table, entries, insert, read, remove};
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::sample::select;
use serde_json::{Value, json};

const FORMATS: [Format; 4] = [Format::Json, Format::Jsonc, Format::Toml, Format::Yaml];

fn entry() -> Value {
    json!({ "name": "mcpd", "command": "/bin/mcpd", "args": ["a b"], "env": { "A": "ü" } })
}

/// Space between tokens of JSON, with comments.
fn gap() -> impl Strategy<Value = String> {
    const PARTS: [&str; 8] = [
        "",
        " ",
        "\n",
        "\r\n",
        "\t",
        "/* é, } */",
        "// \"x\": {}\n",
        "\n\n    ",
    ];
    vec(select(&PARTS[..]), 0..3).prop_map(|parts| parts.concat())
}

/// Text of a value of JSON with comments.
fn json_value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("-1.50e3".to_owned()),
        Just("\"// é \\\"}\\u00e9\"".to_owned()),
        Just("{}".to_owned()),
        Just("[]".to_owned()),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![container(inner.clone(), false), container(inner, true)]
    })
}

/// Text of an object or an array with those items.
fn container(
    inner: impl Strategy<Value = String>,
    is_object: bool,
) -> impl Strategy<Value = String> {
    let item = (gap(), inner, gap(), gap());
    (vec(item, 0..4), any::<bool>(), gap()).prop_map(move |(items, has_comma, end)| {
        let items: Vec<_> = items
            .into_iter()
            .enumerate()
            .map(|(index, (before, value, after, colon))| {
                let key = if is_object {
                    format!("\"k{index}\"{colon}:{after}")
                } else {
                    after
                };
                format!("{before}{key}{value}{colon}")
            })
            .collect();
        let comma = if has_comma && !items.is_empty() {
            ","
        } else {
            ""
        };
        let (open, close) = if is_object { ('{', '}') } else { ('[', ']') };
        format!("{open}{}{comma}{end}{close}", items.join(","))
    })
}

/// Comments of a text, whose strings have none but the one of [`json_value`].
fn count_comments(text: &str) -> (usize, usize) {
    (
        text.matches("/* é, } */").count(),
        text.matches("// \"x\": {}").count(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn json_keeps_its_comments_and_is_restored(
        before in gap(),
        root in container(json_value(), true),
        after in gap(),
        key in select(&["k0", "k1", "k2", "new"][..]),
    ) {
        let text = format!("{before}{root}{after}");
        let table = Table::map([key]);
        let had = entries(&text, Format::Jsonc, &table);
        let Ok(edited) = insert(&text, Format::Jsonc, &table, "mcpd", &entry()) else {
            // The key has a list, a number or a string.
            assert!(had.is_err(), "{text}");
            return Ok(());
        };
        assert_eq!(count_comments(&edited), count_comments(&text), "{edited}");
        assert_eq!(insert(&edited, Format::Jsonc, &table, "mcpd", &entry()).unwrap(), edited);
        let settings = read(&text, Format::Jsonc).unwrap();
        let had_entries = !had.unwrap().is_empty();
        let had_others = settings.get(key).is_none() && settings != json!({});
        match remove(&edited, Format::Jsonc, &table, "mcpd").unwrap() {
            Removal::Text(rest) => {
                assert!(rest == text || !had_entries && !had_others, "{text:?} {edited} {rest:?}");
                assert_eq!(count_comments(&rest), count_comments(&text), "{rest}");
            }
            removal => assert!(!had_entries && !had_others, "{removal:?}"),
        }
    }

    #[test]
    fn no_text_makes_an_edit_panic(
        parts in vec(
            select(&[
                "a", "servers", "mcpd", ":", ": ", "é", "\u{feff}", "\n", "\r\n", " ", "  ", "\t", "- ",
                "{", "}", "[", "]", "[servers", ".mcpd]", " = ", "\"", "'", "#", "# é\n", "//", "/*",
                "*/", ",", "|\n", "&a ", "*a", "? ", "---\n", "...\n", "1", "null", "\\", "!t ",
            ][..]),
            0..24,
        ),
        format in select(&FORMATS[..]),
        is_list in any::<bool>(),
    ) {
        let text = parts.concat();
        let table = match is_list {
            true => Table::list(["servers"], "name"),
            false => Table::map(["servers"]),
        };
        if let Ok(edited) = insert(&text, format, &table, "mcpd", &entry()) {
            assert_eq!(insert(&edited, format, &table, "mcpd", &entry()).unwrap(), edited);
            assert!(!matches!(remove(&edited, format, &table, "mcpd"), Ok(Removal::Missing)));
        }
        remove(&text, format, &table, "mcpd").ok();
    }
}
