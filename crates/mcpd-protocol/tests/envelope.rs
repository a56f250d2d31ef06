//! Classification of JSON texts: for each text either the message it is, or the error its sender
//! gets, with the id whenever that was readable.

use std::fmt::Write as _;

use mcpd_protocol::jsonrpc::{DecodeError, Frame, Message, error_response};

/// Returns two lines per text: the text, then the outcome.
#[track_caller]
fn check(texts: &[&str]) -> String {
    let mut report = String::new();
    for text in texts {
        let outcome = show(Frame::decode(text.as_bytes()));
        writeln!(report, "{}\n    {outcome}", visible(text)).expect("a string grows");
    }
    report
}

/// Escapes the invisible characters of a text.
fn visible(text: &str) -> String {
    if text.is_empty() {
        return "<nothing>".to_owned();
    }
    text.replace('\r', "<CR>")
        .replace('\n', "<LF>")
        .replace('\t', "<TAB>")
        .replace('\u{feff}', "<BOM>")
}

fn show(frame: Result<Frame<'_>, DecodeError>) -> String {
    match frame {
        Ok(Frame::Single(message)) => show_message(&message),
        Ok(Frame::Batch(elements)) => {
            let shown: Vec<_> = elements
                .into_iter()
                .map(|element| show(Message::decode(element.get().as_bytes()).map(Frame::Single)))
                .collect();
            format!("batch: {}", shown.join(" | "))
        }
        Err(refused) => {
            let response = error_response(refused.id.as_ref(), &refused.error);
            String::from_utf8(response)
                .expect("UTF-8")
                .replace(r#""jsonrpc":"2.0","#, "")
        }
    }
}

fn show_message(message: &Message<'_>) -> String {
    match message {
        Message::Request(request) => {
            let params = request.params.map_or("no params", |params| params.get());
            format!("request {} {} {params}", request.id, request.method)
        }
        Message::Notification(notification) => {
            let params = notification
                .params
                .map_or("no params", |params| params.get());
            format!("notification {} {params}", notification.method)
        }
        Message::Response(response) => {
            let id = response
                .id
                .as_ref()
                .map_or("no id".to_owned(), ToString::to_string);
            match &response.outcome {
                Ok(result) => format!("response {id} {result}"),
                Err(error) => format!("response {id} {error}"),
            }
        }
    }
}

#[test]
fn messages_are_read() {
    insta::assert_snapshot!(check(&[
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":"1","method":"ping","params":{}}"#,
        r#"{"params": {"a": [1, 2.50]}, "method": "x", "id": -9223372036854775808, "jsonrpc": "2.0"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"what?"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#,
        " \r\n\t{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n",
    ]), @r#"
    {"jsonrpc":"2.0","id":1,"method":"ping"}
        request 1 ping no params
    {"jsonrpc":"2.0","id":"1","method":"ping","params":{}}
        request "1" ping {}
    {"params": {"a": [1, 2.50]}, "method": "x", "id": -9223372036854775808, "jsonrpc": "2.0"}
        request -9223372036854775808 x {"a": [1, 2.50]}
    {"jsonrpc":"2.0","method":"notifications/x"}
        notification notifications/x no params
    {"jsonrpc":"2.0","id":1,"result":null}
        response 1 null
    {"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}
        response 1 no (-1)
    {"jsonrpc":"2.0","error":{"code":-32700,"message":"what?"}}
        response no id what? (-32700)
    {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}
        response no id what? (-32700)
     <CR><LF><TAB>{"jsonrpc":"2.0","id":1,"method":"ping"}<CR><LF>
        request 1 ping no params
    "#);
}

#[test]
fn forms_that_can_mean_only_one_thing_are_read() {
    insta::assert_snapshot!(check(&[
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":[ ]}"#,
        r#"{"jsonrpc":"2.0","id":1.0,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1e3,"result":{}}"#,
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
    ]), @r#"
    {"jsonrpc":"2.0","id":1,"method":"ping","params":null}
        request 1 ping no params
    {"jsonrpc":"2.0","id":1,"method":"ping","params":[]}
        request 1 ping no params
    {"jsonrpc":"2.0","method":"notifications/x","params":[ ]}
        notification notifications/x no params
    {"jsonrpc":"2.0","id":1.0,"method":"ping"}
        request 1 ping no params
    {"jsonrpc":"2.0","id":1e3,"result":{}}
        response 1000 {}
    <BOM>{"jsonrpc":"2.0","id":1,"method":"ping"}
        request 1 ping no params
    "#);
}

#[test]
fn escapes_are_resolved_before_anything_is_compared() {
    insta::assert_snapshot!(check(&[
        r#"{"jsonrpc":"\u0032.0","\u0069d":"\u0061\n","method":"pi\u006eg"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","m\u0065thod":"b"}"#,
    ]), @r#"
    {"jsonrpc":"\u0032.0","\u0069d":"\u0061\n","method":"pi\u006eg"}
        request "a\n" ping no params
    {"jsonrpc":"2.0","id":1,"method":"a","m\u0065thod":"b"}
        {"id":1,"error":{"code":-32600,"message":"`method` occurs more than once"}}
    "#);
}

#[test]
fn members_json_rpc_does_not_define_are_ignored() {
    insta::assert_snapshot!(check(&[
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","extra":{"id":2},"extra":[],"ID":3}"#,
    ]), @r#"
    {"jsonrpc":"2.0","id":1,"method":"ping","extra":{"id":2},"extra":[],"ID":3}
        request 1 ping no params
    "#);
}

#[test]
fn text_that_is_not_json_is_a_parse_error_without_id() {
    insta::assert_snapshot!(check(&[
        "",
        " \n",
        "ping",
        r#"{"jsonrpc":"2.0","id":1,"method":"ping""#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"} {}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping",}"#,
        r#"{"jsonrpc":"2.0","id":01,"method":"ping"}"#,
        r#"{'jsonrpc':'2.0','id':1,'method':'ping'}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\nng\"}",
        "[",
        "[1",
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]]"#,
        "nul",
    ]), @r#"
    <nothing>
        {"error":{"code":-32700,"message":"not JSON: EOF while parsing a value at line 1 column 0"}}
     <LF>
        {"error":{"code":-32700,"message":"not JSON: EOF while parsing a value at line 2 column 0"}}
    ping
        {"error":{"code":-32700,"message":"not JSON: expected value at line 1 column 1"}}
    {"jsonrpc":"2.0","id":1,"method":"ping"
        {"error":{"code":-32700,"message":"not JSON: EOF while parsing an object at line 1 column 39"}}
    {"jsonrpc":"2.0","id":1,"method":"ping"} {}
        {"error":{"code":-32700,"message":"not JSON: trailing characters at line 1 column 42"}}
    {"jsonrpc":"2.0","id":1,"method":"ping",}
        {"error":{"code":-32700,"message":"not JSON: trailing comma at line 1 column 41"}}
    {"jsonrpc":"2.0","id":01,"method":"ping"}
        {"error":{"code":-32700,"message":"not JSON: invalid number at line 1 column 24"}}
    {'jsonrpc':'2.0','id':1,'method':'ping'}
        {"error":{"code":-32700,"message":"not JSON: key must be a string at line 1 column 2"}}
    {"jsonrpc":"2.0","id":1,"method":"pi<LF>ng"}
        {"error":{"code":-32700,"message":"not JSON: control character (\\u0000-\\u001F) found while parsing a string at line 1 column 36"}}
    [
        {"error":{"code":-32700,"message":"not JSON: EOF while parsing a list at line 1 column 1"}}
    [1
        {"error":{"code":-32700,"message":"not JSON: EOF while parsing a list at line 1 column 2"}}
    [{"jsonrpc":"2.0","id":1,"method":"ping"}]]
        {"error":{"code":-32700,"message":"not JSON: trailing characters at line 1 column 43"}}
    nul
        {"error":{"code":-32700,"message":"not JSON: EOF while parsing a value at line 1 column 3"}}
    "#);
}

#[test]
fn invalid_utf8_is_a_parse_error_anywhere() {
    let text = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"x\":\"\xff\"}";
    insta::assert_snapshot!(
        show(Frame::decode(text)),
        @r#"{"error":{"code":-32700,"message":"not UTF-8 from byte 45 on"}}"#
    );
}

#[test]
fn json_that_is_no_object_is_an_invalid_request() {
    insta::assert_snapshot!(check(&["null", "true", "1", "\"ping\"", "{}"]), @r#"
    null
        {"error":{"code":-32600,"message":"a message is an object, not null"}}
    true
        {"error":{"code":-32600,"message":"a message is an object, not a boolean"}}
    1
        {"error":{"code":-32600,"message":"a message is an object, not a number"}}
    "ping"
        {"error":{"code":-32600,"message":"a message is an object, not a string"}}
    {}
        {"error":{"code":-32600,"message":"`jsonrpc` is missing; it must be \"2.0\""}}
    "#);
}

#[test]
fn a_wrong_version_keeps_the_id() {
    insta::assert_snapshot!(check(&[
        r#"{"id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":2.0,"id":"a","method":"ping"}"#,
        r#"{"method":"ping","jsonrpc":null,"id":1}"#,
    ]), @r#"
    {"id":1,"method":"ping"}
        {"id":1,"error":{"code":-32600,"message":"`jsonrpc` is missing; it must be \"2.0\""}}
    {"jsonrpc":"1.0","id":1,"method":"ping"}
        {"id":1,"error":{"code":-32600,"message":"`jsonrpc` must be the string \"2.0\""}}
    {"jsonrpc":2.0,"id":"a","method":"ping"}
        {"id":"a","error":{"code":-32600,"message":"`jsonrpc` must be the string \"2.0\""}}
    {"method":"ping","jsonrpc":null,"id":1}
        {"id":1,"error":{"code":-32600,"message":"`jsonrpc` must be the string \"2.0\""}}
    "#);
}

#[test]
fn an_id_is_a_string_or_an_integer() {
    insta::assert_snapshot!(check(&[
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1e300,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":["a"],"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":"\ud800","method":"ping"}"#,
    ]), @r#"
    {"jsonrpc":"2.0","id":null,"method":"ping"}
        {"error":{"code":-32600,"message":"`id` is null; it must be a string or a 64-bit integer"}}
    {"jsonrpc":"2.0","id":1.5,"method":"ping"}
        {"error":{"code":-32600,"message":"`id` is a number; it must be a string or a 64-bit integer"}}
    {"jsonrpc":"2.0","id":1e300,"method":"ping"}
        {"error":{"code":-32600,"message":"`id` is a number; it must be a string or a 64-bit integer"}}
    {"jsonrpc":"2.0","id":9223372036854775808,"method":"ping"}
        {"error":{"code":-32600,"message":"`id` is a number; it must be a string or a 64-bit integer"}}
    {"jsonrpc":"2.0","id":true,"method":"ping"}
        {"error":{"code":-32600,"message":"`id` is a boolean; it must be a string or a 64-bit integer"}}
    {"jsonrpc":"2.0","id":["a"],"method":"ping"}
        {"error":{"code":-32600,"message":"`id` is an array; it must be a string or a 64-bit integer"}}
    {"jsonrpc":"2.0","id":{},"method":"ping"}
        {"error":{"code":-32600,"message":"`id` is an object; it must be a string or a 64-bit integer"}}
    {"jsonrpc":"2.0","id":"\ud800","method":"ping"}
        {"error":{"code":-32600,"message":"`id` is a string with half a surrogate pair; it must be a string or a 64-bit integer"}}
    "#);
}

#[test]
fn method_and_params_have_one_form_each() {
    insta::assert_snapshot!(check(&[
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"\udc00"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":"a"}"#,
    ]), @r#"
    {"jsonrpc":"2.0","id":1,"method":7}
        {"id":1,"error":{"code":-32600,"message":"`method` must be a string, not a number"}}
    {"jsonrpc":"2.0","id":1,"method":null}
        {"id":1,"error":{"code":-32600,"message":"`method` must be a string, not null"}}
    {"jsonrpc":"2.0","id":1,"method":"\udc00"}
        {"id":1,"error":{"code":-32600,"message":"`method` must be a string, not a string with half a surrogate pair"}}
    {"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}
        {"id":1,"error":{"code":-32600,"message":"`params` must be an object or be left out, not an array"}}
    {"jsonrpc":"2.0","method":"notifications/x","params":"a"}
        {"error":{"code":-32600,"message":"`params` must be an object or be left out, not a string"}}
    "#);
}

#[test]
fn a_repeated_member_is_refused() {
    insta::assert_snapshot!(check(&[
        r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"a"}"#,
        r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"a"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{},"params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"a"}"#,
        r#"{"jsonrpc":"2.0","id":1,"\u0069d":2,"method":"a","method":"b"}"#,
    ]), @r#"
    {"jsonrpc":"2.0","id":1,"method":"a","method":"a"}
        {"id":1,"error":{"code":-32600,"message":"`method` occurs more than once"}}
    {"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"a"}
        {"id":1,"error":{"code":-32600,"message":"`jsonrpc` occurs more than once"}}
    {"jsonrpc":"2.0","id":1,"method":"a","params":{},"params":{}}
        {"id":1,"error":{"code":-32600,"message":"`params` occurs more than once"}}
    {"jsonrpc":"2.0","id":1,"id":1,"method":"a"}
        {"error":{"code":-32600,"message":"`id` occurs more than once"}}
    {"jsonrpc":"2.0","id":1,"\u0069d":2,"method":"a","method":"b"}
        {"error":{"code":-32600,"message":"`id` occurs more than once"}}
    "#);
}

#[test]
fn a_message_is_exactly_one_of_call_and_answer() {
    insta::assert_snapshot!(check(&[
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#,
    ]), @r#"
    {"jsonrpc":"2.0","id":1}
        {"id":1,"error":{"code":-32600,"message":"one of `method`, `result` and `error` is needed"}}
    {"jsonrpc":"2.0","id":1,"method":"a","result":{}}
        {"id":1,"error":{"code":-32600,"message":"only one of `method`, `result` and `error` is allowed"}}
    {"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}
        {"error":{"code":-32600,"message":"only one of `method`, `result` and `error` is allowed"}}
    {"jsonrpc":"2.0","result":{}}
        {"error":{"code":-32600,"message":"a `result` requires the `id` of its request"}}
    {"jsonrpc":"2.0","id":1,"error":"no"}
        response 1 invalid `error`: invalid type: string "no", expected an object with `code` and `message` (-32600)
    {"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"m"}}
        response 1 invalid `error`: invalid type: floating point `1.5`, expected i64 (-32600)
    {"jsonrpc":"2.0","id":1,"error":{"code":1}}
        response 1 invalid `error`: missing field `message` (-32600)
    {"jsonrpc":"2.0","error":{"code":1}}
        {"error":{"code":-32600,"message":"invalid `error`: missing field `message`"}}
    {"jsonrpc":"2.0","id":1,"result":{},"error":null}
        response 1 {}
    "#);
}

#[test]
fn the_elements_of_a_batch_fail_alone() {
    insta::assert_snapshot!(check(&[
        r#"[{"jsonrpc":"2.0","id":1,"method":"a"}, 1, [], {"jsonrpc":"2.0","id":2}]"#,
        "[]",
        " [ ]",
    ]), @r#"
    [{"jsonrpc":"2.0","id":1,"method":"a"}, 1, [], {"jsonrpc":"2.0","id":2}]
        batch: request 1 a no params | {"error":{"code":-32600,"message":"a message is an object, not a number"}} | {"error":{"code":-32600,"message":"a message is an object, not an array"}} | {"id":2,"error":{"code":-32600,"message":"one of `method`, `result` and `error` is needed"}}
    []
        {"error":{"code":-32600,"message":"a batch has at least one message"}}
     [ ]
        {"error":{"code":-32600,"message":"a batch has at least one message"}}
    "#);
}

#[test]
fn depth_needs_no_stack() {
    let depth = 1_000_000;
    let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"x":{nested}}}}}"#);
    let Ok(Frame::Single(Message::Request(request))) = Frame::decode(text.as_bytes()) else {
        panic!("nesting inside params is not the envelope's business");
    };
    assert!(
        request.parse_params::<serde_json::Value>().is_err(),
        "refused, not overflowed"
    );

    assert!(
        matches!(Frame::decode(nested.as_bytes()), Ok(Frame::Batch(elements)) if elements.len() == 1)
    );
    assert!(Frame::decode(&nested.as_bytes()[..depth]).is_err());
}
