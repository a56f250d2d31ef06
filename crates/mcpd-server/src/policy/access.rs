//! Access control: the tools, prompts and resources that a caller may use, and with which
//! arguments. A call that cannot be judged is denied.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use mcpd_scriptspec::{Decimal, ScriptPath, ScriptSpec, excerpt, members};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::policy::pattern::Pattern;
use crate::policy::pattern::PatternError;
use crate::policy::secret_arguments::is_secret;
use crate::policy::selection::{Selection, ToolTraits};

/// Maximum number of characters of a value that a reason quotes.
const MAX_QUOTED_CHARS: usize = 100;

/// Default values of arguments.
pub(crate) type Defaults = BTreeMap<String, Box<RawValue>>;

/// Arguments by name in the form that rules compare: every text that a tool may interpret one as.
type Texts<'a> = BTreeMap<&'a str, Vec<String>>;

/// Permissions of a caller; everything by default. They apply to prompts and resources as well,
/// by the paths of the scripts behind them and by the arguments of those.
///
/// ```
/// use mcpd_server::policy::{Access, CallPattern};
///
/// # fn main() -> Result<(), mcpd_server::policy::PatternError> {
/// let access = Access::default()
///     .allow_only([
///         CallPattern::default().tool("reports/**")?,
///         CallPattern::default().tool("deploy")?.argument("stage", "test-*")?,
///     ])
///     .deny(CallPattern::default().tool("reports/delete")?);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Lists of patterns; a call must match each list.
    only: Vec<Vec<CallPattern>>,
    deny: Vec<CallPattern>,
    scopes: Option<Scopes>,
    selections: Vec<Selection>,
}

/// Granted scopes of a caller, and scopes that it could request.
#[derive(Debug, Clone)]
struct Scopes {
    granted: Vec<CallPattern>,
    missing: Vec<(String, CallPattern)>,
}

/// Scope that a request turned out to need, for a transport that can ask for it. Shared by all
/// clones.
#[derive(Debug, Clone, Default)]
pub(crate) struct NeededScope(Arc<OnceLock<String>>);

impl NeededScope {
    /// Needed scope, if there is one.
    #[cfg(feature = "http")]
    pub(crate) fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    pub(crate) fn record(&self, scope: &str) {
        self.0.set(scope.to_owned()).ok();
    }
}

/// Pattern of calls: of tools whose paths match, with arguments that match.
#[derive(Debug, Clone, Default)]
pub struct CallPattern {
    tools: Vec<Pattern>,
    arguments: Vec<ArgumentPattern>,
}

/// Argument, and the patterns of its value.
#[derive(Debug, Clone)]
struct ArgumentPattern {
    name: String,
    patterns: Vec<Pattern>,
}

impl Access {
    /// Restricts the permitted calls to these.
    #[must_use]
    pub fn allow_only(mut self, calls: impl IntoIterator<Item = CallPattern>) -> Self {
        self.only.push(calls.into_iter().collect());
        self
    }

    /// Denies these calls, even if they are allowed.
    #[must_use]
    pub fn deny(mut self, calls: CallPattern) -> Self {
        self.deny.push(calls);
        self
    }

    /// Restricts it to a selection.
    #[must_use]
    pub fn select(mut self, selection: Selection) -> Self {
        self.selections.push(selection);
        self
    }

