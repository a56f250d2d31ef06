//! `mcpd audit`: reads the audit log, which servers write.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use jiff::{Span, Timestamp, Zoned, civil};
use mcpd_config::File;
use mcpd_scriptspec::excerpt;
use mcpd_server::audit::{self, Line, Records, Verified};
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
        AuditAction::Verify { hash, json } => verify(&log, hash.as_deref(), json),
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

fn verify(log: &Path, hash: Option<&str>, json: bool) -> anyhow::Result<ExitCode> {
    let verified = read(log, audit::verify(log))?;
    let is_there = match hash {
        Some(hash) => Some(has_record(log, hash)?),
        None => None,
    };
    if json {
        output::write_json(&report(&verified, is_there))?;
    } else {
        output::write(describe_verification(&verified, is_there).as_bytes())?;
    }
    if verified.faults.is_empty() && is_there != Some(false) {
        Ok(ExitCode::Success)
    } else {
        Ok(ExitCode::Failure)
    }
}

/// Returns whether there is a record with this hash.
fn has_record(log: &Path, hash: &str) -> anyhow::Result<bool> {
    for line in read(log, Records::open(log))? {
        if parse_record(&read(log, line)?)["hash"] == hash {
            return Ok(true);
        }
    }
    Ok(false)
}

fn describe_verification(verified: &Verified, is_there: Option<bool>) -> String {
    let mut text = String::new();
    for fault in &verified.faults {
        text += &format!("{}:{}: {}\n", fault.file.display(), fault.line, fault.kind);
    }
    if is_there == Some(false) {
        text += "no record has this hash\n";
    }
    text += &match verified.records {
        0 => "no records\n".to_owned(),
        records => {
            let Verified {
                first, last, hash, ..
            } = verified;
            format!("{records} records, {first} to {last}\nhash of the last record: {hash}\n")
        }
    };
    text
}

fn report(verified: &Verified, is_there: Option<bool>) -> Value {
    let faults = verified.faults.iter().map(
        |fault| json!({"file": fault.file, "line": fault.line, "fault": fault.kind.to_string()}),
    );
    let mut report = json!({
        "records": verified.records,
        "first": verified.first,
        "last": verified.last,
        "hash": verified.hash,
        "faults": faults.collect::<Vec<_>>(),
    });
    if let Some(is_there) = is_there {
        report["hash_found"] = is_there.into();
    }
    report
}

fn show_last(log: &Path, tail: &AuditTail) -> anyhow::Result<ExitCode> {
    let mut records = read(log, Records::open(log))?;
    let mut last = VecDeque::new();
    for line in &mut records {
        last.push_back(read(log, line)?);
        if last.len() > tail.lines {
            last.pop_front();
        }
    }
    last.iter().try_for_each(|line| print(line, tail.json))?;
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
        for line in &mut records {
            print(&read(log, line)?, json)?;
        }
    }
}

fn find(log: &Path, grep: &AuditGrep) -> anyhow::Result<ExitCode> {
    let now = Zoned::now();
    let time = |text: &Option<String>| {
        text.as_deref()
            .map(|text| parse_time(text, &now))
            .transpose()
    };
    let (since, until) = (time(&grep.since)?, time(&grep.until)?);
    let mut code = ExitCode::Failure;
    for line in read(log, Records::open(log))? {
        let line = read(log, line)?;
        if is_wanted(&line, grep, since, until) {
            print(&line, grep.json)?;
            code = ExitCode::Success;
        }
    }
    Ok(code)
}

fn is_wanted(
    line: &Line,
    grep: &AuditGrep,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
) -> bool {
    let record = parse_record(line);
    let is = |field: &Value, wanted: &Option<String>| {
        wanted.as_deref().is_none_or(|wanted| field == wanted)
    };
    let time = record["timestamp"]
        .as_str()
        .and_then(|time| time.parse().ok());
    (is(&record["tool"], &grep.tool) || is(&record["params"]["name"], &grep.tool))
        && is(&record["principal"], &grep.principal)
        && is(&record["outcome"], &grep.outcome)
        && since.is_none_or(|since| time.is_some_and(|time: Timestamp| time >= since))
        && until.is_none_or(|until| time.is_some_and(|time: Timestamp| time < until))
        && grep
            .text
            .as_deref()
            .is_none_or(|text| line.text.contains(text) || contains_text(&record, text))
}

