//! How much work it is to check a value, found out without doing it: the library that checks looks at a value
//! as often as references lead to it, goes as deep as they do, and can't be interrupted.

use std::sync::Arc;

use referencing::{Draft, Registry, Resolver, uri};
use serde_json::Value;

/// Steps that a check may take, and how many more for each value in what is checked: a fraction of a second.
const MAX_STEPS: usize = 500_000;
const STEPS_EACH: usize = 8;
/// Steps that one value may take before anything inside it is looked at.
const MAX_EXPANDED: usize = 10_000;
/// Schemas that lead to each other, by reference or by what is inside a value. Each takes some of the stack.
const MAX_NESTED: usize = 500;

/// Keywords with more schemas for the same value.
const AGAIN: &[&str] = &[
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

/// Where a schema is that doesn't say it.
const NOWHERE: &str = "json-schema:///";

/// A schema with its references, to be followed step by step.
#[derive(Debug)]
pub(super) struct Outline {
    schema: Arc<Value>,
    draft: Draft,
    registry: Registry<'static>,
}

/// A schema that can't be checked within bounds.
#[derive(Debug)]
pub(super) struct TooMuch;

impl Outline {
    /// The outline of a schema that the validator understands. `None` if a check looks at no value twice, and so takes no
    /// longer than the value is large.
    ///
    /// # Errors
    ///
    /// Why it can't be used, as a fragment.
    pub(super) fn of(schema: &Value) -> Result<Option<Self>, String> {
        if !looks_again(schema) {
            return Ok(None);
        }
        let schema = Arc::new(schema.clone());
        let draft = Draft::default().detect(&schema);
        let registry = Registry::new()
            .draft(draft)
            .add(NOWHERE, Arc::clone(&schema))
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
                format!("its references make more than {MAX_EXPANDED} schemas of one")
            })?;
        Ok(Some(outline))
    }

    /// Whether `value` can be checked within bounds.
    pub(super) fn admits(&self, value: &Value) -> bool {
        let Ok(resolver) = self.resolver() else {
            return false;
        };
        let mut walk = Walk::new(self.draft, MAX_STEPS + STEPS_EACH * size(value));
        walk.visit(&self.schema, Some(value), &resolver).is_ok()
    }

    fn resolver(&self) -> Result<Resolver<'_>, String> {
        let base = uri::from_str(NOWHERE).map_err(|error| error.to_string())?;
        let resolver = self.registry.resolver(base);
        within(&resolver, self.draft, &self.schema).map_err(|error| error.to_string())
    }

    /// Whether `schema` and each inside it is a bounded number of them once references are followed.
    fn check_expanded(&self, schema: &Value, resolver: &Resolver<'_>) -> Result<(), TooMuch> {
        Walk::new(self.draft, MAX_EXPANDED).visit(schema, None, resolver)?;
        self.draft.subresources_of(schema).try_for_each(|inner| {
            let resolver = within(resolver, self.draft, inner).map_err(|_| TooMuch)?;
            self.check_expanded(inner, &resolver)
        })
    }
}

/// Whether something in `schema` may have one value looked at more than once.
fn looks_again(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members
            .iter()
            .any(|(name, inner)| AGAIN.contains(&name.as_str()) || looks_again(inner)),
        Value::Array(elements) => elements.iter().any(looks_again),
        _ => false,
    }
}

/// How many values there are in one, itself included.
fn size(value: &Value) -> usize {
    1 + match value {
        Value::Array(elements) => elements.iter().map(size).sum(),
        Value::Object(members) => members.values().map(size).sum(),
        _ => 0,
    }
}

/// How references in `schema` are meant, which may have an address of its own.
fn within<'r>(
    resolver: &Resolver<'r>,
    draft: Draft,
    schema: &Value,
) -> Result<Resolver<'r>, referencing::Error> {
    resolver.in_subresource(draft.create_resource_ref(schema))
}

/// Follows a schema as a validator does, but on every way that it might go.
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

    /// Counts what `schema` asks of `value`, and of what is inside it; without one, of the value alone.
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
        let resolver = within(resolver, self.draft, schema).map_err(|_| TooMuch)?;
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

    /// Where a keyword has more schemas for the same value.
    fn follow(
        &mut self,
        keyword: &str,
        operand: &Value,
        value: Option<&Value>,
        resolver: &Resolver<'_>,
    ) -> Result<(), TooMuch> {
        match (keyword, operand) {
            ("$ref" | "$dynamicRef", Value::String(reference)) => {
                // A reference that leads nowhere has been refused by the validator.
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

    /// Where a keyword has schemas for what is inside of `value`.
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
            // Whether they are additional is not asked: then there are fewer.
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

/// Steps that a look at a value takes beyond the first, without what is inside it.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() / 256,
        Value::Array(elements) => elements.len() / 16,
        Value::Object(members) => members.len() / 16,
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}
