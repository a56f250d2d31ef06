//! Invocation of a script: converts the arguments of a call to stdin, environment and command
//! line, or returns every fault in them.

use std::{borrow::Cow, fmt};

use serde_json::value::RawValue;

use crate::{
    json::{self, Document, Duplicate, Kind, Member},
    spec::{Bounds, ScriptOption, ScriptSpec, ValueType},
    suggest::suggest,
    text,
    value::{self, Accepted, Mismatch, Strings},
};

mod command_line;

use command_line::{CommandLine, texts};

/// Maximum length of one variable's value, in bytes; Linux rejects 128
/// KiB, and other systems less.
const MAX_VARIABLE: usize = 32 * 1024;

/// Maximum length of all values together, in bytes.
const MAX_VARIABLES: usize = 256 * 1024;

/// Option that always sets a variable of its own, and that variable.
const QUERY: (&str, &str) = ("query", "TOOL_QUERY");

/// Maximum number of unknown or repeated names in one report; a caller may send any number.
const MAX_REPORTED: usize = 20;

/// The `got` of a fault about a name that no option has.
const UNKNOWN_NAME: &str = "an unknown name";

/// Input of a script for one call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Invocation {
    /// One JSON object on one line, without a line end: the options in declared
    /// order, complete and exact.
    pub stdin: Vec<u8>,
    /// `MCPD_OPT_*` for each given option, aliases of names that are not shell identifiers,
    /// variables that options declare, `TOOL_QUERY` for an option `query`, and `MCPD_OPTS_OMITTED`
    /// if a value was omitted.
    pub env: Vec<(String, String)>,
    /// Words of the command line: the subcommand, and then the declared command line with the
    /// values, or else flags, `--` and positionals.
    pub args: Vec<String>,
    /// Options whose values are on stdin only: longer than 32 KiB, past 256 KiB in total, or with
    /// a NUL. `MCPD_OPTS_OMITTED` lists the same names, one a line.
    pub omitted: Vec<String>,
}

/// A fault in the arguments of a call.
///
/// Displayed, it is one sentence for the caller: ``option `count`: expected an
/// integer, got the string "ten"``.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArgumentFault {
    /// The option, declared or not; `None` for a fault of the arguments as a whole.
    pub option: Option<String>,
    /// Description of a valid value.
    pub expected: String,
    /// Description of the given value.
    pub got: String,
}

impl fmt::Display for ArgumentFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.option {
            Some(option) => write!(f, "option {}: ", text::name(option))?,
            None => f.write_str("arguments: ")?,
        }
        write!(f, "expected {}, got {}", self.expected, self.got)
    }
}

impl ArgumentFault {
    /// Returns whether the script declares no option of this name.
    #[must_use]
    pub fn is_unknown_name(&self) -> bool {
        self.got == UNKNOWN_NAME
    }
}

impl std::error::Error for ArgumentFault {}

impl Invocation {
    /// Returns whether an option has a value that is neither empty nor `false`.
    #[must_use]
    pub fn is_set(&self, option: &str) -> bool {
        let name = variable_of(option);
        let values = self.env.iter().filter(|(variable, _)| *variable == name);
        let mut values = values.map(|(_, value)| value.as_str());
        // A value that is too long for a variable counts as set.
        self.omitted.iter().any(|omitted| omitted == option)
            || values.any(|value| !matches!(value, "" | "false"))
    }
}

impl ScriptSpec {
    /// Returns whether a call can have an argument of this name: an option, or a property of the
    /// script's own schema.
    #[must_use]
    pub fn declares(&self, name: &str) -> bool {
        match &self.declared_schema {
            Some(schema) => schema["properties"].get(name).is_some(),
            None => self.options.iter().any(|option| option.name == name),
        }
    }

    /// Checks the arguments of a call and converts them to the input of the script.
    ///
    /// Absent arguments and `null` count as an empty object. `null` for an optional option counts
    /// as absent, and an absent option gets its default. A string that is exactly a number or a
    /// boolean is converted if the option expects one. Integers are passed in digits, whether sent
    /// as `2` or `2.0`; other numbers are passed on stdin exactly as sent.
    ///
    /// # Errors
    ///
    /// Every fault in the arguments, in declared order and then in the order of the arguments; of
    /// unknown or repeated names, the first few.
    pub fn invocation(
        &self,
        arguments: Option<&RawValue>,
    ) -> Result<Invocation, Vec<ArgumentFault>> {
        self.invocation_with_env(&|_| None, arguments)
    }

