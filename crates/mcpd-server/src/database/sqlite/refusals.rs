//! Table of refusals: files that were probed and described nothing.

use std::sync::Arc;

use bytes::Bytes;
use mcpd_scriptspec::Diagnostic;
use rusqlite::{Connection, Row, params};

use super::definitions::{COMPILER, CacheEntry};
use crate::database::rows::{HelpText, ProbeRefusal, ProbeResult};

/// Refusal to store.
#[derive(Debug)]
pub(crate) struct StoredRefusal {
    /// Path of the file below its root.
    pub(crate) name: String,
    pub(crate) entry: CacheEntry,
}

/// Reads the refusals under `namespace`, with the names of their files.
pub(super) fn read(
    connection: &Connection,
    namespace: &str,
) -> rusqlite::Result<Vec<(String, CacheEntry)>> {
    let mut statement = connection.prepare(
        "SELECT name, fingerprint, conditions, shebang, kind, reason, code, message, help, time_outs, stdout, stderr
         FROM refusals WHERE namespace = ?1 AND compiler = ?2",
    )?;
    let rows = statement.query_map([namespace, COMPILER], |row| {
        Ok((row.get(0)?, read_entry(row)?))
    })?;
    rows.collect()
}

fn read_entry(row: &Row<'_>) -> rusqlite::Result<CacheEntry> {
    let kind: String = row.get(4)?;
    let mut help = HelpText::default();
    let refusal = match &*kind {
        "no-tool" => Some(ProbeRefusal::NotATool(row.get(5)?)),
        "fault" => fault(row)?.map(ProbeRefusal::Fault),
        "time-out" => {
            let time_outs = row.get(9)?;
            fault(row)?.map(|fault| ProbeRefusal::TimeOut(fault, time_outs))
        }
        _ => {
            help.stdout = Bytes::from(row.get::<_, Vec<u8>>(10)?);
            help.stderr = Bytes::from(row.get::<_, Vec<u8>>(11)?);
            Some(ProbeRefusal::Text)
        }
    };
    let shebang = row.get(3)?;
    // An unreadable record is dropped, and the file probed again.
    let answer = refusal.map(|refusal| ProbeResult {
        help,
        shebang,
        refusal: Some(refusal),
    });
    let conditions: String = row.get(2)?;
    Ok(CacheEntry {
        fingerprint: row.get(1)?,
        conditions: Arc::from(conditions),
        answer,
    })
}

fn fault(row: &Row<'_>) -> rusqlite::Result<Option<Diagnostic>> {
    let code: String = row.get(6)?;
    let message: String = row.get(7)?;
    let help: Option<String> = row.get(8)?;
    Ok(Diagnostic::restore_probe_fault(&code, message, help))
}

/// Stores a refusal in place of the earlier knowledge of its file.
pub(super) fn insert(
    connection: &Connection,
    namespace: &str,
    refused: &StoredRefusal,
) -> rusqlite::Result<()> {
    let CacheEntry {
        fingerprint,
        conditions,
        answer: Some(answer),
    } = &refused.entry
    else {
        return Ok(());
    };
    let (mut reason, mut fault, mut count, mut text) = (None, None, 0, None);
    let kind = match &answer.refusal {
        Some(ProbeRefusal::NotATool(why)) => {
            reason = Some(why);
            "no-tool"
        }
        Some(ProbeRefusal::Fault(diagnostic)) => {
            fault = Some(diagnostic);
            "fault"
        }
        Some(ProbeRefusal::TimeOut(diagnostic, time_outs)) => {
            (fault, count) = (Some(diagnostic), *time_outs);
            "time-out"
        }
        Some(ProbeRefusal::Text) => {
            text = Some(&answer.help);
            "text"
        }
        None => return Ok(()),
    };
    connection
        .prepare_cached("DELETE FROM definitions WHERE namespace = ?1 AND name = ?2")?
        .execute([namespace, &refused.name])?;
    let mut statement = connection.prepare_cached(
        "INSERT OR REPLACE INTO refusals
         (namespace, name, compiler, fingerprint, conditions, shebang, kind, reason, code, message, help, time_outs,
          stdout, stderr)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?;
    statement.execute(params![
        namespace,
        refused.name,
        COMPILER,
        fingerprint,
        &**conditions,
        answer.shebang,
        kind,
        reason,
        fault.map(|fault| fault.code.as_str()),
        fault.map(|fault| &fault.message),
        fault.and_then(|fault| fault.help.as_ref()),
        count,
        text.map(|text| text.stdout.to_vec()),
        text.map(|text| text.stderr.to_vec()),
    ])?;
    Ok(())
}
