//! `mcpd call --show`: the process that a call would start, as a line for a shell or as JSON.

use std::fmt::Write as _;

use mcpd_exec::{Level, Network};
use mcpd_server::Tool;
use mcpd_server::catalog::RunPlan;
use mcpd_server::policy::EffectivePolicy;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::command::describe;
use crate::exit_code::ExitCode;
use crate::output;

/// Writing into a string can't fail.
const STRING: &str = "a string takes everything";

/// Prints the plan, or the faults in the arguments.
pub(super) fn run(tool: &Tool, arguments: &RawValue, as_json: bool) -> anyhow::Result<ExitCode> {
    let path = tool.path();
    let plan = match tool.plan_run(Some(arguments)) {
        Some(Ok(plan)) => plan,
        Some(Err(faults)) => {
            output::error(&faults);
            return Ok(ExitCode::Tool);
        }
        None => {
            output::error(&format!(
                "`{path}` is no script of this machine: no process is started for it here"
            ));
            return Ok(ExitCode::Tool);
        }
    };
    if as_json {
        output::write_json(&object(&plan, tool.policy()))?;
    } else {
        let mut text = shell_line(&plan);
        let mut remarks = tool.policy().map(remarks).unwrap_or_default();
        writeln!(remarks, "Inherits: {}", plan.inherited.join(", ")).expect(STRING);
        for remark in remarks.trim().lines() {
            writeln!(text, "# {remark}").expect(STRING);
        }
        output::write(output::printable(&text).as_bytes())?;
    }
    Ok(ExitCode::Success)
}

/// Confinement and limits of the run.
fn remarks(policy: &EffectivePolicy) -> String {
    let limits = describe::limits(policy.limits()).join(", ");
    format!("{}Limits: {limits}\n", describe::confinement(policy))
}

/// A line for a shell that does the same in a shell of its own.
fn shell_line(plan: &RunPlan) -> String {
    let mut text = "(".to_owned();
    if let Some(directory) = &plan.directory {
        let directory = directory.to_string_lossy();
        let command = output::shell_command(["cd", &directory]);
        writeln!(text, "{command} &&").expect(STRING);
    }
    let input = output::shell_command(["printf", "%s", &plan.stdin]);
    writeln!(text, "{input} |").expect(STRING);
    text.push_str("env");
    for (name, value) in &plan.variables {
        let word = format!("{name}={value}");
        write!(text, " {}", output::shell_command([&*word])).expect(STRING);
    }
    let program = plan.program.to_string_lossy();
    let words = [&*program].into_iter();
    let words = words.chain(plan.args.iter().map(String::as_str));
    writeln!(text, " \\\n  {})", output::shell_command(words)).expect(STRING);
    text
}

/// The plan with the policy of the tool.
fn object(plan: &RunPlan, policy: Option<&EffectivePolicy>) -> Value {
    let variables = plan.variables.iter();
    let variables: Map<_, _> = variables
        .map(|(name, value)| (name.clone(), Value::from(value.as_str())))
        .collect();
    json!({
        "program": plan.program.to_string_lossy(),
        "args": plan.args,
        "directory": plan.directory.as_deref().map(|directory| directory.to_string_lossy()),
        "stdin": plan.stdin,
        "variables": variables,
        "inherited": plan.inherited,
        "sandbox": policy.map(sandbox),
        "limits": policy.map(limits),
    })
}

fn sandbox(policy: &EffectivePolicy) -> Value {
    let sandbox = policy.sandbox();
    let is_confined = sandbox.level > Level::None;
    let has_network = !is_confined || sandbox.network != Network::Off;
    json!({
        "level": sandbox.level.as_str(),
        "network": if has_network { "host" } else { "off" },
        "write": if is_confined { &*sandbox.write } else { &[] },
        "read": if is_confined { &*sandbox.read } else { &[] },
        "runAs": sandbox.run_as.map(|run_as| json!({"user": run_as.user, "group": run_as.group})),
    })
}

fn limits(policy: &EffectivePolicy) -> Value {
    let limits = policy.limits();
    json!({
        "seconds": limits.wall.as_secs_f64(),
        "processorSeconds": limits.cpu.map(|time| time.as_secs_f64()),
        "memoryBytes": limits.memory,
        "addressSpaceBytes": limits.address_space,
        "fileBytes": limits.file_size,
        "openFiles": limits.open_files,
        "processes": limits.processes,
    })
}
