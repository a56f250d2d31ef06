//! Layout of the program file: functions that a server runs lie together, and the rest behind them.
//!
//! The kernel maps a file in pieces of 64 KiB around each touched page. With functions in the order
//! of their crates, what a server runs is all over the file, and most of it is resident. Names of
//! functions change with the compiler and the versions of crates, so their order is found anew for
//! each build:
//!
//! ```text
//! build with symbols ──► serve under callgrind ──► functions that ran ──► link in this order
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use serde_json::Value;
use tokio::runtime::Builder;
use tokio::time::sleep;

use crate::bench::lab::SCRIPTS;
use crate::bench::pipes::Pipes;
use crate::client::Client;
use crate::report::line;
use crate::request::Request;
use crate::server::{Home, Server, as_user};

/// Tells whether rustc links programs for this machine with LLD, which can be given an order.
const IS_LINKED_WITH_LLD: bool = cfg!(all(target_arch = "x86_64", target_env = "gnu"));

/// Time in which a server scans for a second time and returns memory, under callgrind. Without the
/// few hundred functions that it runs for that, twice as many pages are resident.
const SETTLING_TIME: Duration = Duration::from_secs(10);

/// Prefix of the names of profiles.
const PREFIX: &str = "callgrind.";

/// Builds mcpd for this machine with these arguments of cargo, and returns its path. Its functions
/// are in order if the linker can do that and valgrind is installed.
///
/// # Errors
///
/// Fails if mcpd can't be built, or the build doesn't serve.
pub(crate) fn build(arguments: &[&str]) -> anyhow::Result<PathBuf> {
    let build_without_order = |reason: &str| {
        line(format_args!(
            "*** FUNCTIONS NOT IN ORDER, SO THAT A SERVER TAKES MORE MEMORY: {reason}"
        ));
        build_with("build", arguments, &[])
    };
    if !IS_LINKED_WITH_LLD || !is_valgrind_installed() {
        return build_without_order("it takes valgrind, on x86_64 with glibc");
    }
    let program = build_with("rustc", arguments, &["-C", "strip=none"])?;
    let functions = match functions_run(&program) {
        Ok(functions) => functions,
        Err(error) => return build_without_order(&format!("{error:#}, under valgrind")),
    };
    line(format_args!("{} functions in order", functions.len()));
    let order = program.with_file_name("functions.txt");
    fs::write(&order, functions.join("\n"))?;
    let order = format!("link-arg=-Wl,--symbol-ordering-file={}", order.display());
    let quiet = "link-arg=-Wl,--no-warn-symbol-ordering";
    build_with("rustc", arguments, &["-C", &order, "-C", quiet])
}

/// Builds mcpd by a subcommand of cargo with these arguments, and with some for the compiler if
/// the subcommand passes them on. Returns the path of the program.
///
/// # Errors
///
/// Fails if mcpd can't be built.
#[expect(clippy::disallowed_methods, reason = "cargo is no script")]
pub(crate) fn build_with(
    subcommand: &str,
    arguments: &[&str],
    rustc: &[&str],
) -> anyhow::Result<PathBuf> {
    let mut cargo = Command::new("cargo");
    cargo
        .args([subcommand, "--package", "mcpd-cli", "--bin", "mcpd"])
        .args(arguments)
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .stderr(Stdio::inherit());
    if !rustc.is_empty() {
        cargo.arg("--").args(rustc);
    }
    let output = cargo.output()?;
    ensure!(output.status.success(), "mcpd can't be built");
    let lines = output.stdout.split(|byte| *byte == b'\n');
    let mut messages = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let program = messages.find_map(|message| {
        let is_it = message["target"]["name"] == "mcpd" && message["executable"].is_string();
        is_it.then(|| message["executable"].as_str().map(PathBuf::from))?
    });
    program.context("cargo doesn't say where the binary is")
}

