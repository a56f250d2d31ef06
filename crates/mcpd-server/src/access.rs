//! What a caller may use: which tools, and with which arguments.

use std::sync::{Arc, OnceLock};

use globset::{Glob, GlobBuilder, GlobMatcher};
use mcpd_protocol::JsonObject;
use mcpd_scriptspec::{ScriptPath, excerpt};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::policy::PatternError;

/// How much of a value a reason repeats, in characters.
const SHOWN: usize = 100;

/// What a caller may use: everything, as long as nothing is said. It holds for prompts and resources as well, by the
/// paths of the scripts behind them.
///
/// ```
/// use mcpd_server::{Access, Calls};
///
/// # fn main() -> Result<(), mcpd_server::PatternError> {
/// let access = Access::default()
///     .only([
///         Calls::default().tool("reports/**")?,
///         Calls::default().tool("deploy")?.argument("stage", "test-*")?,
///     ])
///     .deny(Calls::default().tool("reports/delete")?);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Of each of these a call has to be among some.
    only: Vec<Vec<Calls>>,
    deny: Vec<Calls>,
    scopes: Option<Scopes>,
}

/// What a caller may use by what it has been granted elsewhere, and what it could be granted.
#[derive(Debug, Clone)]
struct Scopes {
    granted: Vec<Calls>,
    missing: Vec<(String, Calls)>,
}

/// The scope that a request has turned out to need, for the transport that can ask for it. All clones are one.
#[derive(Debug, Clone, Default)]
pub(crate) struct NeededScope(Arc<OnceLock<String>>);

impl NeededScope {
    /// What is needed, if anything.
    #[cfg(feature = "http")]
    pub(crate) fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    pub(crate) fn set(&self, scope: &str) {
        self.0.set(scope.to_owned()).ok();
    }
}

/// Calls that are alike: of tools whose paths match, with arguments that match.
#[derive(Debug, Clone, Default)]
pub struct Calls {
    tools: Vec<GlobMatcher>,
    arguments: Vec<(String, Vec<GlobMatcher>)>,
}

impl Access {
    /// Allows only these calls of what was allowed before.
    #[must_use]
    pub fn only(mut self, calls: impl IntoIterator<Item = Calls>) -> Self {
        self.only.push(calls.into_iter().collect());
        self
    }

    /// Denies these calls, whatever is allowed.
    #[must_use]
    pub fn deny(mut self, calls: Calls) -> Self {
        self.deny.push(calls);
        self
    }

    /// Allows only what is `granted` of what was allowed before, and tells of what is `missing` which scope allows it.
    #[cfg(feature = "oauth")]
    pub(crate) fn scopes(mut self, granted: Vec<Calls>, missing: Vec<(String, Calls)>) -> Self {
        self.scopes = Some(Scopes { granted, missing });
        self
    }

    /// Whether there are arguments with which the tool at `path` may be called: then it is listed.
    pub(crate) fn allows(&self, path: &ScriptPath) -> bool {
        let is_granted = |scopes: &Scopes| scopes.granted.iter().any(|calls| calls.are_of(path));
        self.scopes.as_ref().is_none_or(is_granted) && self.allows_with_every_scope(path)
    }

    /// The scope with which the tool at `path` could be called, if that is all that keeps it from being so.
    pub(crate) fn missing_scope(&self, path: &ScriptPath) -> Option<&str> {
        if self.allows(path) || !self.allows_with_every_scope(path) {
            return None;
        }
        let mut missing = self.scopes.iter().flat_map(|scopes| &scopes.missing);
        let (scope, _) = missing.find(|(_, calls)| calls.are_of(path))?;
        Some(scope)
    }

    fn allows_with_every_scope(&self, path: &ScriptPath) -> bool {
        let is_denied = |calls: &Calls| calls.arguments.is_empty() && calls.are_of(path);
        let is_among = |allowed: &Vec<Calls>| allowed.iter().any(|calls| calls.are_of(path));
        self.only.iter().all(is_among) && !self.deny.iter().any(is_denied)
    }

