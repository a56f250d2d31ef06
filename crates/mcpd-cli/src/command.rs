//! Subcommands. Each reads its arguments, calls the libraries and writes their results.

use std::io;
use std::path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use mcpd_check::remarks::{self, check_command, describe_faults};
use mcpd_config::{File, server_for_query};
use mcpd_exec::Limits;
use mcpd_server::{Catalog, Server, ServerBuilder, Tool};
use mcpd_service::signals::Termination;
use mcpd_telemetry::Telemetry;
use tokio::runtime::{Builder, Runtime};

use crate::args::{Command, CommandLine, Enabling, Logging, OneDirectory, OneTool, ServerCommand};
use crate::exit_code::ExitCode;
use crate::logging::{self, Audience};
use crate::output;
use crate::reload::Reloading;

mod adopt;
mod approve;
mod audit;
mod basic;
mod bundle;
mod call;
mod catalog;
mod check;
#[cfg(feature = "cluster")]
mod cluster;
mod compile;
mod completions;
mod config;
mod connect;
mod console;
mod describe;
mod dev;
mod discover;
mod doctor;
mod endpoint;
mod install;
mod library;
mod list;
mod lock;
mod lsp;
mod new;
mod prompt;
mod read;
mod serve;
mod state;
mod stdio;
mod target;
mod test;
mod token;
mod update;
#[cfg(feature = "cluster")]
mod worker;

/// Timeout for the runtime to drop remaining tasks; dropping a run kills its processes.
const RUNTIME_DROP_TIMEOUT: Duration = Duration::from_secs(1);

/// Idle timeout of a thread for blocking work. It is shorter than the interval between two scans
/// of the roots, each of which would otherwise keep another thread alive.
const BLOCKING_IDLE_TIMEOUT: Duration = Duration::from_millis(500);

/// Executes a command.
pub(crate) fn run(line: &CommandLine) -> anyhow::Result<ExitCode> {
    let mut file = match line.is_configured().then(|| File::find(line.search())) {
        None => File::default(),
        Some(Err(error)) if line.command() == "endpoint" => return endpoint::refuse(&error),
        // The fault is shown where the editor has the file open.
        Some(Err(_)) if line.command() == "lsp" => File::default(),
        Some(file) => file?,
    };
    let left_out = open_sources(line, &mut file)?;
    let args = line.combine(&file)?;
    let filter = logging::start(&args.logging, audience(&args.command))?;
    line.warn_of_variables(&file);
    if let Some(path) = file.path() {
        tracing::info!(file = %path.display(), "read the configuration");
    }
    report(left_out);
    let reloading = Reloading {
        line,
        file: &file,
        filter: &filter,
    };
    let runtime = runtime(&args.command).context("start the runtime")?;
    let code = runtime.block_on(execute(args.command, &args.logging, reloading));
    runtime.shutdown_timeout(RUNTIME_DROP_TIMEOUT);
    code
}

/// Executes a command on the runtime.
async fn execute(
    command: Command,
    logging: &Logging,
    reloading: Reloading<'_>,
) -> anyhow::Result<ExitCode> {
    let Reloading { line, file, .. } = reloading;
    match command {
        Command::New(new) => new::run(&new).await,
        Command::Adopt(adopt) => adopt::run(&adopt).await,
        Command::Install(install) => install::run(*install).await,
        Command::Serve(serve) => serve::run(&serve, logging, reloading, None).await,
        Command::Dev(dev) => {
            let session = dev::session();
            serve::run(&dev.serve, logging, reloading, Some(&session)).await
        }
        Command::Stdio(stdio) => stdio::run(stdio, file).await,
        #[cfg(feature = "cluster")]
        Command::Worker(worker) => worker::run(&worker, file).await,
        #[cfg(feature = "cluster")]
        Command::Cluster(cluster) => cluster::run(&cluster, file).await,
        Command::Connect(connect) => connect::run(&connect).await,
        Command::Console(console) => console::run(&console).await,
        Command::List(list) => list::run(list, file).await,
        Command::Discover(discover) => discover::run(&discover),
        Command::Describe(describe) => describe::run(describe, file).await,
        Command::Call(call) => call::run(call, logging, file).await,
        Command::Prompt(prompt) => prompt::run(prompt, logging, file).await,
        Command::Read(read) => read::run(read, logging, file).await,
        Command::State(state) => state::run(state, file).await,
        Command::Endpoint(endpoint) => endpoint::run(endpoint, logging, file).await,
        Command::Check(check) => check::run(check, file).await,
        Command::Test(test) => test::run(test, file).await,
        Command::Update(update) => update::run(&update, file).await,
        Command::Lock(lock) => lock::run(lock, file).await,
        Command::Approve(approve) => approve::run(approve, file).await,
        Command::Bundle(bundle) => bundle::run(*bundle, file).await,
        Command::Lsp(lsp) => lsp::run(lsp).await,
        Command::Compile(compile) => compile::run(compile, file).await,
        Command::Catalog(catalog) => catalog::run(&catalog),
        Command::Token(token) => token::run(&token, file),
        Command::Audit(audit) => audit::run(audit, file),
        Command::Config(config) => config::run(config, line, file).await,
        Command::Doctor(doctor) => doctor::run(doctor, file).await,
        Command::Basic(basic) => basic::run(&basic),
        Command::Library(library) => library::run(&library),
        Command::Completions(shell) => completions::run(&shell),
        Command::Man(man) => completions::write_pages(&man),
    }
}

/// Opens the reviewed contents of the sources that a command serves, and returns why others are
/// left out.
fn open_sources(line: &CommandLine, file: &mut File) -> anyhow::Result<Vec<anyhow::Error>> {
    if !line.serves_roots_of_file() || file.sources()?.is_empty() {
        return Ok(Vec::new());
    }
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("start the runtime")?;
    runtime.block_on(file.open_sources(true))
}

