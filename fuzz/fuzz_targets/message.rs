//! Whatever bytes come in: they are a message, several, or refused in words; what is read can be
//! written again, and means the same then.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpd_protocol::Params;
use mcpd_protocol::jsonrpc::{self, Frame, Message};

fuzz_target!(|bytes: &[u8]| {
    match Frame::decode(bytes) {
        Ok(Frame::Single(message)) => again(&message),
        Ok(Frame::Batch(elements)) => {
            for element in elements {
                if let Ok(message) = Message::decode(element.get().as_bytes()) {
                    again(&message);
                }
            }
        }
        Err(error) => {
            let answer = jsonrpc::error_response(error.id.as_ref(), &error.error);
            assert!(
                Message::decode(&answer).is_ok(),
                "an error that is no message"
            );
        }
    }
});

fn again(message: &Message<'_>) {
    let Message::Request(request) = message else {
        return;
    };
    if let Ok(Params { meta, .. }) = Params::read(request.params) {
        let _ = (
            meta.protocol_version(),
            meta.client_capabilities(),
            meta.client_info(),
        );
        let _ = (meta.log_level(), meta.progress_token(), meta.traceparent());
    }
    let written =
        jsonrpc::request(&request.id, &request.method, &request.params).expect("it was JSON");
    assert!(!written.contains(&b'\n'), "more than one line");
    if request.params.is_some() {
        let Ok(Message::Request(read)) = Message::decode(&written) else {
            panic!("no request any more")
        };
        assert_eq!((&read.id, &read.method), (&request.id, &request.method));
    }
}
