//! The tool `run_command`: from arguments over rules and one run to the result.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mcpd_exec::{Command, Level, StartError, expand_home};
use mcpd_protocol as protocol;
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::method::CallToolResult;
use mcpd_scriptspec::{HelpOutput, OutputFormat, ScriptPath, ScriptSpec};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::rules::CommandRules;
use super::{MAX_TIMEOUT, NAME, RunCommand};
use crate::catalog::call::CallContext;
use crate::catalog::tool::{Tool, ToolBody};
use crate::execution::archive::CallArchive;
use crate::execution::call::log_not_run;
use crate::execution::input_rounds::CallFailure;
use crate::execution::output;
use crate::execution::relay::ProgramKind;
use crate::execution::run::{self, Job};
use crate::message::arguments::{describe_faults, invalid_arguments};
use crate::message::call::CallStart;
use crate::message::raw::raw;
use crate::observe::audit::request_log::RequestRecord;
use crate::observe::ending::Exit;
use crate::observe::ending::RunError;
use crate::policy::{EffectivePolicy, Policy};
use crate::script::start_command::temporary_variables;
use crate::support::private_dir::LockedDirectory;
use crate::support::random_id;

/// Shells whose syntax the rules can parse.
const POSIX_SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"];

/// Implementation of the tool.
#[derive(Debug)]
pub(crate) struct CommandTool {
    path: ScriptPath,
    /// Its arguments, in the form of a script's.
    spec: ScriptSpec,
    policy: Arc<EffectivePolicy>,
    /// Maximum timeout that a call may request.
    max_timeout: Duration,
    shell: Vec<String>,
    rules: CommandRules,
    directory: PathBuf,
    /// Working directory, if it is to be deleted.
    _temporary: Option<LockedDirectory>,
}

#[derive(Debug, Deserialize)]
struct CommandArguments {
    command: String,
    workdir: Option<PathBuf>,
    stdin: Option<String>,
    timeout_ms: Option<u64>,
}

impl CommandTool {
    /// Prepares the tool under `policy`.
    ///
    /// # Errors
    ///
    /// Returns the fault of the directory or the shell.
    pub(crate) fn new(
        options: RunCommand,
        policy: &Policy,
        has_background_tools: bool,
    ) -> Result<Self, String> {
        let RunCommand {
            mut profile,
            directory,
            timeout,
            max_timeout,
            shell,
            rules,
        } = options;
        check_shell(&shell, &rules)?;
        let path: ScriptPath = NAME.parse().expect("it is a name");
        let (directory, temporary) = work_directory(directory)?;
        profile.sandbox = profile.sandbox.write(&directory);
        let policy_for = |timeout: Option<Duration>, spec: &ScriptSpec| {
            policy.effective_policy_at_least(&profile, timeout, &path, &directory, spec)
        };
        let limit = |otherwise: Option<Duration>| {
            let timeout = timeout.or(otherwise);
            policy_for(timeout, &ScriptSpec::default()).limits().wall
        };
        // A longer timeout for commands raises the maximum; the timeout of all scripts is capped
        // by a maximum that is set.
        let longest = max_timeout.unwrap_or(MAX_TIMEOUT).max(limit(max_timeout));
        let effective_policy = policy_for(Some(limit(None).min(longest)), &ScriptSpec::default());
        let background = match (effective_policy.sandbox().level, has_background_tools) {
            (Level::None, _) => "Background processes that it leaves keep running after the call.",
            (_, false) => "Background processes that it leaves are killed when the call ends.",
            (_, true) => {
                "Background processes that it leaves are killed when the call ends; use `runs_start` for work that must continue."
            }
        };
        let description = format!(
            "Run a command on this {} machine. It is run by `{}`. {background}",
            os_name(),
            shell.join(" ")
        );
        let spec = spec(longest, &description);
        if temporary.is_some() {
            run::change_owner(&directory, effective_policy.sandbox().run_as)
                .map_err(|error| format!("hand over its directory: {error}"))?;
        }
        Ok(Self {
            path,
            spec,
            policy: Arc::new(effective_policy),
            max_timeout: longest,
            shell,
            rules,
            directory,
            _temporary: temporary,
        })
    }

    /// Converts it to a tool.
    pub(crate) fn into_tool(self) -> Tool {
        Tool::built_in(self.path.clone(), self.definition(), self)
    }

    /// Entry in a list of tools.
    fn definition(&self) -> protocol::method::Tool {
        let mut schema = self.spec.input_schema();
        if let Some(schema) = schema.as_object_mut() {
            // Unknown arguments are rejected all the same, with a better explanation.
            schema.shift_remove("additionalProperties");
        }
        let mut definition = protocol::method::Tool::new(NAME, raw(&schema));
        definition.description.clone_from(&self.spec.description);
        definition
    }

