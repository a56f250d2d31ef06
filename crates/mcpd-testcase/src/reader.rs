//! Reader of files with cases: TOML with the place of every fault, and suggestions for unknown
//! keys. It never stops at the first fault.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Component, Path};
use std::time::Duration;

use regex::Regex;
use serde_json::{Map, Number, Value};
use toml_edit::{Document, Item, TableLike, Value as TomlValue};

use crate::case::{Case, Expected, Generation, TestFile};
use crate::fault::{Fault, suggestion};

/// Longest time limit of a case.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

const FILE_KEYS: [&str; 2] = ["case", "generate"];

const CASE_KEYS: [&str; 16] = [
    "name",
    "tool",
    "arguments",
    "answers",
    "environment",
    "timeout",
    "exit",
    "refused",
    "error",
    "text",
    "contains",
    "matches",
    "json",
    "messages",
    "image",
    "files",
];

const GENERATION_KEYS: [&str; 2] = ["skip", "exits"];

/// Reader of one text.
pub(crate) struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    faults: Vec<Fault>,
}

impl<'a> Reader<'a> {
    /// Reads the file with the content `text`.
    pub(crate) fn read(path: &'a Path, text: &'a str) -> (TestFile, Vec<Fault>) {
        let mut reader = Self {
            path,
            text,
            faults: Vec::new(),
        };
        let mut file = TestFile {
            path: path.to_owned(),
            ..TestFile::default()
        };
        match Document::parse(text) {
            Ok(document) => reader.document(document.as_table(), &mut file),
            Err(error) => {
                let message = error.message().replace('\n', ", ");
                reader.fault(error.span(), format!("not TOML: {message}"));
            }
        }
        (file, reader.faults)
    }

    fn fault(&mut self, span: Option<Range<usize>>, message: String) {
        let fault = Fault::at(self.path, self.text, span.unwrap_or(0..0), message);
        self.faults.push(fault);
    }

    /// Reports that `key` has another type than the one it needs.
    fn expect(&mut self, key: &str, item: &Item, expected: &str) {
        let message = format!(
            "`{key}` is {}, and must be {expected}",
            article(item.type_name())
        );
        self.fault(item.span(), message);
    }

    fn document(&mut self, table: &dyn TableLike, file: &mut TestFile) {
        for (key, item) in table.iter() {
            match key {
                "case" => self.cases(item, file),
                "generate" => file.generation = self.generation(item),
                _ => self.unknown_key(table, key, "of a file with cases", &FILE_KEYS),
            }
        }
    }

    fn unknown_key(&mut self, table: &dyn TableLike, key: &str, whose: &str, known: &[&str]) {
        let span = table.get_key_value(key).and_then(|(key, _)| key.span());
        let hint = match suggestion(key, known.iter().copied()) {
            hint if hint.is_empty() => format!("; known are `{}`", known.join("`, `")),
            hint => hint,
        };
        self.fault(span, format!("`{key}` is not a key {whose}{hint}"));
    }

    fn cases(&mut self, item: &Item, file: &mut TestFile) {
        let Some(tables) = item.as_array_of_tables() else {
            return self.expect("case", item, "an array of tables: write `[[case]]`");
        };
        let mut names = BTreeSet::new();
        for table in tables {
            let case = self.case(table, table.span());
            if !case.name.is_empty() && !names.insert(case.name.clone()) {
                let message = format!("there is another case with the name `{}`", case.name);
                self.fault(table.span(), message);
            }
            file.cases.push(case);
        }
    }

    fn case(&mut self, table: &dyn TableLike, span: Option<Range<usize>>) -> Case {
        let place = span.clone().unwrap_or(0..0);
        let mut case = Case {
            line: Fault::at(self.path, self.text, place, String::new()).line,
            ..Case::default()
        };
        for (key, item) in table.iter() {
            match key {
                "name" => case.name = self.string(key, item).unwrap_or_default(),
                "tool" => case.tool = self.string(key, item),
                "arguments" => {
                    let arguments = self.json_or_text(key, item);
                    case.arguments = self.object(key, item, arguments);
                }
                "answers" => {
                    let answers = self.json(key, item);
                    case.answers = self.object(key, item, answers);
                }
                "environment" => case.environment = self.strings_by_name(key, item),
                "timeout" => case.timeout = self.seconds(key, item),
                _ => self.read_expected(table, key, item, &mut case.expected),
            }
        }
        if case.name.is_empty() {
            self.fault(span.clone(), "the case needs a `name`".to_owned());
        }
        let Expected {
            exit,
            refused,
            error,
            ..
        } = case.expected;
        if [exit.is_some(), refused, error]
            .into_iter()
            .filter(|says| *says)
            .count()
            > 1
        {
            let message = "only one of `exit`, `refused` and `error` is possible";
            self.fault(span, message.to_owned());
        }
        case
    }

