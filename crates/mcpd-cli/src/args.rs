//! Command line as clap types, and the text of the help. What the values mean together is decided
//! in [`mcpd_config`].

use std::ffi::{OsStr, OsString};

use clap::{CommandFactory as _, Parser, Subcommand};
use mcpd_config::options::BESIDE_SCRIPTS;
#[cfg(feature = "cluster")]
pub(crate) use mcpd_config::options::Worker;
pub(crate) use mcpd_config::options::{
    Configuration, Confinement, Enabling, Logging, Roots, RunLimits, Scanning, Serve, Serving,
    ToolNames,
};
use mcpd_config::{Combine, Layers};

mod adopt;
mod audit;
mod basic;
mod bundle;
mod call;
mod catalog;
mod check;
#[cfg(feature = "cluster")]
mod cluster;
mod command_line;
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
mod place;
mod prompt;
mod read;
mod state;
mod stdio;
mod test;
mod token;
mod update;

pub(crate) use self::adopt::{Adopt, Subcommands};
pub(crate) use self::audit::{Audit, AuditAction, AuditGrep, AuditTail};
pub(crate) use self::basic::Basic;
pub(crate) use self::bundle::Bundle;
pub(crate) use self::call::Call;
pub(crate) use self::catalog::{Catalog, CatalogAction};
pub(crate) use self::check::{Check, CheckFormat, Client};
#[cfg(feature = "cluster")]
pub(crate) use self::cluster::{Cluster, ClusterAction, NodeRole};
pub(crate) use self::command_line::CommandLine;
pub(crate) use self::compile::{Compile, CompileFormat};
pub(crate) use self::completions::{CompletionShell, Completions, Man};
pub(crate) use self::config::{Config, ConfigAction, ConfigShow, Denied};
pub(crate) use self::connect::Connect;
pub(crate) use self::console::Console;
pub(crate) use self::describe::Describe;
pub(crate) use self::dev::Dev;
pub(crate) use self::discover::Discover;
pub(crate) use self::doctor::Doctor;
pub(crate) use self::endpoint::Endpoint;
pub(crate) use self::install::{Clients, Install, InstallScope, unknown_client};
pub(crate) use self::library::{Library, LibraryLanguage};
pub(crate) use self::list::List;
pub(crate) use self::lock::{Approve, Lock};
pub(crate) use self::lsp::Lsp;
pub(crate) use self::new::New;
pub(crate) use self::place::{OneDirectory, OneTool, Remote, ServerCommand};
pub(crate) use self::prompt::Prompt;
pub(crate) use self::read::Read;
pub(crate) use self::state::State;
pub(crate) use self::stdio::Stdio;
pub(crate) use self::test::Test;
pub(crate) use self::token::{NewToken, TokenAction, TokenCommand};
pub(crate) use self::update::Update;

/// Serve a directory of executable scripts to MCP clients.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "mcpd",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  mcpd new ~/tools/greet                create a script to begin from
  mcpd install claude-code ~/tools      install the directory in a client
  mcpd stdio ~/tools                    serve over stdio, as MCP clients start it
  mcpd serve ~/tools                    serve over HTTP on 127.0.0.1:43210, with a token
  mcpd call ~/tools greet name=World    call a tool from the shell
  mcpd check ~/tools                    find faults in the scripts
  mcpd test ~/tools                     test the tools with the cases beside them

`mcpd --root-directory DIR` is short for `mcpd serve DIR`.

