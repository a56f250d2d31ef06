//! Repair of results: slightly invalid ones are put into the only form that they can mean.
//! Irreparable parts are removed or replaced by text, and the rest is kept.

use std::fmt::Display;

use mcpd_protocol::content::{ContentBlock, ResourceContents};
use rmcp::model as theirs;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use crate::remarks::Remarks;

/// Repairs the result of a call.
pub(crate) fn tool_result(value: Value, remarks: &Remarks) -> Value {
    let mut result = match value {
        Value::Object(members) => members,
        other => {
            remarks.add("sends results of calls that are not objects");
            Map::from_iter([("content".to_owned(), other)])
        }
    };
    mend_members(&mut result);
    let is_error = match result.remove("isError") {
        Some(Value::Bool(is_error)) => Some(is_error),
        Some(Value::String(word)) => word.to_ascii_lowercase().parse().ok(),
        _ => None,
    };
    let content = match result.remove("content") {
        Some(content) => content_blocks(content, remarks),
        None if result.is_empty() || result.contains_key("structuredContent") => Vec::new(),
        None => {
            remarks.add("sends results of calls without `content`; they are converted to text");
            vec![text(Value::Object(std::mem::take(&mut result)).to_string())]
        }
    };
    result.insert("content".to_owned(), content.into());
    if let Some(is_error) = is_error {
        result.insert("isError".to_owned(), is_error.into());
    }
    Value::Object(result)
}

/// Repairs the messages of a prompt.
pub(crate) fn prompt_result(mut value: Value, remarks: &Remarks) -> Value {
    let Some(result) = value.as_object_mut() else {
        return value;
    };
    mend_members(result);
    if !result.get("description").is_some_and(Value::is_string) {
        result.remove("description");
    }
    let Some(messages) = result.remove("messages") else {
        return value;
    };
    let mut mended = Vec::new();
    for mut message in into_elements(messages) {
        let role = match message["role"].as_str() {
            Some(role @ ("user" | "assistant")) => role.to_owned(),
            _ => {
                remarks.add("sends prompt messages with a role other than user or assistant");
                "user".to_owned()
            }
        };
        let content = match message.get_mut("content") {
            Some(content) => content.take(),
            None => message,
        };
        for block in content_blocks(content, remarks) {
            mended.push(json!({"role": role, "content": block}));
        }
    }
    result.insert("messages".to_owned(), mended.into());
    value
}

/// Repairs the contents of a resource.
pub(crate) fn resource_result(mut value: Value, remarks: &Remarks) -> Value {
    let Some(result) = value.as_object_mut() else {
        return value;
    };
    mend_members(result);
    let Some(contents) = result.remove("contents") else {
        return value;
    };
    let mut mended = Vec::new();
    for entry in into_elements(contents) {
        match mend_contents(entry) {
            Ok(entry) => mended.push(entry),
            Err(why) => remarks.add(format!(
                "sends invalid contents of a resource, which are dropped: {why}"
            )),
        }
    }
    result.insert("contents".to_owned(), mended.into());
    value
}

/// Removes members that are empty or not allowed.
fn mend_members(result: &mut Map<String, Value>) {
    result.retain(|name, value| match name.as_str() {
        "_meta" => value.is_object(),
        "content" | "messages" | "contents" => !value.is_null(),
        "resultType" => value == "complete",
        "ttlMs" | "cacheScope" => false,
        _ => true,
    });
}

/// Returns the elements of an array, or a single value as one element.
fn into_elements(value: Value) -> Vec<Value> {
    match value {
        Value::Array(values) => values,
        value => vec![value],
    }
}

fn content_blocks(content: Value, remarks: &Remarks) -> Vec<Value> {
    let blocks = into_elements(content).into_iter();
    let mend = |block| mend_block(block, remarks);
    blocks.filter(|block| !block.is_null()).map(mend).collect()
}

fn text(text: impl Into<String>) -> Value {
    json!({"type": "text", "text": text.into()})
}

/// Returns a block without its invalid optional members, or a text in its place.
fn mend_block(mut block: Value, remarks: &Remarks) -> Value {
    let Err(why) = check_block(&block) else {
        return block;
    };
    if let Value::String(said) = block {
        remarks.add("sends strings as content blocks");
        return text(said);
    }
    let kind = block["type"].as_str().unwrap_or_default().to_owned();
    remarks.add(format!(
        "sends an invalid content block of type `{kind}`: {why}"
    ));
    if let Some(members) = block.as_object_mut() {
        members.retain(|name, _| !matches!(name.as_str(), "annotations" | "_meta" | "icons"));
        if let Some(Ok(resource)) = members
            .get_mut("resource")
            .map(|it| mend_contents(it.take()))
        {
            members.insert("resource".to_owned(), resource);
        }
        if check_block(&block).is_ok() {
            return block;
        }
    }
    let is_binary = matches!(&*kind, "image" | "audio") || block["data"].is_string();
    match ["text", "message", "error"].map(|member| block[member].as_str()) {
        [Some(said), ..] | [_, Some(said), _] | [.., Some(said)] => text(said),
        // Base64 is useless to a model.
        _ if is_binary => text(format!("[a block of type `{kind}` was dropped: {why}]")),
        _ => text(block.to_string()),
    }
}

