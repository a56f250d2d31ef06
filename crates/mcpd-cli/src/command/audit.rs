//! `mcpd audit`: reads the audit log, which servers write.

use std::io::{self, BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use jiff::Zoned;
use mcpd_check::terminal;
use mcpd_config::File;
use mcpd_scriptspec::excerpt;
use mcpd_server::audit::{self, Line, Records, Search, Verified, Witnesses};
use serde_json::{Value, json};

use crate::args::{Audit, AuditAction, AuditGrep, AuditTail};
use crate::exit_code::ExitCode;
use crate::output;

/// Poll interval of a followed log.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Maximum number of characters shown of a field.
const MAX_FIELD_CHARS: usize = 200;

/// Executes the requested action.
pub(crate) fn run(args: Audit, configuration: &File) -> anyhow::Result<ExitCode> {
    let log = match args.file {
        Some(file) => file,
        None => mcpd_config::audit_log(configuration)?,
    };
    let done = match args.action {
        AuditAction::Verify { files, hash, json } => match &files[..] {
            [] => verify(&[log], hash.as_deref(), json),
            files => verify(files, hash.as_deref(), json),
        },
        AuditAction::Tail(tail) => show_last(&log, &tail),
        AuditAction::Grep(grep) => find(&log, &grep),
    };
    match done {
        Err(error) if is_closed(&error) => Ok(ExitCode::Success),
        done => done,
    }
}

/// Returns whether the reader of stdout has closed it.
fn is_closed(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// Adds context to an error of reading `log`.
fn read<T>(log: &Path, read: io::Result<T>) -> anyhow::Result<T> {
    read.map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow!(
            "it does not exist yet; `mcpd serve` and `mcpd stdio` create it with the first call, and `--file` selects another log"
        ),
        _ => error.into(),
    })
    .with_context(|| format!("read the audit log `{}`", log.display()))
}

/// Verifies each log, and compares the runs of several, which a front and a worker have recorded.
fn verify(logs: &[PathBuf], hash: Option<&str>, json: bool) -> anyhow::Result<ExitCode> {
    let all = logs.iter().map(|log| read(log, audit::verify(log)));
    let all: Vec<Verified> = all.collect::<anyhow::Result<_>>()?;
    let mut witnesses = Witnesses::default();
    for log in logs.iter().filter(|_| logs.len() > 1) {
        read(log, witnesses.add(log))?;
    }
    let runs = (logs.len() > 1).then(|| witnesses.compare());
    let mut is_there = hash.map(|_| false);
    for log in logs {
        if let (Some(false), Some(hash)) = (is_there, hash) {
            is_there = Some(has_record(log, hash)?);
        }
    }
    if json {
        let reports = logs.iter().zip(&all);
        let reports = reports.map(|(log, verified)| json!({"log": log, "verified": verified}));
        let mut report = match &runs {
            Some(runs) => json!({"logs": reports.collect::<Value>(), "runs": runs}),
            None => json!(all[0]),
        };
        if let Some(is_there) = is_there {
            report["hash_found"] = is_there.into();
        }
        output::write_json(&report)?;
    } else {
        let mut text = match &runs {
            Some(runs) => {
                logs.iter().zip(&all).map(described).collect::<String>() + &runs.to_string()
            }
            None => all[0].to_string(),
        };
        if is_there == Some(false) {
            text.insert_str(0, "no record has this hash\n");
        }
        output::write_text(&terminal::printable(&text))?;
    }
    let is_sound = all.iter().all(|verified| verified.faults.is_empty())
        && runs.is_none_or(|runs| runs.has_no_contradiction())
        && is_there != Some(false);
    Ok(match is_sound {
        true => ExitCode::Success,
        false => ExitCode::Failure,
    })
}

/// Name of a log, and its verification below.
fn described((log, verified): (&PathBuf, &Verified)) -> String {
    let verified = verified.to_string();
    let lines = verified.lines().map(|line| format!("  {line}\n"));
    format!("{}\n{}", log.display(), lines.collect::<String>())
}

/// Returns whether there is a record with this hash.
fn has_record(log: &Path, hash: &str) -> anyhow::Result<bool> {
    for line in read(log, Records::open(log))? {
        if read(log, line)?.has_hash(hash) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn show_last(log: &Path, tail: &AuditTail) -> anyhow::Result<ExitCode> {
    let mut records = read(log, Records::open_last(log, tail.lines))?;
    print_all(log, &mut records, tail.json)?;
    if tail.follow {
        follow(log, records, tail.json)?;
    }
    Ok(ExitCode::Success)
}

/// Prints new records until the reader closes stdout.
fn follow(log: &Path, mut records: Records, json: bool) -> anyhow::Result<()> {
    loop {
        thread::sleep(POLL_INTERVAL);
        match records.refresh() {
            // The file is missing for a moment while the log is rotated.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            refreshed => read(log, refreshed)?,
        }
        print_all(log, &mut records, json)?;
    }
}

fn print_all(log: &Path, records: &mut Records, json: bool) -> anyhow::Result<()> {
    let mut output = BufWriter::new(io::stdout().lock());
    for line in records {
        print(&mut output, &read(log, line)?, json)?;
    }
    Ok(output.flush()?)
}

fn find(log: &Path, grep: &AuditGrep) -> anyhow::Result<ExitCode> {
    let now = Zoned::now();
    let time = |text: &String| {
        audit::parse_time(text, &now).with_context(|| {
            format!("parse the time `{text}`: expected a time such as `2026-11-22`, `2026-11-22T10:30`, `2026-11-22T10:30:00Z` or `2h`")
        })
    };
    let mut search = Search::default();
    search.text.clone_from(&grep.text);
    search.tool.clone_from(&grep.tool);
    search.principal.clone_from(&grep.principal);
    search.outcome.clone_from(&grep.outcome);
    search.since = grep.since.as_ref().map(time).transpose()?;
    search.until = grep.until.as_ref().map(time).transpose()?;
    let mut code = ExitCode::Failure;
    let mut output = BufWriter::new(io::stdout().lock());
    for line in read(log, search.find(log))? {
        print(&mut output, &read(log, line)?, grep.json)?;
        code = ExitCode::Success;
    }
    output.flush()?;
    Ok(code)
}

fn print(output: &mut impl io::Write, line: &Line, json: bool) -> io::Result<()> {
    if json {
        writeln!(output, "{}", line.text)
    } else {
        writeln!(output, "{}", format_record(line))
    }
}

/// A record on one line. Each field is shortened, and its hidden characters show.
fn format_record(line: &Line) -> String {
    let fields = line.summary().into_iter();
    let fields = fields.map(|field| excerpt(&field.replace('\n', "; "), MAX_FIELD_CHARS));
    fields.collect::<Vec<_>>().join("  ")
}
