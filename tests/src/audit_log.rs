//! Audit log of many records, as a server that ran for long has left it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use ring::digest::{SHA256, digest};

/// Size at which a file is full, in bytes: the default of mcpd.
const MAX_FILE_SIZE: usize = 16 << 20;
/// Arguments of each record. They make it as long as one of a real call.
const ARGUMENTS: &str = r#"{"text":"Twas brillig, and the slithy toves did gyre and gimble in the wabe: all mimsy were the borogoves, and the mome raths outgrabe.","count":7}"#;

/// Writes a log of calls of `ada` below `state`, in as many files as mcpd would. `tool` names the
/// tool of each record, from 0.
///
/// # Panics
///
/// Panics if the files can't be written.
pub fn write_audit_log(state: &Path, records: usize, tool: impl Fn(usize) -> String) {
    let directory = state.join("mcpd/logs");
    fs::create_dir_all(&directory).expect("the directory can be made");
    let mut files = vec![String::new()];
    let mut previous = "0".repeat(64);
    for number in 0..records {
        let body = format!(
            "{{\"timestamp\":\"2026-11-01T00:00:00.000Z\",\"method\":\"tools/call\",\
             \"params\":{{\"name\":\"count\",\"arguments\":{ARGUMENTS}}},\"duration_ms\":5,\
             \"success\":true,\"error\":null,\"event\":\"end\",\"principal\":\"ada\",\
             \"tool\":\"{}\",\"outcome\":\"success\",\"pid\":1,\"seq\":{},\"prev\":\"{previous}\"",
            tool(number),
            number + 1,
        );
        previous.clear();
        for byte in digest(&SHA256, body.as_bytes()).as_ref() {
            write!(previous, "{byte:02x}").expect("a string takes everything");
        }
        if files.last().is_some_and(|file| file.len() >= MAX_FILE_SIZE) {
            files.push(String::new());
        }
        let file = files.last_mut().expect("there is one");
        writeln!(file, "{body},\"hash\":\"{previous}\"}}").expect("a string takes everything");
    }
    for (number, file) in files.iter().rev().enumerate() {
        let name = match number {
            0 => "mcp-audit.jsonl".to_owned(),
            number => format!("mcp-audit.jsonl.{number}"),
        };
        fs::write(directory.join(name), file).expect("the file can be written");
    }
}