Exit codes:
  0    success
  1    wrong usage, the command failed, or `check`, `test` or `audit` found faults
  3    a remote server wants a token
  4    a remote server cannot be reached
  5    the tool failed or does not exist
  130  the call was interrupted"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) logging: Logging,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Command {
    /// Create a script to begin from.
    New(New),
    /// Draft the description of a program from its help.
    Adopt(Adopt),
    /// Install a server in a client, such as Claude Desktop, Cursor or VS Code.
    Install(Box<Install>),
    /// Serve over HTTP.
    Serve(Box<Serve>),
    /// Serve over HTTP while you write scripts, and show what happens.
    #[command(after_help = dev::AFTER_HELP)]
    Dev(Box<Dev>),
    /// Serve over stdin and stdout, for clients that start their servers.
    Stdio(Stdio),
    /// Run scripts for the servers of a cluster.
    #[cfg(feature = "cluster")]
    Worker(Box<Worker>),
    /// Show the nodes of a cluster, drain a worker, or print the rights of a node.
    #[cfg(feature = "cluster")]
    Cluster(Cluster),
    /// Connect a client that starts its servers to one over HTTP.
    Connect(Connect),
    /// Print a link that opens the web console of a running server once.
    Console(Console),
    /// List tools, prompts or resources.
    List(List),
    /// List the servers in the configurations of clients.
    Discover(Discover),
    /// Show the description and the arguments of a tool or a prompt.
    Describe(Describe),
    /// Call a tool.
    Call(Call),
    /// Render a prompt.
    Prompt(Prompt),
    /// Read a resource.
    Read(Read),
    /// Show the state of a stateful tool.
    State(State),
    /// Answer one action endpoint request from stdin.
    Endpoint(Endpoint),
    /// Check the descriptions of scripts for faults.
    Check(Check),
    /// Test tools with the cases beside them, and with generated arguments.
    Test(Test),
    /// Review and take changes of sources: git repositories and archives in mcpd.toml.
    Update(Update),
    /// Note every tool as approved, for servers with --locked.
    Lock(Lock),
    /// Show and approve what differs from the lock file of tools.
    Approve(Approve),
    /// Make a file that clients install: scripts, mcpd and settings in one (.mcpb).
    Bundle(Box<Bundle>),
    /// Help an editor with descriptions of scripts and mcpd.toml: a language server.
    Lsp(Lsp),
    /// Print tool definitions for the APIs of models.
    Compile(Compile),
    /// Show or clear the script cache.
    Catalog(Catalog),
    /// Create, list and revoke tokens of HTTP clients.
    Token(TokenCommand),
    /// Read and verify the audit log.
    Audit(Audit),
    /// Check, show and document the configuration, mcpd.toml.
    Config(Config),
    /// Show what this machine can enforce, and which interpreters clients miss.
    Doctor(Doctor),
    /// Run a BASIC program.
    Basic(Basic),
    /// Print a helper library for scripts, one file for each language.
    #[command(name = "lib")]
    Library(Library),
    /// Print what makes a shell complete commands, tools and arguments.
    Completions(Completions),
    /// Write the manual pages.
    Man(Man),
}

/// Variable by which a shell asks for completions.
pub(crate) const COMPLETE: &str = "MCPD_COMPLETE";

/// Definition of all commands, for programs that describe it.
pub(crate) fn definition() -> clap::Command {
    command_line::parser()
}

impl Combine for Args {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        match &mut self.command {
            Command::Serve(serve) => serve.combine(layers),
            Command::Dev(dev) => dev.serve.combine(layers),
            Command::Stdio(stdio) => stdio.combine(layers),
            #[cfg(feature = "cluster")]
            Command::Worker(worker) => worker.combine(layers),
            #[cfg(feature = "cluster")]
            Command::Cluster(cluster) => cluster.combine(layers),
            Command::List(list) => list.combine(layers),
            Command::Describe(describe) => describe.combine(layers),
            Command::Call(call) => call.combine(layers),
            Command::Prompt(prompt) => prompt.combine(layers),
            Command::Read(read) => read.combine(layers),
            Command::State(state) => state.combine(layers),
            Command::Endpoint(endpoint) => endpoint.combine(layers),
            Command::Check(check) => check.combine(layers),
            Command::Test(test) => test.combine(layers),
            Command::Lsp(lsp) => lsp.combine(layers),
            Command::Compile(compile) => compile.combine(layers),
            Command::Token(token) => token.combine(layers),
            Command::Lock(lock) => lock.combine(layers),
            Command::Approve(approve) => approve.combine(layers),
            Command::Config(config) => config.combine(layers),
            Command::Doctor(doctor) => doctor.combine(layers),
            Command::New(_)
            | Command::Adopt(_)
            | Command::Connect(_)
            | Command::Console(_)
            | Command::Install(_)
            | Command::Bundle(_)
            | Command::Discover(_)
            | Command::Catalog(_)
            | Command::Audit(_)
            | Command::Basic(_)
            | Command::Library(_)
            | Command::Completions(_)
            | Command::Update(_)
            | Command::Man(_) => {}
        }
        self.logging.combine(layers);
    }
}

impl Args {
    /// Options of `mcpd serve`, also of the command that shows them.
    pub(crate) fn serve(&self) -> Option<&Serve> {
        match &self.command {
            Command::Serve(serve) => Some(serve),
            Command::Dev(dev) => Some(&dev.serve),
            Command::Config(Config {
                action: ConfigAction::Show(show),
            }) => Some(&show.serve),
            _ => None,
        }
    }
}

