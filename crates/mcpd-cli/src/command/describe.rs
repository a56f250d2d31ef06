//! `mcpd describe`: purpose and arguments of a tool or a prompt, from the
//! definition that clients get.

use std::fmt::Write as _;

use mcpd_config::{File, in_units};
use mcpd_exec::{Command, Containment, Enforcement, Executor, Level, Limits, Network};
use mcpd_protocol::method::{Prompt, ToolAnnotations};
use mcpd_scriptspec::{ScriptSpec, TaskSupport};
use mcpd_server::Tool;
use mcpd_server::policy::EffectivePolicy;
use serde_json::Value;

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
                false => {
                    output::write(output::printable(&description_of_prompt(prompt)).as_bytes())?
                }
            }
            return Ok(ExitCode::Success);
        }
        let Some(tool) = find_tool(&catalog, tool) else {
            return Ok(ExitCode::Tool);
        };
        if args.json {
            output::write_json(tool.definition())?;
        } else {
            let mut text = description(&tool);
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

/// Name and title; the title is left out if it equals the last component of the name.
fn heading(name: &str, title: Option<&str>) -> String {
    match title {
        Some(title) if name.rsplit('/').next() != Some(title) => format!("{name} - {title}"),
        _ => name.to_owned(),
    }
}

fn description_of_prompt(prompt: &Prompt) -> String {
    let mut text = heading(&prompt.name, prompt.title.as_deref());
    text.push_str("\n(a prompt)\n");
    if let Some(description) = &prompt.description {
        writeln!(text, "\n{}", description.trim_end()).expect(STRING);
    }
    if prompt.arguments.is_empty() {
        return text + "\nNo arguments.\n";
    }
    text.push_str("\nArguments:\n");
    for argument in &prompt.arguments {
        let is_required = argument.required == Some(true);
        let required = if is_required { ": required" } else { "" };
        writeln!(text, "  {}{required}", argument.name).expect(STRING);
        for line in argument.description.as_deref().unwrap_or_default().lines() {
            writeln!(text, "      {line}").expect(STRING);
        }
    }
    text
}

fn description(tool: &Tool) -> String {
    let definition = tool.definition();
    let mut text = heading(tool.path().as_str(), definition.title.as_deref());
    let said = |key| definition.meta.as_ref()?.get(key);
    if let Some(version) = said("mcpd/version").and_then(Value::as_str) {
        write!(text, ", version {version}").expect(STRING);
    }
    text.push('\n');
    if tool.portable_name() != tool.path().as_str() {
        writeln!(text, "(listed to most clients as {})", tool.portable_name()).expect(STRING);
    }
    if let Some(description) = &definition.description {
        writeln!(text, "\n{}", description.trim_end()).expect(STRING);
    }
    let hints: Vec<_> = definition.annotations.iter().flat_map(hints).collect();
    if !hints.is_empty() {
        writeln!(text, "\nHints: {}", hints.join(", ")).expect(STRING);
    }
    let tags = said("mcpd/tags").and_then(Value::as_array);
    let tags: Vec<_> = tags.into_iter().flatten().flat_map(Value::as_str).collect();
    if !tags.is_empty() {
        writeln!(text, "\nTags: {}", tags.join(", ")).expect(STRING);
    }
    text += &tool.spec().map(demands).unwrap_or_default();
    let schema: Value = serde_json::from_str(definition.input_schema.get()).unwrap_or_default();
    text + &options(&schema)
}

/// Requirements of the script on its clients.
fn demands(spec: &ScriptSpec) -> String {
    let mut text = String::new();
    if !spec.requires.is_empty() {
        writeln!(
            text,
            "\nRequired client capabilities: {}",
            spec.requires.join(", ")
        )
        .expect(STRING);
    }
    text.push_str(match spec.task {
        TaskSupport::Auto => "\nMay run as a task\n",
        TaskSupport::Required => {
            "\nAlways runs as a task; requires a client with support for tasks\n"
        }
        _ => "",
    });
    text
}

/// Behaviour of the tool, as its annotations declare it.
fn hints(annotations: &ToolAnnotations) -> impl Iterator<Item = &'static str> {
    let said = [
        (annotations.read_only_hint, "read-only", "not read-only"),
        (
            annotations.destructive_hint,
            "may be destructive",
            "not destructive",
        ),
        (annotations.idempotent_hint, "idempotent", "not idempotent"),
        (
            annotations.open_world_hint,
            "may reach other systems",
            "stays on this machine",
        ),
    ];
    let words = said
        .into_iter()
        .map(|(hint, yes, no)| Some(if hint? { yes } else { no }));
    words.flatten()
}

