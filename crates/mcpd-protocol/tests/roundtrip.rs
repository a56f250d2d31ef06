//! Round trips: an encoded message decodes to itself, for arbitrary ids, methods and values.

use std::sync::Arc;

use mcpd_protocol::content::ContentBlock;
use mcpd_protocol::jsonrpc::{
    self, ErrorCode, ErrorObject, Message, RequestId, error_response, response_raw,
};
use mcpd_protocol::method::{
    CallToolRequestParams, CallToolResult, InputRequiredResult, Interactive,
};
use mcpd_protocol::{
    CacheHint, CacheScope, Implementation, JsonObject, ProtocolVersion, ResultObject, Stamp,
};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

fn ids() -> impl Strategy<Value = RequestId> {
    prop_oneof![
        any::<i64>().prop_map(RequestId::Integer),
        any::<String>().prop_map(|id| RequestId::String(id.into())),
        any::<i64>().prop_map(|id| RequestId::String(id.to_string().into())),
    ]
}

fn objects() -> impl Strategy<Value = JsonObject> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    prop::collection::btree_map(any::<String>(), value, 0..4)
        .prop_map(|members| members.into_iter().collect())
}

fn decode(encoded: &[u8]) -> Message<'_> {
    assert!(
        !encoded.iter().any(|byte| matches!(byte, b'\n' | b'\r')),
        "one line"
    );
    Message::decode(encoded).expect("a message")
}

fn value(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).expect("JSON")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ids_survive(id in ids()) {
        let json = serde_json::to_string(&id).unwrap();
        prop_assert_eq!(serde_json::from_str::<RequestId>(&json).unwrap(), id);
    }

    #[test]
    fn requests_survive(id in ids(), method: String, params in objects()) {
        let encoded = jsonrpc::request(&id, &method, &params).unwrap();
        let Message::Request(request) = decode(&encoded) else { panic!("a request") };
        prop_assert_eq!(request.id, id);
        prop_assert_eq!(request.method, method);
        prop_assert_eq!(value(request.params.unwrap()), Value::Object(params));
    }

    #[test]
    fn notifications_survive(method: String, params in objects()) {
        let encoded = jsonrpc::notification(&method, &params).unwrap();
        let Message::Notification(notification) = decode(&encoded) else { panic!("a notification") };
        prop_assert_eq!(notification.method, method);
        prop_assert_eq!(value(notification.params.unwrap()), Value::Object(params));
    }

    #[test]
    fn results_survive_however_they_are_laid_out(id in ids(), result in objects()) {
        let result = Value::Object(result);
        let encoded = response_raw(&id, serde_json::to_string_pretty(&result).unwrap().as_bytes());
        let Message::Response(response) = decode(&encoded) else { panic!("a response") };
        prop_assert_eq!(response.id, Some(id));
        prop_assert_eq!(value(response.outcome.unwrap()), result);
    }

    #[test]
    fn errors_survive(id in prop::option::of(ids()), code: i64, message: String, data in objects()) {
        let data = Value::Object(data);
        let error = ErrorObject::new(ErrorCode::new(code), message.clone()).with_data(&data);
        let encoded = error_response(id.as_ref(), &error);
        let Message::Response(response) = decode(&encoded) else { panic!("a response") };
        prop_assert_eq!(response.id, id);
        let error = response.outcome.unwrap_err();
        prop_assert_eq!(error.code.get(), code);
        prop_assert_eq!(error.message, message);
        prop_assert_eq!(value(&error.data.unwrap()), data);
    }

    #[test]
    fn decoding_never_panics(bytes: Vec<u8>) {
        prop_assert!(Message::decode(&bytes).is_err());
    }

    #[test]
    fn a_damaged_message_never_panics(at: prop::sample::Index, byte: u8) {
        let mut bytes = br#"{"jsonrpc":"2.0","id":"a","method":"x/y","params":{"_meta":{}}}"#.to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Err(refused) = Message::decode(&bytes) {
            prop_assert!(matches!(
                refused.error.code,
                ErrorCode::PARSE_ERROR | ErrorCode::INVALID_REQUEST
            ));
        }
    }

    #[test]
    fn texts_survive_in_results(text: String, structured in objects()) {
        let mut result = CallToolResult::text(text.clone());
        result.structured_content = Some(to_raw_value(&structured).unwrap());
        let json = serde_json::to_string(&result).unwrap();
        let back: CallToolResult = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(back.content, vec![ContentBlock::text(text)]);
        prop_assert_eq!(value(&back.structured_content.unwrap()), Value::Object(structured));
    }
}

fn stateless() -> Stamp {
    let server_info = Arc::new(Implementation::new("mcpd", "1.0"));
    Stamp::Stateless {
        server_info,
        cache: CacheHint::new(5, CacheScope::Public),
    }
}

