//! Recovery of text that is not JSON, or JSON that serde rejects.

use rmcp::model::RequestId;
use serde::Deserialize;
use serde_json::Value;

/// Parses JSON, with U+FFFD in place of unpaired surrogates: such remain where a text was cut in
/// two.
///
/// # Errors
///
/// Fails if the text is not JSON.
pub(super) fn parse(json: &str) -> serde_json::Result<Value> {
    serde_json::from_str(json).or_else(|error| match replace_lone_surrogates(json) {
        Some(json) => serde_json::from_str(&json),
        None => Err(error),
    })
}

/// Replaces escapes of unpaired surrogates by `\ufffd`; `None` if there are none.
fn replace_lone_surrogates(json: &str) -> Option<String> {
    let mut replaced = String::new();
    let mut copied = 0;
    let mut place = 0;
    while let Some(found) = json[place..].find('\\') {
        let start = place + found;
        // An escaped backslash takes two bytes as well.
        place = start + 2;
        match (unit(json, start), unit(json, start + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => place = start + 12,
            (Some(0xD800..=0xDFFF), _) => {
                replaced.push_str(&json[copied..start]);
                replaced.push_str("\\ufffd");
                place = start + 6;
                copied = place;
            }
            _ => {}
        }
        if !json.is_char_boundary(place) {
            break;
        }
    }
    (copied > 0).then(|| replaced + &json[copied..])
}

/// Returns the code unit of the escape `\uXXXX` at `start`.
fn unit(json: &str, start: usize) -> Option<u32> {
    let digits = json.get(start..start + 6)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16).ok()
}

/// Returns whether a text that is not JSON may be a broken answer.
pub(super) fn looks_like_answer(text: &str) -> bool {
    let has_outcome = text.contains("\"result\"") || text.contains("\"error\"");
    text.starts_with('{') && text.contains("\"jsonrpc\"") && has_outcome
}

/// Finds the id of an answer whose result is unreadable or cut off: it stands before the result,
/// or at the end.
pub(super) fn find_id(text: &str) -> Option<RequestId> {
    let outcome = ["\"result\"", "\"error\""].map(|member| text.find(member));
    let before = &text[..outcome.into_iter().flatten().min()?];
    let before = before.trim_end().trim_end_matches(',');
    read_id(&format!("{before}}}")).or_else(|| {
        let last = text.rfind("\"id\"")?;
        read_id(&format!("{{{}", &text[last..]))
    })
}

fn read_id(json: &str) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Named {
        id: RequestId,
    }
    let named: Named = serde_json::from_str(json).ok()?;
    Some(named.id)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn half_a_surrogate_pair_is_replaced() {
        let check = |json: &str, expected: &str| assert_eq!(parse(json).unwrap(), json!(expected));
        check(r#""a\ud83d""#, "a\u{fffd}");
        check(r#""\udce9 \ud83d\ude00 \ude00""#, "\u{fffd} 😀 \u{fffd}");
        check(r#""\\ud83d""#, r"\ud83d");
        check(r#""\\\ud83dé""#, "\\\u{fffd}é");
        assert!(parse(r#""\"#).is_err());
        assert!(parse("\"\\é").is_err());
    }

    #[track_caller]
    fn check_id(text: &str, expected: Option<RequestId>) {
        assert_eq!(find_id(text), expected);
    }

    #[test]
    fn id_of_an_answer_is_found_before_or_behind_its_result() {
        let seven = Some(RequestId::Number(7));
        check_id(
            r#"{"jsonrpc": "2.0", "id": 7, "result": {"a": NaN}}"#,
            seven.clone(),
        );
        check_id(
            r#"{"jsonrpc": "2.0", "result": {"a": NaN}, "id": 7}"#,
            seven.clone(),
        );
        check_id(r#"{"id": 7, "jsonrpc": "2.0", "result": {"a": "#, seven);
        check_id(r#"{"jsonrpc": "2.0", "result": {"id": 8, "a": "#, None);
    }
}
