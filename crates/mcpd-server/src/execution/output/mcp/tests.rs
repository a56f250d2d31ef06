//! Tests of the output format `mcp`: accepted output, and the errors for any other.

use std::fs;

use serde::Serialize;
use tempfile::TempDir;

use super::*;

fn format_result<R: Serialize>(read: Result<RunResult<R>, OutputError>) -> String {
    match read {
        Ok(RunResult::Complete(result)) => serde_json::to_string(&result).unwrap(),
        Ok(RunResult::Refused(error)) => {
            format!("refused {}", serde_json::to_string(&error).unwrap())
        }
        Ok(RunResult::Ask(InputQuestions { requests, state })) => format!(
            "asks {} with {}",
            serde_json::to_string(&requests).unwrap(),
            state.map_or_else(|| "nothing".to_owned(), |state| state.to_string())
        ),
        Err(fault) => format!("fault: {fault}"),
    }
}

/// Creates a directory with a picture, a text and a file that is neither.
fn directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("chart.png"), b"\x89PNG").unwrap();
    fs::write(directory.path().join("notes.md"), "Grüße").unwrap();
    fs::write(directory.path().join("data"), b"\xff").unwrap();
    fs::write(directory.path().join("photo.png"), b"\xff\xd8\xff\xe0").unwrap();
    fs::write(directory.path().join("logo.svg"), "<svg/>").unwrap();
    fs::write(directory.path().join("icon.bmp"), b"BM\0\0").unwrap();
    fs::write(directory.path().join("none.gif"), "").unwrap();
    directory
}

#[track_caller]
fn check_tool(output: &str, expected: &str) {
    let directory = directory();
    let mut files = EmbeddedFiles::new(directory.path());
    assert_eq!(
        format_result(read(output.as_bytes(), |object| tool(object, &mut files))),
        expected
    );
}

#[track_caller]
fn check_prompt(output: &str, expected: &str) {
    let directory = directory();
    let mut files = EmbeddedFiles::new(directory.path());
    assert_eq!(
        format_result(read(output.as_bytes(), |object| prompt(object, &mut files))),
        expected
    );
}

#[track_caller]
fn check_resource(output: &str, expected: &str) {
    let directory = directory();
    let mut files = EmbeddedFiles::new(directory.path());
    assert_eq!(
        format_result(read(output.as_bytes(), |object| resource(
            object,
            &mut files,
            "notes://today"
        ))),
        expected
    );
}