fn stamped(stamp: &Stamp, result: impl ResultObject) -> Value {
    let encoded = stamp.encode(result).expect("results encode");
    serde_json::from_slice(&encoded).expect("JSON")
}

/// Sends `result` over the stateless wire, then sends the received result over the stateful one.
#[track_caller]
fn check<R: ResultObject + DeserializeOwned>(result: R, expected: &Value) {
    let original = json!(result);
    let sent = stamped(&stateless(), result);
    assert_eq!(&sent, expected);

    let received: R = serde_json::from_value(sent).expect("results decode");
    assert_eq!(
        stamped(&Stamp::Stateful, received),
        original,
        "nothing is left"
    );
}

#[test]
fn a_stamp_marks_results_for_one_wire_and_clears_them_for_the_other() {
    let meta = json!({"io.modelcontextprotocol/serverInfo": {"name": "mcpd", "version": "1.0"}});
    check(
        mcpd_protocol::method::EmptyResult::default(),
        &json!({"resultType": "complete", "_meta": meta}),
    );
    check(
        mcpd_protocol::method::ListToolsResult::default(),
        &json!({
            "tools": [], "resultType": "complete", "ttlMs": 5, "cacheScope": "public", "_meta": meta,
        }),
    );
    check(
        mcpd_protocol::method::DiscoverResult::new([ProtocolVersion::LATEST], Default::default()),
        &json!({
            "supportedVersions": ["2026-07-28"], "capabilities": {},
            "resultType": "complete", "ttlMs": 5, "cacheScope": "public", "_meta": meta,
        }),
    );
    check(
        Interactive::Complete(CallToolResult::text("x")),
        &json!({
            "content": [{"type": "text", "text": "x"}], "isError": false,
            "resultType": "complete", "_meta": meta,
        }),
    );
}

#[test]
fn every_list_and_read_is_cacheable_and_nothing_else() {
    #[track_caller]
    fn check<M: mcpd_protocol::Method>(result: &str, cacheable: bool) {
        let result: M::Result = serde_json::from_str(result).unwrap();
        let encoded = stamped(&stateless(), result);
        assert_eq!(encoded.get("ttlMs").is_some(), cacheable, "{}", M::NAME);
        assert_eq!(
            encoded.get("cacheScope").is_some(),
            cacheable,
            "{}",
            M::NAME
        );
        assert!(encoded.get("resultType").is_some(), "{}", M::NAME);
    }
    use mcpd_protocol as p;
    check::<p::method::DiscoverRequest>(r#"{"supportedVersions":[],"capabilities":{}}"#, true);
    check::<p::method::ListToolsRequest>(r#"{"tools":[]}"#, true);
    check::<p::method::ListPromptsRequest>(r#"{"prompts":[]}"#, true);
    check::<p::method::ListResourcesRequest>(r#"{"resources":[]}"#, true);
    check::<p::method::ListResourceTemplatesRequest>(r#"{"resourceTemplates":[]}"#, true);
    check::<p::method::ReadResourceRequest>(r#"{"contents":[]}"#, true);
    check::<p::method::ReadResourceRequest>(r#"{"resultType":"input_required"}"#, false);
    check::<p::method::CallToolRequest>(r#"{"content":[]}"#, false);
    check::<p::method::GetPromptRequest>(r#"{"messages":[]}"#, false);
    check::<p::method::CompleteRequest>(r#"{"completion":{"values":[]}}"#, false);
    check::<p::method::SubscriptionsListenRequest>("{}", false);
}

#[test]
fn stamp_keeps_members_of_the_handler() {
    let mut read = mcpd_protocol::method::ReadResourceResult::default();
    read.ttl_ms = Some(0);
    read.cache_scope = Some(CacheScope::Private);
    let encoded = stamped(&stateless(), read);
    assert_eq!(
        (&encoded["ttlMs"], &encoded["cacheScope"]),
        (&json!(0), &json!("private"))
    );

    let ask = InputRequiredResult::new(Default::default());
    let encoded = stamped(&stateless(), ask);
    assert_eq!(encoded["resultType"], "input_required");
}

#[test]
fn structured_null_is_not_absent() {
    for json in [
        r#"{"content":[]}"#,
        r#"{"content":[],"structuredContent":null}"#,
    ] {
        let result: CallToolResult = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&result).unwrap(), json);
    }
}

#[test]
fn answers_are_never_null() {
    let json = r#"{"name":"t","inputResponses":null}"#;
    serde_json::from_str::<CallToolRequestParams>(json).expect_err("null is no object");
}

#[test]
fn schemas_keep_every_byte() {
    let json = r#"{"name":"t","inputSchema":{"$schema":"x","type":"object","z":1.10,"a":12345678901234567890123}}"#;
    let tool: mcpd_protocol::method::Tool = serde_json::from_str(json).unwrap();
    assert_eq!(serde_json::to_string(&tool).unwrap(), json);
}