    /// Returns which of `tools`, in the order of their paths, may be called with some arguments.
    pub(crate) fn select_tools(&self, tools: &[ToolTraits<'_>]) -> Vec<bool> {
        let mut allowed: Vec<_> = tools.iter().map(|tool| self.allows(tool.path)).collect();
        for selection in &self.selections {
            let places = allowed.iter().enumerate();
            let places = places.filter(|(_, is)| **is).map(|(place, _)| place);
            let places: Vec<_> = places.collect();
            let rest: Vec<_> = places.iter().map(|place| tools[*place]).collect();
            for (place, is_selected) in places.into_iter().zip(selection.select(&rest)) {
                allowed[place] = is_selected;
            }
        }
        allowed
    }

    /// Restricts the permitted calls to the `granted` ones, and names the scope that allows a
    /// `missing` one.
    #[cfg(feature = "oauth")]
    pub(crate) fn with_scopes(
        mut self,
        granted: Vec<CallPattern>,
        missing: Vec<(String, CallPattern)>,
    ) -> Self {
        self.scopes = Some(Scopes { granted, missing });
        self
    }

    /// Returns whether the tool at `path` may be called with some arguments: then it is listed.
    pub(crate) fn allows(&self, path: &ScriptPath) -> bool {
        let is_granted =
            |scopes: &Scopes| scopes.granted.iter().any(|calls| calls.matches_tool(path));
        self.scopes.as_ref().is_none_or(is_granted) && self.allows_with_all_scopes(path)
    }

    /// Returns the scope that would allow the tool at `path`, if nothing else prevents it.
    pub(crate) fn missing_scope(&self, path: &ScriptPath) -> Option<&str> {
        if self.allows(path) || !self.allows_with_all_scopes(path) {
            return None;
        }
        let mut missing = self.scopes.iter().flat_map(|scopes| &scopes.missing);
        let (scope, _) = missing.find(|(_, calls)| calls.matches_tool(path))?;
        Some(scope)
    }

    fn allows_with_all_scopes(&self, path: &ScriptPath) -> bool {
        let is_denied =
            |calls: &CallPattern| calls.arguments.is_empty() && calls.matches_tool(path);
        let is_among =
            |allowed: &Vec<CallPattern>| allowed.iter().any(|calls| calls.matches_tool(path));
        self.only.iter().all(is_among)
            && !self.deny.iter().any(is_denied)
            && self.selections.iter().all(|one| one.allows(path))
    }

    /// Decides on a call of the entry at `path`. Defaults of arguments count as if they were
    /// sent; secret values are not quoted.
    ///
    /// # Errors
    ///
    /// Returns the reason for a denial, as a sentence for the caller.
    pub(crate) fn judge<D: Borrow<Defaults>>(
        &self,
        path: &ScriptPath,
        arguments: Option<&RawValue>,
        spec: Option<&ScriptSpec>,
        defaults: impl FnOnce() -> D,
    ) -> Result<(), String> {
        let rules = self.only.iter().flatten().chain(&self.deny);
        let rules = rules.filter(|calls| calls.matches_tool(path));
        let mut names = rules.flat_map(CallPattern::argument_names).peekable();
        if names.peek().is_none() {
            // Rules without arguments were applied to the path before.
            return Ok(());
        }
        let texts = argument_texts(names, arguments, spec, defaults().borrow())
            .map_err(|why| denial_message(path, &why))?;
        let may_be_among =
            |calls: &CallPattern| calls.matches_tool(path) && calls.may_match_arguments(&texts);
        if self.deny.iter().any(may_be_among) {
            return Err(denial_message(path, "a rule denies these arguments"));
        }
        let is_among = |calls: &CallPattern| {
            calls.matches_tool(path) && calls.first_mismatch(&texts).is_none()
        };
        for allowed in &self.only {
            if allowed.iter().any(is_among) {
                continue;
            }
            let of_this = allowed.iter().filter(|calls| calls.matches_tool(path));
            let mismatch = of_this
                .filter_map(|calls| calls.first_mismatch(&texts))
                .next();
            let why = mismatch.map_or("you have no permission for it".to_owned(), |mismatch| {
                mismatch.reason(&texts, spec)
            });
            return Err(denial_message(path, &why));
        }
        Ok(())
    }
}

fn denial_message(path: &ScriptPath, why: &str) -> String {
    format!("`{path}` was not called: {why}.")
}

impl CallPattern {
    /// Adds all calls of the tools whose paths match `pattern`: `*` matches a part of a name,
    /// `**` any number of names, `?` a character, `[ab]` and `{a,b}` either.
    ///
    /// # Errors
    ///
    /// Fails if the pattern is invalid.
    pub fn tool(mut self, pattern: &str) -> Result<Self, PatternError> {
        self.tools.push(Pattern::of_paths(pattern)?);
        Ok(self)
    }