    /// Checks the arguments of a call to a script whose environment has these variables. An option
    /// that names a variable takes its value if a call leaves the option out; the variable takes
    /// precedence over the default.
    ///
    /// # Errors
    ///
    /// See [`invocation`](Self::invocation).
    pub fn invocation_with_env(
        &self,
        environment: &dyn Fn(&str) -> Option<String>,
        arguments: Option<&RawValue>,
    ) -> Result<Invocation, Vec<ArgumentFault>> {
        self.build(self, environment, arguments)
    }

    /// Returns the input of a call for display: like
    /// [`invocation_with_env`](Self::invocation_with_env), with `[redacted]` for the value of each
    /// option that is `secret`.
    ///
    /// # Errors
    ///
    /// See [`invocation`](Self::invocation).
    pub fn masked_invocation(
        &self,
        environment: &dyn Fn(&str) -> Option<String>,
        arguments: Option<&RawValue>,
    ) -> Result<Invocation, Vec<ArgumentFault>> {
        let mut shown = self.clone();
        for option in shown.options.iter_mut().filter(|option| option.secret) {
            // The mask is one text, whatever the type of the value.
            option.value_type = ValueType::String {
                size: Bounds::default(),
                pattern: None,
                format: None,
            };
        }
        self.build(&shown, environment, arguments)
    }

    /// Builds the input of a call whose arguments fit this spec. `shown` is this spec, or one
    /// that differs in the types of secrets, which are masked then.
    fn build(
        &self,
        shown: &Self,
        environment: &dyn Fn(&str) -> Option<String>,
        arguments: Option<&RawValue>,
    ) -> Result<Invocation, Vec<ArgumentFault>> {
        let document = read(arguments).map_err(|fault| vec![fault])?;
        let members = &document.members;
        let mut faults = Vec::new();
        let mut output = InvocationBuilder::new(document.root.span().len());
        let mut command_line = CommandLine::new(shown);
        let is_masked = !std::ptr::eq(self, shown);
        if let Some(schema) = &self.declared_schema {
            pass_unchecked(schema, members, &mut output);
        } else {
            for (option, shown) in self.options.iter().zip(&shown.options) {
                let passed = value_of(option, members, environment).and_then(|accepted| {
                    let accepted = match accepted {
                        Some(_) if is_masked && option.secret => Some(Accepted::mask()),
                        accepted => accepted,
                    };
                    command_line.pass(shown, accepted.as_ref())?;
                    if let Some(accepted) = accepted {
                        output.pass(shown, &accepted);
                    }
                    Ok(())
                });
                faults.extend(passed.err());
            }
            let undeclared = members
                .iter()
                .filter_map(|member| self.undeclared_fault(member));
            faults.extend(undeclared.take(MAX_REPORTED));
        }
        faults.extend(duplicate_faults(&document));
        if !faults.is_empty() {
            return Err(faults);
        }
        let words = command_line.finish().map_err(|fault| vec![fault])?;
        Ok(output.finish(words))
    }

    fn undeclared_fault(&self, member: &Member<'_>) -> Option<ArgumentFault> {
        let mut names = self.options.iter().map(|option| option.name.as_str());
        if names.clone().any(|name| name == member.key) {
            return None;
        }
        let expected = match suggest(&member.key, &mut names) {
            Some(name) => format!("a declared option such as `{name}`"),
            None => value::one_of("options", &self.options),
        };
        Some(ArgumentFault {
            option: Some(member.key.clone().into_owned()),
            expected,
            got: UNKNOWN_NAME.to_owned(),
        })
    }
}

/// Members of the arguments of a call, each as sent: the input of [`ScriptSpec::invocation`], for
/// other checks of the same values.
///
/// # Errors
///
/// The arguments are not a JSON object, or have a duplicate key.
pub fn members(
    arguments: Option<&RawValue>,
) -> Result<Vec<(Cow<'_, str>, &RawValue)>, ArgumentFault> {
    let document = read(arguments)?;
    if let Some(fault) = duplicate_faults(&document).pop() {
        return Err(fault);
    }
    let members = document.members.into_iter();
    Ok(members
        .map(|member| (member.key, member.value.raw()))
        .collect())
}

