//! Audit log of requests: caller, tool, arguments and outcome of each. The log itself is
//! `mcpd-audit`. Knows nothing of how a request is answered; the request collects its facts on the
//! way, in a `RequestRecord`.

pub use mcpd_audit::{
    Arguments, Audit, FaultKind, Line, LogFault, Mode, Options, Records, Search, Verified,
    WitnessedRuns, Witnesses, files, find_record, parse_time, verify,
};

use crate::observe::ending::CONTRACT;

pub(crate) mod arguments;
pub(crate) mod request_log;

/// Values of `outcome` in addition to the outcomes of the script contract.
const OTHER_OUTCOMES: [&str; 25] = [
    "failed",
    "command-not-executable",
    "command-not-found",
    "killed-by-signal",
    "time-limit",
    "output-limit",
    "memory-limit",
    "cancelled",
    "unknown",
    "input-required",
    "invalid-output",
    "not-redacted",
    "not-approved",
    "unknown-tool",
    "unknown-prompt",
    "denied",
    "no-approval",
    "invalid-arguments",
    "missing-capability",
    "busy",
    "not-started",
    "shutting-down",
    "not-recorded",
    "unreachable",
    "lost",
];

/// All values of `outcome` in a record of a server.
pub fn outcomes() -> impl Iterator<Item = &'static str> {
    CONTRACT.into_iter().chain(OTHER_OUTCOMES)
}

#[cfg(test)]
mod tests {
    use mcpd_audit::{Record, RecordKind};
    use mcpd_scriptspec::is_hidden;
    use serde_json::value::to_raw_value;

    #[test]
    fn record_escapes_what_diagnostics_call_hidden() {
        let hidden: String = (char::MIN..=char::MAX)
            .filter(|char| is_hidden(*char))
            .collect();
        let params = to_raw_value(&hidden).unwrap();
        let encoded = Record::new(RecordKind::Note, "test", &params).encode();
        assert!(!encoded.contains(is_hidden));
    }
}
