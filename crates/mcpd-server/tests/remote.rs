//! Scripts on another server: what differs from a script here, and what the other server refuses.
//! The conversations in `wire/` are held with such scripts as well.

#![cfg(all(unix, feature = "database"))]
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcpd_exec::{Level, Limits, Line, Sandbox, Stream};
use mcpd_server::audit::Options;
use mcpd_server::policy::ToolPolicy;
use mcpd_server::remote::{InputFile, KeptOutput, NotRun, Request, SharedEvent};
use mcpd_server::{
    Audit, Connection, Database, Policy, Principal, Reply, SandboxProfile, Server, ServerBuilder,
    ToolNames,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

#[path = "remote/loopback.rs"]
mod loopback;

use loopback::{Interfere, Loopback};

/// Far longer than any step here; only a hang reaches it.
const HANG_TIMEOUT: Duration = Duration::from_secs(20);

const SECRET: &str = "ed9fb1c0-secret";

/// Script with one option, whose value it runs.
const RUN: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Runs a text.", "context": true}'
  echo '{"text": {"required": true, "value_type": "string"}}' >&2
  exit 0
fi
eval "$MCPD_OPT_text"
"#;

/// Worker with a script, and a front that has none.
struct Fixture {
    directory: TempDir,
    worker: Server,
    front: Server,
    connection: Connection,
    messages: mpsc::Receiver<Bytes>,
}

/// Settings of both servers.
struct Setup {
    worker: Policy,
    front: Policy,
    interfere: Arc<Interfere>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            worker: Policy::default(),
            front: Policy::default(),
            interfere: Arc::new(|_| Ok(())),
        }
    }
}

fn write_script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn audit(directory: &Path, name: &str) -> Audit {
    Audit::new(directory.join(name), Options::default()).unwrap()
}