    fn read_expected(
        &mut self,
        table: &dyn TableLike,
        key: &str,
        item: &Item,
        into: &mut Expected,
    ) {
        match key {
            "exit" => into.exit = self.exit_code(key, item),
            "refused" => into.refused = self.boolean(key, item),
            "error" => into.error = self.boolean(key, item),
            "text" => into.text = self.string(key, item),
            "contains" => into.contains = self.strings(key, item),
            "matches" => into.matches = self.pattern(key, item),
            "json" => into.json = self.json_or_text(key, item),
            "messages" => into.messages = self.json_or_text(key, item),
            "image" => into.image = self.string(key, item),
            "files" => into.files = self.files(key, item),
            _ => self.unknown_key(table, key, "of a case", &CASE_KEYS),
        }
    }

    fn generation(&mut self, item: &Item) -> Generation {
        let mut generation = Generation::default();
        let Some(table) = item.as_table_like() else {
            self.expect("generate", item, "a table");
            return generation;
        };
        for (key, item) in table.iter() {
            match key {
                "skip" => generation.skip = self.boolean(key, item),
                "exits" => match item.as_array() {
                    Some(codes) => {
                        for code in codes {
                            let code = Item::Value(code.clone());
                            generation.exits.extend(self.exit_code(key, &code));
                        }
                    }
                    None => self.expect(key, item, "an array of exit codes"),
                },
                _ => self.unknown_key(table, key, "of `[generate]`", &GENERATION_KEYS),
            }
        }
        generation
    }

    fn string(&mut self, key: &str, item: &Item) -> Option<String> {
        let text = item.as_str().map(str::to_owned);
        if text.is_none() {
            self.expect(key, item, "a string");
        }
        text
    }

    fn boolean(&mut self, key: &str, item: &Item) -> bool {
        item.as_bool().unwrap_or_else(|| {
            self.expect(key, item, "`true` or `false`");
            false
        })
    }

    fn exit_code(&mut self, key: &str, item: &Item) -> Option<i32> {
        let code = item.as_integer().and_then(|code| i32::try_from(code).ok());
        let code = code.filter(|code| (0..=255).contains(code));
        if code.is_none() {
            self.expect(key, item, "an exit code from 0 to 255");
        }
        code
    }

    fn seconds(&mut self, key: &str, item: &Item) -> Option<Duration> {
        let seconds = item.as_integer().map(|seconds| seconds as f64);
        let seconds = seconds.or_else(|| item.as_float());
        let limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let limit = limit.filter(|limit| !limit.is_zero() && *limit <= MAX_TIMEOUT);
        if limit.is_none() {
            self.expect(key, item, "a number of seconds above 0, at most 86400");
        }
        limit
    }

    /// Reads one string, or an array of strings.
    fn strings(&mut self, key: &str, item: &Item) -> Vec<String> {
        if let Some(text) = item.as_str() {
            return vec![text.to_owned()];
        }
        let texts = item.as_array().and_then(|array| {
            let texts = array.iter().map(|text| text.as_str().map(str::to_owned));
            texts.collect::<Option<Vec<_>>>()
        });
        texts.unwrap_or_else(|| {
            self.expect(key, item, "a string or an array of strings");
            Vec::new()
        })
    }

    fn pattern(&mut self, key: &str, item: &Item) -> Option<Regex> {
        let text = self.string(key, item)?;
        match Regex::new(&text) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                // The message ends with its reason; the lines before it draw the pattern.
                let error = error.to_string();
                let reason = error.lines().last().unwrap_or_default();
                let reason = reason.trim_start_matches("error: ");
                self.fault(
                    item.span(),
                    format!("`{key}` is no regular expression: {reason}"),
                );
                None
            }
        }
    }

    fn strings_by_name(&mut self, key: &str, item: &Item) -> BTreeMap<String, String> {
        let Some(table) = item.as_table_like() else {
            self.expect(key, item, "a table of strings");
            return BTreeMap::new();
        };
        let pairs: Vec<_> = table.iter().collect();
        let read = pairs.into_iter().filter_map(|(name, item)| {
            Some((
                name.to_owned(),
                self.string(&format!("{key}.{name}"), item)?,
            ))
        });
        read.collect()
    }

    /// Reads contents of files. Their paths must not lead out of the root.
    fn files(&mut self, key: &str, item: &Item) -> BTreeMap<String, String> {
        let mut files = self.strings_by_name(key, item);
        files.retain(|path, _| {
            let mut components = Path::new(path).components();
            let is_inside = components.all(|part| matches!(part, Component::Normal(_)));
            if !is_inside || path.is_empty() {
                let message =
                    format!("`{key}`: `{path}` must be a path below the root, without `..`");
                self.fault(item.span(), message);
            }
            is_inside && !path.is_empty()
        });
        files
    }

    fn object(&mut self, key: &str, item: &Item, value: Option<Value>) -> Map<String, Value> {
        match value {
            Some(Value::Object(object)) => object,
            Some(_) => {
                self.expect(key, item, "a table");
                Map::new()
            }
            None => Map::new(),
        }
    }

    /// Reads a value, or a string with JSON text, which can say what TOML cannot.
    fn json_or_text(&mut self, key: &str, item: &Item) -> Option<Value> {
        let Some(text) = item.as_str() else {
            return self.json(key, item);
        };
        match serde_json::from_str(text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.fault(
                    item.span(),
                    format!("`{key}` is a string without JSON: {error}"),
                );
                None
            }
        }
    }

    fn json(&mut self, key: &str, item: &Item) -> Option<Value> {
        let json = to_json(item);
        if json.is_none() {
            let message = format!(
                "`{key}` has a value without a counterpart in JSON; write the whole as a string of JSON"
            );
            self.fault(item.span(), message);
        }
        json
    }
}

