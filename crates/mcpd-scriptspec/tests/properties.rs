//! Properties of every script and every call, beyond the cases of the corpus.

#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use mcpd_scriptspec::dialect::DescribedTool;
use mcpd_scriptspec::log_line::{log_line, progress_line};
use mcpd_scriptspec::{
    Diagnostic, Dialect, HelpOutput, Parsed, ScriptPath, ScriptSpec, Severity, Stream, parse,
};
use proptest::{
    collection::vec,
    prelude::{
        Just, Strategy, any, prop_assert, prop_assert_eq, prop_assume, prop_oneof, proptest,
    },
    sample::{Index, select, subsequence},
};
use serde_json::{Map, Value, json, value::RawValue};

/// A help that uses most of the contract, as input for damage.
const METADATA: &str = r#"{"title": "Thing", "description": "Does \u00e4 thing 🚀", "version": "1.0", "state": true,
 "output": "json", "output_schema": {"type": "object"}, "annotations": {"read_only": true}, "timeout": 2.5,
 "icons": [{"src": "https://example.org/i.png", "sizes": ["any"]}], "_meta": {"a": [1, null]}}"#;
const OPTIONS: &str = r#"{
 "name": {"description": "A", "required": true, "value_type": "string", "size": {"min": 0, "max": 9}, "pattern": "^a*$"},
 "max-age": {"description": "B", "value_type": "integer", "default_value": 1, "size": {"min": -1e1}},
 "mode": {"description": "C", "value_type": {"enum": ["a", "b"]}, "default_value": "b", "header": "Mode"},
 "list": {"description": "D", "value_type": "array", "items": {"value_type": "object", "properties": {"x": {}}}}}"#;

/// Descriptions in dialects, each with the name of a file, as input for damage.
const FILES: &[(&str, &str)] = &[
    (
        "a.mcpd.toml",
        "description = \"Does a thing\"\n[options.a]\nvalue_type = { enum = ['a'] }\nsize.min = 0x1\n",
    ),
    (
        "a.mcpd.json",
        r#"{"description": "Does a thing", "options": {"a": {"argument": "-a", "variable": "A"}}}"#,
    ),
    (
        "a",
        "#!/bin/sh\n# /// mcpd\n# description = 'Does ä thing'\n#\n# [options.a]\n# examples = [1]\n# ///\n",
    ),
    (
        "a.py",
        "# /// script\n# [tool.mcpd]\n# description = \"\"\"\n# Does a thing\"\"\"\n# ///\n",
    ),
    (
        "a",
        "#MISE description='Does ä thing'\n#USAGE flag \"-a <a>\" default=\"x\" { choices \"x\" }\n#USAGE arg \"[b]...\" var_max=0x2\n",
    ),
    (
        "a",
        "# @describe Does ä thing\n# @option -a[=x|y] <A>\n# @cmd More\n# @arg b*,\nmore() { argc --argc-eval; }\n",
    ),
    (
        "a",
        "# @raycast.title Ä\n# @raycast.argument1 {\"type\":\"dropdown\",\"optional\":true,\"data\":[{\"value\":\"a\"}]}\n",
    ),
    (
        "scripts/a.ts",
        "// Name: Ä thing\nmetadata = { description: 'Does' }\nschema: S = {\n  input: {\n    a: { type: \"number\", min: 0x1, default: +2, example: 3, },\n    \"b-c\": { type: `array`, items: { type: 'string', enum: ['x'] } }, /* d */\n  },\n  output: { e: { type: \"boolean\" } },\n}\n",
    ),
    (
        "scripts/a.js",
        "const { a } = await defineSchema({ input: { a: { type: 'string', required: true, pattern: '^ä' } } })\n",
    ),
    (
        "scriptlets/a.md",
        "# Ä\n\n## Greet\n\n<!--\ndescription: Greets\ninputs:\n  name: { type: string, default: x }\n-->\n\n```bash\necho {{name}} {{other}}\n```\n\n## Next\n\n~~~python\nprint(1)\n~~~\n",
    ),
    (
        "a.bas",
        "PARAM a AS STRING LIKE \"ä\" DESCRIPTION \"A\" OPTIONAL\nPARAM b AS NUMBER LIKE 5 DESCRIPTION \"B\" MIN 1 MAX 9 DEFAULT 3\nPARAM c AS ARRAY OF STRING ENUM [\"x\", \"y\"] DESCRIPTION \"C\"\nDESCRIPTION \"Does\"\nTALK a\n",
    ),
];