#[test]
fn tool_output_becomes_content() {
    check_tool(
        r#"{"content": [{"type": "text", "text": "a", "annotations": {"priority": 1}}, {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}], "isError": true, "_meta": {"a/b": 1}}"#,
        r#"{"content":[{"type":"text","text":"a","annotations":{"priority":1}},{"type":"image","data":"iVBORw==","mimeType":"image/png"}],"isError":true,"_meta":{"a/b":1}}"#,
    );
    check_tool(r#"{"content": []}"#, r#"{"content":[],"isError":false}"#);
}

#[test]
fn structured_content_keeps_its_bytes_and_becomes_text() {
    check_tool(
        r#"{"structuredContent": {"n": 1.50, "big": 123456789012345678901234567890}}"#,
        r#"{"content":[{"type":"text","text":"{\"n\": 1.50, \"big\": 123456789012345678901234567890}"}],"structuredContent":{"n": 1.50, "big": 123456789012345678901234567890},"isError":false}"#,
    );
    check_tool(
        r#"{"content": [{"type": "text", "text": "one"}], "structuredContent": null}"#,
        r#"{"content":[{"type":"text","text":"one"}],"structuredContent":null,"isError":false}"#,
    );
}

#[test]
fn script_may_fail_with_its_own_error_code() {
    check_tool(
        r#"{"error": {"code": 17, "message": "no", "data": null}, "content": []}"#,
        r#"refused {"code":17,"message":"no","data":null}"#,
    );
    check_tool(
        r#"{"error": {"code": -32602, "message": "no"}}"#,
        r#"refused {"code":-32602,"message":"no"}"#,
    );
    for code in [-32000, -32002, -32021, -32042, -32601, -32768] {
        check_tool(
            &format!(r#"{{"error": {{"code": {code}, "message": "no"}}}}"#),
            &format!(
                "fault: `error.code`: {code} is reserved; use -32602 for invalid arguments, -32603 for failures, or a number outside of -32768 to -32000"
            ),
        );
    }
    check_tool(
        r#"{"error": "no"}"#,
        r#"fault: `error`: expected an object with `code` and `message`, found the string "no", in `"no"`"#,
    );
}

#[test]
fn script_may_ask_for_input() {
    check_tool(
        r#"{"inputRequests": {"name": {"method": "elicitation/create", "params": {"mode": "url", "message": "Go", "url": "a:b"}}, "roots": {"method": "roots/list"}}, "requestState": [1.0]}"#,
        r#"asks {"name":{"method":"elicitation/create","params":{"mode": "url", "message": "Go", "url": "a:b"}},"roots":{"method":"roots/list"}} with [1.0]"#,
    );
    check_tool(r#"{"requestState": null}"#, "asks {} with null");
    check_prompt(
        r#"{"inputRequests": {"roots": {"method": "roots/list"}}}"#,
        r#"asks {"roots":{"method":"roots/list"}} with nothing"#,
    );
}

#[test]
fn invalid_input_request_is_a_fault() {
    check_tool(
        r#"{"inputRequests": {}}"#,
        "fault: `inputRequests`: expected at least one request",
    );
    check_tool(
        r#"{"inputRequests": {"a": {"method": "tools/call"}}}"#,
        r#"fault: `inputRequests`: `tools/call` is unknown, expected one of `elicitation/create`, `sampling/createMessage`, `roots/list`, in `{"a": {"method": "tools/call"}}`"#,
    );
    check_tool(
        r#"{"inputRequests": {"a": {"method": "elicitation/create"}}}"#,
        "fault: `inputRequests.a.params`: expected an object",
    );
    check_tool(
        r#"{"inputRequests": {"a": {"method": "roots/list", "params": []}}}"#,
        "fault: `inputRequests.a.params`: expected an object",
    );
}

#[test]
fn file_replaces_data() {
    check_tool(
        r#"{"content": [{"type": "image", "path": "chart.png"}, {"type": "audio", "path": "data", "mimeType": "audio/wav"}]}"#,
        r#"{"content":[{"type":"image","data":"iVBORw==","mimeType":"image/png"},{"type":"audio","data":"/w==","mimeType":"audio/wav"}],"isError":false}"#,
    );
    check_tool(
        r#"{"content": [{"type": "resource", "resource": {"uri": "a:b", "path": "notes.md"}}]}"#,
        r#"{"content":[{"type":"resource","resource":{"uri":"a:b","mimeType":"text/markdown","text":"Grüße"}}],"isError":false}"#,
    );
    check_prompt(
        r#"{"messages": [{"role": "user", "content": {"type": "image", "path": "chart.png"}}]}"#,
        r#"{"messages":[{"role":"user","content":{"type":"image","data":"iVBORw==","mimeType":"image/png"}}]}"#,
    );
    check_resource(
        r#"{"contents": [{"path": "data"}, {"uri": "notes://2", "path": "notes.md", "mimeType": "text/plain"}]}"#,
        r#"{"contents":[{"uri":"notes://today","blob":"/w=="},{"uri":"notes://2","mimeType":"text/plain","text":"Grüße"}]}"#,
    );
}

#[test]
fn image_block_type_follows_its_bytes() {
    let jpeg = r#"{"content":[{"type":"image","data":"/9j/4A==","mimeType":"image/jpeg"}],"isError":false}"#;
    for image in [
        r#""path": "photo.png""#,
        r#""path": "photo.png", "mimeType": "image/webp""#,
        r#""data": "/9j/4A==", "mimeType": "image/jpg""#,
        r#""data": "/9j/4A==""#,
    ] {
        let output = format!(r#"{{"content": [{{"type": "image", {image}}}]}}"#);
        check_tool(&output, jpeg);
    }
}

#[test]
fn image_unreadable_by_models_becomes_a_resource() {
    check_tool(
        r#"{"content": [{"type": "image", "path": "logo.svg", "annotations": {"priority": 1}}, {"type": "image", "path": "icon.bmp"}, {"type": "image", "data": "/w==", "mimeType": "image/png"}]}"#,
        r#"{"content":[{"type":"resource","resource":{"uri":"mcpd://content/1","mimeType":"image/svg+xml","text":"<svg/>"},"annotations":{"priority":1}},{"type":"resource","resource":{"uri":"mcpd://content/2","mimeType":"image/bmp","blob":"Qk0AAA=="}},{"type":"resource","resource":{"uri":"mcpd://content/3","mimeType":"application/octet-stream","blob":"/w=="}}],"isError":false}"#,
    );
    check_prompt(
        r#"{"messages": [{"role": "user", "content": {"type": "image", "path": "logo.svg"}}]}"#,
        r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"mcpd://content/1","mimeType":"image/svg+xml","text":"<svg/>"}}}]}"#,
    );
}