/// Returns whether `text` occurs in one of the strings of `value`, compared unescaped.
fn contains_text(value: &Value, text: &str) -> bool {
    match value {
        Value::String(string) => string.contains(text),
        Value::Array(values) => values.iter().any(|value| contains_text(value, text)),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| name.contains(text) || contains_text(value, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Parses a time: with a time zone, in the time zone of this machine, or as an age.
fn parse_time(text: &str, now: &Zoned) -> anyhow::Result<Timestamp> {
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    if let Ok(time) = text.parse::<civil::DateTime>() {
        return Ok(time.to_zoned(now.time_zone().clone())?.timestamp());
    }
    let ago = text.parse::<Span>().ok();
    let time = ago.and_then(|ago| now.checked_sub(ago).ok());
    let time = time.with_context(|| {
        format!("parse the time `{text}`: expected a time such as `2026-11-22`, `2026-11-22T10:30`, `2026-11-22T10:30:00Z` or `2h`")
    })?;
    Ok(time.timestamp())
}

fn parse_record(line: &Line) -> Value {
    serde_json::from_str(&line.text).unwrap_or_default()
}

fn print(line: &Line, json: bool) -> io::Result<()> {
    let shown = if json {
        line.text.clone()
    } else {
        format_record(line)
    };
    writeln!(io::stdout(), "{shown}")
}

/// A record on one line: time, client, request, outcome, duration and error.
fn format_record(line: &Line) -> String {
    let record = parse_record(line);
    let text = |value: &Value| {
        Some(excerpt(
            &value.as_str()?.replace('\n', "; "),
            MAX_FIELD_CHARS,
        ))
    };
    let Some(timestamp) = text(&record["timestamp"]) else {
        return excerpt(&line.text, MAX_FIELD_CHARS);
    };
    let params = &record["params"];
    let named = [&record["tool"], &params["name"], &params["uri"]];
    let what = named.into_iter().find_map(text);
    let (outcome, duration) = match text(&record["event"]).as_deref() {
        Some("end") => (
            text(&record["outcome"]),
            record["duration_ms"].as_u64().map(|ms| format!("{ms} ms")),
        ),
        Some("note") => (Some(excerpt(&params.to_string(), MAX_FIELD_CHARS)), None),
        event => (event.map(str::to_owned), None),
    };
    let error = duration.as_ref().and_then(|_| text(&record["error"]));
    let error = error.filter(|error| Some(error) != outcome.as_ref());
    let parts = [
        Some(timestamp),
        text(&record["principal"]),
        text(&record["method"]),
        what,
        outcome,
        duration,
        error,
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let now: Zoned = "2026-11-22T12:00:00+01:00[Europe/Berlin]".parse().unwrap();
        let expected = expected.map(|time| time.parse().unwrap());
        assert_eq!(parse_time(text, &now).ok(), expected, "{text}");
    }

    #[test]
    fn time_is_parsed_in_common_forms() {
        check("2026-11-22T10:30:00Z", Some("2026-11-22T10:30:00Z"));
        check(
            "2026-11-22T10:30:00.5+02:00",
            Some("2026-11-22T08:30:00.5Z"),
        );
        check("2026-11-22", Some("2026-11-21T23:00:00Z"));
        check("2026-11-22 10:30", Some("2026-11-22T09:30:00Z"));
        check("2h", Some("2026-11-22T09:00:00Z"));
        check("1 day 30m", Some("2026-11-21T10:30:00Z"));
        check("yesterday", None);
        check("", None);
    }
}
