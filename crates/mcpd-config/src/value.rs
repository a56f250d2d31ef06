//! Value types of `mcpd.toml` that TOML lacks: amounts of bytes, durations, sources of secrets, and
//! values with their position in the file.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// Value with its position in the file; in the schema it is the value alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct Spanned<T>(toml::Spanned<T>);

impl<T> Deref for Spanned<T> {
    type Target = toml::Spanned<T>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T: JsonSchema> JsonSchema for Spanned<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// Number of bytes, in the file also with a unit, as in `"64 MiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Amount(pub(crate) u64);

/// Units of bytes from small to large. The empty unit is last, because every text ends with it.
const UNITS: &[(&str, u32)] = &[("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40), ("", 0)];

impl Amount {
    /// Amount in memory, as far as this machine can address it.
    pub(crate) fn to_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    fn parse(text: &str) -> Option<Self> {
        let (number, bits) = UNITS
            .iter()
            .find_map(|(unit, bits)| Some((text.strip_suffix(unit)?, *bits)))?;
        let number: u64 = number.trim_end().parse().ok()?;
        number.checked_mul(1 << bits).map(Self)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of bytes, or a text such as \"64 MiB\"")
            }

            fn visit_i64<E: Error>(self, bytes: i64) -> Result<Amount, E> {
                u64::try_from(bytes)
                    .map(Amount)
                    .map_err(|_| E::custom("a number of bytes is not negative"))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Amount, E> {
                Amount::parse(text).ok_or_else(|| {
                    E::custom(format!(
                        "`{text}` is no number of bytes; write one such as \"64 MiB\" (KiB, MiB, GiB, TiB)"
                    ))
                })
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for Amount {
    fn schema_name() -> Cow<'static, str> {
        "Bytes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number of bytes, or a text with a unit, such as \"64 MiB\".",
            "type": ["integer", "string"],
            "minimum": 0,
            "pattern": "^[0-9]+ *([KMGT]iB)?$"
        })
    }
}

/// Number of bytes above 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(Amount);

impl Size {
    /// Size in memory, as far as this machine can address it.
    pub(crate) fn get(self) -> NonZeroUsize {
        NonZeroUsize::new(self.0.to_usize()).unwrap_or(NonZeroUsize::MIN)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let amount = Amount::deserialize(deserializer)?;
        let size = Some(Self(amount)).filter(|size| size.0.0 > 0);
        size.ok_or_else(|| D::Error::custom("expected a number of bytes above 0"))
    }
}

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number of bytes above 0, or a text with a unit, such as \"64 MiB\".",
            "type": ["integer", "string"],
            "minimum": 1,
            "pattern": "^0*[1-9][0-9]* *([KMGT]iB)?$"
        })
    }
}

/// Duration above zero, in the file and as a flag a number of seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it is its duration")]
pub struct Seconds(pub Duration);

impl Seconds {
    /// Accepts a number of seconds above 0.
    ///
    /// # Errors
    ///
    /// The number is out of bounds.
    pub fn new(seconds: f64) -> Result<Self, &'static str> {
        match Duration::try_from_secs_f64(seconds) {
            Ok(time) if !time.is_zero() => Ok(Self(time)),
            Err(_) if seconds > 0.0 => Err("expected a number of seconds up to 1.8e19"),
            _ => Err("expected a number of seconds above 0"),
        }
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.subsec_nanos() {
            0 => serializer.serialize_u64(self.0.as_secs()),
            _ => serializer.serialize_f64(self.0.as_secs_f64()),
        }
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(f64::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl JsonSchema for Seconds {
    fn schema_name() -> Cow<'static, str> {
        "Seconds".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number of seconds; fractions count.",
            "type": "number",
            "exclusiveMinimum": 0
        })
    }
}

/// Source of the value of a variable, which may be a secret.
#[derive(PartialEq, Eq)]
pub(crate) enum Source {
    /// Value in the configuration itself.
    Literal(String),
    /// Variable of the same name in mcpd's own environment.
    Pass,
    /// Variable of this name in mcpd's own environment.
    Variable(String),
    /// Content of a file.
    File(PathBuf),
    /// Output of a program.
    Command(Vec<String>),
    /// Credential of this name from the service manager.
    Credential(String),
    /// Password in the keyring of the user.
    Keyring(KeyringEntry),
    /// Header of this name of each request.
    Header(String),
    /// Token in place of each caller's own, by the exchange of this name.
    Exchange(String),
}

/// Entry of a keyring: a service, which may have slashes, and an account after the last one.
#[derive(PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct KeyringEntry {
    pub(crate) service: String,
    pub(crate) account: String,
}

impl TryFrom<String> for KeyringEntry {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let (service, account) = text.rsplit_once('/').unwrap_or_default();
        match service.is_empty() || account.is_empty() {
            true => Err("expected the service and the account, with a slash between them"),
            false => Ok(Self {
                service: service.to_owned(),
                account: account.to_owned(),
            }),
        }
    }
}