/// Checks all guarantees of `DescribedTool`.
#[track_caller]
fn check_file(path: &str, text: &[u8]) {
    let described = Dialect::of(path, text).map(|dialect| dialect.read(path, text));
    for DescribedTool { parsed, .. } in described.into_iter().flatten() {
        for diagnostic in &parsed.diagnostics {
            assert_eq!(diagnostic.location.stream, Stream::Source);
            let span = diagnostic.location.span.clone();
            assert!(text.get(span).is_some(), "{diagnostic:?}");
        }
        let is_error = |diagnostic: &Diagnostic| diagnostic.severity == Severity::Error;
        assert_eq!(
            parsed.spec.is_none(),
            parsed.diagnostics.iter().any(is_error)
        );
        if let Some(spec) = &parsed.spec {
            check_spec(spec);
        }
    }
}

/// Checks all guarantees of `Parsed`.
#[track_caller]
fn check_parsed(stdout: &[u8], stderr: &[u8]) -> Parsed {
    let parsed = parse(HelpOutput { stdout, stderr });
    let mut errors = 0;
    for diagnostic in &parsed.diagnostics {
        let stream = match diagnostic.location.stream {
            Stream::Stdout => stdout,
            Stream::Stderr => stderr,
            Stream::Source => panic!("no file was read"),
        };
        assert!(
            stream.get(diagnostic.location.span.clone()).is_some(),
            "{diagnostic:?}"
        );
        assert_eq!(diagnostic.severity, diagnostic.code.rule().severity);
        errors += usize::from(diagnostic.severity == Severity::Error);
    }
    assert_eq!(parsed.spec.is_none(), errors > 0);
    if let Some(spec) = &parsed.spec {
        check_spec(spec);
    }
    parsed
}

/// Checks that the schema is valid under the official meta-schema, and that defaults and examples
/// are valid under the schema.
#[track_caller]
fn check_spec(spec: &ScriptSpec) {
    let schema = spec.input_schema();
    assert!(jsonschema::draft202012::meta::is_valid(&schema), "{schema}");
    let optional = spec.options.iter().filter(|option| !option.required);
    let defaults: Map<_, _> = optional
        .filter_map(|option| {
            Some((
                option.name.clone(),
                serde_json::from_str(option.default_value.as_ref()?.get()).ok()?,
            ))
        })
        .collect();
    let mut schema = schema;
    schema.as_object_mut().unwrap().remove("required");
    assert!(
        jsonschema::draft202012::is_valid(&schema, &Value::Object(defaults)),
        "{schema}"
    );
    for property in schema["properties"].as_object().unwrap().values() {
        for example in property["examples"].as_array().into_iter().flatten() {
            assert!(
                jsonschema::draft202012::is_valid(property, example),
                "{property}"
            );
        }
    }
}

#[track_caller]
fn spec(options: &Value) -> ScriptSpec {
    let parsed = check_parsed(
        br#"{"description": "Does a thing"}"#,
        options.to_string().as_bytes(),
    );
    parsed
        .spec
        .unwrap_or_else(|| panic!("{:?}", parsed.diagnostics))
}

fn raw(json: impl Into<String>) -> Box<RawValue> {
    RawValue::from_string(json.into()).unwrap()
}

/// One change to a text: some bytes replaced by others.
fn damage(text: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let scraps = select(vec![
        "",
        "\"",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\\",
        "\\ud800",
        "null",
        "-",
        "1e9999",
        "\u{202e}",
        "\0",
        "true",
        "\"min\": 5",
        "\"enum\"",
        "any",
    ]);
    let scrap = prop_oneof![
        scraps.prop_map(|scrap| scrap.as_bytes().to_vec()),
        vec(any::<u8>(), 0..4)
    ];
    vec((any::<Index>(), 0..6_usize, scrap), 0..4).prop_map(move |changes| {
        let mut bytes = text.as_bytes().to_vec();
        for (place, removed, scrap) in changes {
            let start = place.index(bytes.len() + 1);
            let end = (start + removed).min(bytes.len());
            bytes.splice(start..end, scrap);
        }
        bytes
    })
}