#[expect(clippy::disallowed_methods, reason = "valgrind is no script")]
fn is_valgrind_installed() -> bool {
    let mut valgrind = Command::new("valgrind");
    valgrind.arg("--version").stdout(Stdio::null());
    valgrind.status().is_ok_and(|status| status.success())
}

/// Returns the names of the functions that `program` runs as a server, over stdio and HTTP.
fn functions_run(program: &Path) -> anyhow::Result<Vec<String>> {
    let home = Home::new(&SCRIPTS, "")?;
    // Servers may write there.
    let profiles = home.path().join("tmp");
    let traced = home.path().join("mcpd");
    fs::write(&traced, wrapper(program, &profiles))?;
    fs::set_permissions(&traced, fs::Permissions::from_mode(0o755))?;
    // A caller may have a runtime already.
    let served = thread::scope(|scope| {
        let client = scope.spawn(|| {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(serve(&traced, &home))
        });
        client.join()
    });
    served.map_err(|_| anyhow!("the client panicked"))??;
    let mut functions = BTreeSet::new();
    for profile in fs::read_dir(profiles)? {
        let profile = profile?;
        if profile
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes())
        {
            let profile = fs::read_to_string(profile.path())?;
            add_functions(&mut functions, &profile, &program.display().to_string());
        }
    }
    ensure!(!functions.is_empty(), "callgrind saw no function of mcpd");
    Ok(functions.into_iter().collect())
}

/// Returns a script that runs `program` under callgrind.
fn wrapper(program: &Path, profiles: &Path) -> String {
    let (program, profiles) = (program.display(), profiles.display());
    format!(
        "#!/bin/sh\nexec valgrind --tool=callgrind --log-file=/dev/null --demangle=no \
         --compress-strings=no --callgrind-out-file='{profiles}/{PREFIX}%p' '{program}' \"$@\"\n"
    )
}

/// Lists tools and calls one, over stdio and HTTP.
async fn serve(program: &Path, home: &Home) -> anyhow::Result<()> {
    let requests = [Request::list(SCRIPTS.len()), Request::greet()];
    let mut command = home.command(program, "stdio");
    let mut pipes = as_user(|| Pipes::start(&mut command))?;
    for (number, request) in (1..).zip(&requests) {
        pipes.exchange(request, number).await?;
    }
    sleep(SETTLING_TIME).await;
    pipes.stop().await?;
    let server = Server::start(program, &SCRIPTS, "").await?;
    let mut client = Client::connect(server.address(), server.token()).await?;
    for (number, request) in (1..).zip(&requests) {
        client.exchange(request, number).await?;
    }
    sleep(SETTLING_TIME).await;
    drop(client);
    server.stop().await
}

/// Adds the functions of `program` that have run to `functions`.
fn add_functions(functions: &mut BTreeSet<String>, profile: &str, program: &str) {
    let mut is_ours = false;
    for line in profile.lines() {
        if let Some(object) = line.strip_prefix("ob=") {
            is_ours = object == program;
        } else if let (true, Some(name)) = (is_ours, line.strip_prefix("fn=")) {
            // A call of a function from itself has a number.
            let name = name.split('\'').next().unwrap_or(name);
            functions.insert(name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_those_of_the_program() {
        let profile = "\
ob=/lib/libc.so.6
fl=???
fn=malloc
0 5
ob=/bin/mcpd
fn=_ZN4mcpd4main17h0123456789abcdefE
0 7
cob=/lib/libc.so.6
cfn=free
calls=1 0
0 3
fn=_ZN4mcpd4main17h0123456789abcdefE'2
0 1
ob=/lib/libc.so.6
fn=free
0 1
";
        let mut functions = BTreeSet::new();
        add_functions(&mut functions, profile, "/bin/mcpd");
        let functions: Vec<_> = functions.into_iter().collect();
        assert_eq!(functions, ["_ZN4mcpd4main17h0123456789abcdefE"]);
    }
}