/// Omits the value, which may be a secret.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Literal(_) => "Literal",
            Self::Pass => "Pass",
            Self::Variable(_) => "Variable",
            Self::File(_) => "File",
            Self::Command(_) => "Command",
            Self::Credential(_) => "Credential",
            Self::Keyring(_) => "Keyring",
            Self::Header(_) => "Header",
            Self::Exchange(_) => "Exchange",
        })
    }
}

/// Source in the form of a table.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    pass: Option<bool>,
    variable: Option<String>,
    file: Option<PathBuf>,
    command: Option<Vec<String>>,
    credential: Option<String>,
    keyring: Option<KeyringEntry>,
    header: Option<String>,
    exchange: Option<String>,
}

const SOURCES: &str = "expected a text, `{ pass = true }`, `{ variable = \"…\" }`, `{ file = \"…\" }`, `{ credential = \"…\" }`, `{ keyring = \"service/account\" }` or `{ command = [\"…\"] }`, or for a `[[tool]]` also `{ header = \"…\" }` or `{ exchange = \"…\" }`";

impl Table {
    /// The source, if there is just one.
    fn source(self) -> Option<Source> {
        let sources = [
            self.pass.filter(|passes| *passes).map(|_| Source::Pass),
            self.variable.map(Source::Variable),
            self.file.map(Source::File),
            self.command
                .filter(|words| !words.is_empty())
                .map(Source::Command),
            self.credential.map(Source::Credential),
            self.keyring.map(Source::Keyring),
            self.header.map(Source::Header),
            self.exchange.map(Source::Exchange),
        ];
        let mut sources = sources.into_iter().flatten();
        sources.next().filter(|_| sources.next().is_none())
    }
}

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Visitor whose errors repeat no value: it may be a secret without quotes.
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Source;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a table")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Source, E> {
                Ok(Source::Literal(text.to_owned()))
            }

            fn visit_bool<E: Error>(self, _: bool) -> Result<Source, E> {
                Err(E::custom(SOURCES))
            }

            fn visit_i64<E: Error>(self, _: i64) -> Result<Source, E> {
                Err(E::custom(SOURCES))
            }

            fn visit_i128<E: Error>(self, _: i128) -> Result<Source, E> {
                Err(E::custom(SOURCES))
            }

            fn visit_u64<E: Error>(self, _: u64) -> Result<Source, E> {
                Err(E::custom(SOURCES))
            }

            fn visit_u128<E: Error>(self, _: u128) -> Result<Source, E> {
                Err(E::custom(SOURCES))
            }

            fn visit_f64<E: Error>(self, _: f64) -> Result<Source, E> {
                Err(E::custom(SOURCES))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Source, A::Error> {
                Err(A::Error::custom(SOURCES))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Source, A::Error> {
                let table = Table::deserialize(MapAccessDeserializer::new(map));
                let table = table.map_err(|error: A::Error| {
                    if error.to_string().starts_with("unknown field") {
                        error
                    } else {
                        A::Error::custom(SOURCES)
                    }
                })?;
                table.source().ok_or_else(|| A::Error::custom(SOURCES))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for Source {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let only = |key: &str, value: Schema| {
            json_schema!({
                "type": "object",
                "properties": { key: value },
                "required": [key],
                "additionalProperties": false
            })
        };
        json_schema!({
            "description": "A value that is a secret, or where it comes from.",
            "anyOf": [
                { "description": "The value itself.", "type": "string" },
                only("pass", json_schema!({
                    "description": "It is that of the variable of the same name in mcpd's own environment.",
                    "const": true
                })),
                only("variable", json_schema!({
                    "description": "The variable in mcpd's own environment whose value it is.",
                    "type": "string"
                })),
                only("file", json_schema!({
                    "description": "The file whose content it is, without the newline at its end.",
                    "type": "string"
                })),
                only("credential", json_schema!({
                    "description": "The credential of systemd whose content it is, without the newline at its end.",
                    "type": "string"
                })),
                only("keyring", json_schema!({
                    "description": "The service and the account of the password in the keyring of the user, with a slash between them.",
                    "type": "string",
                    "pattern": "^.+/[^/]+$"
                })),
                only("command", json_schema!({
                    "description": "The program that prints it, and its arguments.",
                    "type": "array",
                    "items": { "type": "string" },
                    "minItems": 1
                })),
                only("header", json_schema!({
                    "description": "For `[[tool]]`: the header of each request over HTTP whose value it is; not set without it.",
                    "type": "string"
                })),
                only("exchange", json_schema!({
                    "description": "For `[[tool]]`: the `[[oauth.exchange]]` that makes it from the token of each caller.",
                    "type": "string"
                })),
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, bytes: Option<u64>) {
        assert_eq!(Amount::parse(text), bytes.map(Amount), "{text}");
    }

    #[test]
    fn amount_has_binary_units() {
        check("64", Some(64));
        check("64KiB", Some(64 << 10));
        check("64 MiB", Some(64 << 20));
        check("2GiB", Some(2 << 30));
        check("1 TiB", Some(1 << 40));
        check("64MB", None);
        check("-1", None);
        check("MiB", None);
        check("1.5GiB", None);
        check("99999999999TiB", None);
    }
}
