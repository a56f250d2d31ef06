//! Policy of a script in words: its sandbox, its limits, and what a machine enforces of them.

use std::fmt::Write as _;

use mcpd_exec::{Containment, Enforcement, Level, Limits, Network};
use mcpd_server::policy::EffectivePolicy;

/// Writing into a string can't fail.
const STRING: &str = "a string takes everything";

/// Units of bytes from small to large.
const UNITS: [(&str, u32); 4] = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];

/// Sandbox of a script, in lines.
#[must_use]
pub fn confinement(policy: &EffectivePolicy) -> String {
    let sandbox = policy.sandbox();
    let mut text = format!("\nSandbox: {}", sandbox.level);
    if let Some(backend) = sandbox.backend {
        write!(text, ", by {backend}").expect(STRING);
    }
    if sandbox.level > Level::None {
        text += match sandbox.network {
            Network::Off => ", without a network",
            _ => "",
        };
    }
    if let Some(run_as) = sandbox.run_as {
        write!(text, ", as {}:{}", run_as.user, run_as.group).expect(STRING);
    }
    text.push('\n');
    if sandbox.level > Level::None {
        if sandbox.network == Network::Listed {
            for destination in &sandbox.destinations {
                writeln!(text, "  may connect to {destination}").expect(STRING);
            }
        }
        for path in &sandbox.write {
            writeln!(text, "  may write {}", path.display()).expect(STRING);
        }
        for path in &sandbox.read {
            writeln!(text, "  may read {}", path.display()).expect(STRING);
        }
    }
    text
}

/// Limits and variables of a script, in lines. Variables are shown by name alone.
#[must_use]
pub fn allowance(policy: &EffectivePolicy) -> String {
    let mut text = format!("Limits: {}\n", limits(policy.limits()).join(", "));
    if policy.runs_in_client_directory() {
        text += "Directory: of the client\n";
    }
    if let Some(warm) = policy.warm() {
        let modules: Vec<_> = warm.modules().collect();
        text += &match modules.is_empty() {
            true => "Start: warm\n".to_owned(),
            false => format!("Start: warm, with {}\n", modules.join(", ")),
        };
    }
    let own = policy.variables().map(str::to_owned);
    let brought = policy.request_variables();
    let brought = brought.map(|name| format!("{name} (from each request)"));
    let names: Vec<_> = own.chain(brought).collect();
    if !names.is_empty() {
        writeln!(text, "Variables: {}", names.join(", ")).expect(STRING);
    }
    if let Some(accepted) = policy.caller_variables() {
        let accepted = match accepted {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        writeln!(text, "Variables of callers: {accepted}").expect(STRING);
    }
    text
}

/// Timeout of a run, and its limits beyond those of the sandbox level.
#[must_use]
pub fn limits(limits: &Limits) -> Vec<String> {
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

/// Restrictions that held in a run, and those that did not, in lines.
#[must_use]
pub fn enforcement(enforced: &Enforcement) -> String {
    let mut text = format!(
        "  enforced on this machine: {}\n",
        mechanisms(enforced).join(", ")
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
        enforced.backend.map(|backend| backend.to_string()),
        landlock.map(|version| format!("Landlock {version}")),
        has("system call filter", enforced.seccomp),
        has("namespaces", enforced.namespaces),
        has("control group", enforced.cgroup),
        has("containment of all processes", ends_all),
    ];
    all.into_iter().flatten().collect()
}

/// Renders bytes in the largest unit in which they are a whole number.
fn in_units(bytes: u64) -> String {
    let fits = |(_, bits): &&(&str, u32)| bytes.trailing_zeros() >= *bits;
    match UNITS.iter().rfind(fits) {
        Some((unit, bits)) if bytes > 0 => format!("{} {unit}", bytes >> bits),
        _ => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_rendered_in_the_largest_unit() {
        for (bytes, text) in [
            (64 << 20, "64 MiB"),
            (3 << 40, "3 TiB"),
            (1 << 10, "1 KiB"),
            (2048 << 40, "2048 TiB"),
            (0, "0 bytes"),
            (1, "1 bytes"),
            (1025, "1025 bytes"),
        ] {
            assert_eq!(in_units(bytes), text);
        }
    }
}
