//! `mcpd describe`: purpose and arguments of a tool or a prompt, from the
//! definition that clients get.

use std::fmt::Write as _;

use mcpd_check::describe;
use mcpd_config::{File, in_units};
use mcpd_exec::{Command, Containment, Enforcement, Executor, Level, Limits, Network};
use mcpd_server::policy::EffectivePolicy;

use super::{find_tool, server_of, with_server};
use crate::args::Describe;
use crate::exit_code::ExitCode;
use crate::output;

/// Describes the tool, or the prompt.
pub(crate) async fn run(args: Describe, file: &File) -> anyhow::Result<ExitCode> {
    let tool = &args.tool;
    let server = server_of(
        &tool.place,
        &args.command,
        &args.enabling,
        Limits::default(),
        file,
    )
    .await?;
    with_server(server.only(&tool.tool), async |server| {
        let catalog = server.catalog();
        let prompt = catalog.prompt(&tool.tool);
        if let Some(prompt) = prompt.filter(|_| catalog.tool(&tool.tool).is_none()) {
            let prompt = prompt.definition();
            match args.json {
                true => output::write_json(prompt)?,
                false => output::write(output::printable(&describe::prompt(prompt)).as_bytes())?,
            }
            return Ok(ExitCode::Success);
        }
        let Some(tool) = find_tool(&catalog, tool) else {
            return Ok(ExitCode::Tool);
        };
        if args.json {
            output::write_json(tool.definition())?;
        } else {
            let mut text = describe::tool(&tool);
            if let Some(policy) = tool.policy() {
                text += &confinement(policy);
                text += &in_force(server.executor(), policy).await;
                text += &allowance(policy);
            }
            if let Some(source) = tool.source() {
                writeln!(text, "\nSource: {source}").expect(STRING);
            }
            output::write(output::printable(&text).as_bytes())?;
        }
        Ok(ExitCode::Success)
    })
    .await
}

/// Writing into a string can't fail.
const STRING: &str = "a string takes everything";

/// Sandbox of the script.
pub(super) fn confinement(policy: &EffectivePolicy) -> String {
    let sandbox = policy.sandbox();
    let mut text = format!("\nSandbox: {}", sandbox.level);
    if sandbox.level > Level::None && sandbox.network == Network::Off {
        text += ", without a network";
    }
    if let Some(run_as) = sandbox.run_as {
        write!(text, ", as {}:{}", run_as.user, run_as.group).expect(STRING);
    }
    text.push('\n');
    if sandbox.level > Level::None {
        for path in &sandbox.write {
            writeln!(text, "  may write {}", path.display()).expect(STRING);
        }
        for path in &sandbox.read {
            writeln!(text, "  may read {}", path.display()).expect(STRING);
        }
    }
    text
}

/// Permissions, limits and variables of the script. Variables are shown by name alone.
fn allowance(policy: &EffectivePolicy) -> String {
    let mut text = format!("Limits: {}\n", limits(policy.limits()).join(", "));
    let names: Vec<_> = policy.variables().collect();
    if !names.is_empty() {
        writeln!(text, "Variables: {}", names.join(", ")).expect(STRING);
    }
    text
}

/// Timeout of a run, and its limits beyond those of the sandbox level.
pub(super) fn limits(limits: &Limits) -> Vec<String> {
    let number = |limit: Option<u64>, of: &str| limit.map(|limit| format!("{limit} {of}"));
    let size =
        |limit: Option<u64>, of: &str| limit.map(|limit| format!("{} {of}", in_units(limit)));
    let all = [
        Some(format!("time limit {:?}", limits.wall)),
        limits.cpu.map(|time| format!("{time:?} of processor time")),
        size(limits.memory, "of memory"),
        size(limits.address_space, "of address space"),
        size(limits.file_size, "in a file"),
        number(limits.open_files, "open files"),
        number(limits.processes, "processes"),
    ];
    all.into_iter().flatten().collect()
}

/// Restrictions in force on this machine, measured by running this program under
/// the policy of the script.
async fn in_force(executor: &Executor, policy: &EffectivePolicy) -> String {
    let program = match std::env::current_exe() {
        Ok(program) if policy.sandbox().level > Level::None => program,
        _ => return String::new(),
    };
    let command = Command::new(program)
        .arg("--version")
        .limits(policy.limits().clone())
        .sandbox(policy.sandbox().clone());
    let enforced = match executor.run(command).await {
        Ok(outcome) => outcome.enforced,
        Err(error) => return format!("  calls will fail on this machine: failed to {error}\n"),
    };
    let mut text = format!(
        "  enforced on this machine: {}\n",
        mechanisms(&enforced).join(", ")
    );
    for missing in &enforced.missing {
        writeln!(text, "  not enforced on this machine: {missing}").expect(STRING);
    }
    text
}

fn mechanisms(enforced: &Enforcement) -> Vec<String> {
    let landlock = enforced.landlock;
    let has = |name: &str, is_there: bool| is_there.then(|| name.to_owned());
    let ends_all = enforced.containment == Containment::Proven;
    let all = [
        landlock.map(|version| format!("Landlock {version}")),
        has("system call filter", enforced.seccomp),
        has("namespaces", enforced.namespaces),
        has("control group", enforced.cgroup),
        has("containment of all processes", ends_all),
    ];
    all.into_iter().flatten().collect()
}