/// Reports roots that are not served.
pub(crate) fn report(left_out: Vec<anyhow::Error>) {
    for fault in left_out {
        tracing::error!("failed to {fault:#}");
    }
}

fn audience(command: &Command) -> Audience {
    match command {
        Command::Serve(_) | Command::Dev(_) | Command::Stdio(_) | Command::Connect(_) => {
            Audience::Operator
        }
        #[cfg(feature = "cluster")]
        Command::Worker(_) => Audience::Operator,
        Command::Test(_) => Audience::Tester,
        _ => Audience::Caller,
    }
}

/// One client needs no worker threads; scripts are separate processes in any case.
fn runtime(command: &Command) -> io::Result<Runtime> {
    match command {
        Command::Serve(_) | Command::Dev(_) => Builder::new_multi_thread(),
        #[cfg(feature = "cluster")]
        Command::Worker(_) => Builder::new_multi_thread(),
        _ => Builder::new_current_thread(),
    }
    .enable_all()
    .thread_keep_alive(BLOCKING_IDLE_TIMEOUT)
    .build()
}

/// A server that a command sends its requests to.
struct Requested {
    server: ServerBuilder,
    /// It is a remote server alone: nothing is left if that can't be used.
    is_remote: bool,
}

impl From<ServerBuilder> for Requested {
    fn from(server: ServerBuilder) -> Self {
        Self {
            server,
            is_remote: false,
        }
    }
}

impl Requested {
    /// Looks for one script only.
    fn only(self, name: &str) -> Self {
        Self {
            server: self.server.only(name),
            ..self
        }
    }
}

/// Builds a server of one place, for commands that send a few requests and exit.
async fn server_of(
    place: &OneDirectory,
    command: &ServerCommand,
    enabling: &Enabling,
    limits: Limits,
    file: &File,
) -> anyhow::Result<Requested> {
    let OneDirectory {
        directory,
        remote,
        scanning,
        confinement,
    } = place;
    if let Some(source) = target::remote_source(directory, remote, command)? {
        return Ok(target::server(source));
    }
    let server = server_for_query(file, [directory], enabling, scanning, confinement, limits);
    Ok(server.await?.into())
}

/// Enables the spans of a server, if they are exported.
fn with_spans(server: ServerBuilder, telemetry: &Telemetry) -> ServerBuilder {
    match telemetry.is_exporting() {
        true => server.spans(),
        false => server,
    }
}

/// Runs `work` with a server that has completed its first scan. On an interrupt it asks the
/// scripts to end and lets `work` see how they do.
async fn with_server(
    requested: impl Into<Requested>,
    work: impl AsyncFnOnce(&Server) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    let mut termination = Termination::listen_at_terminal().context("listen for signals")?;
    let Requested { server, is_remote } = requested.into();
    let server = server.start()?;
    let mut work = pin!(async {
        server.catalog_ready().await;
        let unusable = if is_remote {
            unusable_server(&server)
        } else {
            None
        };
        match unusable {
            Some(faults) => Ok(report_unusable(&faults, is_unauthorized(&server.catalog()))),
            None => work(&server).await,
        }
    });
    tokio::select! {
        code = &mut work => {
            if is_remote {
                // A program that was started ends by itself, and leaves nothing behind.
                server.shutdown().await;
            }
            return code;
        }
        () = termination.wait() => {}
    }
    tokio::select! {
        (code, ()) = async { tokio::join!(work, server.shutdown()) } => code.map(|_| ExitCode::Interrupted),
        () = termination.wait() => Ok(ExitCode::Interrupted),
    }
}

/// Describes why a remote server can't be used; entries that alone can't be used are only reported.
fn unusable_server(server: &Server) -> Option<String> {
    let catalog = server.catalog();
    let faults = mcpd_check::faulty_sources(&catalog);
    let is_empty = catalog.tools().is_empty()
        && catalog.prompts().is_empty()
        && catalog.resources().is_empty()
        && catalog.templates().is_empty();
    if is_empty && !faults.is_empty() {
        return Some(faults);
    }
    if !faults.is_empty() {
        note_unusable_parts(&faults);
    }
    None
}

/// Reports which parts of a remote server can't be used.
fn note_unusable_parts(faults: &str) {
    output::note(&format!(
        "not everything of the server can be used:{faults}\n"
    ));
}

/// Returns whether a remote server asks for another token.
fn is_unauthorized(catalog: &Catalog) -> bool {
    catalog.offers().iter().any(|offer| offer.is_unauthorized())
}

/// Reports why the remote server can't be used.
fn report_unusable(faults: &str, is_unauthorized: bool) -> ExitCode {
    output::error(&format!("the server cannot be used:{faults}"));
    match is_unauthorized {
        true => {
            output::note(
                "name the variable with the token by `--token-env`, or log in with `mcpd connect --login`\n",
            );
            ExitCode::Unauthorized
        }
        false => ExitCode::Unreachable,
    }
}

/// Finds the requested tool. If there is none, tells the user why.
fn find_tool(catalog: &Catalog, wanted: &OneTool) -> Option<Arc<Tool>> {
    let found = remarks::find_tool(catalog, &wanted.tool, &wanted.place.directory);
    found.inspect_err(|why| output::error(why)).ok()
}

/// Describes what is wrong with the served catalog, for a reader in another directory.
fn describe_served_faults(server: &Server, file: &File) -> Option<String> {
    let configuration = file.path().and_then(|path| path::absolute(path).ok());
    let check = check_command(server.roots(), configuration.as_deref());
    describe_faults(&server.catalog(), "the catalog is incomplete", &check)
}