fn read(arguments: Option<&RawValue>) -> Result<Document<'_>, ArgumentFault> {
    let text = arguments.map_or("{}", RawValue::get);
    let text = if text == "null" { "{}" } else { text };
    let fault = |expected: &str, got| ArgumentFault {
        option: None,
        expected: expected.to_owned(),
        got,
    };
    let document = json::read(text, 0).map_err(|error| fault("strict JSON", error.message))?;
    match document.root.kind() {
        Kind::Object => Ok(document),
        _ => Err(fault("a JSON object", value::describe(document.root))),
    }
}

/// Passes arguments that only the script's own schema can check.
fn pass_unchecked(
    schema: &serde_json::Value,
    members: &[Member<'_>],
    output: &mut InvocationBuilder,
) {
    for member in members {
        let accepted = value::as_it_is(member.value);
        output.write(&member.key, &accepted);
        // Callers choose the other names, and must not choose the name of a variable.
        if schema["properties"].get(&*member.key).is_some() && is_variable(&member.key) {
            output.export(&member.key, accepted.text.as_deref(), None);
        }
    }
}

/// Returns the value of `option` from the call, or else from its variable, or else its default.
fn value_of<'a>(
    option: &'a ScriptOption,
    members: &[Member<'a>],
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Accepted<'a>>, ArgumentFault> {
    let fault = |expected, got| ArgumentFault {
        option: Some(option.name.clone()),
        expected,
        got,
    };
    let given = members
        .iter()
        .find(|member| member.key == option.name.as_str());
    let given = given.filter(|member| option.required || member.value.kind() != Kind::Null);
    let Some(member) = given else {
        if let Some(accepted) = value_in(environment, option) {
            return accepted.map(Some);
        }
        if option.required {
            return Err(fault(
                value::expectation(&option.value_type),
                "nothing".to_owned(),
            ));
        }
        return Ok(default_of(option));
    };
    value::accept(&option.value_type, member.value, Strings::Coerced)
        .map(Some)
        .map_err(|mismatch| {
            let Mismatch {
                path,
                mut expected,
                mut got,
                ..
            } = mismatch;
            if option.secret {
                got = "a different value".to_owned();
            }
            if !path.is_empty() {
                expected += &format!(" at {}", text::name(&format!("{}{path}", option.name)));
            }
            fault(expected, got)
        })
}

/// Returns the value of an option from its variable, if it has one and the variable is set.
fn value_in(
    environment: &dyn Fn(&str) -> Option<String>,
    option: &ScriptOption,
) -> Option<Result<Accepted<'static>, ArgumentFault>> {
    let name = option.env.as_deref()?;
    let text = environment(name)?;
    let text = serde_json::Value::from(text).to_string();
    let accept = |text: &str| {
        let value = json::read(text, 0).ok()?.root;
        let accepted = value::accept(&option.value_type, value, Strings::Coerced).ok()?;
        Some(accepted.into_owned())
    };
    // A list of one element needs no brackets.
    let accepted = accept(&text).or_else(|| match option.value_type {
        ValueType::Array { .. } => accept(&format!("[{text}]")),
        _ => None,
    });
    // The value may be a secret of the operator.
    Some(accepted.ok_or_else(|| ArgumentFault {
        option: Some(option.name.clone()),
        expected: value::expectation(&option.value_type),
        got: format!("a different value from the server's variable {name}"),
    }))
}

fn default_of(option: &ScriptOption) -> Option<Accepted<'_>> {
    let default = json::read(option.default_value.as_deref()?.get(), 0)
        .ok()?
        .root;
    value::accept(&option.value_type, default, Strings::Kept).ok()
}

/// Reports duplicate keys in an object, at any depth: two parsers could read different values.
fn duplicate_faults(document: &Document<'_>) -> Vec<ArgumentFault> {
    let fault = |duplicate: &Duplicate<'_>| {
        let around = document
            .members
            .iter()
            .rfind(|member| member.key_span.start <= duplicate.span.start);
        ArgumentFault {
            option: around.map(|member| member.key.clone().into_owned()),
            expected: "each key once".to_owned(),
            got: format!("{} twice", text::name(&duplicate.key)),
        }
    };
    document
        .duplicates
        .iter()
        .take(MAX_REPORTED)
        .map(fault)
        .collect()
}

/// Builder of stdin and the environment.
struct InvocationBuilder {
    stdin: String,
    env: Vec<(String, String)>,
    omitted: Vec<String>,
    /// Remaining bytes for variables.
    room: usize,
}

