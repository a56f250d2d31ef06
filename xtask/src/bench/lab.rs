//! Lab: builds and installs the subjects, and starts them.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context as _;
use tokio::process::Command;

use super::Options;
use super::cluster::Cluster;
use super::lineup::Lineup;
use super::pipes::Pipes;
use super::subject::{Peer, Subject};
use crate::layout;
use crate::request::Request;
use crate::server::{GREET, Home, Server, as_user, build_packages, build_with, or_dev};

/// Measured numbers of concurrent requests.
pub(crate) const CONCURRENCIES: [usize; 3] = [1, 8, 64];

/// Scripts of the tools that every server has.
pub(crate) const SCRIPTS: [(&str, &str); 3] = [
    ("greet", GREET),
    (
        "echo",
        r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Returns its text."}'
  echo '{"text": {"description": "What to return.", "required": true, "value_type": "string"}}' >&2
  exit 0
fi
printf %s "$MCPD_OPT_text"
"#,
    ),
    (
        "blob",
        r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Prints much."}'
  exit 0
fi
exec cat "${0%/*}/../blob"
"#,
    ),
];

/// Built and installed programs.
#[derive(Debug)]
pub(crate) struct Lab {
    pub(crate) options: Options,
    /// Directory of mcpd and the Rust peers.
    programs: PathBuf,
    /// Directory of cargo's, below which peers are installed.
    target: PathBuf,
    others: Vec<Other>,
    /// Home of every server but mcpd over HTTP.
    home: Home,
}

/// Peer in another language.
#[derive(Debug)]
struct Other {
    language: String,
    interpreter: String,
    program: String,
}

/// Transport of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Http,
    Stdio,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "HTTP",
            Self::Stdio => "stdio",
        })
    }
}

impl Lab {
    /// Builds and installs the programs; mcpd of the profile `dist` as its packages have it.
    ///
    /// # Errors
    ///
    /// Fails if mcpd or a Rust peer can't be built.
    pub(crate) fn new(options: Options) -> anyhow::Result<Self> {
        let programs = build_packages(&options.profile, &["mcpd-peers"])?;
        build_mcpd(&options.profile)?;
        let target = programs.parent().context("a directory of cargo's")?;
        let target = target.to_owned();
        let others = install(&target.join("peers"))?;
        let home = Home::new(&SCRIPTS, "")?;
        Ok(Self {
            options,
            programs,
            target,
            others,
            home,
        })
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// Returns the path of mcpd.
    pub(crate) fn program(&self) -> PathBuf {
        self.programs.join("mcpd")
    }

    /// Returns the command of mcpd over stdio with the scripts of `home`.
    pub(crate) fn stdio(&self, home: &Home, arguments: &[&str]) -> Command {
        let mut command = home.command(&self.program(), "stdio");
        command.args(arguments);
        command
    }

    /// Starts mcpd over HTTP with the scripts of `home`.
    ///
    /// # Errors
    ///
    /// Fails if it doesn't start.
    pub(crate) async fn http(&self, home: Home, arguments: &[&str]) -> anyhow::Result<Subject> {
        let server = Server::serve(&self.program(), home, arguments).await?;
        Ok(Subject::Mcpd(server))
    }

    /// Starts mcpd with the scripts of the common tools.
    ///
    /// # Errors
    ///
    /// Fails if it doesn't start.
    pub(crate) async fn mcpd(&self, way: Way, arguments: &[&str]) -> anyhow::Result<Subject> {
        match way {
            Way::Http => self.http(Home::new(&SCRIPTS, "")?, arguments).await,
            Way::Stdio => {
                let mut command = self.stdio(&self.home, arguments);
                Ok(Subject::Stdio(as_user(|| Pipes::start(&mut command))?))
            }
        }
    }

    /// Starts a cluster whose worker has the scripts of `home`, of which there are `tools`.
    ///
    /// # Errors
    ///
    /// Fails if a process doesn't start, or the NATS server can't be installed.
    pub(crate) async fn cluster(&self, home: Home, tools: usize) -> anyhow::Result<Cluster> {
        Cluster::start(&self.program(), &self.target, home, tools).await
    }

    /// Builds mcpd without its feature for clusters, and without an order of functions, and
    /// returns the path of a copy.
    ///
    /// # Errors
    ///
    /// Fails if it can't be built.
    pub(crate) fn build_without_cluster(&self) -> anyhow::Result<PathBuf> {
        let (program, kept) = (self.program(), self.programs.join("mcpd-kept"));
        let copy = self.programs.join("mcpd-without-cluster");
        fs::rename(&program, &kept)?;
        let options = ["--no-default-features"];
        build_with(&self.options.profile, &["mcpd-cli"], &options)?;
        fs::rename(&program, &copy)?;
        fs::rename(&kept, &program)?;
        Ok(copy)
    }

    /// Starts another program of mcpd over HTTP, with the scripts of the common tools.
    ///
    /// # Errors
    ///
    /// Fails if it doesn't start.
    pub(crate) async fn start_other(&self, program: &Path) -> anyhow::Result<Subject> {
        let server = Server::serve(program, Home::new(&SCRIPTS, "")?, &[]).await?;
        Ok(Subject::Mcpd(server))
    }

    /// Starts the peer on rmcp with this number of tools.
    ///
    /// # Errors
    ///
    /// Fails if it doesn't start.
    pub(crate) async fn rmcp(&self, way: Way, tools: usize) -> anyhow::Result<Subject> {
        start(self.rmcp_command(way, tools), way).await
    }

    /// Returns the command of the peer on rmcp.
    pub(crate) fn rmcp_command(&self, way: Way, tools: usize) -> Command {
        let mut command = Command::new(self.programs.join("rmcp-peer"));
        self.name_transport(&mut command, way)
            .arg(tools.to_string());
        command
    }

    /// Starts the peer on hyper, with the result that `subject` gives to this request.
    ///
    /// # Errors
    ///
    /// Fails if it doesn't start.
    pub(crate) async fn hyper(
        &self,
        subject: &mut Subject,
        request: &Request,
    ) -> anyhow::Result<Subject> {
        let answer: serde_json::Value = serde_json::from_slice(&subject.exchange(request).await?)?;
        let file = self.home.path().join("result");
        fs::write(&file, answer["result"].to_string())?;
        let mut command = Command::new(self.programs.join("hyper-peer"));
        command.arg(file);
        start(command, Way::Http).await
    }

    /// Starts the least server of the script that greets.
    ///
    /// # Errors
    ///
    /// Fails if it doesn't start.
    pub(crate) async fn floor(&self, way: Way) -> anyhow::Result<Subject> {
        let mut command = Command::new(self.programs.join("floor-peer"));
        self.name_transport(&mut command, way);
        start(command, way).await
    }

    /// Adds the installed peers in other languages.
    ///
    /// # Errors
    ///
    /// Fails if one doesn't start.
    pub(crate) async fn add_others(&self, lineup: &mut Lineup, way: Way) -> anyhow::Result<()> {
        for Other {
            language,
            interpreter,
            program,
        } in &self.others
        {
            let mut command = Command::new(interpreter);
            self.name_transport(command.arg(program), way);
            lineup.add(format!("{language} {way}"), start(command, way).await?);
        }
        Ok(())
    }

    fn name_transport<'a>(&self, command: &'a mut Command, way: Way) -> &'a mut Command {
        let transport = match way {
            Way::Http => "http",
            Way::Stdio => "stdio",
        };
        command.arg(transport).arg(self.home.scripts())
    }
}

