//! Audit records of requests: arguments and outcome of each, and the guarantee that nothing runs
//! unrecorded where records are required.

#![cfg(all(unix, feature = "database", feature = "http"))]

use std::fmt;
use std::fs;
use std::future::ready;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mcpd_protocol::content::{ResourceBody, ResourceContents};
use mcpd_protocol::method::{ReadResourceResult, Resource, ResourceTemplate};
use mcpd_server::audit::{self, Arguments, Mode, Options};
use mcpd_server::policy::{Access, CallPattern, Quota, RateLimit, ToolPolicy};
use mcpd_server::source::{Publisher, Source};
use mcpd_server::transport::http;
use mcpd_server::{
    Audit, CallContext, Connection, Database, Policy, Principal, Reply, RunCommand, Server,
    ServerBuilder, ToolNames,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Far longer than any step here; only a hang reaches it.
const HANG_TIMEOUT: Duration = Duration::from_secs(20);

const LOGIN: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Logs in."}'
  cat >&2 <<'EOF'
{
  "user": {"description": "Who.", "required": true, "value_type": "string"},
  "password": {"description": "How.", "required": true, "value_type": "string", "secret": true},
  "code": {"description": "How it ends.", "value_type": "integer", "default_value": 0}
}
EOF
  exit 0
fi
touch ran
echo "hello $MCPD_OPT_user"
exit "$MCPD_OPT_code"
"#;

const COUNT: &str = r#"#!/bin/sh
case "$1" in
  --help) echo '{"description": "Counts.", "state": true, "output": "json"}' ;;
  --state) echo '{"count": 1}' ;;
  *) echo 'no JSON' ;;
esac
"#;

const SUMMARY: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Asks for a summary.", "kind": "prompt"}'
  echo '{"topic": {"description": "Of what.", "required": true, "value_type": "string"}}' >&2
  exit 0
fi
echo "Summarise $MCPD_OPT_topic."
"#;

const PAGE: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "A page.", "kind": "resource", "uri_template": "wiki://{page}"}'
  echo '{"page": {"description": "Which.", "required": true, "value_type": "string"}}' >&2
  exit 0
fi
[ "$MCPD_OPT_page" = start ] || exit 4
echo 'Welcome.'
"#;

const SLOW: &str = r#"#!/bin/sh
[ "$1" = --help ] && { echo '{"description": "Takes its time."}'; exit 0; }
touch started
exec sleep 600
"#;

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

fn panic_on_purpose() {
    panic!("on purpose");
}

/// Server with all of the scripts, some built-in tools and an audit log.
struct Fixture {
    root: TempDir,
    log: PathBuf,
    server: Server,
    connection: Connection,
    audit: Audit,
}

impl Fixture {
    async fn new(options: Options) -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let log = root.path().join("audit.jsonl");
        Self::with(root, log, options, |server| server).await
    }

    async fn with(
        root: TempDir,
        log: impl Into<PathBuf>,
        options: Options,
        build: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> Self {
        let scripts = root.path().join("scripts");
        for (name, text) in [
            ("login", LOGIN),
            ("count", COUNT),
            ("summary", SUMMARY),
            ("page", PAGE),
            ("slow", SLOW),
        ] {
            write(&scripts.join(name), text);
        }
        let log = log.into();
        let audit = Audit::new(&log, options).expect("a thread");
        let server = Server::builder()
            .scripts(scripts)
            .tool("native", "Fails.", async |_: Nothing, _: CallContext| {
                Err::<String, _>("as it does")
            })
            .tool("panics", "Panics.", async |_: Nothing, _: CallContext| {
                panic_on_purpose();
                ""
            })
            .run_command(RunCommand::default().deny("rm *").expect("a pattern"))
            .watch(false)
            .audit(audit.clone());
        let server = build(server).start().expect("starts");
        server.catalog_ready().await;
        let (connection, _) = Connection::open(&server, ToolNames::Path);
        Self {
            root,
            log,
            server,
            connection,
            audit,
        }
    }

    async fn ask(&self, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.send(&message.to_string()).await
    }

    async fn send(&self, message: &str) -> Value {
        let answer = match self.connection.receive(message.as_bytes()) {
            Reply::Ready(answer) => answer,
            Reply::Pending(answer) => {
                let answer = tokio::time::timeout(HANG_TIMEOUT, answer).await;
                answer.expect("in time").expect("an answer")
            }
            Reply::Nothing => panic!("there is no answer"),
        };
        serde_json::from_slice(&answer).expect("JSON")
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.ask("tools/call", params).await
    }

    /// Waits until `words` are in the log.
    async fn wait_for_record(&self, words: &str) {
        let recorded = async {
            while !fs::read_to_string(&self.log).is_ok_and(|text| text.contains(words)) {
                tokio::task::yield_now().await;
            }
        };
        let recorded = tokio::time::timeout(HANG_TIMEOUT, recorded).await;
        recorded.expect("it is recorded");
    }

    /// Stops the server, and returns the records.
    async fn records(self) -> Vec<Value> {
        self.server.shutdown().await;
        drop((self.connection, self.server, self.audit));
        let verified = audit::verify(&self.log).expect("a log");
        assert_eq!(verified.faults, []);
        let text = fs::read_to_string(&self.log).expect("a log");
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }
}

fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().expect("a directory")).expect("made");
    fs::write(file, text).expect("written");
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).expect("executable");
}

/// Returns the record without fields that differ from run to run.
fn without_volatile_fields(record: &Value) -> String {
    let mut record = record.clone();
    let fields = record.as_object_mut().expect("an object");
    for field in ["timestamp", "duration_ms", "pid", "seq", "prev", "hash"] {
        assert!(fields.shift_remove(field).is_some(), "{field}");
    }
    let has_run = fields.contains_key("runs");
    for field in ["queued_ms", "run_ms"] {
        assert_eq!(fields.shift_remove(field).is_some(), has_run, "{field}");
    }
    // Missing mechanisms depend on the machine.
    fields.shift_remove("missing");
    if let Some(call_id) = fields.get_mut("call_id") {
        assert_eq!(call_id.as_str().map(str::len), Some(32));
        *call_id = json!("…");
    }
    record.to_string()
}

/// Values of one field in all records.
fn field_values(records: &[Value], field: &str) -> Value {
    let values = records.iter().map(|record| record[field].clone());
    values.collect()
}

#[tokio::test]
async fn audit_log_records_the_outcome_of_requests() {
    let fixture = Fixture::new(Options::default()).await;
    let login = |code| json!({"user": "ada", "password": "hunter2", "code": code});
    for (tool, arguments) in [
        ("login", login(0)),
        ("login", login(4)),
        ("login", json!({"user": 1, "password": "hunter2"})),
        ("count", json!({})),
        ("native", json!({})),
        ("native", json!({"a": 1})),
        ("panics", json!({})),
        ("run_command", json!({"command": "exit 4"})),
        ("run_command", json!({"command": "rm -rf /"})),
        ("logout", json!({})),
    ] {
        fixture.call(tool, arguments).await;
    }
    let tea = json!({"name": "summary", "arguments": {"topic": "tea"}});
    for (method, params) in [
        ("tools/call", json!({})),
        ("tools/list", json!({})),
        ("prompts/get", tea),
        ("prompts/get", json!({"name": "summary"})),
        ("prompts/get", json!({"name": "story"})),
        ("resources/read", json!({"uri": "wiki://start"})),
        ("resources/read", json!({"uri": "wiki://end"})),
        ("resources/read", json!({"uri": "mcpd://count/state"})),
        ("resources/read", json!({"uri": "mcpd://nowhere"})),
    ] {
        fixture.ask(method, params).await;
    }
    let records: Vec<_> = fixture
        .records()
        .await
        .iter()
        .map(without_volatile_fields)
        .collect();
    insta::assert_snapshot!(records.join("\n"));
}