impl InvocationBuilder {
    /// Creates a builder for arguments that are `length` bytes as they were sent.
    fn new(length: usize) -> Self {
        let mut stdin = String::with_capacity(length + 1);
        stdin.push('{');
        Self {
            stdin,
            env: Vec::new(),
            omitted: Vec::new(),
            room: MAX_VARIABLES,
        }
    }

    /// Writes the value of an option to stdin and to its variables.
    fn pass(&mut self, option: &ScriptOption, accepted: &Accepted<'_>) {
        self.write(&option.name, accepted);
        let declared = option.variable.as_deref();
        let declared = declared.map(|name| (name, declared_text(option, accepted)));
        self.export(&option.name, accepted.text.as_deref(), declared);
    }

    fn write(&mut self, name: &str, accepted: &Accepted<'_>) {
        if self.stdin.len() > 1 {
            self.stdin.push(',');
        }
        let key = serde_json::to_string(name).expect("a string can be written as JSON");
        self.stdin.push_str(&key);
        self.stdin.push(':');
        self.stdin.push_str(&accepted.json);
    }

    /// Sets the variables of one value, all or none: the one with the name of the
    /// option, and the declared one.
    fn export(
        &mut self,
        name: &str,
        text: Option<&str>,
        declared: Option<(&str, Option<Cow<'_, str>>)>,
    ) {
        let alias = alias(name).map(|alias| variable_of(&alias));
        let query = (name == QUERY.0).then(|| QUERY.1.to_owned());
        let names = alias.into_iter().chain([variable_of(name)]).chain(query);
        let named = names.map(|name| (name, text));
        let declared = declared.as_ref();
        let declared = declared.map(|(name, text)| ((*name).to_owned(), text.as_deref()));
        let variables = named.chain(declared);
        let variables: Option<Vec<_>> = variables.map(|(name, text)| Some((name, text?))).collect();
        let size_of = |variables: &[(String, &str)]| -> usize {
            variables.iter().map(|(_, text)| text.len()).sum()
        };
        let is_fit =
            |(_, text): &(String, &str)| text.len() <= MAX_VARIABLE && !text.contains('\0');
        let fitting = variables
            .filter(|variables| variables.iter().all(is_fit) && size_of(variables) <= self.room);
        match fitting {
            Some(variables) => {
                self.room -= size_of(&variables);
                // A long value was never copied.
                let variables = variables.into_iter();
                let variables = variables.map(|(name, text)| (name, text.to_owned()));
                self.env.extend(variables);
            }
            None => self.omitted.push(name.to_owned()),
        }
    }

    fn finish(mut self, args: Vec<String>) -> Invocation {
        self.stdin.push('}');
        if !self.omitted.is_empty() {
            self.env
                .push(("MCPD_OPTS_OMITTED".to_owned(), self.omitted.join("\n")));
        }
        Invocation {
            stdin: self.stdin.into_bytes(),
            env: self.env,
            args,
            omitted: self.omitted,
        }
    }
}

/// Text of the variable that an option declares: the elements of a list are quoted for a shell.
fn declared_text<'a>(option: &ScriptOption, accepted: &'a Accepted<'_>) -> Option<Cow<'a, str>> {
    match option.value_type {
        ValueType::Array { .. } => {
            let words = texts(option, accepted)?;
            let words = words.iter().map(|word| &**word);
            shlex::try_join(words).ok().map(Cow::Owned)
        }
        _ => accepted.text.as_deref().map(Cow::Borrowed),
    }
}

fn variable_of(name: &str) -> String {
    format!("MCPD_OPT_{name}")
}

/// Returns whether the name can be part of a variable's name.
pub(crate) fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(|char: char| char == '=' || char.is_control())
}

