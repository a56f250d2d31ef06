//! Requests that run, and the last that ended, with the lines that their scripts print. Bounded in
//! number and in size.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use jiff::Timestamp;
use mcpd_server::RequestEvent;
use mcpd_server::operator::RequestCancel;
use serde_json::{Value, json};

/// Maximum number of running requests that are shown.
const MAX_RUNNING: usize = 500;
/// Number of requests that have ended and are shown with their output.
const MAX_ENDED: usize = 100;
/// Number of requests on the page.
const MAX_SHOWN: usize = 30;
/// Number of lines that are kept of a request.
const MAX_LINES: usize = 100;
/// Length of a line that is kept, in bytes.
const MAX_LINE_BYTES: usize = 500;
/// Size of a result that is kept, in bytes.
const MAX_RESULT_BYTES: usize = 32 * 1024;

/// Live requests of a server.
#[derive(Debug, Default)]
pub(crate) struct LiveRuns {
    requests: Mutex<Requests>,
}

#[derive(Debug, Default)]
struct Requests {
    running: BTreeMap<u64, LiveRun>,
    /// The newest last.
    ended: VecDeque<LiveRun>,
}

#[derive(Debug)]
struct LiveRun {
    number: u64,
    method: &'static str,
    path: Option<String>,
    caller: String,
    client: Option<String>,
    params: Value,
    trace_id: Option<String>,
    time: Timestamp,
    began: Instant,
    lines: VecDeque<String>,
    lines_total: u64,
    cancel: RequestCancel,
    /// An operator has cancelled it.
    is_cancelled: bool,
    ending: Option<Ending>,
}

#[derive(Debug)]
struct Ending {
    milliseconds: u128,
    state: &'static str,
    result: Value,
}

impl LiveRuns {
    /// Accepts an event of a request.
    pub(crate) fn add(&self, number: u64, event: RequestEvent<'_>) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            RequestEvent::Started {
                method,
                path,
                params,
                caller,
                client,
                trace_id,
                cancel,
                ..
            } => {
                if requests.running.len() >= MAX_RUNNING {
                    return;
                }
                let run = LiveRun {
                    number,
                    method,
                    path: path.map(str::to_owned),
                    caller: caller.to_owned(),
                    client: client.map(|client| format!("{} {}", client.name, client.version)),
                    params: serde_json::from_str(params.get()).unwrap_or_default(),
                    trace_id: trace_id.map(str::to_owned),
                    time: Timestamp::now(),
                    began: Instant::now(),
                    lines: VecDeque::new(),
                    lines_total: 0,
                    cancel: cancel.clone(),
                    is_cancelled: false,
                    ending: None,
                };
                requests.running.insert(number, run);
            }
            RequestEvent::Line(line) => {
                if let Some(run) = requests.running.get_mut(&number) {
                    run.add_line(line);
                }
            }
            RequestEvent::Finished { outcome, .. } => {
                let (state, result) = match outcome {
                    Ok(result) => describe_result(result),
                    Err(error) => ("failed", json!({"error": error.message})),
                };
                requests.end(number, state, result);
            }
            RequestEvent::Cancelled => requests.end(number, "cancelled", Value::Null),
            _ => {}
        }
    }

    /// Cancels a running request, and describes it; `None` if it runs no longer.
    pub(crate) fn cancel(&self, number: u64) -> Option<Value> {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let run = requests.running.get_mut(&number)?;
        run.is_cancelled = true;
        run.cancel.cancel();
        Some(json!({
            "method": run.method,
            "tool": run.path,
            "caller": run.caller,
            "client": run.client,
            "began": run.time.to_string(),
        }))
    }

    /// Returns the first requests that `is_shown`, by their callers: the running ones, then the
    /// ended, the newest first. Those whose numbers are in `open` have their output.
    pub(crate) fn shown(&self, is_shown: impl Fn(&str) -> bool, open: &[u64]) -> Vec<Value> {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let all = requests.running.values().rev();
        all.chain(requests.ended.iter().rev())
            .filter(|run| is_shown(&run.caller))
            .take(MAX_SHOWN)
            .map(|run| run.to_json(open.contains(&run.number)))
            .collect()
    }
}

impl Requests {
    fn end(&mut self, number: u64, state: &'static str, result: Value) {
        let Some(mut run) = self.running.remove(&number) else {
            return;
        };
        run.ending = Some(Ending {
            milliseconds: run.began.elapsed().as_millis(),
            state: if run.is_cancelled { "cancelled" } else { state },
            result,
        });
        if self.ended.len() == MAX_ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back(run);
    }
}