#[tokio::test]
async fn audit_log_keeps_a_multi_line_message_on_one_line() {
    let fixture = Fixture::new(Options::default()).await;
    let forged = r#"{"timestamp":"2026-11-22T10:00:00.000Z","method":"tools/call"}"#;
    let message = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\n\"params\":{{\"name\":\"native\",\"arguments\":{{\"a\":[1,\r\n\t{forged}\n]}}}}}}"
    );
    fixture.send(&message).await;
    fixture.call("native", json!({})).await;
    let records = fixture.records().await;
    assert_eq!(records.len(), 2);
    let value = records[0]["params"]["arguments"]["a"].to_string();
    assert_eq!(value, format!("[1,{forged}]"));
}

#[tokio::test]
async fn audit_log_records_a_denial_that_the_caller_does_not_see() {
    let mut fixture = Fixture::new(Options::default()).await;
    let hello = CallPattern::default().tool("login").expect("a pattern");
    let hello = hello.argument("user", "grace").expect("a pattern");
    let principal = Principal::new("ada").with_access(Access::default().allow_only([hello]));
    (fixture.connection, _) = Connection::open_for(principal, &fixture.server, ToolNames::Path);
    fixture
        .call("login", json!({"user": "ada", "password": "hunter2"}))
        .await;
    fixture.call("count", json!({})).await;
    fixture.call("logout", json!({})).await;
    for (method, params) in [
        ("prompts/get", json!({"name": "summary"})),
        ("resources/read", json!({"uri": "wiki://start"})),
        ("resources/read", json!({"uri": "mcpd://count/state"})),
    ] {
        fixture.ask(method, params).await;
    }
    let records = fixture.records().await;
    let outcomes: Vec<_> = records.iter().map(|record| &record["outcome"]).collect();
    let denied = "denied";
    assert_eq!(
        outcomes,
        [denied, denied, "unknown-tool", denied, denied, denied]
    );
    assert!(records.iter().all(|record| record["principal"] == "ada"));
    assert!(records.iter().all(|record| record["success"] == false));
}

#[tokio::test]
async fn denied_call_keeps_its_secrets_out_of_the_audit_log() {
    let root = tempfile::tempdir().expect("a directory");
    let log = root.path().join("audit.jsonl");
    let database = Database::new(root.path().join("tasks.db"));
    let secret = r#"#!/bin/sh
[ "$1" = --help ] || exit 0
echo '{"description": "Asks.", "kind": "prompt"}'
echo '{"password": {"description": "How.", "value_type": "string", "default_value": "", "secret": true}}' >&2
"#;
    write(&root.path().join("scripts/riddle"), secret);
    let mut fixture = Fixture::with(root, log, Options::default(), |server| {
        server.tasks(database).background_tools()
    })
    .await;
    let pattern = |pattern| CallPattern::default().tool(pattern).expect("a pattern");
    let principal =
        Principal::new("ada").with_access(Access::default().allow_only([pattern("runs_*")]));
    (fixture.connection, _) = Connection::open_for(principal, &fixture.server, ToolNames::Path);
    let login = json!({"user": "ada", "password": "hunter2"});
    let riddle = json!({"name": "riddle", "arguments": {"password": "hunter2"}});
    let start = |tool| json!({"tool": tool, "arguments": login});
    fixture.call("login", login.clone()).await;
    fixture.call("runs_start", start("login")).await;
    fixture.call("runs_start", start("logout")).await;
    fixture.ask("prompts/get", riddle).await;
    let test = pattern("login")
        .argument("password", "test")
        .expect("a pattern");
    let principal = Principal::new("ada").with_access(Access::default().allow_only([test]));
    (fixture.connection, _) = Connection::open_for(principal, &fixture.server, ToolNames::Path);
    fixture.call("login", login.clone()).await;

    let records = fixture.records().await;
    let seen = |field| field_values(&records, field);
    assert_eq!(
        seen("tool"),
        json!(["login", "login", "runs_start", "riddle", "login"])
    );
    assert_eq!(
        seen("outcome"),
        json!(["denied", "denied", "unknown-tool", "denied", "denied"])
    );
    for (place, record) in records.iter().enumerate() {
        let text = record.to_string();
        // The tool that the third should have started is unknown.
        let is_redacted = text.contains("[redacted]") || place == 2;
        assert!(is_redacted && !text.contains("hunter2"), "{place}: {text}");
    }
}