    /// Hint for models on how to use it.
    pub(crate) fn instructions() -> String {
        format!("Run commands on this {} machine", os_name())
    }

    /// Returns the arguments, if they are valid and the rules allow the command.
    fn validate(
        &self,
        arguments: Option<&RawValue>,
        record: &RequestRecord,
    ) -> Result<CommandArguments, Box<CallToolResult>> {
        let known = self.policy.drop_ignored(&self.spec, arguments);
        let invocation = self
            .spec
            .invocation(known.as_deref().or(arguments))
            .map_err(|faults| Box::new(invalid_arguments(&describe_faults(&faults))))?;
        let arguments: CommandArguments = serde_json::from_slice(&invocation.stdin)
            .map_err(|error| Box::new(invalid_arguments(&error.to_string())))?;
        if arguments.command.trim().is_empty() {
            let fault = "option `command`: expected a command, got a blank string";
            return Err(Box::new(invalid_arguments(fault)));
        }
        self.rules
            .judge(&arguments.command)
            .inspect_err(|_| record.set_outcome("denied"))
            .map_err(|reason| Box::new(CallToolResult::error(reason)))?;
        Ok(arguments)
    }

    async fn run(
        &self,
        arguments: CommandArguments,
        context: &CallContext,
    ) -> Result<CallToolResult, ErrorObject> {
        let (engine, context) = (&context.host().engine, context.request());
        let call_id = random_id::new();
        context.record.set_call_id(&call_id);
        let command = run::with_call(self.command(arguments), &call_id, context);
        let policy = &self.policy;
        let job = Job {
            path: &self.path,
            policy,
            format: OutputFormat::Text,
            kind: Some(ProgramKind::Command),
            exit: Some(Exit::of_any_program),
            version_check: None,
        };
        let ended = run::run(engine, context, job, command).await;
        let archive = CallArchive::new(&engine.archive, context, policy, call_id);
        match ended {
            Ok(outcome) => Ok(output::command_result(&outcome, &archive)),
            Err(error) => self.failure(&error).into_tool_result(),
        }
    }

    fn command(&self, arguments: CommandArguments) -> Command {
        let mut limits = self.policy.limits().clone();
        if let Some(timeout) = arguments.timeout_ms {
            limits.wall = Duration::from_millis(timeout);
        }
        let directory = match &arguments.workdir {
            Some(workdir) => &self.directory.join(expand_home(workdir)),
            None => &self.directory,
        };
        let command = Command::new(&self.shell[0])
            .args(&self.shell[1..])
            .arg(arguments.command)
            .current_dir(directory);
        let temporary = temporary_variables(command.program()).iter().copied();
        let command = temporary.fold(command, Command::temporary);
        let command = self
            .policy
            .apply(command)
            .limits(limits)
            .env("MCPD_TOOL", NAME);
        match arguments.stdin {
            Some(stdin) => command.stdin(stdin),
            None => command,
        }
    }

    /// Describes why a command did not run, for its author.
    fn failure(&self, error: &RunError) -> CallFailure {
        CallFailure::NoResult(match error {
            RunError::Start(StartError::CwdMissing { directory }) => format!(
                "The command was not run: the working directory `{}` does not exist or is not accessible.",
                directory.display()
            ),
            RunError::Start(StartError::ArgumentsTooLarge { .. }) => {
                "The command was not run: it is too long. Pass long text in `stdin`.".to_owned()
            }
            RunError::Start(StartError::InvalidArgument { .. }) => {
                "The command was not run: it contains a NUL character.".to_owned()
            }
            error => return log_not_run(&self.path, "The command", error),
        })
    }
}

impl ToolBody for CommandTool {
    /// Every fault in a call gives a result, so that the model that wrote it can read it.
    fn start(self: Arc<Self>, arguments: Option<&RawValue>, context: CallContext) -> CallStart {
        match self.validate(arguments, &context.request().record) {
            Ok(arguments) => CallStart::Started(Box::pin(async move {
                Ok(self.run(arguments, &context).await?.into())
            })),
            Err(refusal) => CallStart::reject(Ok((*refusal).into())),
        }
    }

    fn policy(&self) -> Option<&EffectivePolicy> {
        Some(&self.policy)
    }

    fn max_run_time(&self) -> Option<Duration> {
        Some(self.max_timeout)
    }

    fn runs_anything(&self) -> bool {
        true
    }
}

