//! Snapshots: the result of a call as the expectation of its case, in the text of the file.
//! Comments, order and all other keys stay.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use toml_edit::{
    Array, DocumentMut, InlineTable, Item, TableLike, TomlError, Value as TomlValue, value,
};

use crate::case::Expected;
use crate::ending::{Ending, Observed};

/// Length of the longest text that is written into a file with cases, in bytes. A longer output
/// may be only a part of what the script printed.
const MAX_TEXT: usize = 64 << 10;

/// Result of one call, for its case.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    /// Position of the case in its file.
    pub(crate) index: usize,
    pub(crate) observed: Observed,
    /// Texts of all expected files; none if one was not written, or is no text.
    pub(crate) files: Option<BTreeMap<String, String>>,
}

impl Snapshot {
    /// Why the result can't be expected of the next call, if it can't.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        if !is_acceptable(&self.observed.ending) {
            return Some("the call has no result");
        }
        if self.observed.text.len() > MAX_TEXT {
            return Some("the output is too long to be compared as a whole");
        }
        if self.files.is_none() {
            return Some("an expected file was not written, or is no text");
        }
        None
    }
}

/// Returns whether a result can be expected of the next call: the script ended, or the call was
/// refused.
pub(crate) fn is_acceptable(ending: &Ending) -> bool {
    matches!(
        ending,
        Ending::Exited(_) | Ending::Refused(_) | Ending::ReportedError
    )
}

/// Writes results into the text of a file with cases.
///
/// # Errors
///
/// The text is not TOML.
pub(crate) fn accept(
    text: &str,
    cases: &[crate::Case],
    snapshots: &[Snapshot],
) -> Result<String, TomlError> {
    let mut document: DocumentMut = text.parse()?;
    let tables = document
        .get_mut("case")
        .and_then(Item::as_array_of_tables_mut);
    if let Some(tables) = tables {
        for snapshot in snapshots {
            let case = cases.get(snapshot.index);
            let table = tables.get_mut(snapshot.index);
            if let (Some(case), Some(table)) = (case, table) {
                accept_one(table, &case.expected, snapshot);
            }
        }
    }
    Ok(document.to_string())
}

fn accept_one(table: &mut dyn TableLike, expected: &Expected, snapshot: &Snapshot) {
    let observed = &snapshot.observed;
    write_ending(table, &observed.ending, expected.exit.is_some());
    match (&expected.json, &observed.json) {
        (Some(_), Some(json)) => set_json(table, "json", json),
        (Some(_), None) => {
            table.remove("json");
            set(table, "text", text_value(&observed.text));
        }
        (None, _) if expected.text.is_some() || !expected.says_output() => {
            write_output(table, observed);
        }
        _ => {}
    }
    if let (Some(_), Some(messages)) = (&expected.messages, &observed.messages) {
        set(table, "messages", json_value(messages));
    }
    if let (Some(_), [image, ..]) = (&expected.image, &observed.images[..]) {
        set(table, "image", TomlValue::from(image));
    }
    let files = table.get_mut("files").and_then(Item::as_table_like_mut);
    if let Some(files) = files {
        for (path, content) in snapshot.files.iter().flatten() {
            set(files, path, text_value(content));
        }
    }
}

/// Writes the ending. Success needs no key.
pub(crate) fn write_ending(table: &mut dyn TableLike, ending: &Ending, says_exit: bool) {
    let kept = match ending {
        Ending::Refused(_) => "refused",
        Ending::ReportedError => "error",
        _ => "exit",
    };
    for key in ["exit", "refused", "error"] {
        if key != kept {
            table.remove(key);
        }
    }
    match ending {
        Ending::Refused(_) | Ending::ReportedError => set(table, kept, TomlValue::from(true)),
        Ending::Exited(code) if *code != 0 || says_exit => {
            set(table, "exit", TomlValue::from(i64::from(*code)));
        }
        _ => {}
    }
}

/// Writes the output as the text that it is, or as JSON if it is an object or an array.
pub(crate) fn write_output(table: &mut dyn TableLike, observed: &Observed) {
    let structured = observed.json.as_ref();
    let structured = structured.filter(|json| json.is_object() || json.is_array());
    let is_text_wanted = table.contains_key("text");
    match structured {
        _ if !is_text_wanted && has_several_messages(observed) => {
            if let Some(messages) = &observed.messages {
                set(table, "messages", json_value(messages));
            }
        }
        Some(json) if !is_text_wanted => set_json(table, "json", json),
        _ if observed.text.is_empty() && !observed.images.is_empty() => {
            set(table, "image", TomlValue::from(&observed.images[0]));
        }
        // A failure says enough by its exit code.
        _ if observed.text.is_empty()
            && observed.ending != Ending::Exited(0)
            && !is_text_wanted => {}
        _ => set(table, "text", text_value(&observed.text)),
    }
}

/// Returns whether the messages of a prompt are more than the text of the user.
fn has_several_messages(observed: &Observed) -> bool {
    let messages = observed.messages.as_ref().and_then(Value::as_array);
    messages.is_some_and(|messages| match &messages[..] {
        [only] => only["role"] != "user" || only.get("text").is_none(),
        _ => true,
    })
}

/// Sets a key, and keeps the space and the comments around its value.
pub(crate) fn set(table: &mut dyn TableLike, key: &str, new: TomlValue) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            let decor = old.decor().clone();
            *old = new;
            *old.decor_mut() = decor;
        }
        None => {
            table.insert(key, value(new));
        }
    }
}