#[tokio::test]
async fn background_call_has_one_record_without_its_secrets() {
    let root = tempfile::tempdir().expect("a directory");
    let log = root.path().join("audit.jsonl");
    let database = Database::new(root.path().join("tasks.db"));
    let fixture = Fixture::with(root, log, required_options(), |server| {
        server.tasks(database).background_tools()
    })
    .await;
    let arguments = json!({"user": "ada", "password": "hunter2", "code": 4});
    let start = json!({"tool": "login", "arguments": arguments});
    fixture.call("runs_start", start).await;
    fixture.wait_for_record("not-found").await;
    let records = fixture.records().await;
    assert!(!Value::from(records.clone()).to_string().contains("hunter2"));
    let ended: Vec<_> = records
        .iter()
        .filter(|record| record["tool"] == "login" && record["event"] == "end")
        .collect();
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0]["outcome"], "not-found");
    assert_eq!(ended[0]["params"]["arguments"]["user"], "ada");
}

#[tokio::test]
async fn rejected_start_keeps_the_secrets_of_its_tool() {
    let root = tempfile::tempdir().expect("a directory");
    let log = root.path().join("audit.jsonl");
    let fixture = Fixture::with(root, log, required_options(), |server| {
        server.background_tools()
    })
    .await;
    for named in [
        r#""tool":"login""#,
        r#""tool":"login","tool":"login""#,
        r#""tool":"login","tool":"count""#,
        r#""tool":"count","tool":"login""#,
        r#""tool":"login","tool":1,"else":2"#,
        r#""tool":"logout""#,
        r#""tol":"login""#,
    ] {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"runs_start","arguments":{{"arguments":{{"password":"hunter2"}},{named}}}}}}}"#
        );
        fixture.send(&call).await;
    }
    let records = fixture.records().await;
    assert!(records.len() >= 7, "{records:?}");
    let text = Value::from(records).to_string();
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn health_reports_whether_calls_are_recorded() {
    for (options, status) in [(Options::default(), 200), (required_options(), 503)] {
        let root = tempfile::tempdir().expect("a directory");
        let fixture = Fixture::with(root, "/dev/full", options, |server| server).await;
        fixture.call("native", json!({})).await;
        let failing = async {
            while !fixture.audit.is_failing() {
                tokio::task::yield_now().await;
            }
        };
        let failing = tokio::time::timeout(HANG_TIMEOUT, failing).await;
        failing.expect("it cannot be recorded");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let (server, options) = (
            fixture.server.clone(),
            http::Options::new(http::Auth::without_credentials(Principal::anonymous())),
        );
        tokio::spawn(async move { http::serve(&server, listener, options).await });
        let ready = get(address, "/ready").await;
        assert!(ready.starts_with(&format!("HTTP/1.1 {status}")), "{ready}");
        let health = get(address, "/health").await;
        let told = r#""audit":{"failing":true,"lost":"#;
        assert!(health.contains(told), "{health}");
    }
}

async fn get(address: SocketAddr, path: &str) -> String {
    let mut client = TcpStream::connect(address).await.expect("connected");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    client.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    let read = tokio::time::timeout(HANG_TIMEOUT, client.read_to_string(&mut answer)).await;
    read.expect("in time").expect("an answer");
    answer
}

async fn post(address: SocketAddr, path: &str, body: &str) -> String {
    let mut client = TcpStream::connect(address).await.expect("connected");
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    client.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    let read = tokio::time::timeout(HANG_TIMEOUT, client.read_to_string(&mut answer)).await;
    read.expect("in time").expect("an answer");
    answer
}

