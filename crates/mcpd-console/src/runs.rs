//! Index of the audit log: a few fields of each request and the offset of its record, in memory, so
//! that pages and filters of 100,000 runs take milliseconds, and a record is one read. The records
//! themselves stay in the log.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use mcpd_server::audit::{Line, Records, find_record};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Number of runs in the index: the newest.
const MAX_RUNS: usize = 200_000;
/// Number of different texts that are shared.
const MAX_SHARED_TEXTS: usize = 20_000;
/// Length of a text in the index, in characters.
const MAX_TEXT_CHARS: usize = 200;
/// Length of the id of a run: a prefix of the hash of its record.
const ID_CHARS: usize = 32;

/// Index of an audit log, which follows it.
#[derive(Debug, Default)]
pub(crate) struct RunIndex {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    file: PathBuf,
    records: Option<Records>,
    /// The newest last.
    runs: VecDeque<Run>,
    texts: BTreeSet<Arc<str>>,
    /// Number of runs by tool, by caller and by outcome.
    counts: [Counts; 3],
    /// Number of runs that are no longer in the index.
    dropped: u64,
}

/// Number of runs by a text.
type Counts = BTreeMap<Arc<str>, u32>;

#[derive(Debug)]
struct Run {
    id: Box<str>,
    /// Offset of the record in its file, in bytes.
    offset: u64,
    /// As in the record: such texts are in the order of time.
    time: Box<str>,
    milliseconds: u64,
    is_success: bool,
    method: Arc<str>,
    tool: Arc<str>,
    caller: Arc<str>,
    client: Arc<str>,
    outcome: Arc<str>,
}

/// Fields of a record that the index has.
#[derive(Deserialize)]
struct Fields<'a> {
    timestamp: &'a str,
    event: &'a str,
    hash: &'a str,
    #[serde(default)]
    duration_ms: u64,
    #[serde(default)]
    success: bool,
    #[serde(borrow, default)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    tool: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    principal: Cow<'a, str>,
    #[serde(borrow)]
    client: Option<Cow<'a, str>>,
    #[serde(borrow)]
    outcome: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// Name of a tool or a resource that is unknown to the server.
#[derive(Default, Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    uri: Option<Cow<'a, str>>,
}

/// Filter of runs. Each criterion that is set has to match.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    pub(crate) tool: Option<String>,
    pub(crate) caller: Option<String>,
    /// Outcome, or `failed` for all but successes.
    pub(crate) outcome: Option<String>,
    /// Times in the form of records.
    pub(crate) since: Option<String>,
    pub(crate) until: Option<String>,
    /// Caller whose runs alone may be seen.
    pub(crate) only: Option<String>,
}

/// Page of runs: the newest that match, after the first `skip`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page {
    pub(crate) skip: usize,
    pub(crate) limit: usize,
}

impl RunIndex {
    /// Reads what is new in the log in `file`, so that a later search has little to read.
    pub(crate) fn warm_up(&self, file: &Path) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // A log that can't be read is reported by the search.
        state.follow(file).ok();
    }

    /// Reads what is new in the log in `file`, and returns a page of the runs that match.
    ///
    /// # Errors
    ///
    /// The log can't be read. One that does not exist yet is empty.
    pub(crate) fn search(&self, file: &Path, filter: &Filter, page: Page) -> io::Result<Value> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.follow(file)?;
        let mut total = 0usize;
        let mut runs = Vec::new();
        for run in state.runs.iter().rev().filter(|run| filter.matches(run)) {
            if total >= page.skip && runs.len() < page.limit {
                runs.push(run.to_json());
            }
            total += 1;
        }
        let [tools, callers, outcomes] = match filter.only.as_deref() {
            None => state.counts.each_ref().map(most_frequent),
            Some(only) => {
                let own = state.runs.iter().filter(|run| *run.caller == *only);
                let mut counts = <[Counts; 3]>::default();
                own.for_each(|run| run.count(&mut counts));
                counts.each_ref().map(most_frequent)
            }
        };
        let texts = |texts: Vec<Arc<str>>| texts.iter().map(|text| json!(text)).collect::<Value>();
        Ok(json!({
            "runs": runs,
            "total": total,
            "dropped": state.dropped,
            "tools": texts(tools),
            "callers": texts(callers),
            "outcomes": texts(outcomes),
        }))
    }

    /// Returns the record of a run in the log in `file`, with one read of each of its files; `None`
    /// if the run is not in the index, or its file is no longer kept.
    ///
    /// # Errors
    ///
    /// The log can't be read.
    pub(crate) fn find_record(&self, file: &Path, id: &str) -> io::Result<Option<Value>> {
        let offset = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.follow(file)?;
            let mut runs = state.runs.iter().rev();
            runs.find(|run| *run.id == *id).map(|run| run.offset)
        };
        let Some(offset) = offset else {
            return Ok(None);
        };
        let record = find_record(file, offset, id)?;
        Ok(record.and_then(|record| serde_json::from_str(&record).ok()))
    }
}