impl LiveRun {
    fn add_line(&mut self, line: &[u8]) {
        if self.lines.len() == MAX_LINES {
            self.lines.pop_front();
        }
        let shown = &line[..line.len().min(MAX_LINE_BYTES)];
        let mut text = String::from_utf8_lossy(shown).into_owned();
        if shown.len() < line.len() {
            text.push('…');
        }
        self.lines.push_back(text);
        self.lines_total += 1;
    }

    fn to_json(&self, is_open: bool) -> Value {
        let ending = self.ending.as_ref();
        let milliseconds = ending.map_or(self.began.elapsed().as_millis(), |it| it.milliseconds);
        let mut shown = json!({
            "number": self.number,
            "method": self.method,
            "tool": self.path,
            "caller": self.caller,
            "client": self.client,
            "params": self.params,
            "traceId": self.trace_id,
            "time": self.time.as_millisecond(),
            "milliseconds": milliseconds as u64,
            "linesTotal": self.lines_total,
            "state": ending.map_or("running", |ending| ending.state),
        });
        if is_open {
            shown["lines"] = json!(self.lines);
            shown["result"] = json!(ending.map(|ending| &ending.result));
        }
        shown
    }
}

/// Describes a result: its state, and the result itself unless it is long.
fn describe_result(result: &[u8]) -> (&'static str, Value) {
    if result.len() > MAX_RESULT_BYTES {
        let has_failed = result.windows(14).any(|part| part == b"\"isError\":true");
        let state = if has_failed { "failed" } else { "succeeded" };
        return (state, json!({"bytes": result.len()}));
    }
    let result: Value = serde_json::from_slice(result).unwrap_or_default();
    let state = match result["isError"] == true {
        true => "failed",
        false => "succeeded",
    };
    (state, result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(live: &LiveRuns, number: u64) {
        let run = LiveRun {
            number,
            method: "tools/call",
            path: None,
            caller: "ada".to_owned(),
            client: None,
            params: Value::Null,
            trace_id: None,
            time: Timestamp::now(),
            began: Instant::now(),
            lines: VecDeque::new(),
            lines_total: 0,
            cancel: RequestCancel::default(),
            is_cancelled: false,
            ending: None,
        };
        live.requests.lock().unwrap().running.insert(number, run);
    }

    #[test]
    fn lines_are_bounded_in_number_and_length() {
        let live = LiveRuns::default();
        start(&live, 1);
        for _ in 0..2 * MAX_LINES {
            live.add(1, RequestEvent::Line(&[b'x'; 10_000]));
        }
        let shown = live.shown(|_| true, &[1]);
        assert_eq!(shown[0]["lines"].as_array().unwrap().len(), MAX_LINES);
        assert_eq!(shown[0]["linesTotal"], 2 * MAX_LINES);
        assert!(shown[0]["lines"][0].as_str().unwrap().len() <= MAX_LINE_BYTES + 3);
        live.add(1, RequestEvent::Cancelled);
        assert_eq!(live.shown(|_| true, &[])[0]["state"], "cancelled");
        assert!(live.shown(|caller| caller == "bob", &[]).is_empty());
    }

    #[test]
    fn list_has_only_what_the_page_shows() {
        let live = LiveRuns::default();
        let all = 1..=2 * MAX_SHOWN as u64;
        all.clone().for_each(|number| start(&live, number));
        for number in all {
            live.add(number, RequestEvent::Line(b"a line"));
        }
        let shown = live.shown(|_| true, &[1, 59]);
        assert_eq!(shown.len(), MAX_SHOWN);
        assert_eq!(shown[0]["number"], 60);
        let is_open = |run: &Value| run.get("lines").is_some() && run.get("result").is_some();
        let open: Vec<_> = shown.iter().filter(|run| is_open(run)).collect();
        assert_eq!(open.len(), 1);
        assert_eq!(open[0]["number"], 59);
    }

    #[test]
    fn long_result_is_its_length() {
        let long = format!(
            "{{\"isError\":true,\"x\":\"{}\"}}",
            "y".repeat(MAX_RESULT_BYTES)
        );
        let (state, result) = describe_result(long.as_bytes());
        assert_eq!((state, result), ("failed", json!({"bytes": long.len()})));
        let (state, _) = describe_result(b"{\"content\":[]}");
        assert_eq!(state, "succeeded");
    }
}