#[tokio::test]
async fn event_stream_call_of_an_unknown_tool_is_recorded_and_counted() {
    let fixture = Fixture::new(Options::default()).await;
    let count = CallPattern::default().tool("count").expect("a pattern");
    let two = NonZeroU32::new(2).expect("it is not zero");
    let mut quota = Quota::default();
    quota.rate = RateLimit::new(0.001, two);
    let anybody = Principal::anonymous().with_access(Access::default().allow_only([count]));
    let options = http::Options::new(http::Auth::without_credentials(anybody.with_quota(quota)));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let server = fixture.server.clone();
    let served = tokio::spawn(async move { http::serve(&server, listener, options).await });
    let login = r#"{"user": "ada", "password": "hunter2"}"#;
    for (path, status) in [
        ("/events/login", "404 Not Found"),
        ("/events/logout", "404 Not Found"),
        ("/events/logout", "429 Too Many Requests"),
    ] {
        let answer = post(address, path, login).await;
        let expected = format!("HTTP/1.1 {status}\r\n");
        assert!(answer.starts_with(&expected), "{path}: {answer}");
    }
    served.abort();
    served.await.ok();
    fixture.wait_for_record("unknown-tool").await;
    let records = fixture.records().await;
    let outcomes: Vec<_> = records.iter().map(|record| &record["outcome"]).collect();
    assert_eq!(outcomes, ["denied", "unknown-tool"]);
    assert_eq!(records[0]["params"]["arguments"]["password"], "[redacted]");
}

#[tokio::test]
async fn abandoned_call_is_recorded_and_its_duplicate_id_is_not() {
    let fixture = Fixture::new(Options::default()).await;
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow"}});
    let Reply::Pending(answer) = fixture.connection.receive(call.to_string().as_bytes()) else {
        panic!("it takes its time");
    };
    let another = fixture.call("login", json!({"user": "ada"})).await;
    assert_eq!(another["error"]["message"], "the id 1 is already in use");
    let started = fixture.root.path().join("scripts/started");
    let has_started = async {
        while !started.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = answer => panic!("it takes its time"),
        started = tokio::time::timeout(HANG_TIMEOUT, has_started) => started.expect("it starts"),
    }
    let records = fixture.records().await;
    assert_eq!(records.len(), 1);
    assert_eq!(records[0]["outcome"], "cancelled");
    assert_eq!(records[0]["success"], false);
}

#[tokio::test]
async fn call_before_the_first_scan_is_recorded_from_its_arrival() {
    let root = tempfile::tempdir().expect("a directory");
    let scripts = root.path().join("scripts");
    let wait = "#!/bin/sh\nuntil [ -e \"${0%/*}/go\" ]; do sleep 0.01; done\n";
    write(&scripts.join("login"), &LOGIN.replace("#!/bin/sh\n", wait));
    let log = root.path().join("audit.jsonl");
    let audit = Audit::new(&log, Options::default()).expect("a thread");
    let server = Server::builder().scripts(&scripts).watch(false);
    let server = server.audit(audit.clone()).start().expect("starts");
    let (connection, _) = Connection::open(&server, ToolNames::Path);
    let fixture = Fixture {
        root,
        log,
        server,
        connection,
        audit,
    };
    let send = |id: u8| {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "login", "arguments": {"user": "ada", "password": "hunter2"}}});
        match fixture.connection.receive(call.to_string().as_bytes()) {
            Reply::Pending(answer) => answer,
            _ => panic!("there is no list"),
        }
    };
    let answer = send(1);
    let sent = Instant::now();
    drop(send(2));
    fixture.wait_for_record("cancelled").await;
    let waited = sent.elapsed();
    write(&scripts.join("go"), "");
    let answer = tokio::time::timeout(HANG_TIMEOUT, answer).await;
    answer.expect("in time").expect("an answer");
    let records = fixture.records().await;
    let seen = |field| field_values(&records, field);
    assert_eq!(seen("outcome"), json!(["cancelled", "success"]));
    let arguments = &records[0]["params"]["arguments"];
    assert_eq!(arguments, &json!(["user", "password"]));
    let duration = records[1]["duration_ms"].as_u64().expect("a number");
    assert!(u128::from(duration) >= waited.as_millis(), "{duration} ms");
}