    /// Restricts the calls to those whose `argument` matches `pattern`, or another pattern given
    /// for it; `*` matches any text, and every other character itself. Values other than strings
    /// are compared as JSON, and numbers by value.
    ///
    /// # Errors
    ///
    /// Fails if the pattern is invalid.
    pub fn argument(mut self, argument: &str, pattern: &str) -> Result<Self, PatternError> {
        let pattern = Pattern::of_texts(pattern)?;
        match self
            .arguments
            .iter_mut()
            .find(|known| known.name == argument)
        {
            Some(known) => known.patterns.push(pattern),
            None => self.arguments.push(ArgumentPattern {
                name: argument.to_owned(),
                patterns: vec![pattern],
            }),
        }
        Ok(self)
    }

    /// Returns whether a call of the tool at `path` can match.
    #[must_use]
    pub fn matches_tool(&self, path: &ScriptPath) -> bool {
        self.tools
            .iter()
            .any(|pattern| pattern.is_match(path.as_str()))
    }

    fn argument_names(&self) -> impl Iterator<Item = &str> {
        self.arguments.iter().map(|argument| argument.name.as_str())
    }

    /// Returns whether a tool may interpret the arguments as matching ones.
    fn may_match_arguments(&self, texts: &Texts<'_>) -> bool {
        self.arguments.iter().all(|argument| {
            let mut texts = texts.get(argument.name.as_str()).into_iter().flatten();
            texts.any(|text| argument.matches_text(text))
        })
    }

    /// Returns the first argument that does not match, or may be interpreted as one that does
    /// not.
    fn first_mismatch(&self, texts: &Texts<'_>) -> Option<&ArgumentPattern> {
        self.arguments.iter().find(|argument| {
            let texts = texts.get(argument.name.as_str());
            !texts.is_some_and(|texts| texts.iter().all(|text| argument.matches_text(text)))
        })
    }
}

impl ArgumentPattern {
    fn matches_text(&self, text: &str) -> bool {
        self.patterns
            .iter()
            .any(|pattern| matches_text(pattern, text))
    }

    /// Describes the mismatch.
    fn reason(&self, texts: &Texts<'_>, spec: Option<&ScriptSpec>) -> String {
        let Self { name, patterns } = self;
        let mut texts = texts.get(name.as_str()).into_iter().flatten();
        let is = match texts.find(|text| !self.matches_text(text)) {
            None => "is missing".to_owned(),
            Some(_) if spec.is_some_and(|spec| is_secret(name, spec)) => {
                "has a different value".to_owned()
            }
            Some(text) => format!("is `{}`", excerpt(text, MAX_QUOTED_CHARS)),
        };
        let allowed = patterns
            .iter()
            .map(|pattern| format!("`{}`", pattern.as_str()));
        let allowed: Vec<_> = allowed.collect();
        format!(
            "`{name}` {is}, but only {} is allowed",
            allowed.join(" or ")
        )
    }
}

fn matches_text(pattern: &Pattern, text: &str) -> bool {
    if pattern.is_match(text) {
        return true;
    }
    // `2`, `2.0` and "2" are equal for a script that expects a number.
    let number = Decimal::parse(text);
    number.is_some() && number == Decimal::parse(pattern.as_str())
}

/// Returns the texts of the arguments among `names`, in every interpretation that the tool may
/// have by its defaults and, if it is a script, by its spec. Ignores the other arguments.
///
/// # Errors
///
/// Returns the ambiguous argument as a fragment: a call that cannot be judged is denied.
fn argument_texts<'n>(
    names: impl Iterator<Item = &'n str>,
    arguments: Option<&RawValue>,
    spec: Option<&ScriptSpec>,
    defaults: &Defaults,
) -> Result<Texts<'n>, String> {
    let members = members(arguments).map_err(|fault| fault.to_string())?;
    let mut texts = Texts::new();
    for name in names {
        let given = members.iter().find(|(key, _)| key == name);
        let given = given.map(|(_, value)| *value);
        let default = defaults.get(name).map(|value| &**value);
        let is_null = given.is_some_and(|value| value.get() == "null");
        let values = match given {
            Some(value) if !is_null => [Some(value), None],
            Some(_) if !null_means_absent(name, spec) => [given, default],
            _ => [default, None],
        };
        for value in values.into_iter().flatten() {
            let of_value = comparable_texts(value).ok_or_else(|| {
                format!("the value of `{name}` cannot be compared with the rules")
            })?;
            texts.entry(name).or_default().extend(of_value);
        }
    }
    Ok(texts)
}