/// Checks a block against the types of both sides.
fn check_block(block: &Value) -> Result<(), String> {
    theirs::ContentBlock::deserialize(block).map_err(describe)?;
    ContentBlock::deserialize(block).map_err(describe)?;
    Ok(())
}

/// Reduces contents to either a text or a blob, whichever is present.
fn mend_contents(mut entry: Value) -> Result<Value, String> {
    if let Some(members) = entry.as_object_mut() {
        members.retain(|name, value| match name.as_str() {
            "_meta" => value.is_object(),
            "mimeType" => value.is_string(),
            _ => !value.is_null(),
        });
        let is_empty = |value: Option<&Value>| value.is_some_and(|value| value == "");
        if members.contains_key("text") && members.contains_key("blob") {
            let spare = if is_empty(members.get("text")) {
                "text"
            } else {
                "blob"
            };
            members.remove(spare);
        }
        if let Some(said) = members.get_mut("text").filter(|said| !said.is_string()) {
            *said = said.to_string().into();
        }
    }
    theirs::ResourceContents::deserialize(&entry).map_err(describe)?;
    ResourceContents::deserialize(&entry).map_err(describe)?;
    Ok(entry)
}

fn describe(error: impl Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Repairs a result, and compares it and the remarks.
    #[track_caller]
    fn check(mend: fn(Value, &Remarks) -> Value, given: Value, expected: Value, said: &[&str]) {
        let remarks = Remarks::default();
        assert_eq!(mend(given, &remarks), expected);
        let warnings = remarks.warnings();
        assert_eq!(warnings.len(), said.len(), "{warnings:?}");
        for (remark, start) in warnings.iter().zip(said) {
            assert!(remark.starts_with(start), "{warnings:?}");
        }
    }

    #[test]
    fn block_of_an_unknown_type_becomes_text() {
        for (block, expected) in [
            (json!({"type": "error", "text": "locked"}), "locked"),
            (json!({"type": "error", "message": "locked"}), "locked"),
            (
                json!({"type": "graph", "n": 1}),
                r#"{"type":"graph","n":1}"#,
            ),
        ] {
            let given = json!({"content": [{"type": "text", "text": "a"}, block], "isError": true});
            let expected = json!({"content": [text("a"), text(expected)], "isError": true});
            check(
                tool_result,
                given,
                expected,
                &["sends an invalid content block of type"],
            );
        }
    }

    #[test]
    fn block_loses_invalid_optional_members() {
        let given = json!({"content": [{"type": "text", "text": "a", "annotations": 7}]});
        let expected = json!({"content": [text("a")]});
        check(
            tool_result,
            given,
            expected,
            &["sends an invalid content block of type `text`"],
        );
    }

    #[test]
    fn image_without_a_type_is_left_out() {
        let given = json!({"content": [{"type": "image", "data": "AAAA"}]});
        let mended = tool_result(given, &Remarks::default());
        let told = mended["content"][0]["text"].as_str().unwrap();
        assert!(told.contains("`image` was dropped"), "{told}");
    }

    #[test]
    fn result_in_another_form_is_content() {
        let text = json!({"content": [text("a")]});
        for (given, said) in [
            (json!("a"), vec!["sends results of calls", "sends strings"]),
            (json!({"content": "a"}), vec!["sends strings"]),
            (
                json!({"content": ["a"], "isError": null}),
                vec!["sends strings"],
            ),
            (
                json!({"content": {"type": "text", "text": "a"}, "_meta": []}),
                vec![],
            ),
        ] {
            check(tool_result, given, text.clone(), &said);
        }
        check(tool_result, json!({}), json!({"content": []}), &[]);
        check(
            tool_result,
            json!({"content": null, "structuredContent": {"a": 1}}),
            json!({"content": [], "structuredContent": {"a": 1}}),
            &[],
        );
        check(
            tool_result,
            json!({"toolResult": 7}),
            json!({"content": [{"type": "text", "text": r#"{"toolResult":7}"#}]}),
            &["sends results of calls without `content`"],
        );
    }

    #[test]
    fn prompt_has_one_block_a_message() {
        let given = json!({"description": null, "messages": [
            {"role": "system", "content": "a"},
            {"role": "assistant", "content": [text("b"), text("c")]},
        ]});
        let expected = json!({"messages": [
            {"role": "user", "content": text("a")},
            {"role": "assistant", "content": text("b")},
            {"role": "assistant", "content": text("c")},
        ]});
        let said = ["sends prompt messages", "sends strings as content blocks"];
        check(prompt_result, given, expected, &said);
    }

    #[test]
    fn invalid_contents_do_not_affect_others() {
        let entry = json!({"uri": "a:b", "text": "a"});
        let given = json!({"contents": [{"uri": "a:b", "text": "a", "blob": null}, {"text": "b"}]});
        let expected = json!({"contents": [entry]});
        check(
            resource_result,
            given,
            expected,
            &["sends invalid contents of a resource"],
        );
        let given = json!({"contents": {"uri": "a:b", "text": {"c": 1}, "blob": ""}});
        let expected = json!({"contents": [{"uri": "a:b", "text": r#"{"c":1}"#}]});
        check(resource_result, given, expected, &[]);
    }
}
