//! Value of `warm`: a switch, or the modules that are imported ahead.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Unexpected, Visitor};

/// Warm start of scripts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Warm {
    Off,
    /// With these modules imported ahead.
    On(Vec<String>),
}

impl<'de> Deserialize<'de> for Warm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Warm;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or modules of Python such as [\"json\"]")
            }

            fn visit_bool<E: Error>(self, is_on: bool) -> Result<Warm, E> {
                Ok(match is_on {
                    true => Warm::On(Vec::new()),
                    false => Warm::Off,
                })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Warm, A::Error> {
                let mut modules = Vec::new();
                while let Some(name) = list.next_element::<String>()? {
                    if !mcpd_exec::warm::is_module_name(&name) {
                        return Err(A::Error::invalid_value(Unexpected::Str(&name), &self));
                    }
                    modules.push(name);
                }
                Ok(Warm::On(modules))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for Warm {
    fn schema_name() -> Cow<'static, str> {
        "Warm".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [
            { "type": "boolean" },
            { "type": "array", "items": { "type": "string" } }
        ]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Table {
        warm: Warm,
    }

    #[track_caller]
    fn check(value: &str, expected: Result<Warm, &str>) {
        let table = toml::from_str::<Table>(&format!("warm = {value}"));
        match expected {
            Ok(expected) => assert_eq!(table.unwrap().warm, expected, "{value}"),
            Err(text) => {
                let error = table.unwrap_err().to_string();
                assert!(error.contains(text), "{error}");
            }
        }
    }

    #[test]
    fn warm_is_a_switch_or_a_list_of_modules() {
        check("true", Ok(Warm::On(Vec::new())));
        check("false", Ok(Warm::Off));
        check(
            r#"["json", "xml.dom"]"#,
            Ok(Warm::On(vec!["json".into(), "xml.dom".into()])),
        );
        check(r#"["os; evil"]"#, Err("modules of Python"));
        check("1", Err("true, false"));
    }
}
