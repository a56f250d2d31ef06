//! Policy of a server from `mcpd.toml` and the flags. Names, paths, files and the output of
//! programs are resolved here, once.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::ops::Range;
use std::path::{self, Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use mcpd_exec::{Executor, Level, Limits, Sandbox};
use mcpd_scriptspec::TaskSupport;
use mcpd_server::policy::{Environment, Rule};
use mcpd_server::{Policy, Profile};

use super::audit;
use super::clients;
use super::probe;
use super::user;
use crate::file::{File, suggestion};
use crate::options::Confinement;
use crate::tables::{self, SandboxTable, Tables, Terminal, ToolTable, Variables};
use crate::value::{Source, Spanned};
use crate::{directories, program};

/// Builds the policy from `file` and the flags. Programs that print secrets run with `executor`,
/// and not at all without one.
///
/// # Errors
///
/// A faulty value, with its place.
pub(crate) async fn policy(
    file: &File,
    flags: &Confinement,
    limits: Limits,
    executor: Option<&Executor>,
) -> anyhow::Result<Policy> {
    let profiles = profiles(file)?;
    let floor = minimum_sandbox(file, &profiles, flags)?;
    let mut policy = Policy::default()
        .floor(floor.clone())
        .limits(limits)
        .environment(environment(file)?);
    policy = hidden_files(file).into_iter().fold(policy, Policy::hide);
    let ignored = file.tables.arguments.ignore.iter();
    policy = ignored.fold(policy, Policy::ignore_argument);
    policy = policy.probing(probe::probe_settings(&file.tables.probe));
    policy = probe::roots(file)?.into_iter().fold(policy, Policy::root);
    for tool in &file.tables.tool {
        policy = policy.rule(rule(file, tool, &floor, &profiles, executor).await?);
    }
    for (caller, table) in clients::variables(file)? {
        for (name, value) in variables(file, table, executor).await? {
            policy = policy.caller_variable(caller, name, value);
        }
    }
    Ok(policy)
}

/// Files that scripts must not see: the configuration, the files of its secrets, mcpd's state, the
/// audit log, and the credentials from a service manager.
pub(crate) fn hidden_files(file: &File) -> Vec<PathBuf> {
    let tables = &file.tables;
    let tools = tables.tool.iter().map(|tool| &tool.env);
    let endpoints = tables.endpoint.iter().map(|endpoint| &endpoint.env);
    let callers = callers_variables(tables);
    let upstreams = tables.upstream.iter();
    let upstreams = upstreams.flat_map(|upstream| [&upstream.env, &upstream.headers]);
    let variables = tools.chain(callers).chain(endpoints).chain(upstreams);
    let tokens = tables.upstream.iter().filter_map(|one| one.token.as_ref());
    let sources = variables.flat_map(BTreeMap::values).chain(tokens);
    let sources = sources.filter_map(|source| match source.get_ref() {
        Source::File(path) => Some(path),
        _ => None,
    });
    let keys = [&tables.token_file, &tables.state_key_file, &tables.tls.key];
    let keys = keys.into_iter().flatten().map(|path| path.get_ref());
    let named = sources.chain(keys);
    let named = named.map(|path| file.absolute(path));
    let own = file.path().and_then(|path| path::absolute(path).ok());
    let state = [directories::state(), directories::database()];
    let state = state.into_iter().flatten();
    let own = own
        .into_iter()
        .chain(directories::credentials())
        .chain(state);
    own.chain(named).chain(audit::files(file)).collect()
}

/// Sandboxes by name: the built-in ones and those of the file.
pub(crate) type Profiles = BTreeMap<String, Profile>;

pub(crate) fn profiles(file: &File) -> anyhow::Result<Profiles> {
    let built_in = [Level::None, Level::Guarded, Level::Strict];
    let mut profiles: Profiles = built_in
        .map(|level| (level.to_string(), Profile::new(Sandbox::at(level))))
        .into();
    for (name, table) in &file.tables.sandbox {
        let profile = profile(file, name, table)?;
        let name = name.get_ref().clone();
        profiles.insert(name, profile);
    }
    Ok(profiles)
}

fn profile(file: &File, name: &Spanned<String>, table: &SandboxTable) -> anyhow::Result<Profile> {
    if name.get_ref().parse::<Level>().is_ok() {
        let what = format!("`{}` is built in; choose another name", name.get_ref());
        return Err(file.error(name.span(), &what));
    }
    let has_no_effect = table.write.is_some()
        || table.read.is_some()
        || table.hide.is_some()
        || table.network.is_some()
        || table.missing.is_some();
    if table.level == tables::Level::None && has_no_effect {
        let what =
            "`write`, `read`, `hide`, `network` and `missing` have no effect at the level `none`";
        return Err(file.error(name.span(), what));
    }
    let mut sandbox = match table.level {
        tables::Level::None => Sandbox::none(),
        tables::Level::Guarded => Sandbox::guarded(),
        tables::Level::Strict => Sandbox::strict(),
    };
    for path in table.write.iter().flatten() {
        sandbox = sandbox.write(file.absolute(path));
    }
    for path in table.read.iter().flatten() {
        sandbox = sandbox.read(file.absolute(path));
    }
    for path in table.hide.iter().flatten() {
        sandbox = sandbox.hide(file.absolute(path));
    }
    if let Some(network) = table.network {
        sandbox.network = match network {
            tables::Network::Host => mcpd_exec::Network::Host,
            tables::Network::Off => mcpd_exec::Network::Off,
        };
    }
    if let Some(missing) = table.missing {
        sandbox.missing = match missing {
            tables::Missing::Report => mcpd_exec::Missing::Report,
            tables::Missing::Refuse => mcpd_exec::Missing::Refuse,
        };
    }
    if let Some(run_as) = &table.run_as {
        let wrong = |what: String| file.error(run_as.span(), &format!("`run_as`: {what}"));
        sandbox = sandbox.run_as(user::parse(run_as.get_ref()).map_err(wrong)?);
    }
    let mut profile = Profile::new(sandbox);
    let limits = &mut profile.limits;
    limits.cpu = table.cpu.map(|time| time.0);
    limits.address_space = table.address_space.map(|amount| amount.0);
    limits.file_size = table.file_size.map(|amount| amount.0);
    limits.memory = table.memory.map(|amount| amount.0);
    limits.open_files = table.open_files;
    limits.processes = table.processes;
    Ok(profile)
}

/// Minimum sandbox of every script, as the flags set it.
fn minimum_sandbox(
    file: &File,
    profiles: &Profiles,
    flags: &Confinement,
) -> anyhow::Result<Profile> {
    let Some(name) = &flags.sandbox else {
        if flags.changes_sandbox() {
            bail!(
                "set up the sandbox: `--allow-read`, `--allow-write` and `--no-network` require `--sandbox`"
            );
        }
        return Ok(Profile::default());
    };
    let Some(floor) = profiles.get(name) else {
        let what = unknown(name, profiles);
        return Err(match &file.tables.floor {
            Some(written) if written.get_ref() == name => {
                file.error(written.span(), &format!("`floor = \"{name}\"`: {what}"))
            }
            _ => anyhow!("use the sandbox `{name}`: {what}"),
        });
    };
    let mut floor = floor.clone();
    if floor.sandbox.level == Level::None && flags.changes_sandbox() {
        bail!(
            "use the sandbox `{name}`: its level is `none`, so `--allow-read`, `--allow-write` and `--no-network` have no effect"
        );
    }
    for path in &flags.allow_read {
        let path =
            path::absolute(path).with_context(|| format!("allow reading `{}`", path.display()))?;
        floor.sandbox = floor.sandbox.read(path);
    }
    for path in &flags.allow_write {
        let path =
            path::absolute(path).with_context(|| format!("allow writing `{}`", path.display()))?;
        floor.sandbox = floor.sandbox.write(path);
    }
    if flags.no_network {
        floor.sandbox.network = mcpd_exec::Network::Off;
    }
    Ok(floor)
}

/// The sandbox that a table names.
pub(crate) fn find_profile(
    file: &File,
    name: &Spanned<String>,
    profiles: &Profiles,
) -> anyhow::Result<Profile> {
    profiles.get(name.get_ref()).cloned().ok_or_else(|| {
        let what = unknown(name.get_ref(), profiles);
        file.error(
            name.span(),
            &format!("`sandbox = \"{}\"`: {what}", name.get_ref()),
        )
    })
}

fn unknown(name: &str, profiles: &Profiles) -> String {
    let known: Vec<_> = profiles.keys().map(String::as_str).collect();
    format!("no such sandbox; {}", suggestion(name, &known))
}

pub(crate) fn environment(file: &File) -> anyhow::Result<Environment> {
    let table = &file.tables.env;
    let mut environment = Environment::of_this_process();
    for name in &table.pass {
        check_name(file, name, true)?;
        environment = environment.pass(name.get_ref());
    }
    for name in &table.drop {
        check_name(file, name, true)?;
        environment = environment.drop(name.get_ref());
    }
    for name in &table.optional {
        check_name(file, name, true)?;
        for variable in empty_variables(name.get_ref()) {
            environment = environment.drop(variable);
        }
    }
    for (name, value) in &table.set {
        check_name(file, name, false)?;
        environment = environment.set(name.get_ref(), value);
    }
    // These variables are for some tools or callers alone.
    let tools = file.tables.tool.iter().map(|tool| &tool.env);
    let reserved = tools.chain(callers_variables(&file.tables)).flatten();
    for (name, source) in reserved {
        match source.get_ref() {
            Source::Pass => environment = environment.reserve(name.get_ref()),
            Source::Variable(name) => environment = environment.reserve(name),
            _ => {}
        }
    }
    Ok(environment)
}

/// Variables of all clients.
fn callers_variables(tables: &Tables) -> impl Iterator<Item = &Variables> {
    let known = tables.token.iter().chain(&tables.certificate);
    let known = known.map(|table| &table.env);
    known.chain(tables.client.iter().map(|table| &table.env))
}

/// Variables of this process with the name, or with the prefix before a `*`, that have no value.
fn empty_variables(name: &str) -> impl Iterator<Item = String> {
    let is_meant = move |variable: &str| match name.strip_suffix('*') {
        Some(prefix) => variable.starts_with(prefix),
        None => variable == name,
    };
    env::vars_os().filter_map(move |(variable, value)| {
        let variable = variable.into_string().ok().filter(|one| is_meant(one))?;
        let value = value.to_str()?;
        let is_placeholder = value.starts_with("${user_config.") && value.ends_with('}');
        (value.is_empty() || is_placeholder).then_some(variable)
    })
}

/// Checks that a name is usable in a shell and not mcpd's own; a pattern may end with `*`.
fn check_name(file: &File, name: &Spanned<String>, is_pattern: bool) -> anyhow::Result<()> {
    let text = name.get_ref().as_str();
    let plain = text.strip_suffix('*').filter(|_| is_pattern);
    let plain = plain.unwrap_or(text);
    let is_valid = |char: char| char.is_ascii_alphanumeric() || char == '_';
    if plain.is_empty()
        || plain.starts_with(|char: char| char.is_ascii_digit())
        || !plain.chars().all(is_valid)
    {
        let what = format!("`{text}` is not a valid variable name");
        return Err(file.error(name.span(), &what));
    }
    if plain.starts_with("MCPD_") {
        let what = format!("`{text}`: names that begin with `MCPD_` are reserved for mcpd");
        return Err(file.error(name.span(), &what));
    }
    Ok(())
}

async fn rule(
    file: &File,
    table: &ToolTable,
    floor: &Profile,
    profiles: &Profiles,
    executor: Option<&Executor>,
) -> anyhow::Result<Rule> {
    let pattern = &table.pattern;
    let wrong = |error| file.failure("match", pattern.span(), &error);
    let mut rule = Rule::new(pattern.get_ref()).map_err(wrong)?;
    rule = rule.probing(probe::probe_settings(&table.probe));
    if let Some(name) = &table.sandbox {
        let profile = find_profile(file, name, profiles)?;
        let (least, own) = (floor.sandbox.run_as, profile.sandbox.run_as);
        if least.is_some() && own.is_some() && least != own {
            let named = name.get_ref();
            let what = format!(
                "`sandbox = \"{named}\"`: its `run_as` differs from that of the minimum sandbox"
            );
            return Err(file.error(name.span(), &what));
        }
        rule = rule.profile(profile);
    }
    if let Some(timeout) = table.timeout {
        rule = rule.timeout(timeout.0);
    }
    if let Some(concurrency) = table.concurrency {
        rule = rule.concurrency(concurrency);
    }
    if let Some(terminal) = table.terminal {
        rule = rule.keep_escapes(terminal == Terminal::Raw);
    }
    if let Some(redact) = table.redact {
        rule = rule.redact(redact);
    }
    if let Some(task) = table.task {
        rule = rule.task(match task {
            tables::Task::Never => TaskSupport::Never,
            tables::Task::Auto => TaskSupport::Auto,
            tables::Task::Required => TaskSupport::Required,
        });
    }
    if let Some(names) = &table.caller_env {
        for name in names {
            check_name(file, name, true)?;
        }
        rule = rule.caller_variables(names.iter().map(|name| name.get_ref().clone()));
    }
    for (name, value) in variables(file, &table.env, executor).await? {
        rule = rule.variable(name, value);
    }
    Ok(rule)
}

/// Variables of a table, by name.
pub(crate) async fn variables<'a>(
    file: &File,
    table: &'a Variables,
    executor: Option<&Executor>,
) -> anyhow::Result<Vec<(&'a str, String)>> {
    let mut variables = Vec::with_capacity(table.len());
    for (name, source) in table {
        check_name(file, name, false)?;
        let name = name.get_ref().as_str();
        let value = value(file, name, source, executor).await?;
        if name.len() + value.len() > MAX_VARIABLE {
            let what = format!(
                "the value has {} bytes, but programs cannot start with a variable of 128 KiB or more; pass the path of a file instead",
                value.len()
            );
            return Err(at(file, source.span(), name, &what));
        }
        variables.push((name, value));
    }
    Ok(variables)
}