/// Returns the most frequent texts, in their order.
fn most_frequent(counts: &Counts) -> Vec<Arc<str>> {
    const MAX_VALUES: usize = 2000;
    let counted = counts.iter().filter(|(text, _)| !text.is_empty());
    let mut counted: Vec<_> = counted.collect();
    counted.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    counted.truncate(MAX_VALUES);
    let texts = counted.into_iter().map(|(text, _)| Arc::clone(text));
    let mut texts: Vec<_> = texts.collect();
    texts.sort_unstable();
    texts
}

impl State {
    /// Reads the new records of the log.
    fn follow(&mut self, file: &Path) -> io::Result<()> {
        if self.file != file {
            *self = Self {
                file: file.to_owned(),
                ..Self::default()
            };
        }
        let opened = match self.records.take() {
            Some(mut records) => records.refresh().map(|()| records),
            None => Records::open(file),
        };
        let mut records = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            records => records?,
        };
        for line in &mut records {
            self.add(&line?);
        }
        self.records = Some(records);
        Ok(())
    }

    fn add(&mut self, line: &Line) {
        let Ok(fields) = serde_json::from_str::<Fields<'_>>(&line.text) else {
            return;
        };
        if fields.event != "end" || fields.hash.len() < ID_CHARS {
            return;
        }
        let named = fields.tool.or_else(|| {
            let named: Named<'_> = serde_json::from_str(fields.params?.get()).ok()?;
            named.name.or(named.uri)
        });
        let run = Run {
            id: fields.hash[..ID_CHARS].into(),
            offset: line.offset,
            time: fields.timestamp.into(),
            milliseconds: fields.duration_ms,
            is_success: fields.success,
            method: self.share(&fields.method),
            tool: self.share(&named.unwrap_or_default()),
            caller: self.share(&fields.principal),
            client: self.share(&fields.client.unwrap_or_default()),
            outcome: self.share(&fields.outcome.unwrap_or_default()),
        };
        if self.runs.len() == MAX_RUNS {
            self.dropped += 1;
            if let Some(oldest) = self.runs.pop_front() {
                oldest.discount(&mut self.counts);
            }
        }
        run.count(&mut self.counts);
        self.runs.push_back(run);
    }

    /// Returns the one copy of a text, cut to a length.
    fn share(&mut self, text: &str) -> Arc<str> {
        let end = text.char_indices().nth(MAX_TEXT_CHARS);
        let text = end.map_or(text, |(end, _)| &text[..end]);
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        if self.texts.len() < MAX_SHARED_TEXTS {
            self.texts.insert(Arc::clone(&new));
        }
        new
    }
}

