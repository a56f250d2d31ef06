//! Tool definition of a spec, in the format that tools are compiled to for models: name,
//! description and input schema.

use serde_json::{Map, Value, json};

use crate::spec::ScriptSpec;

impl ScriptSpec {
    /// The definition of the tool under `name`.
    ///
    /// ```
    /// use mcpd_scriptspec::Dialect;
    ///
    /// let program = br#"PARAM amount AS number LIKE 99.99 DESCRIPTION "Total"
    /// DESCRIPTION "Process an order""#;
    /// let described = Dialect::Basic.read("process_order.bas", program);
    /// let spec = described[0].parsed.spec.as_ref().unwrap();
    /// let definition = spec.definition("process_order");
    /// assert_eq!(definition["input_schema"]["properties"]["amount"]["example"], 99.99);
    /// ```
    #[must_use]
    pub fn definition(&self, name: &str) -> Value {
        let description = self.description.as_deref().or(self.title.as_deref());
        let schema = match &self.declared_schema {
            Some(schema) => schema.clone(),
            None => plain(&self.input_schema()),
        };
        json!({
            "name": name,
            "description": description.unwrap_or_default(),
            "input_schema": schema,
        })
    }
}

/// Schema of an object in the form of definitions: always with `required`, never with
/// `additionalProperties`.
fn plain(schema: &Value) -> Value {
    let properties = schema["properties"].as_object();
    let properties: Map<_, _> = properties
        .into_iter()
        .flatten()
        .map(|(name, property)| (name.clone(), with_example(property)))
        .collect();
    let required = schema.get("required").cloned();
    json!({
        "type": "object",
        "properties": properties,
        "required": required.unwrap_or_else(|| json!([])),
    })
}

/// Schema of one value, with one example as its last keyword.
fn with_example(schema: &Value) -> Value {
    let Some(members) = schema.as_object() else {
        return schema.clone();
    };
    let mut plain: Map<_, _> = members
        .iter()
        .filter(|(keyword, _)| !matches!(keyword.as_str(), "examples" | "x-mcp-header"))
        .map(|(keyword, value)| (keyword.clone(), value.clone()))
        .collect();
    if let Some(example) = schema["examples"].get(0) {
        plain.insert("example".to_owned(), example.clone());
    }
    Value::Object(plain)
}

#[cfg(test)]
mod tests {
    use insta::assert_json_snapshot;

    use crate::{Dialect, HelpOutput, parse};

    #[test]
    fn definition_is_made_from_a_program() {
        let program = r#"
PARAM customer_name AS string LIKE "Jane Roe" DESCRIPTION "Who orders"
PARAM order_amount AS number LIKE 12.50 DESCRIPTION "What it costs"
PARAM express AS boolean DESCRIPTION "Whether it is urgent"
DESCRIPTION "Place an order"
"#;
        let described = Dialect::Basic.read("shop/place_order.bas", program.as_bytes());
        let spec = described[0].parsed.spec.as_ref().unwrap();
        assert_json_snapshot!(spec.definition("place_order"), @r#"
        {
          "name": "place_order",
          "description": "Place an order",
          "input_schema": {
            "type": "object",
            "properties": {
              "customer_name": {
                "type": "string",
                "description": "Who orders",
                "example": "Jane Roe"
              },
              "order_amount": {
                "type": "number",
                "description": "What it costs",
                "example": 12.5
              },
              "express": {
                "type": "boolean",
                "description": "Whether it is urgent"
              }
            },
            "required": [
              "customer_name",
              "order_amount",
              "express"
            ]
          }
        }
        "#);
    }

    #[test]
    fn definition_without_options_requires_nothing() {
        let help = HelpOutput {
            stdout: br#"{"title": "Hello"}"#,
            stderr: b"",
        };
        let spec = parse(help).spec.unwrap();
        assert_json_snapshot!(spec.definition("hello"), @r#"
        {
          "name": "hello",
          "description": "Hello",
          "input_schema": {
            "type": "object",
            "properties": {},
            "required": []
          }
        }
        "#);
    }
}