impl Fixture {
    async fn new(setup: Setup) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let scripts = directory.path().join("scripts");
        fs::create_dir(&scripts).unwrap();
        write_script(&scripts.join("run"), RUN);
        let worker = Server::builder()
            .scripts(&scripts)
            .policy(setup.worker)
            .audit(audit(directory.path(), "worker.jsonl"))
            .start()
            .unwrap();
        let place = Loopback {
            interfere: setup.interfere,
            ..Loopback::to(&worker)
        };
        let front = Server::builder()
            .source(place)
            .policy(setup.front)
            .audit(audit(directory.path(), "front.jsonl"))
            .tasks(Database::new(directory.path().join("mcpd.db")));
        let front: ServerBuilder = front;
        let front = front.start().unwrap();
        front.catalog_ready().await;
        let (connection, messages) = Connection::open(&front, ToolNames::Portable);
        Self {
            directory,
            worker,
            front,
            connection,
            messages,
        }
    }

    async fn with(
        interfere: impl Fn(&mut Request) -> Result<(), NotRun> + Send + Sync + 'static,
    ) -> Self {
        Self::new(Setup {
            interfere: Arc::new(interfere),
            ..Setup::default()
        })
        .await
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn script(&self) -> PathBuf {
        self.path("scripts/run")
    }

    async fn ask_as(&self, capabilities: Value, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
            "io.modelcontextprotocol/logLevel": "debug",
        });
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = match self.connection.receive(request.to_string().as_bytes()) {
            Reply::Ready(answer) => Some(answer),
            Reply::Pending(answer) => timeout(HANG_TIMEOUT, answer).await.unwrap(),
            Reply::Nothing => None,
        };
        serde_json::from_slice(&answer.unwrap()).unwrap()
    }

    async fn ask(&self, method: &str, params: Value) -> Value {
        self.ask_as(json!({}), method, params).await
    }

    /// Returns the result of a run of `text`.
    async fn run(&self, text: &str) -> Value {
        let params = json!({"name": "run", "arguments": {"text": text}});
        let answer = self.ask("tools/call", params).await;
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// Returns the last record of an audit log.
    fn last_record(&self, log: &str) -> Value {
        let read = || {
            let text = fs::read_to_string(self.path(log)).unwrap_or_default();
            text.lines()
                .last()
                .map(|line| serde_json::from_str(line).unwrap())
        };
        let began = Instant::now();
        while began.elapsed() < HANG_TIMEOUT {
            if let Some(record) = read() {
                return record;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("no record in {log}");
    }

    /// Returns a request for a run of `text`, as a front would make it.
    async fn request(&self, text: &str) -> Request {
        let announced = self.worker.announcements().await;
        let head = json!({
            "run": "1234.1", "path": "run", "digest": announced[0].digest,
            "for": {"method": "tools/call", "name": "run", "call": "5678", "principal": "ada"},
        });
        let mut request: Request = serde_json::from_value(head).unwrap();
        request.arguments = json!({ "text": text }).to_string().into();
        request
    }

    async fn execute(&self, request: Request) -> Result<String, NotRun> {
        let outcome = self.worker.execute(request, &mut |_: Line<'_>| {}).await?;
        Ok(outcome.stdout.to_text_lossy())
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

async fn until(what: &str, is_true: impl Fn() -> bool) {
    let reached = async {
        while !is_true() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(timeout(HANG_TIMEOUT, reached).await.is_ok(), "not {what}");
}

#[tokio::test]
async fn secrets_are_those_of_the_worker_and_stay_there() {
    let secret = ToolPolicy::new("run").unwrap().variable("TOKEN", SECRET);
    let other = ToolPolicy::new("run")
        .unwrap()
        .variable("TOKEN", "secret-of-the-front");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sent = Arc::clone(&seen);
    let mut fixture = Fixture::new(Setup {
        worker: Policy::default().tool(secret),
        front: Policy::default().tool(other),
        interfere: Arc::new(move |request| {
            sent.lock()
                .unwrap()
                .push(serde_json::to_string(request).unwrap());
            Ok(())
        }),
    })
    .await;
    let result = fixture.run("echo out $TOKEN; echo err $TOKEN >&2").await;
    assert_eq!(text(&result), "out [redacted TOKEN]");
    let line: Value = serde_json::from_slice(&fixture.messages.recv().await.unwrap()).unwrap();
    assert_eq!(line["params"]["data"], "err [redacted TOKEN]", "{line}");
    let lines = Arc::new(Mutex::new(String::new()));
    let received = Arc::clone(&lines);
    let mut request = fixture.request("echo $TOKEN; echo $TOKEN >&2").await;
    request.lines = true;
    let mut on_line = move |line: Line<'_>| {
        received
            .lock()
            .unwrap()
            .push_str(&String::from_utf8_lossy(line.bytes));
    };
    fixture.worker.execute(request, &mut on_line).await.unwrap();
    assert_eq!(*lines.lock().unwrap(), "[redacted TOKEN]".repeat(2));
    assert!(
        !seen
            .lock()
            .unwrap()
            .concat()
            .contains("secret-of-the-front")
    );
}

#[tokio::test]
async fn unknown_end_is_told_and_recorded() {
    let fixture = Fixture::with(|_| Err(NotRun::lost("the worker is gone"))).await;
    let result = fixture.run("true").await;
    assert_eq!(result["isError"], true);
    assert_eq!(result["_meta"]["mcpd/unknown"], true);
    assert_eq!(
        text(&result),
        "The script `run` may have run: its end is not known, because the worker is gone. Find out what it has done before you call it again."
    );
    let record = fixture.last_record("front.jsonl");
    assert_eq!(record["outcome"], "lost", "{record}");
    assert_eq!(record["worker"], "loopback");
    assert!(record["run"].as_str().unwrap().ends_with(".1"), "{record}");
}

#[tokio::test]
async fn reasons_for_no_run_are_told_in_the_terms_of_a_script_here() {
    let reasons = [
        (
            NotRun::Unknown,
            "The script `run` is not available any more.",
        ),
        (
            NotRun::Level,
            "The script `run` was not run: no server can enforce its sandbox. The server's log has the details.",
        ),
        (
            NotRun::Version,
            "The script `run` could not be started. The reason is in the server's log.",
        ),
    ];
    for (reason, expected) in reasons {
        let fixture = Fixture::with(move |_| Err(reason.clone())).await;
        let result = fixture.run("true").await;
        assert_eq!(
            (text(&result), &result["isError"]),
            (expected, &json!(true))
        );
        assert!(result["_meta"]["mcpd/unknown"].is_null(), "{result}");
    }
    let busy = |_: &mut Request| Err(NotRun::busy(Duration::from_millis(99)));
    let fixture = Fixture::with(busy).await;
    let call = json!({"name": "run", "arguments": {"text": "true"}});
    let answer = fixture.ask("tools/call", call).await;
    assert_eq!(answer["error"]["data"]["retryAfterMs"], 100, "{answer}");
}

#[tokio::test]
async fn both_audit_logs_have_the_run() {
    let fixture = Fixture::new(Setup::default()).await;
    fixture.run("exit 3").await;
    let front = fixture.last_record("front.jsonl");
    let worker = fixture.last_record("worker.jsonl");
    for member in [
        "run",
        "digest",
        "call_id",
        "tool",
        "outcome",
        "exit_code",
        "principal",
    ] {
        assert_eq!(front[member], worker[member], "{member}");
        assert!(!front[member].is_null(), "{member}");
    }
    assert_eq!(front["outcome"], "forbidden");
    assert_eq!(worker["transport"], "cluster");
    assert_eq!(worker["error"], "exit code 3 (forbidden)", "{worker}");
    assert!(worker["worker"].is_null());
}

#[tokio::test]
async fn cancelled_call_ends_the_script_at_the_worker() {
    let fixture = Fixture::new(Setup::default()).await;
    let begun = fixture.path("begun");
    let program = format!(
        "echo $$ >{0}.part; mv {0}.part {0}; sleep 600",
        begun.display()
    );
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "run", "arguments": {"text": program}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }}});
    let Reply::Pending(answer) = fixture.connection.receive(call.to_string().as_bytes()) else {
        panic!("no request");
    };
    let answer = tokio::spawn(answer);
    until("begun", || begun.exists()).await;
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    fixture.connection.receive(cancel.to_string().as_bytes());
    let process = fs::read_to_string(&begun).unwrap();
    let process = Path::new("/proc").join(process.trim());
    until("ended", || !process.exists()).await;
    assert_eq!(timeout(HANG_TIMEOUT, answer).await.unwrap().unwrap(), None);
    assert_eq!(fixture.last_record("worker.jsonl")["outcome"], "cancelled");
    assert_eq!(fixture.last_record("front.jsonl")["outcome"], "cancelled");
}

#[tokio::test]
async fn stricter_time_limit_of_both_holds() {
    let short = || {
        let mut limits = Limits::default();
        (limits.wall, limits.grace) = (Duration::from_millis(200), Duration::from_millis(100));
        Policy::default().limits(limits)
    };
    let long = Policy::default;
    for (worker, front) in [(short(), long()), (long(), short())] {
        let fixture = Fixture::new(Setup {
            worker,
            front,
            ..Setup::default()
        })
        .await;
        let result = fixture.run("sleep 60").await;
        assert_eq!(
            result["_meta"]["mcpd/exit"]["name"], "time-limit",
            "{result}"
        );
    }
}

#[tokio::test]
async fn long_output_is_read_from_the_worker() {
    let mut limits = Limits::default();
    (limits.capture_head, limits.capture_tail, limits.keep) = (1000, 1000, 6 << 20);
    let policy = || Policy::default().limits(limits.clone());
    let secret = ToolPolicy::new("run").unwrap().variable("TOKEN", SECRET);
    let fixture = Fixture::new(Setup {
        worker: policy().tool(secret),
        front: policy(),
        ..Setup::default()
    })
    .await;
    let result = fixture.run("seq 1 700000; echo $TOKEN; echo end").await;
    let whole: String = (1..=700_000).map(|line| format!("{line}\n")).collect();
    let link = &result["content"][2]["uri"];
    let answer = fixture.ask("resources/read", json!({ "uri": link })).await;
    let read = answer["result"]["contents"][0]["text"].as_str();
    assert_eq!(read, Some(&*format!("{whole}[redacted TOKEN]\nend\n")));

    // Its caller alone can read it.
    let run = fixture.last_record("worker.jsonl")["run"]
        .as_str()
        .unwrap()
        .to_owned();
    let read = async |principal: &str, range| {
        let output = KeptOutput::new("loopback", &*run, Stream::Stdout, principal);
        let part = fixture.worker.read_kept(&output, range).await;
        part.map(|part| part.bytes)
    };
    let local = Principal::local();
    assert_eq!(read(local.name(), 2..5).await.unwrap(), "2\n3");
    assert_eq!(
        read(local.name(), 90_000_000..90_000_005).await.unwrap(),
        ""
    );
    assert_eq!(read("eve", 2..5).await, Err(NotRun::Unknown));
}

#[tokio::test]
async fn changed_script_is_refused_until_it_is_announced_anew() {
    let fixture = Fixture::new(Setup::default()).await;
    let request = fixture.request("echo a").await;
    assert_eq!(fixture.execute(request.clone()).await.unwrap(), "a\n");
    let mut other = request.clone();
    other.digest = "sha256:00".to_owned();
    assert_eq!(fixture.execute(other.clone()).await, Err(NotRun::Digest));
    assert_eq!(
        fixture.worker.check_request(&other).await,
        Err(NotRun::Digest)
    );
    let before = fixture.worker.announcements().await;
    write_script(&fixture.script(), &RUN.replace("eval", "echo new; eval"));
    // Whether a scan has seen the change or not.
    assert_eq!(fixture.execute(request).await, Err(NotRun::Digest));
    let announced = fixture.worker.announcements_changed(&before);
    let announced = timeout(HANG_TIMEOUT, announced).await.unwrap();
    assert_ne!(announced[0].digest, before[0].digest);
    let ran = async {
        // The front follows by itself.
        while text(&fixture.run("echo a").await) != "new\na" {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(HANG_TIMEOUT, ran).await.unwrap();
}

#[tokio::test]
async fn worker_takes_nothing_but_arguments() {
    let fixture = Fixture::new(Setup::default()).await;
    let request = fixture.request("echo a").await;
    let check = async |change: &dyn Fn(&mut Request), expected: NotRun| {
        let mut changed = request.clone();
        change(&mut changed);
        assert_eq!(fixture.execute(changed).await, Err(expected));
    };
    check(
        &|request| request.path = "/bin/sh".to_owned(),
        NotRun::Unknown,
    )
    .await;
    check(
        &|request| request.path = "../scripts/run".to_owned(),
        NotRun::Unknown,
    )
    .await;
    check(
        &|request| request.purpose.method = "ping".to_owned(),
        NotRun::Version,
    )
    .await;
    check(&|request| request.level = Level::Strict, NotRun::Level).await;
    let path = |request: &mut Request| request.files.push(InputFile::new("PATH", "/tmp"));
    check(&path, NotRun::Version).await;
    for arguments in [r#"{"text": "true", "LD_PRELOAD": "x"}"#, "{", "[]", "{}"] {
        let mut changed = request.clone();
        changed.arguments = arguments.into();
        let refused = fixture.execute(changed).await;
        assert!(
            matches!(refused, Err(NotRun::Arguments { .. })),
            "{arguments}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn level_of_the_front_is_demanded_of_the_worker() {
    let fixture = Fixture::new(Setup {
        front: Policy::default().floor(SandboxProfile::new(Sandbox::guarded())),
        ..Setup::default()
    })
    .await;
    let result = fixture.run("true").await;
    assert!(
        text(&result).contains("no server can enforce its sandbox"),
        "{result}"
    );
}

#[tokio::test]
async fn script_elsewhere_becomes_a_task() {
    let fixture = Fixture::new(Setup {
        front: {
            let always = ToolPolicy::new("run").unwrap();
            Policy::default().tool(always.task(mcpd_scriptspec::TaskSupport::Required))
        },
        ..Setup::default()
    })
    .await;
    let knows = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let call = json!({"name": "run", "arguments": {"text": "echo done"}});
    let task = fixture.ask_as(knows.clone(), "tools/call", call).await;
    let get = json!({"taskId": task["result"]["taskId"]});
    let ended = async {
        loop {
            let task = fixture
                .ask_as(knows.clone(), "tasks/get", get.clone())
                .await;
            if task["result"]["status"] == "completed" {
                return task["result"]["result"].clone();
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    assert_eq!(text(&timeout(HANG_TIMEOUT, ended).await.unwrap()), "done");
}

#[tokio::test]
async fn script_here_takes_precedence_and_any_number_is_offered() {
    let worker = tempfile::tempdir().unwrap();
    let describe = |place: &str| {
        format!("#!/bin/sh\n# /// mcpd\n# description = \"{place}\"\n# ///\necho {place}\n")
    };
    for number in 0..1100 {
        write_script(
            &worker.path().join(format!("n{number}")),
            &describe("there"),
        );
    }
    let here = tempfile::tempdir().unwrap();
    write_script(&here.path().join("n7"), &describe("here"));
    let worker = Server::builder()
        .scripts(worker.path())
        .watch(false)
        .start()
        .unwrap();
    let front = Server::builder()
        .scripts(here.path())
        .source(Loopback::to(&worker));
    let front = front.watch(false).start().unwrap();
    front.catalog_ready().await;
    let catalog = front.catalog();
    assert_eq!(catalog.tools().len(), 1100);
    assert_eq!(catalog.conflicts().len(), 1);
    assert_eq!(catalog.tool("n7").unwrap().source(), None);
    let elsewhere = catalog.tool("n8").unwrap();
    assert_eq!(elsewhere.source(), Some("the worker `loopback`"));
    assert_eq!(elsewhere.file(), None);
    assert!(catalog.offers()[0].faults().is_empty());
}

#[tokio::test]
async fn stopped_worker_takes_nothing_new() {
    let fixture = Fixture::new(Setup::default()).await;
    let load = fixture.worker.load();
    assert!(
        load.slots > 0 && load.running == 0 && load.waiting == 0,
        "{load:?}"
    );
    let request = fixture.request("true").await;
    fixture.worker.shutdown().await;
    assert_eq!(fixture.execute(request).await, Err(NotRun::Draining));
    let call = json!({"name": "run", "arguments": {"text": "true"}});
    let answer = fixture.ask("tools/call", call).await;
    assert!(
        answer["error"]["data"]["retryAfterMs"].is_number(),
        "{answer}"
    );
    fixture.front.shutdown().await;
}

#[tokio::test]
async fn event_of_one_front_reaches_subscribers_of_another_and_goes_no_further() {
    let resource = |uri: &str| SharedEvent::ResourceUpdated {
        uri: uri.to_owned(),
    };
    let fixture = Fixture::new(Setup::default()).await;
    let other = Fixture::new(Setup::default()).await;
    let mut events = fixture.front.shared_events();
    let mut echo = other.front.shared_events();
    fixture.front.notify_resource_updated("notes://today");
    let event = timeout(HANG_TIMEOUT, events.next()).await.unwrap().unwrap();
    assert_eq!(event, resource("notes://today"));

    let mut other = other;
    let listen = json!({"jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen", "params": {
        "notifications": {"resourceSubscriptions": ["notes://today"]},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }});
    let Reply::Pending(listening) = other.connection.receive(listen.to_string().as_bytes()) else {
        panic!("no subscription");
    };
    let listening = tokio::spawn(listening);
    let mut message = async || {
        let message = timeout(HANG_TIMEOUT, other.messages.recv()).await.unwrap();
        serde_json::from_slice::<Value>(&message.unwrap()).unwrap()
    };
    let acknowledged = message().await;
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    other.front.receive_event(event);
    let updated = message().await;
    assert_eq!(updated["params"]["uri"], "notes://today", "{updated}");
    // Had it been passed on, it would come before this one.
    other.front.notify_resource_updated("notes://next");
    let event = timeout(HANG_TIMEOUT, echo.next()).await.unwrap().unwrap();
    assert_eq!(event, resource("notes://next"));
    listening.abort();
}
