//! Cost estimate of a validation, computed in advance: the validator visits a value as often as
//! references lead to it, recurses as deep as they do, and cannot be interrupted.

use std::sync::Arc;

use referencing::{Draft, Registry, Resolver, uri};
use serde_json::Value;

/// Maximum number of steps of a validation, and additional steps per value: a fraction of a
/// second.
const MAX_STEPS: usize = 500_000;
const STEPS_PER_VALUE: usize = 8;
/// Maximum number of steps for one value without its members.
const MAX_EXPANDED: usize = 10_000;
/// Maximum nesting of schemas, by reference or by members of a value. Each level uses stack.
const MAX_NESTED: usize = 500;

/// Keywords that apply further schemas to the same value.
const REAPPLYING_KEYWORDS: &[&str] = &[
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "dependentSchemas",
    "dependencies",
];

/// Address of a schema without an `$id`.
const BASE_URI: &str = "json-schema:///";

/// Schema with its references, to be followed step by step.
#[derive(Debug)]
pub(super) struct Outline {
    schema: Arc<Value>,
    draft: Draft,
    registry: Registry<'static>,
}

/// Error: the schema cannot be checked within bounds.
#[derive(Debug)]
pub(super) struct TooMuch;

impl Outline {
    /// Returns the outline of a valid schema. `None` if a check visits no value twice, and so
    /// takes linear time.
    ///
    /// # Errors
    ///
    /// Returns the reason why it is unusable, as a fragment.
    pub(super) fn of(schema: &Value) -> Result<Option<Self>, String> {
        if !reapplies_schemas(schema) {
            return Ok(None);
        }
        let schema = Arc::new(schema.clone());
        let draft = Draft::default().detect(&schema);
        let registry = Registry::new()
            .draft(draft)
            .add(BASE_URI, Arc::clone(&schema))
            .and_then(referencing::RegistryBuilder::prepare)
            .map_err(|error| error.to_string())?;
        let outline = Self {
            schema,
            draft,
            registry,
        };
        let resolver = outline.resolver()?;
        outline
            .check_expanded(&outline.schema, &resolver)
            .map_err(|TooMuch| {
                format!("its references expand to more than {MAX_EXPANDED} schemas")
            })?;
        Ok(Some(outline))
    }

    /// Returns whether `value` can be checked within bounds.
    pub(super) fn admits(&self, value: &Value) -> bool {
        let Ok(resolver) = self.resolver() else {
            return false;
        };
        let mut walk = Walk::new(self.draft, MAX_STEPS + STEPS_PER_VALUE * value_count(value));
        walk.visit(&self.schema, Some(value), &resolver).is_ok()
    }

    fn resolver(&self) -> Result<Resolver<'_>, String> {
        let base = uri::from_str(BASE_URI).map_err(|error| error.to_string())?;
        let resolver = self.registry.resolver(base);
        resolver_within(&resolver, self.draft, &self.schema).map_err(|error| error.to_string())
    }

    /// Checks that `schema`, and each schema in it, expands to a bounded number when references
    /// are followed.
    fn check_expanded(&self, schema: &Value, resolver: &Resolver<'_>) -> Result<(), TooMuch> {
        Walk::new(self.draft, MAX_EXPANDED).visit(schema, None, resolver)?;
        self.draft.subresources_of(schema).try_for_each(|inner| {
            let resolver = resolver_within(resolver, self.draft, inner).map_err(|_| TooMuch)?;
            self.check_expanded(inner, &resolver)
        })
    }
}

/// Returns whether a keyword in `schema` may have one value visited more than once.
fn reapplies_schemas(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(name, inner)| {
            REAPPLYING_KEYWORDS.contains(&name.as_str()) || reapplies_schemas(inner)
        }),
        Value::Array(elements) => elements.iter().any(reapplies_schemas),
        _ => false,
    }
}

/// Number of values in one, itself included.
fn value_count(value: &Value) -> usize {
    1 + match value {
        Value::Array(elements) => elements.iter().map(value_count).sum(),
        Value::Object(members) => members.values().map(value_count).sum(),
        _ => 0,
    }
}

/// Returns the resolver of references in `schema`, which may have an address of its own.
fn resolver_within<'r>(
    resolver: &Resolver<'r>,
    draft: Draft,
    schema: &Value,
) -> Result<Resolver<'r>, referencing::Error> {
    resolver.in_subresource(draft.create_resource_ref(schema))
}