/// Compares the recorded arguments of a call, and the recorded error of another.
async fn check_arguments(arguments: Arguments, expected: Value, error: &str) {
    let mut options = Options::default();
    options.arguments = arguments;
    let fixture = Fixture::new(options).await;
    fixture
        .call("login", json!({"user": "ada", "password": "hunter2"}))
        .await;
    fixture
        .call(
            "login",
            json!({"user": "ada", "password": "x", "code": "y"}),
        )
        .await;
    let records = fixture.records().await;
    assert_eq!(records[0]["params"]["arguments"], expected);
    assert_eq!(records[1]["error"], error);
}

#[tokio::test]
async fn recorded_arguments_follow_the_setting() {
    let invalid = "invalid-arguments";
    check_arguments(Arguments::None, Value::Null, invalid).await;
    check_arguments(Arguments::Names, json!(["user", "password"]), invalid).await;
    check_arguments(
        Arguments::Full,
        json!({"user": "ada", "password": "[redacted]"}),
        "Invalid arguments: option `code`: expected an integer, got the string \"y\"",
    )
    .await;
}

#[tokio::test]
async fn long_arguments_are_recorded_after_an_answer_and_without_one() {
    let fixture = Fixture::new(Options::default()).await;
    let arguments = json!({"user": "x".repeat(1 << 20), "password": "hunter2"});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "login", "arguments": arguments}});
    drop(fixture.connection.receive(call.to_string().as_bytes()));
    fixture.wait_for_record("cancelled").await;
    fixture.call("login", arguments).await;
    fixture.wait_for_record(r#""success","#).await;
    let records = fixture.records().await;
    let seen = |field| field_values(&records, field);
    assert_eq!(seen("outcome"), json!(["cancelled", "success"]));
    let expected = json!({
        "user": {
            "bytes": 1 << 20,
            "sha256": "8f990ba0b577b51cf009ea049368c16bbda1b21e1b93be07a824758bb253c39b",
        },
        "password": "[redacted]",
    });
    for record in &records {
        assert_eq!(record["params"]["arguments"], expected);
    }
}

/// Source with a resource and a template.
struct Far;

impl fmt::Display for Far {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the far source")
    }
}

impl Source for Far {
    async fn run(self, publisher: Publisher) {
        let read = |uri: String, _| {
            let contents = ResourceContents::new(uri, ResourceBody::Text("far".to_owned()));
            ready(Ok(ReadResourceResult::new(vec![contents])))
        };
        let mut offer = publisher.offer();
        offer.resource("far/today", Resource::new("far://today", "today"), read);
        let template = ResourceTemplate::new("far://days/{day}", "days");
        offer.template("far/days", template, read);
        publisher.publish(offer);
    }
}

#[tokio::test]
async fn uri_of_a_template_is_recorded_as_an_argument() {
    for (arguments, expected) in [
        (Arguments::None, json!([{"uri": "far://today"}, {}, {}])),
        (
            Arguments::Full,
            json!([{"uri": "far://today"}, {"uri": "far://days/ada"}, {"uri": "far://days/ada"}]),
        ),
    ] {
        let root = tempfile::tempdir().expect("a directory");
        let log = root.path().join("audit.jsonl");
        let mut options = Options::default();
        options.arguments = arguments;
        let mut fixture = Fixture::with(root, log, options, |server| server.source(Far)).await;
        let read =
            async |fixture: &Fixture, uri| fixture.ask("resources/read", json!({"uri": uri})).await;
        read(&fixture, "far://today").await;
        read(&fixture, "far://days/ada").await;
        let nobody = Principal::new("nobody").with_access(Access::default().allow_only([]));
        (fixture.connection, _) = Connection::open_for(nobody, &fixture.server, ToolNames::Path);
        read(&fixture, "far://days/ada").await;
        let records = fixture.records().await;
        let seen = |field| field_values(&records, field);
        assert_eq!(seen("outcome"), json!(["success", "success", "denied"]));
        assert_eq!(seen("params"), expected);
    }
}