/// Returns whether `null` means an absent argument. Only a script with this option treats it so;
/// other tools receive the `null`, and may interpret it differently.
fn null_means_absent(name: &str, spec: Option<&ScriptSpec>) -> bool {
    let spec = spec.filter(|spec| spec.declared_schema.is_none());
    let mut options = spec.into_iter().flat_map(|spec| &spec.options);
    options.any(|option| option.name == name && !option.required)
}

/// Returns the characters of a string, and its number if it looks like one; for any other value,
/// one text for all its spellings.
fn comparable_texts(value: &RawValue) -> Option<Vec<String>> {
    let json = value.get();
    if json.starts_with('"') {
        let text: String = serde_json::from_str(json).ok()?;
        let mut texts = Vec::new();
        if let Some(number) = Decimal::parse(&text) {
            let number = number.canonical()?;
            texts.extend((number != text).then_some(number));
        }
        texts.push(text);
        Some(texts)
    } else if let Some(number) = Decimal::parse(json) {
        Some(vec![number.canonical()?])
    } else {
        let value: Value = serde_json::from_str(json).ok()?;
        Some(vec![value.to_string()])
    }
}

/// Returns the default values in `schema`.
pub(crate) fn declared_defaults(schema: &RawValue) -> Defaults {
    #[derive(Default, Deserialize)]
    struct ArgumentSchema<'a> {
        #[serde(borrow, default)]
        properties: BTreeMap<String, &'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Property {
        default: Option<Box<RawValue>>,
    }
    let schema: ArgumentSchema<'_> = serde_json::from_str(schema.get()).unwrap_or_default();
    let default = |(name, property): (String, &RawValue)| {
        let property: Property = serde_json::from_str(property.get()).ok()?;
        Some((name, property.default?))
    };
    schema.properties.into_iter().filter_map(default).collect()
}

#[cfg(test)]
mod tests {
    use mcpd_scriptspec::{HelpOutput, parse};

    use super::*;

    const SCHEMA: &str = r#"{"properties": {"stage": {"default": "production"}, "count": {}}}"#;

