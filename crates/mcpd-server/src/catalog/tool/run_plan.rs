//! Plan of a run: what a call of a script would start, without starting it. Secrets are masked, as
//! a plan is for display.

use std::ffi::OsStr;
use std::path::PathBuf;

use mcpd_exec::Command;
use serde_json::value::RawValue;

use crate::catalog::tool::Tool;
use crate::execution::call::accepted_arguments;
use crate::execution::run::{Input, command};
use crate::message::arguments::{INVALID_ARGUMENTS, describe_faults};
use crate::policy::EffectivePolicy;
use crate::script::Script;
use crate::script::start_command::StartCommand;

/// Text in place of a secret.
const MASK: &str = "[redacted]";

/// Process that a call would start.
///
/// Variables that differ for each call, such as `MCPD_CALL_ID`, are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunPlan {
    /// Program: the script, or its interpreter.
    pub program: PathBuf,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Directory that it starts in.
    pub directory: Option<PathBuf>,
    /// Text on its standard input.
    pub stdin: String,
    /// Variables that are set for the call, by name.
    pub variables: Vec<(String, String)>,
    /// Names of the variables that the process inherits, or gets from the configuration.
    pub inherited: Vec<String>,
}

impl Tool {
    /// Returns the run that a call with these arguments would start, or the faults in the
    /// arguments; `None` if the tool is no script that runs here.
    #[must_use]
    pub fn plan_run(&self, arguments: Option<&RawValue>) -> Option<Result<RunPlan, String>> {
        let script = self.script()?;
        let start_command = script.start_command()?;
        let restored = arguments.and_then(|arguments| self.restore_names(arguments));
        let arguments = restored.as_deref().or(arguments);
        Some(plan(script, start_command, arguments))
    }
}

fn plan(
    script: &Script,
    start_command: &StartCommand,
    arguments: Option<&RawValue>,
) -> Result<RunPlan, String> {
    let arguments = accepted_arguments(script, arguments)
        .map_err(|faults| format!("{INVALID_ARGUMENTS}{faults}"))?;
    let variable = |name: &str| script.policy.variable(name);
    let faults = |faults: Vec<_>| format!("{INVALID_ARGUMENTS}{}", describe_faults(&faults));
    let spec = &script.spec;
    // Values decide which file an interpreter reads.
    let actual = spec.invocation_with_env(&variable, arguments.as_deref());
    let actual = actual.map_err(faults)?;
    let masked = spec.masked_invocation(&variable, arguments.as_deref());
    let masked = masked.map_err(faults)?;
    let input = Input::new(script, arguments.as_deref(), actual).with_values_of(masked);
    Ok(describe(
        &command(script, start_command, &input),
        &script.policy,
    ))
}

/// Describes a command of masked values, and masks the secrets of the policy in it.
fn describe(command: &Command, policy: &EffectivePolicy) -> RunPlan {
    let mask = |text: &OsStr| {
        let text = text.to_string_lossy().into_owned();
        let text = match policy.redactor() {
            Some(redactor) => redactor.redact_bytes(text.into_bytes(), false),
            None => return text,
        };
        String::from_utf8_lossy(&text).into_owned()
    };
    let is_secret = |name: &OsStr| policy.variables().any(|secret| name == secret);
    let variables = command.changed_variables().filter_map(|(name, value)| {
        let value = match value? {
            _ if is_secret(name) => MASK.to_owned(),
            value => mask(value),
        };
        Some((name.to_string_lossy().into_owned(), value))
    });
    let variables = variables.collect();
    let stdin = String::from_utf8_lossy(command.input().unwrap_or_default());
    RunPlan {
        program: command.program().to_owned(),
        args: command.arguments().map(mask).collect(),
        directory: command.directory().map(PathBuf::from),
        stdin: mask(OsStr::new(&*stdin)),
        variables,
        inherited: command
            .inherited_variables()
            .into_iter()
            .map(|name| name.to_string_lossy().into_owned())
            .collect(),
    }
}