#[test]
fn image_without_bytes_or_type_is_a_fault() {
    for (image, fault) in [
        (r#""path":"none.gif""#, "the file `none.gif` is empty"),
        (r#""data":"","mimeType":"image/png""#, "`data` is empty"),
        (r#""data":"/9j/4A==","mimeType":"""#, "`mimeType` is empty"),
        (r#""data":"/w==""#, "missing field `mimeType`"),
        (r#""mimeType":"image/png""#, "missing field `data`"),
    ] {
        let block = format!(r#"{{"type":"image",{image}}}"#);
        check_tool(
            &format!(r#"{{"content": [{block}]}}"#),
            &format!("fault: `content[0]`: {fault}, in `{block}`"),
        );
    }
}

#[test]
fn unreadable_file_is_named() {
    check_tool(
        r#"{"content": [{"type": "image", "path": "none.png"}]}"#,
        r#"fault: `content[0]`: failed to read the file `none.png`: No such file or directory (os error 2), in `{"type":"image","path":"none.png"}`"#,
    );
    check_tool(
        r#"{"content": [{"type": "image", "path": "notes.md"}]}"#,
        r#"fault: `content[0]`: the type `image/*` of the file `notes.md` is clear neither from its bytes nor from its name; add `mimeType`, in `{"type":"image","path":"notes.md"}`"#,
    );
    check_tool(
        r#"{"content": [{"type": "image", "path": "chart.png", "data": ""}]}"#,
        r#"fault: `content[0]`: both `data` and `path`, in `{"type":"image","path":"chart.png","data":""}`"#,
    );
    check_tool(
        r#"{"content": [{"type": "audio", "path": ".", "mimeType": "audio/wav"}]}"#,
        r#"fault: `content[0]`: failed to read the file `.`: not a regular file, in `{"type":"audio","path":".","mimeType":"audio/wav"}`"#,
    );
    check_resource(
        r#"{"contents": [{"path": "data", "text": ""}]}"#,
        r#"fault: `contents[0]`: both `path` and a `text` or `blob`, in `{"path":"data","text":"","uri":"notes://today"}`"#,
    );
}

#[test]
fn files_of_one_result_are_bounded_together() {
    let directory = tempfile::tempdir().unwrap();
    let most = 9 << 20;
    fs::write(directory.path().join("a.png"), vec![0; most]).unwrap();
    let mut files = EmbeddedFiles::new(directory.path());
    let mut block = || files.embed(&mut serde_json::json!({"type": "image", "path": "a.png"}));
    assert_eq!(block(), Ok(()));
    assert_eq!(
        block().unwrap_err(),
        "with the file `a.png` the files of the result exceed 16777216 bytes"
    );
}

#[test]
fn output_of_another_shape_names_member_and_fault() {
    check_tool(
        "",
        "fault: line 1, column 1: expected a JSON value, found the end of the text",
    );
    check_tool("[1]", "fault: expected a JSON object, found `[1]`");
    check_tool(
        "{}",
        "fault: expected `content`, `structuredContent`, `error` or `inputRequests`",
    );
    check_tool(
        r#"{"content": [], "content": []}"#,
        r#"fault: line 1, column 17: the duplicate key `content`, in `{"content": [], "content": []}`"#,
    );
    check_tool(
        r#"{"content": "text"}"#,
        r#"fault: `content`: expected an array, found the string "text", in `"text"`"#,
    );
    check_tool(
        r#"{"content": ["text"]}"#,
        r#"fault: `content[0]`: expected a content block, which is an object, found the string "text", in `"text"`"#,
    );
    check_tool(
        r#"{"content": [{"type": "text", "text": "a"}, {"type": "video"}]}"#,
        r#"fault: `content[1]`: `video` is unknown, expected one of `text`, `image`, `audio`, `resource_link`, `resource`, in `{"type":"video"}`"#,
    );
    check_tool(
        r#"{"content": [{"type": "image", "data": "AA=="}]}"#,
        r#"fault: `content[0]`: missing field `mimeType`, in `{"type":"image","data":"AA=="}`"#,
    );
    check_tool(
        r#"{"content": [], "isError": "no"}"#,
        r#"fault: `isError`: expected a boolean, found the string "no", in `"no"`"#,
    );
    check_tool(
        r#"{"content": [], "_meta": []}"#,
        r#"fault: `_meta`: expected an object, found an array, in `[]`"#,
    );
    check_prompt(
        r#"{"content": []}"#,
        r#"fault: expected `messages`, `error` or `inputRequests`"#,
    );
    check_prompt(
        r#"{"messages": [{"role": "system", "content": {"type": "text", "text": "a"}}]}"#,
        r#"fault: `messages[0]`: `system` is unknown, expected `user` or `assistant`, in `{"role":"system","content":{"type":"text","text":"a"}}`"#,
    );
    check_resource(
        r#"{"contents": []}"#,
        r#"fault: expected `contents` with at least one element, `error` or `inputRequests`"#,
    );
    check_resource(
        r#"{"contents": [{"mimeType": "text/plain"}]}"#,
        r#"fault: `contents[0]`: resource contents have either a `text` or a `blob`, in `{"mimeType":"text/plain","uri":"notes://today"}`"#,
    );
}

#[test]
fn content_that_clients_refuse_is_a_fault() {
    let faulty = |block: &str, what: &str| {
        check_tool(
            &format!(r#"{{"content":[{{"type":"text","text":"a"}},{block}]}}"#),
            &format!("fault: `content[1]`: {what}, in `{block}`"),
        );
    };
    for data in ["AA", r"AA==\n", "A A=", "_-==", "AB==", "no"] {
        let block = format!(r#"{{"type":"audio","data":"{data}","mimeType":"audio/wav"}}"#);
        faulty(&block, "`data` must be Base64, in one line and padded");
    }
    faulty(
        r#"{"type":"resource","resource":{"uri":"a:b","blob":"?"}}"#,
        "`blob` must be Base64, in one line and padded",
    );
    for priority in ["-0.1", "1.1", "7.0"] {
        faulty(
            &format!(r#"{{"type":"text","text":"a","annotations":{{"priority":{priority}}}}}"#),
            "`annotations.priority` must be from 0 to 1",
        );
    }
    for time in [
        "",
        "yesterday",
        "2025-01-12",
        "2025-01-12T15:00:58",
        "2025-01-12 15:00:58Z",
        "2025-13-12T15:00:58Z",
        "20250112T150058Z",
        "2025-01-12T15:00:58+01",
    ] {
        faulty(
            &format!(
                r#"{{"type":"resource","resource":{{"uri":"a:b","text":""}},"annotations":{{"lastModified":"{time}"}}}}"#
            ),
            "`annotations.lastModified` must be a time such as `2025-01-12T15:00:58Z`",
        );
    }
    faulty(
        r#"{"type":"resource_link","uri":"a:b","name":"b","icons":[{"src":"a:c","theme":"blue"}]}"#,
        "`theme` of an icon must be `light` or `dark`",
    );
    check_prompt(
        r#"{"messages":[{"role":"user","content":{"type":"image","data":"?","mimeType":"image/png"}}]}"#,
        r#"fault: `messages[0]`: `data` must be Base64, in one line and padded, in `{"role":"user","content":{"type":"image","data":"?","mimeType":"image/png"}}`"#,
    );
    check_resource(
        r#"{"contents":[{"text":"?"},{"blob":"?"}]}"#,
        r#"fault: `contents[1]`: `blob` must be Base64, in one line and padded, in `{"blob":"?","uri":"notes://today"}`"#,
    );
}

#[test]
fn content_at_its_bounds_is_accepted() {
    for annotations in [
        r#"{"priority":0}"#,
        r#"{"priority":1}"#,
        r#"{"lastModified":"2025-01-12T15:00Z"}"#,
        r#"{"lastModified":"2025-01-12T15:00:58.123+01:00"}"#,
    ] {
        let content = format!(r#"[{{"type":"text","text":"a","annotations":{annotations}}}]"#);
        check_tool(
            &format!(r#"{{"content":{content}}}"#),
            &format!(r#"{{"content":{content},"isError":false}}"#),
        );
    }
    let link =
        r#"{"type":"resource_link","uri":"a:b","name":"b","icons":[{"src":"a:c","theme":"dark"}]}"#;
    check_tool(
        &format!(r#"{{"content":[{link}]}}"#),
        &format!(r#"{{"content":[{link}],"isError":false}}"#),
    );
}

#[test]
fn prompt_output_becomes_messages() {
    check_prompt(
        r#"{"description": "d", "messages": [{"role": "assistant", "content": {"type": "text", "text": "a"}}]}"#,
        r#"{"description":"d","messages":[{"role":"assistant","content":{"type":"text","text":"a"}}]}"#,
    );
}

#[test]
fn resource_output_may_set_its_cache_lifetime() {
    check_resource(
        r#"{"contents": [{"text": "a"}], "ttlMs": 1000, "cacheScope": "public"}"#,
        r#"{"contents":[{"uri":"notes://today","text":"a"}],"ttlMs":1000,"cacheScope":"public"}"#,
    );
}