/// Converts TOML to JSON; `None` if a part of it is a date, or not a finite number.
fn to_json(item: &Item) -> Option<Value> {
    match item {
        Item::None => None,
        Item::Value(value) => value_to_json(value),
        Item::Table(table) => table_to_json(table),
        Item::ArrayOfTables(tables) => {
            let tables = tables.iter().map(|table| table_to_json(table));
            Some(Value::Array(tables.collect::<Option<_>>()?))
        }
    }
}

fn value_to_json(value: &TomlValue) -> Option<Value> {
    Some(match value {
        TomlValue::String(text) => Value::from(text.value().as_str()),
        TomlValue::Integer(number) => Value::from(*number.value()),
        TomlValue::Float(number) => Value::Number(Number::from_f64(*number.value())?),
        TomlValue::Boolean(value) => Value::from(*value.value()),
        TomlValue::Datetime(_) => return None,
        TomlValue::Array(array) => {
            Value::Array(array.iter().map(value_to_json).collect::<Option<_>>()?)
        }
        TomlValue::InlineTable(table) => table_to_json(table)?,
    })
}

fn table_to_json(table: &dyn TableLike) -> Option<Value> {
    let members = table.iter();
    let members = members.map(|(key, item)| Some((key.to_owned(), to_json(item)?)));
    Some(Value::Object(members.collect::<Option<_>>()?))
}

/// Type of a value with its article.
fn article(type_name: &str) -> String {
    let article = if type_name.starts_with(['a', 'i']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {type_name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::render_faults;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let (_, faults) = TestFile::read(Path::new("x.test.toml"), text);
        assert_eq!(render_faults(&faults), expected);
    }

    #[test]
    fn case_has_its_parts() {
        let text = r#"
generate = { exits = [1] }

[[case]]
name = "a"
arguments.list = [1, 2.5, true, "x"]
answers = { sure = { yes = true } }
environment = { LANG = "C" }
timeout = 0.5
exit = 4
contains = "one"
matches = "^a+$"
[case.json]
deep = { er = 1 }
[[case]]
name = "b"
refused = true
files = { "out/x.txt" = "1\n" }
"#;
        let (file, faults) = TestFile::read(Path::new("x.test.toml"), text);
        assert_eq!(render_faults(&faults), "");
        let [a, b] = &file.cases[..] else {
            panic!("{file:?}");
        };
        assert_eq!((a.line, b.line), (4, 15));
        assert_eq!(a.arguments["list"], serde_json::json!([1, 2.5, true, "x"]));
        assert_eq!(a.timeout, Some(Duration::from_millis(500)));
        assert_eq!(a.expected.exit, Some(4));
        assert_eq!(a.expected.contains, ["one"]);
        assert_eq!(
            a.expected.json,
            Some(serde_json::json!({"deep": {"er": 1}}))
        );
        assert!(b.expected.refused && b.expected.files.contains_key("out/x.txt"));
        assert!(file.generation.exits.contains(&1));
    }

    #[test]
    fn each_fault_has_its_place_and_remedy() {
        check(
            "[[case]]\nname = 1\nexitt = 2\n",
            "x.test.toml:2:8: `name` is an integer, and must be a string\n\
             x.test.toml:3:1: `exitt` is not a key of a case; did you mean `exit`?\n\
             x.test.toml:1:1: the case needs a `name`\n",
        );
        check(
            "[[case]]\nname = \"a\"\nmatches = \"(\"\nfiles = { \"../x\" = \"\" }\n",
            "x.test.toml:3:11: `matches` is no regular expression: unclosed group\n\
             x.test.toml:4:9: `files`: `../x` must be a path below the root, without `..`\n",
        );
        check(
            "[[case]]\nname = \"a\"\n[[case]]\nname = \"a\"\ntimeout = 0\n",
            "x.test.toml:5:11: `timeout` is an integer, and must be a number of seconds above 0, at most 86400\n\
             x.test.toml:3:1: there is another case with the name `a`\n",
        );
        check(
            "[[case]]\nname = \"a\"\njson = { day = 2026-01-01 }\n",
            "x.test.toml:3:8: `json` has a value without a counterpart in JSON; write the whole as a string of JSON\n",
        );
    }

    #[test]
    fn file_that_is_not_toml_is_a_fault() {
        let (file, faults) = TestFile::read(Path::new("x.test.toml"), "[[case]\n");
        assert!(file.cases.is_empty());
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].message.starts_with("not TOML: "), "{faults:?}");
    }
}
