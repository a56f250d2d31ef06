//! `mcpd describe`: purpose and arguments of a tool or a prompt, from the
//! definition that clients get.

use mcpd_check::describe;
use mcpd_check::terminal;
use mcpd_config::File;
use mcpd_exec::{Command, Executor, Level, Limits};
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
                false => output::write(terminal::printable(&describe::prompt(prompt)).as_bytes())?,
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
                text += &describe::confinement(policy);
                text += &in_force(server.executor(), policy).await;
                text += &describe::allowance(policy);
            }
            if server.needs_approval(&tool) {
                text += "\nApproval: a person is asked before each call\n";
            }
            if let Some(source) = tool.source() {
                text += &format!("\nSource: {source}\n");
            }
            output::write(terminal::printable(&text).as_bytes())?;
        }
        Ok(ExitCode::Success)
    })
    .await
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
    describe::enforcement(&enforced)
}