/// Simulated validation, which takes every branch that a validator might take.
struct Walk {
    draft: Draft,
    steps_left: usize,
    nested: usize,
}

impl Walk {
    fn new(draft: Draft, steps_left: usize) -> Self {
        Self {
            draft,
            steps_left,
            nested: 0,
        }
    }

    fn take(&mut self, steps: usize) -> Result<(), TooMuch> {
        self.steps_left = self.steps_left.checked_sub(steps).ok_or(TooMuch)?;
        Ok(())
    }

    /// Counts the steps of `schema` for `value` and its members; without a value, those of one
    /// value alone.
    fn visit(
        &mut self,
        schema: &Value,
        value: Option<&Value>,
        resolver: &Resolver<'_>,
    ) -> Result<(), TooMuch> {
        self.take(1 + value.map_or(0, weight))?;
        let Value::Object(keywords) = schema else {
            return Ok(());
        };
        if self.nested == MAX_NESTED {
            return Err(TooMuch);
        }
        self.nested += 1;
        let resolver = resolver_within(resolver, self.draft, schema).map_err(|_| TooMuch)?;
        for (keyword, operand) in keywords {
            self.take(weight(operand))?;
            self.follow(keyword, operand, value, &resolver)?;
            if let Some(value) = value {
                self.descend(keyword, operand, value, &resolver)?;
            }
        }
        self.nested -= 1;
        Ok(())
    }

    /// Counts the further schemas of a keyword for the same value.
    fn follow(
        &mut self,
        keyword: &str,
        operand: &Value,
        value: Option<&Value>,
        resolver: &Resolver<'_>,
    ) -> Result<(), TooMuch> {
        match (keyword, operand) {
            ("$ref" | "$dynamicRef", Value::String(reference)) => {
                // The validator has rejected dangling references.
                let Ok(target) = resolver.lookup(reference) else {
                    return Ok(());
                };
                self.visit(target.contents(), value, target.resolver())
            }
            ("$recursiveRef", _) => {
                let Ok(target) = resolver.lookup_recursive_ref() else {
                    return Ok(());
                };
                self.visit(target.contents(), value, target.resolver())
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => schemas
                .iter()
                .try_for_each(|schema| self.visit(schema, value, resolver)),
            ("not" | "if" | "then" | "else", schema) => self.visit(schema, value, resolver),
            ("dependentSchemas" | "dependencies", Value::Object(schemas)) => schemas
                .values()
                .try_for_each(|schema| self.visit(schema, value, resolver)),
            _ => Ok(()),
        }
    }

    /// Counts the schemas of a keyword for the members of `value`.
    fn descend(
        &mut self,
        keyword: &str,
        operand: &Value,
        value: &Value,
        resolver: &Resolver<'_>,
    ) -> Result<(), TooMuch> {
        match (keyword, operand, value) {
            ("properties", Value::Object(schemas), Value::Object(members)) => {
                schemas.iter().try_for_each(|(name, schema)| {
                    let member = members.get(name);
                    member.map_or(Ok(()), |member| self.visit(schema, Some(member), resolver))
                })
            }
            ("patternProperties", Value::Object(schemas), Value::Object(members)) => {
                schemas.values().try_for_each(|schema| {
                    let mut members = members.values();
                    members.try_for_each(|member| self.visit(schema, Some(member), resolver))
                })
            }
            // Counts all members, although only some are additional.
            ("additionalProperties" | "unevaluatedProperties", schema, Value::Object(members)) => {
                let mut members = members.values();
                members.try_for_each(|member| self.visit(schema, Some(member), resolver))
            }
            ("propertyNames", schema, Value::Object(members)) => members
                .keys()
                .try_for_each(|_| self.visit(schema, None, resolver)),
            ("prefixItems" | "items", Value::Array(schemas), Value::Array(elements)) => {
                let mut pairs = schemas.iter().zip(elements);
                pairs.try_for_each(|(schema, element)| self.visit(schema, Some(element), resolver))
            }
            (
                "items" | "additionalItems" | "unevaluatedItems" | "contains",
                schema,
                Value::Array(elements),
            ) => {
                let mut elements = elements.iter();
                elements.try_for_each(|element| self.visit(schema, Some(element), resolver))
            }
            _ => Ok(()),
        }
    }
}

/// Steps of a visit to a value beyond the first, without its members.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() / 256,
        Value::Array(elements) => elements.len() / 16,
        Value::Object(members) => members.len() / 16,
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}
