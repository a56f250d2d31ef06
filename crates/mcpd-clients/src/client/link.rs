//! Deep links: addresses that a desktop opens with a client, which then asks to add a server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::{Server, Transport};

/// Kind of deep link.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scheme {
    Cursor,
    LmStudio,
    VsCode,
    Goose,
}

impl Scheme {
    /// Link to a server with that entry, and with the input that asks for its token.
    pub(super) fn render(self, server: &Server, entry: &Value, input: Option<Value>) -> String {
        let name = encode(&server.name);
        let config = || encode(&STANDARD.encode(entry.to_string()));
        match self {
            Self::Cursor => format!(
                "cursor://anysphere.cursor-deeplink/mcp/install?name={name}&config={}",
                config()
            ),
            Self::LmStudio => format!("lmstudio://add_mcp?name={name}&config={}", config()),
            Self::VsCode => {
                let mut named = serde_json::json!({ "name": server.name });
                if let (Value::Object(named), Value::Object(entry)) = (&mut named, entry) {
                    named.extend(entry.clone());
                    named
                        .extend(input.map(|input| ("inputs".to_owned(), Value::from(vec![input]))));
                }
                format!("vscode:mcp/install?{}", encode(&named.to_string()))
            }
            Self::Goose => {
                let place = match &server.transport {
                    Transport::Stdio {
                        command,
                        args,
                        env,
                        pass_env,
                    } => {
                        let args: String = args
                            .iter()
                            .map(|arg| format!("&arg={}", encode(arg)))
                            .collect();
                        // Goose asks for the values, and shows what is behind the equals sign.
                        let set = env.iter().map(|(name, value)| format!("{name}={value}"));
                        let passed = pass_env.iter().map(|name| format!("{name}={name}"));
                        let env: String = set
                            .chain(passed)
                            .map(|variable| format!("&env={}", encode(&variable)))
                            .collect();
                        format!("cmd={}{args}{env}", encode(command))
                    }
                    Transport::Http { url, .. } => {
                        format!("type=streamable_http&url={}", encode(url))
                    }
                };
                format!("goose://extension?{place}&id={name}&name={name}&description={name}")
            }
        }
    }
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