impl Command {
    /// The directories of a command that serves some.
    fn roots(&self) -> Option<&Roots> {
        match self {
            Self::Serve(serve) => Some(&serve.serving.roots),
            Self::Dev(dev) => Some(&dev.serve.serving.roots),
            Self::Stdio(stdio) => Some(&stdio.serving.roots),
            #[cfg(feature = "cluster")]
            Self::Worker(worker) => Some(&worker.roots),
            Self::List(list) => Some(&list.roots),
            Self::Endpoint(endpoint) => Some(&endpoint.roots),
            Self::Lock(lock) => Some(&lock.roots),
            _ => None,
        }
    }

    /// Returns whether a command that serves directories also serves built-in tools, or the
    /// scripts of a cluster.
    fn serves_more(&self) -> bool {
        #[cfg(feature = "cluster")]
        if let Self::Serve(serve) = self
            && !serve.clustering.cluster.is_empty()
        {
            return true;
        }
        let enabling = match self {
            Self::Serve(serve) => &serve.serving.enabling,
            Self::Dev(dev) => &dev.serve.serving.enabling,
            Self::Stdio(stdio) => &stdio.serving.enabling,
            Self::List(list) => &list.enabling,
            _ => return false,
        };
        !enabling.enable.is_empty()
    }
}

/// Inserts the command `serve` before `--root-directory` if there is no command.
fn with_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let is_root = |argument: &OsString| {
        let argument = argument.as_encoded_bytes();
        argument == b"--root-directory" || argument.starts_with(b"--root-directory=")
    };
    let Some(root) = arguments.iter().position(is_root) else {
        return arguments;
    };
    let definition = Args::command();
    let is_command = |argument: &OsString| definition.find_subcommand(argument).is_some();
    if !arguments[1..root].iter().any(is_command) {
        arguments.insert(1, OsStr::new("serve").to_owned());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definition_is_consistent() {
        Args::command().debug_assert();
    }

    /// Appends the help of `command` and of its subcommands, as `-h` prints it.
    fn describe(command: &clap::Command, page: &mut String) {
        let name = command.get_bin_name().unwrap_or("mcpd");
        let mut shown = command.clone();
        if name != "mcpd" {
            // Global options are shown once, for `mcpd` itself.
            shown = shown.mut_args(|arg| {
                let is_everywhere =
                    arg.is_global_set() && arg.get_id() != "config" || arg.get_id() == "help";
                let is_hidden = is_everywhere || arg.is_hide_set();
                arg.hide(is_hidden)
            });
        }
        let help = shown.render_help().to_string();
        let help: Vec<_> = help.trim_end().lines().map(str::trim_end).collect();
        *page += &format!("\n## {name}\n\n```text\n{}\n```\n", help.join("\n"));
        let is_own = |below: &&clap::Command| below.get_name() != "help";
        for below in command.get_subcommands().filter(is_own) {
            describe(below, page);
        }
    }

    #[test]
    fn cli_page_equals_the_printed_help() {
        let mut page = "# The command line\n\n\
            The help of each command, as `-h` prints it; `--help` shows more details.\n\
            The options of `mcpd` itself can follow any command.\n\n\
            | exit code | when |\n|---|---|\n\
            | 0 | success |\n\
            | 1 | wrong usage, the command failed, or `check`, `test` or `audit` found faults |\n\
            | 2 | the parameters of a BASIC program are invalid (`mcpd basic`) |\n\
            | 3 | a remote server wants a token |\n\
            | 4 | a remote server cannot be reached |\n\
            | 5 | the tool failed or does not exist |\n\
            | 130 | the call was interrupted |\n"
            .to_owned();
        let mut command = command_line::parser().term_width(100);
        command.build();
        describe(&command, &mut page);
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&file, &page).unwrap();
        }
        let is_same = std::fs::read_to_string(&file).unwrap() == page;
        assert!(
            is_same,
            "docs/cli.md is outdated: run this test with UPDATE_DOCS=1"
        );
    }

    #[test]
    fn root_directory_without_a_command_is_served() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for (given, meant) in [
            ("mcpd --root-directory a", "mcpd serve --root-directory a"),
            (
                "mcpd --port 1 --root-directory=a",
                "mcpd serve --port 1 --root-directory=a",
            ),
            (
                "mcpd list --root-directory a",
                "mcpd list --root-directory a",
            ),
            (
                "mcpd -v stdio --root-directory a",
                "mcpd -v stdio --root-directory a",
            ),
            ("mcpd --help", "mcpd --help"),
        ] {
            assert_eq!(with_command(words(given)), words(meant), "{given}");
        }
    }
}
