//! The handshake of the stateful wire.

use std::borrow::Cow;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{NotificationParams, notification, request};
use crate::JsonObject;
use crate::capabilities::{ClientCapabilities, Declared, Implementation, ServerCapabilities};
use crate::content::Icon;
use crate::meta::ResultMeta;
use crate::stamp::{ResultType, stamped};
use crate::version::ProtocolVersion;

request! {
    /// `initialize`, first on the stateful wire and unknown on the other.
    InitializeRequest, "initialize", InitializeRequestParams => InitializeResult
}

notification! {
    /// `notifications/initialized`: the client is ready. Real clients send requests before it.
    InitializedNotification, "notifications/initialized", NotificationParams
}

/// Proposal of the client.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeRequestParams {
    /// Newest revision the client speaks, known to this crate or not. Without one, the client is
    /// taken to speak the oldest.
    #[serde(default = "oldest_version", deserialize_with = "version")]
    pub protocol_version: String,
    /// Capabilities for the whole session. Members that older revisions leave open are dropped if
    /// newer revisions give them another shape. Absent means none.
    #[serde(default, deserialize_with = "declared")]
    pub capabilities: ClientCapabilities,
    /// Identity of the client, read with the same leniency. Absent means `unknown`.
    #[serde(default = "unknown_client", deserialize_with = "introduced")]
    pub client_info: Implementation,
    /// Request metadata; read it with [`Params`](crate::Params).
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

/// Placeholder for an identity the client does not give.
const UNKNOWN: &str = "unknown";

fn oldest_version() -> String {
    ProtocolVersion::ALL[0].to_string()
}

fn unknown_client() -> Implementation {
    Implementation::new(UNKNOWN, UNKNOWN)
}

fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let version = Option::deserialize(deserializer)?;
    Ok(version.unwrap_or_else(oldest_version))
}

/// Reads capabilities of any revision: "this is not a closed set: any client can define its own,
/// additional capabilities", so a member that became standard later may mean something else here
/// -- 2024-11-05/schema.ts
fn declared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ClientCapabilities, D::Error> {
    let declared = Option::<Declared<JsonObject>>::deserialize(deserializer)?;
    let mut declared = declared
        .map(|Declared(declared)| declared)
        .unwrap_or_default();
    let since = ["elicitation", "extensions"];
    declared.retain(|name, value| !since.contains(&name.as_str()) || value.is_object());
    for name in ["elicitation", "sampling"] {
        if let Some(Value::Object(members)) = declared.get_mut(name) {
            members.retain(|_, member| member.is_object());
        }
    }
    read(declared)
}

fn introduced<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Implementation, D::Error> {
    let Some(mut introduced) = Option::<JsonObject>::deserialize(deserializer)? else {
        return Ok(unknown_client());
    };
    for name in ["name", "version"] {
        let said = introduced.entry(name).or_insert(Value::Null);
        if said.is_null() {
            *said = UNKNOWN.into();
        }
    }
    introduced.retain(|name, value| match name.as_str() {
        "title" | "description" | "websiteUrl" => value.is_string(),
        "icons" => Vec::<Icon>::deserialize(&*value).is_ok(),
        _ => true,
    });
    read(introduced)
}

fn read<T: DeserializeOwned, E: Error>(object: JsonObject) -> Result<T, E> {
    T::deserialize(Value::Object(object)).map_err(E::custom)
}

/// Terms of the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeResult {
    /// Revision of the session, see [`ProtocolVersion::negotiate`].
    pub protocol_version: Cow<'static, str>,
    /// Capabilities for the whole session.
    pub capabilities: ServerCapabilities,
    /// Identity of the server.
    pub server_info: Implementation,
    /// Usage instructions for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Always absent: this method has no stateless wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata.
    #[serde(
        rename = "_meta",
        default,
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

stamped!(InitializeResult);

impl InitializeRequestParams {
    /// Makes a proposal.
    #[must_use]
    pub fn new(
        version: ProtocolVersion,
        capabilities: ClientCapabilities,
        client_info: Implementation,
    ) -> Self {
        Self {
            protocol_version: version.to_string(),
            capabilities,
            client_info,
            meta: None,
        }
    }
}