/// The name with `_` for every character that is invalid in a shell identifier, if there is one.
pub(crate) fn alias(name: &str) -> Option<String> {
    // The prefix makes an identifier of a name that starts with a digit.
    let is_word = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let replace = |char| if is_word(char) { char } else { '_' };
    (!name.chars().all(is_word)).then(|| name.chars().map(replace).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &str, expected: Result<&[(&str, &str)], &str>) {
        let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
        let found = members(Some(&arguments)).map_err(|fault| fault.to_string());
        let found = found.as_ref().map(|members| {
            let texts = members.iter().map(|(key, value)| (&**key, value.get()));
            texts.collect::<Vec<_>>()
        });
        assert_eq!(found.as_deref().map_err(|fault| fault.as_str()), expected);
    }

    /// Calls a script with one option, whose environment has `STAGE` with this value.
    #[track_caller]
    fn call_in(option: &str, value: &str, arguments: &str) -> Result<String, String> {
        let options = format!(r#"{{"stage": {option}}}"#);
        let help = crate::HelpOutput {
            stdout: br#"{"description": "Deploys"}"#,
            stderr: options.as_bytes(),
        };
        let spec = crate::parse(help).spec.unwrap();
        let environment = |name: &str| (name == "STAGE").then(|| value.to_owned());
        let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
        match spec.invocation_with_env(&environment, Some(&arguments)) {
            Ok(invocation) => Ok(String::from_utf8(invocation.stdin).unwrap()),
            Err(faults) => Err(faults[0].to_string()),
        }
    }

    #[test]
    fn variable_ranks_between_argument_and_default() {
        let option = r#"{"env": "STAGE", "value_type": "string", "default_value": "test"}"#;
        let given = call_in(option, "live", r#"{"stage": "local"}"#);
        assert_eq!(given.unwrap(), r#"{"stage":"local"}"#);
        let found = call_in(option, "live", "{}");
        assert_eq!(found.unwrap(), r#"{"stage":"live"}"#);
        let other = option.replace("STAGE", "UNSET");
        assert_eq!(
            call_in(&other, "live", "{}").unwrap(),
            r#"{"stage":"test"}"#
        );
    }

    #[test]
    fn variable_is_converted_to_the_option_type() {
        let read = |value_type: &str, value: &str| {
            let option =
                format!(r#"{{"env": "STAGE", "required": true, "value_type": {value_type}}}"#);
            call_in(&option, value, "{}")
        };
        assert_eq!(read(r#""integer""#, "5").unwrap(), r#"{"stage":5}"#);
        assert_eq!(read(r#""boolean""#, "true").unwrap(), r#"{"stage":true}"#);
        assert_eq!(read(r#""array""#, "a b").unwrap(), r#"{"stage":["a b"]}"#);
        assert_eq!(read(r#""array""#, "[1, 2]").unwrap(), r#"{"stage":[1,2]}"#);
        let fault = read(r#"{"enum": ["test", "live"]}"#, "s3cret").unwrap_err();
        assert_eq!(
            fault,
            r#"option `stage`: expected one of "test", "live", got a different value from the server's variable STAGE"#
        );
    }

    #[test]
    fn masked_invocation_has_no_secret_of_any_type() {
        let help = crate::HelpOutput {
            stdout: br#"{"description": "Logs in"}"#,
            stderr: br#"{"pin": {"secret": true, "value_type": "integer", "argument": "--pin"},
                "keys": {"secret": true, "value_type": "array", "argument": "-k {,}", "variable": "KEYS"},
                "user": {"value_type": "string", "argument": "{}"}}"#,
        };
        let spec = crate::parse(help).spec.unwrap();
        let arguments = r#"{"pin": 4711, "keys": ["s3cret"], "user": "Eve"}"#;
        let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
        let masked = spec.masked_invocation(&|_| None, Some(&arguments)).unwrap();
        assert_eq!(masked.args, ["--pin=[redacted]", "-k", "[redacted]", "Eve"]);
        let shown = format!("{masked:?} {}", String::from_utf8_lossy(&masked.stdin));
        assert!(
            !shown.contains("4711") && !shown.contains("s3cret"),
            "{shown}"
        );
        let faulty = RawValue::from_string(r#"{"pin": "x"}"#.to_owned()).unwrap();
        spec.masked_invocation(&|_| None, Some(&faulty))
            .unwrap_err();
    }

    #[test]
    fn members_stay_as_they_were_sent() {
        check(
            r#"{"\u0061": 1e999, "b": [ 1.10 ]}"#,
            Ok(&[("a", "1e999"), ("b", "[ 1.10 ]")]),
        );
        check("null", Ok(&[]));
        assert!(members(None).unwrap().is_empty());
    }

    #[test]
    fn members_reject_duplicate_keys_and_other_values() {
        check(
            "[1]",
            Err("arguments: expected a JSON object, got an array"),
        );
        check(
            r#"{"a": 1, "\u0061": 2}"#,
            Err("option `a`: expected each key once, got `a` twice"),
        );
        check(
            r#"{"a": {"b": 1, "b": 2}}"#,
            Err("option `a`: expected each key once, got `b` twice"),
        );
    }
}