/// A definition of an option without faults.
fn definition() -> impl Strategy<Value = Value> {
    let bounds = |low: i64| {
        (low..3, 3..8_i64).prop_flat_map(|(min, max)| {
            subsequence(
                vec![
                    ("min".to_owned(), json!(min)),
                    ("max".to_owned(), json!(max)),
                ],
                0..=2,
            )
            .prop_map(|bounds| Value::Object(bounds.into_iter().collect()))
        })
    };
    let sized = |name: &'static str, low| {
        bounds(low).prop_map(move |size| json!({"value_type": name, "size": size}))
    };
    let scalar = prop_oneof![
        sized("string", 0),
        sized("integer", -3),
        sized("float", -3),
        Just(json!({"value_type": "string", "pattern": "^[a-z0-9]+$"})),
        Just(json!({"value_type": "boolean"})),
        Just(json!({"value_type": {"enum": ["a", "5", "true"]}})),
    ];
    let nested = (scalar.clone(), scalar.clone(), any::<bool>()).prop_flat_map(
        |(items, mut property, required)| {
            property["required"] = json!(required);
            prop_oneof![
                Just(json!({"value_type": "array", "items": items, "size": {"max": 2}})),
                Just(json!({"value_type": "object", "properties": {"x": property}})),
                Just(json!({"value_type": "array"})),
                Just(json!({"value_type": "object"})),
                Just(json!({"value_type": "any"})),
                Just(json!({})),
            ]
        },
    );
    (prop_oneof![3 => scalar, 1 => nested], any::<bool>()).prop_map(|(mut definition, required)| {
        definition["required"] = json!(required);
        definition
    })
}

/// Options of several kinds, and arguments of which some fit.
fn call() -> impl Strategy<Value = (Value, Value)> {
    let names = ["a", "b-c", "d"];
    let options = vec(definition(), names.len()).prop_map(move |definitions| {
        Value::Object(
            names
                .iter()
                .map(|name| (*name).to_owned())
                .zip(definitions)
                .collect(),
        )
    });
    let argument_names = subsequence(vec!["a", "b-c", "d", "e"], 0..=4);
    let arguments = (argument_names, vec(argument(), 4)).prop_map(|(names, values)| {
        Value::Object(names.into_iter().map(str::to_owned).zip(values).collect())
    });
    (options, arguments)
}

fn argument() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-5..10_i64).prop_map(Value::from),
        select(vec![0.5, 2.0, -1.25, 1e20, 7.000001]).prop_map(Value::from),
        select(vec![
            "", "a", "abc", "ä🚀", "5", "-2", "2.0", "0.5", "1e1", "05", " 5", "true", "false",
            "null", "abcdefgh"
        ])
        .prop_map(Value::from),
    ];
    scalar.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            (select(vec!["x", "y"]), inner).prop_map(|(key, value)| json!({key: value})),
        ]
    })
}

/// Arguments after the documented conversions alone.
fn apply_conversions(options: &Value, mut arguments: Value) -> Value {
    convert_members(options, arguments.as_object_mut().unwrap());
    arguments
}

fn convert_members(definitions: &Value, members: &mut Map<String, Value>) {
    members.retain(|name, value| {
        let definition = definitions.get(name);
        !value.is_null() || definition.is_none_or(|definition| definition["required"] == true)
    });
    for (name, value) in members {
        if let Some(definition) = definitions.get(name) {
            convert(definition, value);
        }
    }
}