/// Checks that there is a shell, and that the rules can parse its syntax.
pub(super) fn check_shell(shell: &[String], rules: &CommandRules) -> Result<(), String> {
    let Some(program) = shell.first() else {
        return Err("no shell is configured".to_owned());
    };
    let name = Path::new(program).file_name().unwrap_or_default();
    if rules.is_empty() || POSIX_SHELLS.iter().any(|shell| name == *shell) {
        return Ok(());
    }
    Err(format!(
        "`allow` and `deny` require a known POSIX shell, and `{program}` is not one"
    ))
}

/// Returns the working directory of commands: the configured one, or a new one.
fn work_directory(wanted: Option<PathBuf>) -> Result<(PathBuf, Option<LockedDirectory>), String> {
    let failed = |path: &Path, error: io::Error| format!("use `{}`: {error}", path.display());
    if let Some(wanted) = wanted {
        let directory = wanted
            .canonicalize()
            .map_err(|error| failed(&wanted, error))?;
        std::fs::read_dir(&directory).map_err(|error| failed(&wanted, error))?;
        return Ok((directory, None));
    }
    let parent = mcpd_exec::temporary_directory();
    let temporary =
        LockedDirectory::new("mcpd-commands-").map_err(|error| failed(&parent, error))?;
    let directory = temporary
        .path()
        .canonicalize()
        .map_err(|error| failed(&parent, error))?;
    Ok((directory, Some(temporary)))
}

/// Builds the spec that the tool would have as a script.
fn spec(max_timeout: Duration, description: &str) -> ScriptSpec {
    let option = |value_type: &str, required: bool, description: &str| json!({"value_type": value_type, "required": required, "description": description});
    let stdin = "Optional, text to pipe into the command's STDIN. For example, pass a python script to python3. Or, pass text for a new file to the cat command to create it!";
    let mut timeout = option(
        "integer",
        false,
        "Optional, how long the command may run, in milliseconds",
    );
    timeout["size"] = json!({"min": 1, "max": to_json_millis(max_timeout)});
    let options: Value = json!({
        "command": option("string", true, "Command with args"),
        "workdir": option("string", false, "Optional, current working directory"),
        "stdin": option("string", false, stdin),
        "timeout_ms": timeout,
    });
    let help = [json!({"description": description}), options].map(|part| part.to_string());
    let parsed = mcpd_scriptspec::parse(HelpOutput {
        stdout: help[0].as_bytes(),
        stderr: help[1].as_bytes(),
    });
    parsed.spec.expect("it is written above")
}

/// Milliseconds, up to the largest number that JSON represents exactly.
fn to_json_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis())
        .unwrap_or(u64::MAX)
        .clamp(1, 1 << 53)
}

/// Name of the system as its vendor spells it.
fn os_name() -> &'static str {
    match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "macOS",
        "windows" => "Windows",
        "freebsd" => "FreeBSD",
        "openbsd" => "OpenBSD",
        "netbsd" => "NetBSD",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use mcpd_exec::Limits;

    use super::*;
    use crate::policy::ToolPolicy;

    /// Compares the default timeout of a call, and the maximum that one may request, in seconds.
    #[track_caller]
    fn check(options: RunCommand, policy: &Policy, timeout: u64, longest: u64) {
        let tool = CommandTool::new(options, policy, false).unwrap();
        let seconds = [tool.policy.limits().wall, tool.max_timeout].map(|time| time.as_secs());
        assert_eq!(seconds, [timeout, longest]);
    }

    #[test]
    fn timeout_of_scripts_is_capped_by_the_maximum() {
        let seconds = Duration::from_secs;
        let policy = Policy::default();
        let at_most = |most| RunCommand::default().max_timeout(seconds(most));
        check(RunCommand::default(), &policy, 60, 600);
        check(at_most(5), &policy, 5, 5);
        check(at_most(3600), &policy, 60, 3600);
    }

    #[test]
    fn longer_command_timeout_raises_the_maximum() {
        let seconds = Duration::from_secs;
        let policy = Policy::default();
        let set = RunCommand::default().timeout(seconds(900));
        check(set.clone(), &policy, 900, 900);
        check(set.max_timeout(seconds(5)), &policy, 900, 900);
        let rule = ToolPolicy::new("run_command").unwrap().timeout(seconds(20));
        let at_most = RunCommand::default().max_timeout(seconds(5));
        check(at_most, &policy.tool(rule), 20, 20);
        let mut limits = Limits::default();
        limits.wall = seconds(900);
        let policy = Policy::default().limits(limits);
        check(RunCommand::default(), &policy, 900, 900);
        check(RunCommand::default().max_timeout(seconds(5)), &policy, 5, 5);
    }
}
