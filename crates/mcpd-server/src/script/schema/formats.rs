//! Defaults that the `format` beside them forbids: clients that check formats reject the entire
//! tool because of one.

use serde_json::{Map, Value, json};

/// Removes the forbidden defaults of `schema`, and returns the place of each as a JSON pointer in
/// a fragment.
pub(crate) fn remove_forbidden_defaults(schema: &mut Value) -> Vec<String> {
    let mut removed = Vec::new();
    remove_from(schema, "#", &mut removed);
    removed
}

fn remove_from(value: &mut Value, pointer: &str, removed: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            if has_forbidden_default(members) {
                members.shift_remove("default");
                removed.push(pointer.to_owned());
            }
            for (key, inside) in members {
                // These hold values, not schemas.
                if !matches!(key.as_str(), "const" | "default" | "enum" | "examples") {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    remove_from(inside, &format!("{pointer}/{key}"), removed);
                }
            }
        }
        Value::Array(elements) => {
            for (index, inside) in elements.iter_mut().enumerate() {
                remove_from(inside, &format!("{pointer}/{index}"), removed);
            }
        }
        _ => {}
    }
}

fn has_forbidden_default(schema: &Map<String, Value>) -> bool {
    let (Some(Value::String(format)), Some(default @ Value::String(_))) =
        (schema.get("format"), schema.get("default"))
    else {
        return false;
    };
    // An unknown format forbids nothing.
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(&json!({ "format": format }));
    validator.is_ok_and(|validator| !validator.is_valid(default))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: &str, default: &Value, is_listed: bool) {
        let declared = json!({"properties": {"a/b": {"format": format, "default": default}}});
        let mut schema = declared.clone();
        let removed = remove_forbidden_defaults(&mut schema);
        assert_eq!(schema == declared, is_listed, "{schema}");
        let expected: &[&str] = if is_listed {
            &[]
        } else {
            &["#/properties/a~1b"]
        };
        assert_eq!(removed, expected);
    }

    #[test]
    fn forbidden_default_is_removed() {
        check("date", &json!(""), false);
        check("date", &json!("2026-02-30"), false);
        check("date", &json!("2026-02-28"), true);
        check("email", &json!("nobody"), false);
        check("uri", &json!("example.org"), false);
        check("date-time", &json!("2026-02-28T10:00:00Z"), true);
        check("color", &json!("whatever"), true);
        check("date", &json!(null), true);
    }

    #[test]
    fn schema_like_value_is_kept() {
        let declared = json!({"default": {"format": "date", "default": ""}, "enum": [{"format": "date", "default": ""}]});
        let mut schema = declared.clone();
        assert!(remove_forbidden_defaults(&mut schema).is_empty());
        assert_eq!(schema, declared);
    }
}
