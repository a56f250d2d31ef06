//! Process that a call starts: as a line for a shell, and as JSON.

use std::fmt::Write as _;

use mcpd_exec::{Level, Network};
use mcpd_server::catalog::RunPlan;
use mcpd_server::policy::EffectivePolicy;
use serde_json::{Map, Value, json};

/// Writing into a string can't fail.
const STRING: &str = "a string takes everything";

/// Line for a shell that does the same in a shell of its own.
#[must_use]
pub fn shell_line(plan: &RunPlan) -> String {
    let mut text = "(".to_owned();
    if let Some(directory) = &plan.directory {
        let directory = directory.to_string_lossy();
        let command = quoted(["cd", &directory]);
        writeln!(text, "{command} &&").expect(STRING);
    }
    let input = quoted(["printf", "%s", &plan.stdin]);
    writeln!(text, "{input} |").expect(STRING);
    text.push_str("env");
    for (name, value) in &plan.variables {
        let word = format!("{name}={value}");
        write!(text, " {}", quoted([&*word])).expect(STRING);
    }
    let program = plan.program.to_string_lossy();
    let words = [&*program].into_iter();
    let words = words.chain(plan.args.iter().map(String::as_str));
    writeln!(text, " \\\n  {})", quoted(words)).expect(STRING);
    text
}

/// The plan with the policy of its tool, as JSON.
#[must_use]
pub fn run_plan(plan: &RunPlan, policy: Option<&EffectivePolicy>) -> Value {
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
    let network = match sandbox.network {
        Network::Off if is_confined => json!("off"),
        Network::Listed if is_confined => {
            let list = sandbox.destinations.iter().map(ToString::to_string);
            list.collect::<Vec<_>>().into()
        }
        _ => json!("host"),
    };
    json!({
        "level": sandbox.level.as_str(),
        "network": network,
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

/// Words as they are typed into a shell.
fn quoted<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    // Words of a process have no NUL, which is the only unquotable character.
    shlex::try_join(words).unwrap_or_default()
}
