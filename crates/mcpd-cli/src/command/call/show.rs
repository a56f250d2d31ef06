//! `mcpd call --show`: the process that a call would start, as a line for a shell or as JSON.

use std::fmt::Write as _;

use mcpd_check::describe;
use mcpd_check::terminal;
use mcpd_server::Tool;
use mcpd_server::policy::EffectivePolicy;
use serde_json::value::RawValue;

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
        output::write_json(&describe::run_plan(&plan, tool.policy()))?;
    } else {
        let mut text = describe::shell_line(&plan);
        let mut remarks = tool.policy().map(remarks).unwrap_or_default();
        writeln!(remarks, "Inherits: {}", plan.inherited.join(", ")).expect(STRING);
        for remark in remarks.trim().lines() {
            writeln!(text, "# {remark}").expect(STRING);
        }
        output::write(terminal::printable(&text).as_bytes())?;
    }
    Ok(ExitCode::Success)
}

/// Confinement and limits of the run.
fn remarks(policy: &EffectivePolicy) -> String {
    let limits = describe::limits(policy.limits()).join(", ");
    format!("{}Limits: {limits}\n", describe::confinement(policy))
}