    /// Judges a call of the tool at `path`. What an argument is by default counts as sent.
    ///
    /// # Errors
    ///
    /// Why it is not made, as a sentence for whoever made it.
    pub(crate) fn judge<'d>(
        &self,
        path: &ScriptPath,
        arguments: Option<&RawValue>,
        defaults: impl FnOnce() -> &'d JsonObject,
    ) -> Result<(), String> {
        let rules = self.only.iter().flatten().chain(&self.deny);
        if !rules.clone().any(|calls| !calls.arguments.is_empty()) {
            // What may be called at all has been judged by its path.
            return Ok(());
        }
        let arguments = with_defaults(arguments, defaults());
        let is_among = |calls: &Calls| calls.are_of(path) && calls.mismatch(&arguments).is_none();
        if self.deny.iter().any(is_among) {
            return Err(refused(path, "these arguments are denied to you"));
        }
        for allowed in &self.only {
            if allowed.iter().any(is_among) {
                continue;
            }
            let of_this_tool = allowed.iter().filter(|calls| calls.are_of(path));
            let mismatch = of_this_tool
                .filter_map(|calls| calls.mismatch(&arguments))
                .next();
            let why = mismatch.unwrap_or_else(|| "you are not allowed to".to_owned());
            return Err(refused(path, &why));
        }
        Ok(())
    }
}

fn refused(path: &ScriptPath, why: &str) -> String {
    format!("`{path}` was not called: {why}.")
}

impl Calls {
    /// Also all calls of the tools whose paths match `pattern`: `*` stands for a part of a name, `**` for any number of
    /// names.
    ///
    /// # Errors
    ///
    /// The pattern can't be read.
    pub fn tool(mut self, pattern: &str) -> Result<Self, PatternError> {
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        self.tools.push(matcher(pattern, glob)?);
        Ok(self)
    }

    /// Of these only the calls whose `argument` matches `pattern`, or another one that is given for it; `*` stands for
    /// any text. What is no string is compared as JSON, and numbers by their value.
    ///
    /// # Errors
    ///
    /// The pattern can't be read.
    pub fn argument(mut self, argument: &str, pattern: &str) -> Result<Self, PatternError> {
        let pattern = matcher(pattern, Glob::new(pattern))?;
        match self.arguments.iter_mut().find(|(name, _)| name == argument) {
            Some((_, patterns)) => patterns.push(pattern),
            None => self.arguments.push((argument.to_owned(), vec![pattern])),
        }
        Ok(self)
    }

    fn are_of(&self, path: &ScriptPath) -> bool {
        self.tools
            .iter()
            .any(|pattern| pattern.is_match(path.as_str()))
    }

    /// The first argument that is another, in words.
    fn mismatch(&self, arguments: &JsonObject) -> Option<String> {
        self.arguments.iter().find_map(|(name, patterns)| {
            let value = arguments.get(name);
            if value.is_some_and(|value| patterns.iter().any(|pattern| matches(pattern, value))) {
                return None;
            }
            let allowed: Vec<_> = patterns
                .iter()
                .map(|pattern| format!("`{}`", pattern.glob().glob()))
                .collect();
            let is = value.map_or("missing".to_owned(), |value| {
                format!("`{}`", excerpt(&text(value), SHOWN))
            });
            Some(format!(
                "`{name}` is {is}, and you may only give {}",
                allowed.join(" or ")
            ))
        })
    }
}

fn matcher(pattern: &str, glob: Result<Glob, globset::Error>) -> Result<GlobMatcher, PatternError> {
    let glob = glob.map_err(|error| PatternError::new(pattern, &error.kind().to_string()))?;
    Ok(glob.compile_matcher())
}

fn matches(pattern: &GlobMatcher, value: &Value) -> bool {
    let text = text(value);
    if pattern.is_match(&*text) {
        return true;
    }
    // `2`, `2.0` and "2" are one to a script that wants a number.
    let number = |text: &str| text.parse::<f64>().ok();
    number(&text).is_some_and(|given| number(pattern.glob().glob()) == Some(given))
}

fn text(value: &Value) -> std::borrow::Cow<'_, str> {
    match value {
        Value::String(text) => text.into(),
        value => value.to_string().into(),
    }
}

/// What `schema` says that arguments are by default.
pub(crate) fn defaults(schema: &RawValue) -> JsonObject {
    let schema = object(schema);
    let properties = schema.get("properties").and_then(Value::as_object);
    let default = |(name, property): (&String, &Value)| {
        Some((name.clone(), property.get("default")?.clone()))
    };
    properties
        .into_iter()
        .flatten()
        .filter_map(default)
        .collect()
}