/// Writing into a string can't fail.
const STRING: &str = "a string takes everything";

/// Sandbox of the script.
fn confinement(policy: &EffectivePolicy) -> String {
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
fn limits(limits: &Limits) -> Vec<String> {
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

fn options(schema: &Value) -> String {
    let options = properties(schema, 1);
    if options.is_empty() {
        return "\nNo options.\n".to_owned();
    }
    format!("\nOptions:\n{options}")
}

/// Properties of an object or of the objects in a list, with nested ones, indented by depth.
fn properties(schema: &Value, depth: usize) -> String {
    let mut text = String::new();
    let Some(options) = schema["properties"].as_object() else {
        return match schema.get("items") {
            Some(items) => properties(items, depth),
            None => text,
        };
    };
    let indent = "  ".repeat(2 * depth - 1);
    let is_required = |name: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|required| required.iter().any(|required| required == name))
    };
    for (name, option) in options {
        write!(text, "{indent}{name}: {}", value_type(option)).expect(STRING);
        if is_required(name) {
            text.push_str(", required");
        }
        if let Some(default) = option.get("default") {
            write!(text, ", default {default}").expect(STRING);
        }
        text.push('\n');
        for line in option["description"].as_str().unwrap_or_default().lines() {
            writeln!(text, "{indent}    {line}").expect(STRING);
        }
        if let Some(examples) = option["examples"].as_array().filter(|all| !all.is_empty()) {
            let examples: Vec<_> = examples.iter().map(Value::to_string).collect();
            writeln!(text, "{indent}    for example {}", examples.join(", ")).expect(STRING);
        }
        text += &properties(option, depth + 1);
    }
    text
}

/// Readable type of a value: `integer from 1 to 9`.
fn value_type(schema: &Value) -> String {
    if let Some(values) = schema["enum"].as_array() {
        return values
            .iter()
            .map(Value::to_string)
            .collect::<Vec<_>>()
            .join(" | ");
    }
    let kind = schema["type"].as_str().unwrap_or("any JSON value");
    let (min, max, unit) = match kind {
        "string" => ("minLength", "maxLength", " characters"),
        "array" => ("minItems", "maxItems", " elements"),
        _ => ("minimum", "maximum", ""),
    };
    let mut text = match (schema.get(min), schema.get(max)) {
        (Some(min), Some(max)) => format!("{kind} from {min} to {max}{unit}"),
        (Some(min), None) => format!("{kind} of at least {min}{unit}"),
        (None, Some(max)) => format!("{kind} of at most {max}{unit}"),
        (None, None) => kind.to_owned(),
    };
    if let Some(pattern) = schema["pattern"].as_str() {
        write!(text, " that matches `{pattern}`").expect(STRING);
    }
    if let Some(format) = schema["format"].as_str() {
        write!(text, " in the format `{format}`").expect(STRING);
    }
    if let Some(each) = schema.get("items") {
        write!(text, ", each: {}", value_type(each)).expect(STRING);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &Value, expected: &str) {
        assert_eq!(value_type(schema), expected);
    }

    #[test]
    fn value_type_includes_bounds() {
        check(&json!({}), "any JSON value");
        check(&json!({"type": "boolean"}), "boolean");
        check(
            &json!({"type": "integer", "minimum": 1, "maximum": 9}),
            "integer from 1 to 9",
        );
        check(
            &json!({"type": "number", "maximum": 0.5}),
            "number of at most 0.5",
        );
        check(
            &json!({"type": "string", "minLength": 1}),
            "string of at least 1 characters",
        );
        check(
            &json!({"type": "string", "enum": ["a", "b"]}),
            r#""a" | "b""#,
        );
    }

    #[test]
    fn value_type_includes_pattern_and_elements() {
        check(
            &json!({"type": "string", "pattern": "^x"}),
            "string that matches `^x`",
        );
        check(
            &json!({"type": "array", "items": {}}),
            "array, each: any JSON value",
        );
        check(
            &json!({"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 9}}),
            "array of at most 3 elements, each: string of at most 9 characters",
        );
    }
}