/// Builds mcpd, as its packages have it if the profile is theirs.
///
/// # Errors
///
/// Fails if it can't be built.
fn build_mcpd(profile: &str) -> anyhow::Result<()> {
    match or_dev(profile) {
        "dist" => layout::build(&["--profile", "dist", "--locked"]).map(drop),
        profile => build_packages(profile, &["mcpd-cli"]).map(drop),
    }
}

/// Makes a home with this number of scripts.
///
/// # Errors
///
/// Fails if they can't be written.
pub(crate) fn many(scripts: usize) -> anyhow::Result<Home> {
    let home = Home::new(&[("greet", GREET)], "")?;
    for number in 1..scripts {
        home.add(&format!("greet{number}"), GREET)?;
    }
    Ok(home)
}

/// Starts a peer.
async fn start(mut command: Command, way: Way) -> anyhow::Result<Subject> {
    Ok(match way {
        Way::Http => Subject::Peer(Peer::start(command).await?),
        Way::Stdio => Subject::Stdio(Pipes::start(&mut command)?),
    })
}

/// Installs the peers in other languages. Those that can't be installed are reported and left out.
#[expect(
    clippy::disallowed_methods,
    reason = "it installs, and is no script of a tool's"
)]
fn install(directory: &Path) -> anyhow::Result<Vec<Other>> {
    let setup = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/setup");
    let output = std::process::Command::new("sh")
        .args([setup.as_path(), directory])
        .stderr(Stdio::inherit())
        .output()?;
    let lines = String::from_utf8(output.stdout)?;
    let others = lines.lines().map(|line| {
        let mut words = line.split('\t').map(str::to_owned);
        let mut word = || words.next().context("a word is missing");
        Ok(Other {
            language: word()?,
            interpreter: word()?,
            program: word()?,
        })
    });
    others.collect()
}
