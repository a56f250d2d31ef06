//! `mcpd test`: the cases beside the scripts, and generated arguments, for authors and for CI.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::thread::available_parallelism;
use std::time::Duration;

use anyhow::{Context as _, bail};
use mcpd_check::render::base_directory;
use mcpd_config::{File, server_for_test};
use mcpd_exec::Executor;
use mcpd_server::Server;
use mcpd_service::signals::Termination;
use mcpd_testcase::{Options, Plan, Report, SUFFIX, Servers, render};

use super::check;
use crate::args::{Confinement, RunLimits, Test};
use crate::exit_code::ExitCode;
use crate::output;

/// Default time limit of a generated call.
const GENERATED_CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the tests, and prints their report.
pub(crate) async fn run(args: Test, file: &File) -> anyhow::Result<ExitCode> {
    let paths = args.paths.iter().map(|path| script_path(path));
    let paths = paths.collect::<anyhow::Result<Vec<_>>>()?;
    let usual = |interpreters| interpreters;
    let examined = check::examine(&paths, &args.confinement, file, false, usual).await?;
    let Some(catalog) = examined else {
        return Ok(ExitCode::Interrupted);
    };
    let plan = Plan::of(&catalog);
    let has_cases = !plan.faults.is_empty() || plan.suites.iter().any(|suite| suite.has_cases());
    if !has_cases && args.generate == 0 {
        bail!(
            "test the scripts: there are no cases; write them into files such as `NAME{SUFFIX}` beside the scripts, or record one with `mcpd call --record`"
        );
    }
    let servers = TestServers {
        file,
        confinement: &args.confinement,
        limits: &args.limits,
        executor: mcpd_config::executor(None, args.confinement.cgroup.as_deref())?,
    };
    let options = options(&args);
    let mut termination = Termination::listen_at_terminal().context("listen for signals")?;
    let testing = pin!(mcpd_testcase::run(plan, &servers, &options));
    let report = tokio::select! {
        report = testing => report,
        () = termination.wait() => return Ok(ExitCode::Interrupted),
    };
    print(&report, &args)?;
    Ok(match report.is_success() {
        true => ExitCode::Success,
        false => ExitCode::Failure,
    })
}

/// Path of the script, where the path of its cases is given.
fn script_path(path: &Path) -> anyhow::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let path = match name.strip_suffix(SUFFIX) {
        Some(script) if path.is_file() => path.with_file_name(script),
        _ => path.to_owned(),
    };
    if !path.exists() {
        bail!("test `{}`: there is no such file", path.display());
    }
    Ok(path)
}

fn options(args: &Test) -> Options {
    let mut options = Options::default();
    let processors = || available_parallelism().unwrap_or(NonZeroUsize::MIN);
    options.jobs = args.jobs.unwrap_or_else(processors);
    options.filter.clone_from(&args.filter);
    options.accept = args.accept;
    options.generate = args.generate;
    options.seed = args.seed;
    let limit = args.limits.timeout.map(|limit| limit.0);
    options.generated_timeout = limit.unwrap_or(GENERATED_CALL_TIMEOUT);
    options
}

fn print(report: &Report, args: &Test) -> anyhow::Result<()> {
    let here = base_directory();
    if let Some(path) = &args.junit {
        fs::write(path, render::junit(report, &here))
            .with_context(|| format!("write `{}`", path.display()))?;
    }
    if args.json {
        return output::write_json(report);
    }
    let text = render::human(report, &here);
    if !args.github {
        return output::write(text.as_bytes());
    }
    // What scripts printed could be commands of the workflow; no script knows the word.
    let mark = RandomState::new().hash_one(&text);
    let annotations = render::github(report, &here);
    let text = format!("::stop-commands::{mark:x}\n{text}::{mark:x}::\n{annotations}");
    output::write(text.as_bytes())
}

/// Servers with the settings of the command line and the configuration.
struct TestServers<'a> {
    file: &'a File,
    confinement: &'a Confinement,
    limits: &'a RunLimits,
    executor: Executor,
}

impl Servers for TestServers<'_> {
    async fn start(
        &self,
        root: &Path,
        tool: &str,
        variables: &BTreeMap<String, String>,
    ) -> Result<Server, String> {
        let limits = mcpd_config::limits(self.limits);
        let server = server_for_test(
            self.file,
            root,
            tool,
            self.confinement,
            limits,
            &self.executor,
            variables,
        );
        let server = server.await.map_err(|error| format!("{error:#}"))?;
        server.start().map_err(|error| error.to_string())
    }
}