/// Maximum length of a variable with its name in bytes: the limit of Linux with pages of 4 KiB.
const MAX_VARIABLE: usize = 128 * 1024 - 2;

/// Resolves the value of a variable. Errors name its source, never its content.
pub(crate) async fn value(
    file: &File,
    name: &str,
    source: &Spanned<Source>,
    executor: Option<&Executor>,
) -> anyhow::Result<String> {
    let value = match source.get_ref() {
        Source::Literal(text) => Ok(text.clone()),
        Source::Pass => own_variable(name),
        Source::Variable(name) => own_variable(name),
        Source::File(path) => content(&file.absolute(path)),
        Source::Credential(name) => match directories::credential(name) {
            Some(path) => content(&path),
            None => Err(format!(
                "the service manager provides no credential `{name}`"
            )),
        },
        Source::Command(words) => run_secret_command(file, words, executor).await,
    };
    let wrong = |what: String| at(file, source.span(), name, &what);
    let mut value = value.map_err(wrong)?;
    let is_text = matches!(
        source.get_ref(),
        Source::File(_) | Source::Credential(_) | Source::Command(_)
    );
    if is_text && value.ends_with('\n') {
        value.pop();
    }
    if value.contains('\0') {
        return Err(wrong("the value contains a NUL character".to_owned()));
    }
    Ok(value)
}

fn content(path: &Path) -> Result<String, String> {
    fs::read_to_string(path)
        .map_err(|error| format!("failed to read the file `{}`: {error}", path.display()))
}

/// Value of a variable in mcpd's own environment.
fn own_variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| match error {
        env::VarError::NotPresent => {
            format!("the variable `{name}` is not set in mcpd's own environment")
        }
        env::VarError::NotUnicode(_) => "the value is not UTF-8".to_owned(),
    })
}

fn at(file: &File, span: Range<usize>, name: &str, what: &str) -> anyhow::Error {
    file.error(span, &format!("`{name}`: {what}"))
}

/// Runs a program and returns its output. Its stderr is not repeated,
/// because it may contain secrets.
async fn run_secret_command(
    file: &File,
    words: &[String],
    executor: Option<&Executor>,
) -> Result<String, String> {
    let Some(executor) = executor else {
        return Ok(String::new());
    };
    let outcome = program::run(&file.command(words), file.directory(), executor).await?;
    let whole = outcome.stdout.whole();
    let text = whole.and_then(|bytes| String::from_utf8(bytes.into()).ok());
    text.ok_or_else(|| {
        format!(
            "`{}` printed output that is too long or not UTF-8",
            words[0]
        )
    })
}