impl Filter {
    fn matches(&self, run: &Run) -> bool {
        let is = |field: &str, wanted: &Option<String>| {
            wanted.as_deref().is_none_or(|wanted| wanted == field)
        };
        let has_outcome = match self.outcome.as_deref() {
            None => true,
            Some("failed") => !run.is_success,
            Some(outcome) => *run.outcome == *outcome,
        };
        has_outcome
            && is(&run.tool, &self.tool)
            && is(&run.caller, &self.caller)
            && is(&run.caller, &self.only)
            && (self.since.as_deref()).is_none_or(|since| *run.time >= *since)
            && (self.until.as_deref()).is_none_or(|until| *run.time < *until)
    }
}

impl Run {
    fn texts(&self) -> [&Arc<str>; 3] {
        [&self.tool, &self.caller, &self.outcome]
    }

    fn count(&self, counts: &mut [Counts; 3]) {
        for (counts, text) in counts.iter_mut().zip(self.texts()) {
            match counts.get_mut(text) {
                Some(count) => *count += 1,
                None => drop(counts.insert(Arc::clone(text), 1)),
            }
        }
    }

    fn discount(&self, counts: &mut [Counts; 3]) {
        for (counts, text) in counts.iter_mut().zip(self.texts()) {
            if let Some(count) = counts.get_mut(text) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(text);
                }
            }
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "id": &*self.id,
            "time": &*self.time,
            "milliseconds": self.milliseconds,
            "success": self.is_success,
            "method": &*self.method,
            "tool": &*self.tool,
            "caller": &*self.caller,
            "client": &*self.client,
            "outcome": &*self.outcome,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use jiff::Timestamp;

    use super::*;

    fn record(number: u64, principal: &str, outcome: &str) -> String {
        let success = outcome == "success";
        let hash = format!("{number:064x}").chars().rev().collect::<String>();
        let time = Timestamp::from_second(number as i64).unwrap();
        let record = json!({
            "timestamp": time.to_string(), "method": "tools/call", "params": {"name": "add"},
            "duration_ms": 5, "success": success, "event": "end", "principal": principal,
            "tool": "math/add", "outcome": outcome, "hash": hash,
        });
        format!("{record}\n")
    }

    const ALL: Page = Page {
        skip: 0,
        limit: 100,
    };

    #[test]
    fn index_follows_the_log_and_filters() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("audit.jsonl");
        let index = RunIndex::default();
        let total = |filter: &Filter| index.search(&file, filter, ALL).unwrap()["total"].clone();
        assert_eq!(total(&Filter::default()), 0);
        let mut text = record(1, "ada", "success") + &record(2, "bob", "time-limit");
        fs::write(&file, &text).unwrap();
        assert_eq!(total(&Filter::default()), 2);
        text += &record(3, "ada", "failure");
        fs::write(&file, &text).unwrap();
        assert_eq!(total(&Filter::default()), 3);
        let mut filter = Filter {
            outcome: Some("failed".to_owned()),
            ..Filter::default()
        };
        assert_eq!(total(&filter), 2);
        filter.only = Some("ada".to_owned());
        let found = index.search(&file, &filter, ALL).unwrap();
        assert_eq!(found["total"], 1);
        assert_eq!(found["callers"], json!(["ada"]));
        let id = found["runs"][0]["id"].as_str().unwrap();
        let record = index.find_record(&file, id).unwrap().unwrap();
        assert_eq!(record["outcome"], "failure");
        assert_eq!(index.find_record(&file, "x").unwrap(), None);
    }

    #[test]
    fn page_of_many_runs_has_the_newest_first() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("audit.jsonl");
        let text: String = (1..=1000)
            .map(|number| record(number, "ada", "success"))
            .collect();
        fs::write(&file, text).unwrap();
        let page = Page { skip: 10, limit: 5 };
        let found = RunIndex::default()
            .search(&file, &Filter::default(), page)
            .unwrap();
        assert_eq!(found["total"], 1000);
        assert_eq!(found["runs"].as_array().unwrap().len(), 5);
        let time = Timestamp::from_second(990).unwrap();
        assert_eq!(found["runs"][0]["time"], time.to_string());
    }
}