/// The arguments as a tool will understand them, as far as its defaults tell.
fn with_defaults(arguments: Option<&RawValue>, defaults: &JsonObject) -> JsonObject {
    let mut arguments = arguments.map(object).unwrap_or_default();
    arguments.retain(|_, value| !value.is_null());
    for (name, default) in defaults {
        if !arguments.contains_key(name) {
            arguments.insert(name.clone(), default.clone());
        }
    }
    arguments
}

fn object(json: &RawValue) -> JsonObject {
    serde_json::from_str(json.get()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"properties": {"stage": {"default": "production"}, "count": {}}}"#;

    #[track_caller]
    fn check(access: &Access, path: &str, arguments: &str, expected: Result<(), &str>) {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let path: ScriptPath = path.parse().unwrap();
        let defaults = defaults(&raw(SCHEMA));
        let judged = access.judge(&path, Some(&raw(arguments)), || &defaults);
        assert_eq!(judged.as_ref().map_err(String::as_str).copied(), expected);
    }

    fn calls(pattern: &str) -> Calls {
        Calls::default().tool(pattern).unwrap()
    }

    #[test]
    fn only_what_is_allowed_and_not_denied_is_listed() {
        let access = Access::default()
            .only([
                calls("reports/**"),
                calls("deploy").argument("stage", "test").unwrap(),
            ])
            .only([calls("**")])
            .deny(calls("reports/delete"))
            .deny(
                calls("reports/make")
                    .argument("stage", "production")
                    .unwrap(),
            );
        let allows = |path: &str| access.allows(&path.parse().unwrap());
        assert!(allows("reports/a/b") && allows("reports/make") && allows("deploy"));
        assert!(!allows("reports/delete") && !allows("other") && !allows("reports"));
        assert!(Access::default().allows(&"anything".parse().unwrap()));
        assert!(
            !Access::default()
                .only([])
                .allows(&"anything".parse().unwrap())
        );
    }

    #[test]
    fn arguments_are_judged_as_the_tool_will_understand_them() {
        let tests = calls("deploy").argument("stage", "test-*").unwrap();
        let only = Access::default().only([tests.argument("stage", "7").unwrap()]);
        check(&only, "deploy", r#"{"stage": "test-a/b"}"#, Ok(()));
        check(&only, "deploy", r#"{"stage": 7.0}"#, Ok(()));
        let refused = "`deploy` was not called: `stage` is `production`, and you may only give `test-*` or `7`.";
        check(&only, "deploy", r#"{"stage": "production"}"#, Err(refused));
        check(&only, "deploy", "{}", Err(refused));
        check(&only, "deploy", r#"{"stage": null}"#, Err(refused));

        let deny = Access::default().deny(calls("*").argument("count", "5").unwrap());
        let refused = "`deploy` was not called: these arguments are denied to you.";
        for five in ["5", "5.0", "0.5e1", "\"5\""] {
            check(
                &deny,
                "deploy",
                &format!(r#"{{"count": {five}}}"#),
                Err(refused),
            );
        }
        check(&deny, "deploy", r#"{"count": 6}"#, Ok(()));
        check(&deny, "deploy", "{}", Ok(()));
    }

    #[cfg(feature = "oauth")]
    #[test]
    fn a_missing_scope_is_named_where_it_would_help() {
        let scope = |name: &str, pattern: &str| (name.to_owned(), calls(pattern));
        let access = Access::default().deny(calls("reports/delete")).scopes(
            vec![calls("reports/list")],
            vec![scope("write", "reports/*"), scope("all", "**")],
        );
        #[track_caller]
        fn check(access: &Access, path: &str, allowed: bool, missing: Option<&str>) {
            let path = path.parse().unwrap();
            assert_eq!(access.allows(&path), allowed);
            assert_eq!(access.missing_scope(&path), missing);
        }
        check(&access, "reports/list", true, None);
        check(&access, "reports/make", false, Some("write"));
        check(&access, "deploy", false, Some("all"));
        check(&access, "reports/delete", false, None);
    }

    #[test]
    fn a_pattern_that_can_not_be_read_is_refused() {
        assert!(calls("a").tool("[b").is_err());
        assert!(calls("a").argument("b", "{").is_err());
    }
}
