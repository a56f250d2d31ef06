//! Tests of the question.

use std::sync::Arc;

use mcpd_scriptspec::{HelpOutput, parse};
use serde_json::Value;

use super::*;

fn call(arguments: &str) -> CallToApprove {
    let parsed = parse(HelpOutput {
        stdout: br#"{"description": "Deletes."}"#,
        stderr: br#"{"password": {"description": "How.", "value_type": "string", "secret": true},
                     "path": {"description": "What.", "value_type": "string"}}"#,
    });
    CallToApprove {
        path: "files/delete".parse().unwrap(),
        title: Some("Delete files".to_owned()),
        spec: parsed.spec.map(Arc::new),
        arguments: Some(RawValue::from_string(arguments.to_owned()).unwrap()),
    }
}

#[track_caller]
fn check(arguments: &str, expected: &str) {
    assert_eq!(message(&call(arguments)), expected);
}

#[test]
fn question_names_tool_and_arguments() {
    check(
        r#"{"path": "/srv/a"}"#,
        "May the tool `files/delete` (\"Delete files\") run with these arguments?\n- path: \"/srv/a\"",
    );
    check(
        "{}",
        "May the tool `files/delete` (\"Delete files\") run, without arguments?",
    );
}

#[test]
fn question_hides_secrets() {
    let text = message(&call(r#"{"password": "hunter2", "pasword": "hunter3"}"#));
    assert!(!text.contains("hunter"), "{text}");
    assert!(text.contains("- password: (secret, not shown)\n- pasword: (secret, not shown)"));
}

#[test]
fn question_escapes_what_could_mislead() {
    let mut odd = call(
        r#"{"path": "a\n- path: \"/tmp\"\u202e\u001b[2J", "x\n- y": [1,
 2]}"#,
    );
    odd.spec = None;
    odd.title = Some("Read\u{200b}\nonly".to_owned());
    assert_eq!(
        message(&odd),
        "May the tool `files/delete` (\"Read\\u{200b}\\nonly\") run with these arguments?\n\
         - path: \"a\\n- path: \\\"/tmp\\\"\\u{202e}\\u{1b}[2J\"\n\
         - x\\u{a}- y: [1,\\u{a} 2]"
    );
}

#[test]
fn long_values_keep_their_beginning_and_end() {
    let path = format!("begin{}end", "x".repeat(10_000));
    let text = message(&call(&json!({"path": path}).to_string()));
    assert!(
        text.contains("\"beginxx") && text.contains("xxend\""),
        "{text}"
    );
    assert!(text.contains(" … 9608 characters not shown … "), "{text}");
    let many: serde_json::Map<_, _> = (0..50)
        .map(|number| (format!("a{number}"), Value::from(number)))
        .collect();
    let text = message(&call(&Value::from(many).to_string()));
    assert!(text.ends_with("\n- and 10 more, not shown"), "{text}");
}

#[test]
fn form_offers_what_may_be_remembered() {
    let form = |choices| question(&call("{}"), choices);
    assert_eq!(form(Choices::None).check(), Ok(()));
    let params = |request: InputRequest| -> Value {
        serde_json::from_str(request.params.unwrap().get()).unwrap()
    };
    let fields = params(form(Choices::None))["requestedSchema"]["properties"].take();
    assert_eq!(fields, json!({}));
    let timed = form(Choices::For(Duration::from_secs(900)));
    assert_eq!(timed.check(), Ok(()));
    let plain = params(timed.clone().with_plain_form().unwrap());
    let plain = &plain["requestedSchema"]["properties"]["remember"];
    assert_eq!(plain["enum"], json!(["once", "arguments", "tool"]));
    let fields = params(timed)["requestedSchema"]["properties"].take();
    let choices = &fields["remember"]["oneOf"];
    assert_eq!(
        choices[2]["title"],
        "for all calls of this tool, for 15 minutes"
    );
}

#[test]
fn answer_is_read_from_action_and_choice() {
    for (answer, expected) in [
        (r#"{"action": "accept"}"#, Answer::Once),
        (r#"{"action": "accept", "content": {}}"#, Answer::Once),
        (
            r#"{"action": "accept", "content": {"remember": "tool"}}"#,
            Answer::ForTool,
        ),
        (
            r#"{"action": "accept", "content": {"remember": "arguments"}}"#,
            Answer::ForArguments,
        ),
        (
            r#"{"action": "accept", "content": {"remember": ["tool"]}}"#,
            Answer::Once,
        ),
        (
            r#"{"action": "decline", "content": {"remember": "tool"}}"#,
            Answer::Declined,
        ),
        (r#"{"action": "cancel"}"#, Answer::Cancelled),
        (r#"{"action": "ACCEPT"}"#, Answer::Cancelled),
    ] {
        let answer = RawValue::from_string(answer.to_owned()).unwrap();
        assert_eq!(Answer::read(&answer), expected, "{answer}");
    }
}

#[test]
fn time_is_described_in_its_largest_unit() {
    for (seconds, text) in [
        (1, "1 second"),
        (90, "90 seconds"),
        (900, "15 minutes"),
        (3600, "1 hour"),
        (7200, "2 hours"),
    ] {
        assert_eq!(describe_time(Duration::from_secs(seconds)), text);
    }
}