/// Sets a key to a value, member by member if it is a table that can have the value.
fn set_json(table: &mut dyn TableLike, key: &str, json: &Value) {
    let is_table = table.get(key).is_some_and(Item::is_table_like);
    match json {
        Value::Object(object) if is_table && to_toml(json).is_some() => {
            if let Some(members) = table.get_mut(key).and_then(Item::as_table_like_mut) {
                merge(members, object);
            }
        }
        _ => set(table, key, json_value(json)),
    }
}

fn merge(table: &mut dyn TableLike, object: &Map<String, Value>) {
    let gone = table.iter().map(|(key, _)| key.to_owned());
    let gone: Vec<_> = gone.filter(|key| !object.contains_key(key)).collect();
    for key in gone {
        table.remove(&key);
    }
    for (key, json) in object {
        let members = table.get_mut(key).and_then(Item::as_table_like_mut);
        match (json, members) {
            (Value::Object(object), Some(members)) => merge(members, object),
            _ => {
                if let Some(new) = to_toml(json) {
                    set(table, key, new);
                }
            }
        }
    }
}

fn text_value(text: &str) -> TomlValue {
    TomlValue::from(text)
}

/// Value as TOML, or as a string of JSON if TOML has no such value.
pub(crate) fn json_value(json: &Value) -> TomlValue {
    let as_toml = match json {
        // A string would be read as JSON text.
        Value::String(_) => None,
        json => to_toml(json),
    };
    as_toml.unwrap_or_else(|| TomlValue::from(json.to_string()))
}

fn to_toml(json: &Value) -> Option<TomlValue> {
    Some(match json {
        Value::Null => return None,
        Value::Bool(value) => TomlValue::from(*value),
        Value::Number(number) => match number.as_i64() {
            Some(number) => TomlValue::from(number),
            None if number.is_f64() => TomlValue::from(number.as_f64()?),
            None => return None,
        },
        Value::String(text) => TomlValue::from(text),
        Value::Array(list) => {
            let list = list.iter().map(to_toml).collect::<Option<Vec<_>>>()?;
            TomlValue::Array(Array::from_iter(list))
        }
        Value::Object(object) => TomlValue::InlineTable(inline_table(object)?),
    })
}

fn inline_table(object: &Map<String, Value>) -> Option<InlineTable> {
    let mut table = InlineTable::new();
    for (name, value) in object {
        table.insert(name, to_toml(value)?);
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::TestFile;

    fn observation(ending: Ending, text: &str) -> Observed {
        Observed {
            text: text.to_owned(),
            json: serde_json::from_str(text).ok(),
            ..Observed::without_result(ending)
        }
    }

    #[track_caller]
    fn check(text: &str, observed: Observed, expected: &str) {
        let (file, faults) = TestFile::read(Path::new("x.test.toml"), text);
        assert!(faults.is_empty(), "{faults:?}");
        let snapshot = Snapshot {
            index: 0,
            observed,
            files: Some([("a.txt".to_owned(), "written".to_owned())].into()),
        };
        let accepted = accept(text, &file.cases, &[snapshot]).unwrap();
        assert_eq!(accepted, expected);
        let (_, faults) = TestFile::read(Path::new("x.test.toml"), &accepted);
        assert!(faults.is_empty(), "{faults:?}");
    }

    #[test]
    fn accepted_text_keeps_comments_and_order() {
        check(
            "# About.\n[[case]]\ntext = \"old\" # why\nname = \"a\"\n",
            observation(Ending::Exited(0), "new"),
            "# About.\n[[case]]\ntext = \"new\" # why\nname = \"a\"\n",
        );
    }

    #[test]
    fn case_without_expectation_gets_one() {
        check(
            "[[case]]\nname = \"a\"\n",
            observation(Ending::Exited(2), "bad"),
            "[[case]]\nname = \"a\"\nexit = 2\ntext = \"bad\"\n",
        );
        check(
            "[[case]]\nname = \"a\"\n",
            observation(Ending::Exited(0), r#"{"n": [1, 2]}"#),
            "[[case]]\nname = \"a\"\njson = { n = [1, 2] }\n",
        );
        check(
            "[[case]]\nname = \"a\"\nexit = 0\n",
            observation(Ending::Refused("no".to_owned()), "no"),
            "[[case]]\nname = \"a\"\nrefused = true\ntext = \"no\"\n",
        );
    }

    #[test]
    fn value_that_toml_lacks_is_json_text() {
        for json in [json!({"a": null}), json!("text"), json!([u64::MAX])] {
            let value = json_value(&json);
            let text = value.as_str().unwrap();
            assert_eq!(serde_json::from_str::<Value>(text).unwrap(), json);
        }
    }

    #[test]
    fn tables_keep_their_form_and_comments() {
        check(
            "[[case]]\nname = \"a\"\n\n# What it says.\n[case.json]\nn = 1 # number\nold = 2\n[case.json.in]\nx = \"y\"\n",
            observation(Ending::Exited(0), r#"{"n": 3, "in": {"x": "z"}}"#),
            "[[case]]\nname = \"a\"\n\n# What it says.\n[case.json]\nn = 3 # number\n[case.json.in]\nx = \"z\"\n",
        );
        check(
            "[[case]]\nname = \"a\"\ntext = \"x\"\n[case.files] # all\n\"a.txt\" = \"old\" # tab\n",
            observation(Ending::Exited(0), "x"),
            "[[case]]\nname = \"a\"\ntext = \"x\"\n[case.files] # all\n\"a.txt\" = \"written\" # tab\n",
        );
    }

    #[test]
    fn parts_that_the_author_chose_stay() {
        let text = "[[case]]\nname = \"a\"\ncontains = \"x\"\n";
        check(text, observation(Ending::Exited(0), "new"), text);
    }
}