impl InitializeResult {
    /// Makes an answer without instructions.
    #[must_use]
    pub fn new(
        version: ProtocolVersion,
        capabilities: ServerCapabilities,
        server_info: Implementation,
    ) -> Self {
        Self {
            protocol_version: version.as_str().into(),
            capabilities,
            server_info,
            instructions: None,
            result_type: None,
            meta: ResultMeta::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(capabilities: &str, client_info: &str, expected: Result<(&str, &str), &str>) {
        let params = format!(
            r#"{{"protocolVersion":"2024-11-05","capabilities":{capabilities},"clientInfo":{client_info}}}"#
        );
        let read = serde_json::from_str::<InitializeRequestParams>(&params);
        let shown = read
            .map(|params| {
                let capabilities = serde_json::to_string(&params.capabilities).unwrap();
                let client_info = serde_json::to_string(&params.client_info).unwrap();
                (capabilities, client_info)
            })
            .map_err(|error| crate::json::fault(&error));
        let shown = shown.as_ref();
        assert_eq!(shown.map(|(a, b)| (&**a, &**b)).map_err(|e| &**e), expected);
    }

    #[test]
    fn open_members_of_older_revisions_are_dropped_unless_valid() {
        let client = r#"{"name":"c","version":"0"}"#;
        for (declared, understood) in [
            (
                r#"{"sampling":{"tools":true,"context":{}}}"#,
                r#"{"sampling":{"context":{}}}"#,
            ),
            (
                r#"{"elicitation":{"form":"x","url":{}}}"#,
                r#"{"elicitation":{"url":{}}}"#,
            ),
            (r#"{"elicitation":true,"extensions":7,"tasks":7}"#, "{}"),
            (
                r#"{"elicitation":[],"sampling":{"tools":[]},"roots":[],"experimental":[]}"#,
                r#"{"elicitation":{},"sampling":{"tools":{}},"roots":{},"experimental":{}}"#,
            ),
            ("[]", "{}"),
            ("null", "{}"),
            (
                r#"{"roots":{"listChanged":true},"sampling":{}}"#,
                r#"{"sampling":{},"roots":{"listChanged":true}}"#,
            ),
        ] {
            check(declared, client, Ok((understood, client)));
        }
        for told in [
            r#"{"name":"c","version":"0","icons":null}"#,
            r#"{"name":"c","version":"0","title":1,"icons":[{"sizes":"any"}],"websiteUrl":{}}"#,
        ] {
            check("{}", told, Ok(("{}", client)));
        }
        let full = r#"{"name":"c","title":"C","version":"0","icons":[{"src":"a:b"}]}"#;
        check("{}", full, Ok(("{}", full)));
    }

    #[test]
    fn common_members_must_be_valid() {
        let client = r#"{"name":"c","version":"0"}"#;
        check("[1]", client, Err("invalid type: sequence, expected a map"));
        check(
            r#"{"sampling":true}"#,
            client,
            Err("invalid type: boolean `true`, expected struct SamplingCapability"),
        );
        check(
            "{}",
            r#"{"name":7}"#,
            Err("invalid type: integer `7`, expected a string"),
        );
    }

    #[test]
    fn client_without_identity_is_unknown_and_has_no_capabilities() {
        let unknown = r#"{"name":"unknown","version":"unknown"}"#;
        for params in [
            "{}",
            r#"{"protocolVersion":null,"capabilities":null,"clientInfo":null}"#,
        ] {
            let read: InitializeRequestParams = serde_json::from_str(params).unwrap();
            assert_eq!(read.protocol_version, "2024-11-05");
            assert_eq!(read.capabilities, ClientCapabilities::default());
            assert_eq!(serde_json::to_string(&read.client_info).unwrap(), unknown);
        }
        check(
            "{}",
            r#"{"name":"c"}"#,
            Ok(("{}", r#"{"name":"c","version":"unknown"}"#)),
        );
    }
}