fn convert(definition: &Value, value: &mut Value) {
    match value {
        Value::String(text) => {
            let read: Option<Value> = serde_json::from_str(text).ok();
            let read = read.filter(|_| text.trim() == text);
            let is_meant = |read: &Value| match definition["value_type"].as_str() {
                Some("integer" | "float") => read.is_number(),
                Some("boolean") => read.is_boolean(),
                _ => false,
            };
            if let Some(read) = read.filter(is_meant) {
                *value = read;
            }
        }
        Value::Array(elements) => {
            for element in elements {
                convert(&definition["items"], element);
            }
        }
        Value::Object(members) => convert_members(&definition["properties"], members),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The command line of a call; `None` if the call is refused.
#[track_caller]
fn arguments_of(options: &Value, command_line: &[&str], arguments: &Value) -> Option<Vec<String>> {
    let metadata = json!({"description": "Does a thing", "command_line": command_line}).to_string();
    let help = HelpOutput {
        stdout: metadata.as_bytes(),
        stderr: &serde_json::to_vec(options).unwrap(),
    };
    let spec = parse(help).spec.unwrap();
    let invocation = spec.invocation(Some(&raw(arguments.to_string())));
    invocation.ok().map(|invocation| invocation.args)
}

proptest! {
    #[test]
    fn parse_accepts_any_bytes(stdout in vec(any::<u8>(), 0..200), stderr in vec(any::<u8>(), 0..200)) {
        check_parsed(&stdout, &stderr);
    }

    #[test]
    fn parse_accepts_damaged_help(stdout in damage(METADATA), stderr in damage(OPTIONS)) {
        check_parsed(&stdout, &stderr);
        check_parsed(&stderr, &stdout);
    }

    #[test]
    fn dialects_accept_damaged_files((path, text) in select(FILES).prop_flat_map(|(path, text)| (Just(path), damage(text)))) {
        check_file(path, &text);
    }

    #[test]
    fn sidecar_equals_the_same_help((options, _) in call()) {
        let sidecar = json!({"description": "Does a thing", "options": options}).to_string();
        let described = Dialect::Sidecar.read("a.mcpd.json", sidecar.as_bytes()).remove(0);
        prop_assert_eq!(described.parsed.spec.unwrap().input_schema(), spec(&options).input_schema());
    }

    #[test]
    fn command_line_keeps_text_unchanged(text in "[^\0]*") {
        let args = |argument: &str| {
            let spec = spec(&json!({"s": {"required": true, "value_type": "string", "argument": argument}}));
            spec.invocation(Some(&raw(json!({"s": text}).to_string()))).unwrap().args
        };
        prop_assert_eq!(args("--s"), [format!("--s={text}")]);
        prop_assert_eq!(args("positional"), ["--", &text]);
        prop_assert_eq!(args("plain"), [&*text]);
        let short = args("-s");
        prop_assert_eq!(short.concat(), format!("-s{text}"));
        prop_assert!(short.get(1).is_none_or(|word| !word.starts_with('-')), "{:?}", short);
    }

    #[test]
    fn template_keeps_text_unchanged(text in "[^\0]+") {
        let args = |argument: &str| arguments_of(&json!({"s": {"value_type": "string", "argument": argument}}), &[], &json!({"s": text}));
        prop_assert_eq!(args("-name {}").unwrap(), ["-name", &text]);
        prop_assert_eq!(args("if={}").unwrap(), [format!("if={text}")]);
        prop_assert_eq!(args("-O{}").unwrap(), [format!("-O{text}")]);
        prop_assert_eq!(args("-e {} ;").unwrap(), ["-e", &text, ";"]);
        let operand = args("{}").unwrap();
        prop_assert_eq!(operand.last().unwrap(), &text);
        prop_assert_eq!(operand.len() == 2, text.starts_with(['-', '+']), "{:?}", operand);
    }

    #[test]
    fn operand_among_flags_is_no_flag(text in "[-+]{0,2}[^\0]*") {
        let options = json!({"s": {"value_type": "string", "argument": "{}"}, "f": {"value_type": "boolean", "argument": "-f"}});
        let passed = arguments_of(&options, &["{s}", "{}"], &json!({"s": text, "f": true}));
        match passed {
            Some(words) => prop_assert_eq!(words, [&*text, "-f"]),
            None => prop_assert!(text.starts_with(['-', '+'])),
        }
        let protected = arguments_of(&options, &["{}", "--", "{s}"], &json!({"s": text}));
        prop_assert_eq!(protected.unwrap(), ["--", &text]);
    }

    #[test]
    fn list_is_restored_from_its_words(texts in vec("[^\0]{0,5}", 0..5)) {
        let args = |argument: &str| {
            let list = json!({"s": {"value_type": "array", "items": {"value_type": "string"}, "argument": argument}});
            arguments_of(&list, &[], &json!({"s": texts}))
        };
        let repeated: Vec<_> = texts.iter().flat_map(|text| ["-c", text]).collect();
        prop_assert_eq!(args("-c {}").unwrap(), repeated);
        match args("--f {,}") {
            Some(words) if texts.is_empty() => prop_assert!(words.is_empty()),
            Some(words) => prop_assert_eq!(words[1].split(',').collect::<Vec<_>>(), &*texts),
            None => prop_assert!(texts.iter().any(|text| text.contains(','))),
        }
        match args("--n {...}") {
            Some(words) => prop_assert_eq!(words.get(1..).unwrap_or_default(), &*texts),
            None => prop_assert!(texts.iter().any(|text| text.starts_with('-'))),
        }
    }

    #[test]
    fn template_of_any_text_has_a_meaning_or_a_fault(argument in "[-+{},. =/xn'|]{0,12}", value_type in select(&["string", "boolean", "array"])) {
        let options = json!({"s": {"description": "S", "value_type": value_type, "argument": argument}});
        let parsed = parse(HelpOutput { stdout: br#"{"description": "Does a thing"}"#, stderr: options.to_string().as_bytes() });
        let Some(spec) = parsed.spec else { return Ok(()) };
        let value = match value_type { "boolean" => json!(true), "array" => json!(["-v", "w"]), _ => json!("-v") };
        let Ok(invocation) = spec.invocation(Some(&raw(json!({"s": value}).to_string()))) else { return Ok(()) };
        prop_assert!(!invocation.args.is_empty(), "{}", argument);
        let is_whole = invocation.args.iter().any(|word| word == "-v");
        prop_assert!(!is_whole || invocation.args[0] != "-v", "{:?}", invocation.args);
    }

    #[test]
    fn json_reader_accepts_exactly_json(text in damage(METADATA)) {
        let expected = serde_json::from_slice::<Value>(&text);
        // A number beyond the range of a double is JSON all the same.
        prop_assume!(!expected.as_ref().is_err_and(|error| error.to_string().contains("out of range")));
        let is_json = check_parsed(&text, b"").diagnostics.iter().all(|diagnostic| {
            !["help-not-json", "text-after-json", "help-not-utf8", "missing-metadata"].contains(&diagnostic.code.as_str())
        });
        prop_assert_eq!(is_json, expected.is_ok());
    }

    #[test]
    fn invocation_agrees_with_the_published_schema((options, arguments) in call()) {
        let spec = spec(&options);
        let outcome = spec.invocation(Some(&raw(arguments.to_string())));
        let validator = jsonschema::draft202012::new(&spec.input_schema()).unwrap();
        let is_valid = validator.is_valid(&apply_conversions(&options, arguments));
        prop_assert_eq!(outcome.is_ok(), is_valid, "{:?}", outcome);
        if let Ok(invocation) = outcome {
            prop_assert!(validator.is_valid(&serde_json::from_slice(&invocation.stdin).unwrap()));
        }
    }

    #[test]
    fn string_reaches_the_script_unchanged(text in any::<String>()) {
        let spec = spec(&json!({"s": {"required": true, "value_type": "string"}}));
        let invocation = spec.invocation(Some(&raw(json!({"s": text}).to_string()))).unwrap();
        let stdin: Value = serde_json::from_slice(&invocation.stdin).unwrap();
        prop_assert_eq!(&stdin, &json!({"s": text}));
        let variable = if text.contains('\0') { ("MCPD_OPTS_OMITTED", "s") } else { ("MCPD_OPT_s", text.as_str()) };
        prop_assert_eq!(invocation.env, [(variable.0.to_owned(), variable.1.to_owned())]);
    }

    #[test]
    fn number_is_never_rounded(text in "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?") {
        let spec = spec(&json!({"f": {"required": true, "value_type": "float"}}));
        let invocation = spec.invocation(Some(&raw(format!("{{\"f\":{text}}}")))).unwrap();
        prop_assert_eq!(String::from_utf8(invocation.stdin).unwrap(), format!("{{\"f\":{text}}}"));
        let plain = &invocation.env[0].1;
        prop_assert!(plain.bytes().all(|byte| byte.is_ascii_digit() || b"-.".contains(&byte)), "{}", plain);
        // The nearest double of the same number is the same double.
        prop_assert_eq!(plain.parse::<f64>().unwrap(), text.parse::<f64>().unwrap());
    }

    #[test]
    fn value_of_any_type_reaches_the_script_unchanged(value in argument()) {
        let spec = spec(&json!({"v": {"required": true}}));
        let arguments = serde_json::to_string_pretty(&json!({"v": value})).unwrap();
        let invocation = spec.invocation(Some(&raw(arguments))).unwrap();
        prop_assert_eq!(invocation.stdin, json!({"v": value}).to_string().into_bytes());
    }

    #[test]
    fn log_line_loses_only_its_prefix(line in "(ERROR|WARN|WARNING|INFO|DEBUG|TRACE|PROGRESS)?[: ]{0,2}\\PC*") {
        prop_assert!(line.ends_with(log_line(&line).text));
        prop_assert!(progress_line(&line).is_none_or(|progress| progress.progress >= 0.0));
    }

    #[test]
    fn path_survives_its_spellings(segments in vec("[^/\\\\\\pC]{1,30}", 1..5)) {
        prop_assume!(segments.iter().all(|segment| segment != "." && segment != ".."));
        prop_assume!(!segments.iter().any(|segment| segment.contains(mcpd_scriptspec::is_hidden)));
        let path: ScriptPath = segments.join("/").parse().unwrap();
        prop_assert_eq!(ScriptPath::from_state_uri(&path.state_uri()), Some(path.clone()));
        for name in [path.portable().into_owned(), path.portable_hashed()] {
            prop_assert!(name.len() <= 64 && name.starts_with(|first: char| first.is_ascii_alphabetic()), "{}", name);
            prop_assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)), "{}", name);
        }
    }
}