#[tokio::test]
async fn secrets_of_all_tools_stay_out_of_the_audit_log() {
    let root = tempfile::tempdir().expect("a directory");
    let log = root.path().join("audit.jsonl");
    let rule = ToolPolicy::new("count").expect("a pattern");
    let policy = Policy::default().tool(rule.variable("API_KEY", "0123456789"));
    let fixture = Fixture::with(root, &log, Options::default(), |server| {
        server.policy(policy)
    })
    .await;
    let secret = "a 0123456789 b";
    fixture
        .call("login", json!({"user": secret, "password": secret}))
        .await;
    fixture.call(secret, json!({secret: [secret]})).await;
    fixture.call("native", json!({"0123456789": secret})).await;
    let uri = json!({"uri": "wiki://0123456789"});
    fixture.ask("resources/read", uri).await;
    let records = fixture.records().await;
    assert_eq!(records.len(), 4);
    let text = Value::from(records).to_string();
    assert!(text.contains("[redacted API_KEY]"));
    assert!(!text.contains("0123456789"), "{text}");
}

fn required_options() -> Options {
    let mut options = Options::default();
    options.mode = Mode::Require;
    options
}

#[tokio::test]
async fn required_record_is_written_before_anything_runs() {
    let root = tempfile::tempdir().expect("a directory");
    let log = root.path().join("audit.jsonl");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --help ] && {{ echo '{{\"description\": \"Looks.\"}}'; exit 0; }}\ncat '{}'\n",
        log.display()
    );
    write(&root.path().join("scripts/look"), &script);
    let fixture = Fixture::with(root, log, required_options(), |server| server).await;
    let answer = fixture.call("look", json!({})).await;
    let seen = answer["result"]["content"][0]["text"].as_str();
    let seen: Value = serde_json::from_str(seen.expect("a text")).expect("a record");
    let records = fixture.records().await;
    assert_eq!(records.len(), 2);
    assert_eq!(records[0], seen);
    assert_eq!(seen["event"], "begin");
    assert_eq!(seen["tool"], "look");
    assert_eq!(seen["success"], false);
    assert_eq!(seen["call_id"], records[1]["call_id"]);
    assert_eq!(records[1]["event"], "end");
    assert_eq!(records[1]["success"], true);
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn required_record_that_fails_prevents_the_run() {
    let root = tempfile::tempdir().expect("a directory");
    let fixture = Fixture::with(root, "/dev/full", required_options(), |server| server).await;
    let login = json!({"name": "login", "arguments": {"user": "ada", "password": "hunter2"}});
    let tea = json!({"name": "summary", "arguments": {"topic": "tea"}});
    for (method, params) in [
        ("tools/call", login),
        ("tools/call", json!({"name": "native"})),
        ("prompts/get", tea),
        ("resources/read", json!({"uri": "wiki://start"})),
    ] {
        let answer = fixture.ask(method, params).await;
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        let message = answer["error"]["message"].as_str().expect("a text");
        assert!(message.contains("cannot be recorded"), "{message}");
    }
    assert!(!fixture.root.path().join("scripts/ran").exists());
    assert!(fixture.audit.is_failing());
    // Requests that run nothing are answered all the same.
    let list = fixture.ask("tools/list", json!({})).await;
    assert!(list["result"]["tools"].is_array(), "{list}");
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn optional_record_that_fails_is_counted() {
    let root = tempfile::tempdir().expect("a directory");
    let fixture = Fixture::with(root, "/dev/full", Options::default(), |server| server).await;
    let arguments = json!({"user": "ada", "password": "hunter2"});
    for _ in 0..3 {
        let answer = fixture.call("login", arguments.clone()).await;
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    let counted = async {
        while fixture.audit.lost_records() < 3 {
            tokio::task::yield_now().await;
        }
    };
    let counted = tokio::time::timeout(HANG_TIMEOUT, counted).await;
    counted.expect("they are counted");
    assert!(fixture.audit.is_failing());
}
