//! Table of the approval of calls by a person.

use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

use crate::value::{Seconds, Spanned};

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[approval]`")]
pub(crate) struct ApprovalTable {
    /// Tools whose calls a person must approve; `approval` of `[[tool]]` overrides it.
    #[schemars(extend("default" = "never"))]
    pub(crate) ask: Option<AskFor>,
    /// Reaction to such a call if the client can't ask a person.
    #[schemars(extend("default" = "refuse"))]
    pub(crate) without: Option<WithoutPerson>,
    /// Longest time for which an approval may count, in seconds, or `never` for one call, or
    /// `session` for the session of the client. The person chooses between this call, calls with
    /// the same arguments and all calls of the tool.
    #[schemars(extend("default" = "never"))]
    pub(crate) remember: Option<Remember>,
    /// Time limit for the answer, in seconds, at most 3600.
    #[schemars(extend("default" = 300))]
    pub(crate) timeout: Option<Spanned<Seconds>>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AskFor {
    /// None.
    Never,
    /// Those annotated as destructive, and `run_command`.
    Destructive,
    /// All but those annotated as read-only.
    UnlessReadOnly,
    /// All.
    Always,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WithoutPerson {
    /// The call is refused.
    Refuse,
    /// The call runs.
    Allow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ToolApproval {
    /// A person must approve each call.
    Ask,
    /// Calls need no approval.
    Never,
}

/// Longest time for which an approval may count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remember {
    Never,
    Session,
    For(Duration),
}

impl<'de> Deserialize<'de> for Remember {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = Remember;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`never`, `session` or a number of seconds")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Remember, E> {
                match text {
                    "never" => Ok(Remember::Never),
                    "session" => Ok(Remember::Session),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
                }
            }

            fn visit_i64<E: Error>(self, seconds: i64) -> Result<Remember, E> {
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "such times differ by nothing that matters"
                )]
                let seconds = seconds as f64;
                self.visit_f64(seconds)
            }

            fn visit_f64<E: Error>(self, seconds: f64) -> Result<Remember, E> {
                let seconds = Seconds::new(seconds).map_err(E::custom)?;
                Ok(Remember::For(seconds.0))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for Remember {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Remember".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [
            {"type": "string", "enum": ["never", "session"]},
            generator.subschema_for::<Seconds>(),
        ]})
    }
}