    /// Spec of a script whose `password` is a secret.
    fn spec() -> ScriptSpec {
        let parsed = parse(HelpOutput {
            stdout: br#"{"description": "Deploys."}"#,
            stderr: br#"{"password": {"description": "How.", "value_type": "string", "default_value": "", "secret": true},
                         "count": {"description": "How many.", "value_type": "integer", "required": true},
                         "stage": {"description": "Where.", "value_type": "string", "default_value": "production"}}"#,
        });
        parsed.spec.unwrap()
    }

    #[track_caller]
    fn check(access: &Access, path: &str, arguments: &str, expected: Result<(), &str>) {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let path: ScriptPath = path.parse().unwrap();
        let defaults = declared_defaults(&raw(SCHEMA));
        let judged = access.judge(&path, Some(&raw(arguments)), Some(&spec()), || &defaults);
        assert_eq!(judged.as_ref().map_err(String::as_str).copied(), expected);
    }

    fn calls(pattern: &str) -> CallPattern {
        CallPattern::default().tool(pattern).unwrap()
    }

    #[test]
    fn access_allows_listed_paths_only() {
        let access = Access::default()
            .allow_only([
                calls("reports/**"),
                calls("deploy").argument("stage", "test").unwrap(),
            ])
            .allow_only([calls("**")])
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
                .allow_only([])
                .allows(&"anything".parse().unwrap())
        );
    }

    #[test]
    fn access_judges_arguments_as_the_tool_interprets_them() {
        let tests = calls("deploy").argument("stage", "test-*").unwrap();
        let only = Access::default().allow_only([tests.argument("stage", "7").unwrap()]);
        check(&only, "deploy", r#"{"stage": "test-a/b"}"#, Ok(()));
        check(&only, "deploy", r#"{"stage": 7.0}"#, Ok(()));
        let refused = "`deploy` was not called: `stage` is `production`, but only `test-*` or `7` is allowed.";
        check(&only, "deploy", r#"{"stage": "production"}"#, Err(refused));
        check(&only, "deploy", "{}", Err(refused));
        check(&only, "deploy", r#"{"stage": null}"#, Err(refused));

        let deny = Access::default().deny(calls("*").argument("count", "5").unwrap());
        let refused = "`deploy` was not called: a rule denies these arguments.";
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

    #[test]
    fn number_in_a_string_is_judged_as_text_and_as_number() {
        let deny = Access::default().deny(calls("*").argument("count", "80*").unwrap());
        let denied = "`deploy` was not called: a rule denies these arguments.";
        for eighty in ["80", "8e1", "\"8e1\"", "\"80\"", "\"80e-5\"", "\"8.0E+2\""] {
            let arguments = format!(r#"{{"count": {eighty}}}"#);
            check(&deny, "deploy", &arguments, Err(denied));
        }
        check(&deny, "deploy", r#"{"count": "8"}"#, Ok(()));
        let count = |calls: CallPattern, pattern| calls.argument("count", pattern).unwrap();
        let only = Access::default().allow_only([count(count(calls("*"), "*3"), "*20")]);
        check(&only, "deploy", r#"{"count": "123"}"#, Ok(()));
        check(
            &only,
            "deploy",
            r#"{"count": "1e9"}"#,
            Err(
                "`deploy` was not called: `count` is `1000000000`, but only `*3` or `*20` is allowed.",
            ),
        );
        check(
            &only,
            "deploy",
            r#"{"count": "12e1"}"#,
            Err("`deploy` was not called: `count` is `12e1`, but only `*3` or `*20` is allowed."),
        );
        check(
            &only,
            "deploy",
            r#"{"count": "1e99999"}"#,
            Err("`deploy` was not called: the value of `count` cannot be compared with the rules."),
        );
    }

    #[test]
    fn null_counts_as_default_for_optional_script_options_only() {
        let stage =
            Access::default().allow_only([calls("*").argument("stage", "production").unwrap()]);
        check(&stage, "deploy", r#"{"stage": null}"#, Ok(()));
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let path = "far/deploy".parse().unwrap();
        let defaults = declared_defaults(&raw(SCHEMA));
        let judged = |access: &Access| {
            let arguments = raw(r#"{"stage": null}"#);
            access.judge(&path, Some(&arguments), None, || &defaults)
        };
        let far = |pattern| calls("far/*").argument("stage", pattern).unwrap();
        assert!(judged(&Access::default().allow_only([far("production")])).is_err());
        assert!(judged(&Access::default().deny(far("production"))).is_err());
        assert!(judged(&Access::default().deny(far("null"))).is_err());
        let both = far("production").argument("stage", "null").unwrap();
        assert!(judged(&Access::default().allow_only([both])).is_ok());
    }

    #[test]
    fn denial_message_contains_no_secret() {
        let calls = calls("deploy").argument("password", "test").unwrap();
        let only = Access::default().allow_only([calls]);
        check(
            &only,
            "deploy",
            r#"{"password": "hunter2"}"#,
            Err(
                "`deploy` was not called: `password` has a different value, but only `test` is allowed.",
            ),
        );
    }

    #[test]
    fn duplicate_or_extra_members_hide_no_argument_from_rules() {
        let deny = Access::default().deny(calls("deploy").argument("stage", "prod*").unwrap());
        let denied = "`deploy` was not called: a rule denies these arguments.";
        let (digits, nested) = ("9".repeat(400), ["[".repeat(127), "]".repeat(127)].concat());
        for other in ["1e999", &digits, &nested] {
            let arguments = |stage| format!(r#"{{"stage": "{stage}", "other": {other}}}"#);
            check(&deny, "deploy", &arguments("prod"), Err(denied));
            check(&deny, "deploy", &arguments("test"), Ok(()));
            check(
                &deny,
                "deploy",
                &format!(r#"{{"other": {other}}}"#),
                Err(denied),
            );
        }
    }

    #[test]
    fn unjudgeable_call_is_denied() {
        let deny = Access::default().deny(calls("deploy").argument("stage", "prod*").unwrap());
        for (arguments, why) in [
            (
                r#"{"stage": "prod", "stage": "test"}"#,
                "option `stage`: expected each key once, got `stage` twice",
            ),
            (
                r#"{"stage": "test", "other": "\ud800"}"#,
                "arguments: expected strict JSON, got an unpaired surrogate, which is not a character",
            ),
            ("[1]", "arguments: expected a JSON object, got an array"),
            (
                r#"{"stage": [1e999]}"#,
                "the value of `stage` cannot be compared with the rules",
            ),
            (
                r#"{"stage": 1e99999}"#,
                "the value of `stage` cannot be compared with the rules",
            ),
        ] {
            let refused = format!("`deploy` was not called: {why}.");
            check(&deny, "deploy", arguments, Err(&refused));
            // It does not matter where no rule uses it.
            check(&deny, "other", arguments, Ok(()));
        }
    }

    #[test]
    fn values_are_compared_in_any_spelling() {
        let deny = Access::default()
            .deny(calls("*").argument("count", "12*").unwrap())
            .deny(calls("*").argument("list", r#"*"prod"*"#).unwrap());
        let refused = "`deploy` was not called: a rule denies these arguments.";
        for arguments in [
            r#"{"count": 12}"#,
            r#"{"count": 0.12e2}"#,
            r#"{"list": [ "\u0070rod", 1 ]}"#,
        ] {
            check(&deny, "deploy", arguments, Err(refused));
        }
        // Both are the same number in floating point.
        let only = calls("*").argument("count", "9007199254740993").unwrap();
        let only = Access::default().allow_only([only]);
        check(&only, "deploy", r#"{"count": 9007199254740993}"#, Ok(()));
        let refused = "`deploy` was not called: `count` is `9007199254740992`, but only `9007199254740993` is allowed.";
        check(
            &only,
            "deploy",
            r#"{"count": 9007199254740992}"#,
            Err(refused),
        );
    }

    #[test]
    fn defaults_are_read_from_any_schema() {
        let schema = r#"{"properties": {"a": {"default": 1e999}, "b": true, "c": {"default": "x"}, "d": {"default": null}}}"#;
        let defaults = declared_defaults(&RawValue::from_string(schema.to_owned()).unwrap());
        let defaults: Vec<_> = defaults
            .iter()
            .map(|(name, value)| (&**name, value.get()))
            .collect();
        assert_eq!(defaults, [("a", "1e999"), ("c", "\"x\"")]);
    }

    #[cfg(feature = "oauth")]
    #[test]
    fn missing_scope_is_named_where_it_would_help() {
        let scope = |name: &str, pattern: &str| (name.to_owned(), calls(pattern));
        let access = Access::default().deny(calls("reports/delete")).with_scopes(
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
    fn invalid_pattern_is_rejected() {
        assert!(calls("a").tool("[b").is_err());
    }
}
