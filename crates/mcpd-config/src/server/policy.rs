//! Policy of a server from `mcpd.toml` and the flags. Names, paths, files and the output of
//! programs are resolved here, once.

use std::collections::BTreeMap;
use std::path::{self, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use mcpd_exec::backend::Backend;
use mcpd_exec::warm::WarmStart;
use mcpd_exec::{Executor, Level, Limits, Network, Sandbox};
use mcpd_scriptspec::TaskSupport;
use mcpd_server::policy::ToolPolicy;
use mcpd_server::{Policy, SandboxProfile};

use super::approval;
use super::audit;
use super::clients;
use super::environment::{self, callers_variables, check_name, with_variables};
use super::oauth;
use super::probe;
use super::user;
use crate::directories;
use crate::file::{File, suggestion};
use crate::options::Confinement;
use crate::tables::approval::ToolApproval;
use crate::tables::warm::Warm;
use crate::tables::{self, NetworkAccess, SandboxTable, Terminal, ToolTable};
use crate::value::{Source, Spanned};

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
    let profiles = sandbox_profiles(file)?;
    let floor = minimum_sandbox(file, &profiles, flags)?;
    let mut policy = Policy::default()
        .floor(floor.clone())
        .limits(limits)
        .environment(environment::environment(file)?);
    policy = hidden_files(file).into_iter().fold(policy, Policy::hide);
    let ignored = file.tables.arguments.ignore.iter();
    policy = ignored.fold(policy, Policy::ignore_argument);
    policy = policy.approval(approval::approval(file)?);
    policy = policy.probing(probe::probe_settings(&file.tables.probe));
    policy = probe::roots(file)?.into_iter().fold(policy, Policy::root);
    if let Some(directories) = &file.tables.client_directories {
        let directories = directories.iter().map(|path| file.absolute(path));
        policy = policy.client_directories(directories);
    }
    let exchanges = oauth::exchanges(file, executor).await?;
    for tool in &file.tables.tool {
        let policy_of_tool = tool_policy(file, tool, &floor, &profiles)?;
        let policy_of_tool =
            with_variables(policy_of_tool, file, &tool.env, &exchanges, executor).await?;
        policy = policy.tool(policy_of_tool);
    }
    for (caller, table) in clients::variables(file)? {
        for (name, value) in environment::variables(file, table, executor).await? {
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
    let oauth = tables.oauth.iter();
    let exchanges = oauth.flat_map(|table| &table.get_ref().exchange);
    let clients = exchanges.filter_map(|exchange| exchange.client_secret.as_ref());
    let sources = variables
        .flat_map(BTreeMap::values)
        .chain(tokens)
        .chain(clients);
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
pub(crate) type SandboxProfiles = BTreeMap<String, SandboxProfile>;

pub(crate) fn sandbox_profiles(file: &File) -> anyhow::Result<SandboxProfiles> {
    let built_in = [Level::None, Level::Guarded, Level::Strict];
    let mut profiles: SandboxProfiles = built_in
        .map(|level| (level.to_string(), SandboxProfile::new(Sandbox::at(level))))
        .into();
    for (name, table) in &file.tables.sandbox {
        let profile = sandbox_profile(file, name, table)?;
        let name = name.get_ref().clone();
        profiles.insert(name, profile);
    }
    Ok(profiles)
}

fn sandbox_profile(
    file: &File,
    name: &Spanned<String>,
    table: &SandboxTable,
) -> anyhow::Result<SandboxProfile> {
    if name.get_ref().parse::<Level>().is_ok() {
        let what = format!("`{}` is built in; choose another name", name.get_ref());
        return Err(file.error(name.span(), &what));
    }
    let has_no_effect = table.write.is_some()
        || table.read.is_some()
        || table.hide.is_some()
        || table.network.is_some()
        || table.write_client_directory
        || table.missing.is_some();
    let level = level_of(table);
    if level == tables::Level::None && has_no_effect {
        let what = "`write`, `read`, `hide`, `network`, `write_client_directory` and `missing` have no effect at the level `none`";
        return Err(file.error(name.span(), what));
    }
    let mut sandbox = match level {
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
    match &table.network {
        None => {}
        Some(NetworkAccess::Word(tables::Network::Host)) => sandbox.network = Network::Host,
        Some(NetworkAccess::Word(tables::Network::Off)) => sandbox.network = Network::Off,
        Some(NetworkAccess::Only(list)) => sandbox = sandbox.destinations(list.iter().cloned()),
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
    if let Some(backend) = &table.backend {
        sandbox.backend = Some(backend_of(*backend.get_ref()));
        check_backend(&sandbox).map_err(|what| file.error(backend.span(), &what))?;
    }
    let mut profile = SandboxProfile::new(sandbox);
    profile.writes_client_directory = table.write_client_directory;
    let limits = &mut profile.limits;
    limits.cpu = table.cpu.map(|time| time.0);
    limits.address_space = table.address_space.map(|amount| amount.0);
    limits.file_size = table.file_size.map(|amount| amount.0);
    limits.memory = table.memory.map(|amount| amount.0);
    limits.open_files = table.open_files;
    limits.processes = table.processes;
    Ok(profile)
}

/// Level of a sandbox, which its backend may imply.
fn level_of(table: &SandboxTable) -> tables::Level {
    table.level.unwrap_or(match table.backend {
        Some(_) => tables::Level::Strict,
        None => tables::Level::Guarded,
    })
}

fn backend_of(backend: tables::Backend) -> Backend {
    match backend {
        tables::Backend::Bwrap => Backend::Bwrap,
        tables::Backend::Gvisor => Backend::Gvisor,
        tables::Backend::Podman => Backend::Podman,
        tables::Backend::Firejail => Backend::Firejail,
    }
}

/// Checks that the backend of a sandbox can do what the sandbox asks for.
fn check_backend(sandbox: &Sandbox) -> Result<(), String> {
    let check = |backend: Backend| backend.check(sandbox);
    let checked = sandbox.backend.map_or(Ok(()), check);
    checked.map_err(|what| format!("`backend`: {what}"))
}

/// Minimum sandbox of every script, as the flags set it.
fn minimum_sandbox(
    file: &File,
    profiles: &SandboxProfiles,
    flags: &Confinement,
) -> anyhow::Result<SandboxProfile> {
    let Some(name) = &flags.sandbox else {
        if flags.changes_sandbox() {
            bail!(
                "set up the sandbox: `--allow-read`, `--allow-write` and `--no-network` require `--sandbox`"
            );
        }
        return Ok(SandboxProfile::default());
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
        floor.sandbox.network = Network::Off;
    }
    Ok(floor)
}

/// The sandbox that a table names.
pub(crate) fn find_sandbox_profile(
    file: &File,
    name: &Spanned<String>,
    profiles: &SandboxProfiles,
) -> anyhow::Result<SandboxProfile> {
    profiles.get(name.get_ref()).cloned().ok_or_else(|| {
        let what = unknown(name.get_ref(), profiles);
        file.error(
            name.span(),
            &format!("`sandbox = \"{}\"`: {what}", name.get_ref()),
        )
    })
}

fn unknown(name: &str, profiles: &SandboxProfiles) -> String {
    let known: Vec<_> = profiles.keys().map(String::as_str).collect();
    format!("no such sandbox; {}", suggestion(name, &known))
}

/// Checks that a backend can confine a script as both its sandbox and the minimum sandbox say.
fn check_with_floor(sandbox: &Sandbox, floor: &Sandbox) -> Result<(), String> {
    if let (Some(own), Some(least)) = (sandbox.backend, floor.backend)
        && own != least
    {
        return Err(format!(
            "its backend `{own}` differs from `{least}`, that of the minimum sandbox"
        ));
    }
    let mut both = sandbox.clone();
    both.backend = both.backend.or(floor.backend);
    both.run_as = both.run_as.or(floor.run_as);
    both.level = both.level.max(floor.level);
    both.tighten_network(floor);
    check_backend(&both)
}

fn tool_policy(
    file: &File,
    table: &ToolTable,
    floor: &SandboxProfile,
    profiles: &SandboxProfiles,
) -> anyhow::Result<ToolPolicy> {
    let pattern = &table.pattern;
    let wrong = |error| file.failure("match", pattern.span(), &error);
    let mut tool = ToolPolicy::new(pattern.get_ref()).map_err(wrong)?;
    tool = tool.probing(probe::probe_settings(&table.probe));
    if let Some(name) = &table.sandbox {
        let profile = find_sandbox_profile(file, name, profiles)?;
        let (least, own) = (floor.sandbox.run_as, profile.sandbox.run_as);
        if least.is_some() && own.is_some() && least != own {
            let named = name.get_ref();
            let what = format!(
                "`sandbox = \"{named}\"`: its `run_as` differs from that of the minimum sandbox"
            );
            return Err(file.error(name.span(), &what));
        }
        check_with_floor(&profile.sandbox, &floor.sandbox).map_err(|what| {
            let what = format!("`sandbox = \"{}\"`: {what}", name.get_ref());
            file.error(name.span(), &what)
        })?;
        tool = tool.sandbox(profile);
    }
    if let Some(timeout) = table.timeout {
        tool = tool.timeout(timeout.0);
    }
    if let Some(concurrency) = table.concurrency {
        tool = tool.concurrency(concurrency);
    }
    if let Some(terminal) = table.terminal {
        tool = tool.keep_escapes(terminal == Terminal::Raw);
    }
    if let Some(run_in) = table.run_in {
        tool = tool.run_in_client_directory(run_in == tables::RunIn::Client);
    }
    if let Some(warm) = &table.warm {
        tool = tool.warm(match warm.get_ref() {
            Warm::Off => None,
            Warm::On(modules) => Some(WarmStart::new(modules.iter().cloned())),
        });
    }
    if let Some(redact) = table.redact {
        tool = tool.redact(redact);
    }
    if let Some(task) = table.task {
        tool = tool.task(match task {
            tables::Task::Never => TaskSupport::Never,
            tables::Task::Auto => TaskSupport::Auto,
            tables::Task::Required => TaskSupport::Required,
        });
    }
    if let Some(approval) = table.approval {
        tool = tool.ask_first(approval == ToolApproval::Ask);
    }
    if let Some(names) = &table.caller_env {
        for name in names {
            check_name(file, name, true)?;
        }
        tool = tool.caller_variables(names.iter().map(|name| name.get_ref().clone()));
    }
    Ok(tool)
}
