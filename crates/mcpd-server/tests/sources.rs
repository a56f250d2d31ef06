//! Sources: served beside the scripts, followed, and harmless to them in failure; and settings
//! that leave sources unchanged.

use std::fmt;
use std::fs;
use std::future::ready;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcpd_exec::Limits;
use mcpd_protocol::jsonrpc::{ErrorCode, ErrorObject};
use mcpd_protocol::method::{
    CallToolResult, GetPromptResult, LoggingLevel, Prompt, ReadResourceResult, Resource, Tool,
};
use mcpd_server::source::{FIRST_WAIT, Offer, Publisher, Source};
use mcpd_server::{
    Connection, Interpreters, Policy, Reply, RunCommand, SandboxProfile, Server, ServerBuilder,
    Settings, ToolNames,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

/// Far longer than any step here; only a hang reaches it.
const HANG_TIMEOUT: Duration = Duration::from_secs(20);

const SCRIPT: &str = "#!/bin/sh\necho '{\"description\": \"a script\"}'\n";

/// Source controlled by a test.
struct TestSource(oneshot::Sender<Publisher>);

impl fmt::Display for TestSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the puppet")
    }
}

impl Source for TestSource {
    async fn run(self, publisher: Publisher) {
        self.0.send(publisher).expect("a test that waits for it");
    }
}

/// Source that panics before it becomes a task.
struct PanickingSource(&'static str);

impl fmt::Display for PanickingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Source for PanickingSource {
    fn run(self, _: Publisher) -> impl Future<Output = ()> + Send {
        assert!(self.0.is_empty(), "it can't be started");
        ready(())
    }
}

/// Server with one script and one source, and a client.
struct Fixture {
    _root: TempDir,
    server: Server,
    publisher: Publisher,
    connection: Connection,
    messages: mpsc::Receiver<bytes::Bytes>,
}

impl Fixture {
    /// Starts with the source's offer `first`.
    async fn new(first: impl FnOnce(&mut Offer)) -> Self {
        Self::of(Server::builder(), first).await
    }

    async fn of(builder: ServerBuilder, first: impl FnOnce(&mut Offer)) -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let script = root.path().join("script");
        fs::write(&script, SCRIPT).expect("written");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("executable");
        let (sender, publisher) = oneshot::channel();
        let server = builder
            .scripts(root.path())
            .source(TestSource(sender))
            .start()
            .expect("starts");
        let publisher = publisher.await.expect("started");
        let mut offer = publisher.offer();
        first(&mut offer);
        publisher.publish(offer);
        let (connection, messages) = Connection::open(&server, ToolNames::Path);
        server.catalog_ready().await;
        let fixture = Self {
            _root: root,
            server,
            publisher,
            connection,
            messages,
        };
        fixture.initialize("2025-11-25").await;
        fixture
    }

    async fn initialize(&self, version: &str) {
        let initialize = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}});
        self.request("initialize", initialize).await;
    }

    async fn request(&self, method: &str, params: impl fmt::Display) -> Value {
        answer(&self.connection, method, params).await
    }

    fn publish(&self, fill: impl FnOnce(&mut Offer)) {
        let mut offer = self.publisher.offer();
        fill(&mut offer);
        self.publisher.publish(offer);
    }

    /// Returns the next message that is no response.
    async fn message(&mut self) -> Value {
        let message = tokio::time::timeout(HANG_TIMEOUT, self.messages.recv());
        let message = message.await.expect("announced").expect("open");
        serde_json::from_slice(&message).expect("JSON")
    }

    /// Applies other settings, and waits until a source in them is served.
    async fn reload(&mut self, settings: Settings, path: &str) {
        let (sender, publisher) = oneshot::channel();
        let settings = settings.source(TestSource(sender));
        self.server.reload(settings).expect("is read");
        self.publisher = publisher.await.expect("started");
        self.publish(|offer| echo(offer, path));
        let message = self.message().await;
        assert_eq!(message["method"], "notifications/tools/list_changed");
        assert!(self.server.catalog().tool(path).is_some());
    }

    async fn names(&self) -> Vec<String> {
        let list = self.request("tools/list", json!({})).await;
        let tools = list["result"]["tools"].as_array().expect("a list");
        let name = |tool: &Value| tool["name"].as_str().expect("a name").to_owned();
        tools.iter().map(name).collect()
    }

    /// Waits for the notification of a changed list, and compares that.
    async fn expect(&mut self, names: &[&str]) {
        let message = self.message().await;
        assert_eq!(message["method"], "notifications/tools/list_changed");
        assert_eq!(self.names().await, names);
    }

    /// Waits until exactly these faults are known.
    async fn expect_faults(&self, faults: &[&str]) {
        let known = async {
            while self.server.catalog().offers()[0].faults() != faults {
                tokio::task::yield_now().await;
            }
        };
        let known = tokio::time::timeout(HANG_TIMEOUT, known).await;
        let offers = self.server.catalog().offers().to_vec();
        assert!(known.is_ok(), "{:?}", offers[0].faults());
    }
}

async fn answer(connection: &Connection, method: &str, params: impl fmt::Display) -> Value {
    let request =
        format!(r#"{{"jsonrpc": "2.0", "id": 1, "method": "{method}", "params": {params}}}"#);
    let answer = match connection.receive(request.as_bytes()) {
        Reply::Ready(answer) => answer,
        Reply::Pending(answer) => tokio::time::timeout(HANG_TIMEOUT, answer)
            .await
            .expect("an answer in time")
            .expect("not cancelled"),
        Reply::Nothing => panic!("no answer to {request}"),
    };
    serde_json::from_slice(&answer).expect("JSON")
}

fn definition(schema: &str) -> Tool {
    let schema = RawValue::from_string(schema.to_owned()).expect("JSON");
    Tool::new("the source's own name for it", schema)
}

/// Adds a tool that returns its arguments.
fn echo(offer: &mut Offer, path: &str) {
    let definition = definition(r#"{"type": "object"}"#);
    offer.tool(path, definition, async |arguments: Box<RawValue>, _| {
        Ok(CallToolResult::text(arguments.get()))
    });
}

#[tokio::test]
async fn list_follows_the_offer_of_a_source() {
    let mut served = Fixture::new(|offer| echo(offer, "far/one")).await;
    assert_eq!(served.names().await, ["far/one", "script"]);
    served.publish(|offer| {
        echo(offer, "far/one");
        echo(offer, "far/two");
    });
    served.expect(&["far/one", "far/two", "script"]).await;
    served.publish(|_| {});
    served.expect(&["script"]).await;
}

#[tokio::test]
async fn remote_tool_is_marked_as_remote() {
    let served = Fixture::new(|offer| echo(offer, "far/one")).await;
    let list = served.request("tools/list", json!({})).await;
    assert_eq!(
        list["result"]["tools"][0],
        json!({
            "name": "far/one",
            "title": "far/one",
            "inputSchema": {"type": "object", "properties": {}},
            "_meta": {"mcpd/path": "far/one", "mcpd/origin": "remote"}
        })
    );
    let catalog = served.server.catalog();
    let source = |name| catalog.tool(name).expect("it is served").source();
    assert_eq!(source("far/one"), Some("the puppet"));
    assert_eq!(source("script"), None);
}

#[tokio::test]
async fn remote_tool_keeps_the_title_in_its_annotations() {
    let served = Fixture::new(|offer| {
        let mut definition = definition(r#"{"type": "object"}"#);
        definition.annotations.get_or_insert_default().title = Some("One".to_owned());
        offer.tool("far/one", definition, async |_, _| {
            Ok(CallToolResult::text(""))
        });
    })
    .await;
    for version in ["2025-03-26", "2025-11-25"] {
        served.initialize(version).await;
        let list = served.request("tools/list", json!({})).await;
        let tool = &list["result"]["tools"][0];
        assert_eq!(tool["annotations"], json!({"title": "One"}));
        assert_eq!(tool["title"], Value::Null, "{version}");
    }
}

#[tokio::test]
async fn script_takes_precedence_over_a_remote_tool() {
    let served = Fixture::new(|offer| echo(offer, "script")).await;
    assert_eq!(served.names().await, ["script"]);
    let catalog = served.server.catalog();
    assert_eq!(catalog.tools()[0].source(), None);
    let message = &catalog.conflicts()[0].message;
    assert!(
        message.starts_with("`script` (the puppet) is not served: `script` ("),
        "{message}"
    );
}

#[tokio::test]
async fn failing_source_keeps_its_tools_and_is_reported() {
    let mut served = Fixture::new(|offer| echo(offer, "far/one")).await;
    served.expect_faults(&[]).await;
    served.publisher.fail("has burnt down");
    served.expect_faults(&["has burnt down"]).await;
    assert_eq!(served.names().await, ["far/one", "script"]);
    served.publish(|offer| {
        offer.fault("has lost a wall");
        echo(offer, "far/two");
    });
    served.expect(&["far/two", "script"]).await;
    served.expect_faults(&["has lost a wall"]).await;
    served.publish(|offer| echo(offer, "far/two"));
    served.expect_faults(&[]).await;
}

#[tokio::test]
async fn unservable_entry_is_a_fault_and_the_rest_is_served() {
    let unserved = |offer: &mut Offer, path: &str, schema: &str| {
        offer.tool(path, definition(schema), async |_, _| {
            Ok(CallToolResult::text(""))
        });
    };
    let served = Fixture::new(|offer| {
        unserved(offer, "far/../one", r#"{"type": "object"}"#);
        unserved(offer, "far/two", "true");
        unserved(offer, "far/three", r#"{"type": "array"}"#);
        let number =
            r#"{"type": "object", "properties": {"n": {"type": "number", "x-mcp-header": "N"}}}"#;
        unserved(offer, "far/five", number);
        echo(offer, "far/four");
    })
    .await;
    assert_eq!(served.names().await, ["far/four", "script"]);
    let faults = served.server.catalog().offers()[0].faults().to_vec();
    let no_object = r#"its input schema lacks `"type": "object"`"#;
    assert_eq!(
        faults,
        [
            "has the tool `far/../one`, which cannot be served: the path has the segment `..`"
                .to_owned(),
            format!("has the tool `far/two`, which cannot be served: {no_object}"),
            format!("has the tool `far/three`, which cannot be served: {no_object}"),
            "has the tool `far/five`, which cannot be served: its `x-mcp-header`: only a `string`, `integer` or `boolean` can be repeated in a header".to_owned(),
        ]
    );
}

#[tokio::test]
async fn source_that_panics_at_its_start_does_not_block_the_list() {
    let mut fixture = Fixture::new(|offer| echo(offer, "echo")).await;
    let settings = Settings::default().source(PanickingSource("stillborn"));
    fixture.server.reload(settings).expect("is read");
    fixture.expect(&["script"]).await;
}

/// Source with a constant fingerprint.
struct ConstantSource {
    starts: Arc<AtomicUsize>,
    follows_policy: bool,
}

impl fmt::Display for ConstantSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the same")
    }
}

impl Source for ConstantSource {
    async fn run(self, publisher: Publisher) {
        self.starts.fetch_add(1, Ordering::Relaxed);
        publisher.publish(publisher.offer());
    }

    fn fingerprint(&self) -> Option<u64> {
        Some(self.follows_policy.into())
    }

    fn follows_policy(&self) -> bool {
        self.follows_policy
    }
}

#[tokio::test]
async fn source_survives_a_reload_unless_its_policy_changes() {
    let fixture = Fixture::new(|_| {}).await;
    let starts = [false, true].map(|follows_policy| (follows_policy, Arc::default()));
    let settings = |seconds| {
        let mut limits = Limits::default();
        limits.wall = Duration::from_secs(seconds);
        let settings = Settings::default().policy(Policy::default().limits(limits));
        let add = |settings: Settings, (follows_policy, starts): &(bool, Arc<AtomicUsize>)| {
            settings.source(ConstantSource {
                starts: Arc::clone(starts),
                follows_policy: *follows_policy,
            })
        };
        starts.iter().fold(settings, add)
    };
    let interpreters = Interpreters::default().set("x", ["/bin/sh"]);
    for (settings, expected) in [
        (settings(10), [1, 1]),
        (settings(10).interpreters(interpreters), [1, 1]),
        (settings(20), [1, 2]),
    ] {
        let (sender, last) = oneshot::channel();
        let settings = settings.source(TestSource(sender));
        fixture.server.reload(settings).expect("is read");
        last.await.expect("started after the others");
        let counted = [&starts[0].1, &starts[1].1].map(|starts| starts.load(Ordering::Relaxed));
        assert_eq!(counted, expected);
    }
}

#[tokio::test]
async fn run_command_keeps_its_directory_in_a_reload_without_changes() {
    let run_command = || RunCommand::default().sandbox(SandboxProfile::default());
    let builder = Server::builder().run_command(run_command());
    let mut fixture = Fixture::of(builder, |_| {}).await;
    let directory = async |fixture: &Fixture| {
        let call = json!({"name": "run_command", "arguments": {"command": "pwd"}});
        let mut answer = fixture.request("tools/call", call).await;
        answer["result"]["content"].take()
    };
    let first = directory(&fixture).await;
    let same = Settings::default().run_command(run_command());
    fixture.reload(same, "far/one").await;
    assert_eq!(directory(&fixture).await, first);
    let other = run_command().deny("rm").expect("a pattern");
    let other = Settings::default().run_command(other);
    fixture.reload(other, "far/two").await;
    assert_ne!(directory(&fixture).await, first);
}

#[tokio::test]
async fn run_command_is_not_added_by_a_reload() {
    let mut fixture = Fixture::new(|_| {}).await;
    let settings = Settings::default().run_command(RunCommand::default());
    fixture.reload(settings, "far/one").await;
    assert_eq!(fixture.names().await, ["far/one", "script"]);
}

#[tokio::test]
async fn entries_of_a_source_are_bounded() {
    let served = Fixture::new(|offer| {
        for number in 0..1100 {
            echo(offer, &format!("far/{number}"));
            offer.fault("is too large");
        }
    })
    .await;
    assert_eq!(served.server.catalog().tools().len(), 1001);
    assert_eq!(served.server.catalog().offers()[0].faults().len(), 20);
}

#[track_caller]
fn check_text(answer: &Value, expected: &str) {
    assert_eq!(answer["result"]["content"][0]["text"], expected, "{answer}");
}

#[tokio::test]
async fn remote_call_gets_its_arguments_as_sent() {
    let served = Fixture::new(|offer| echo(offer, "far/one")).await;
    let call = async |arguments: &str| {
        let params = format!(r#"{{"name": "far_one", "arguments": {arguments}}}"#);
        served.request("tools/call", params).await
    };
    let sent = r#"{"n":1.50,"a":[1]}"#;
    check_text(&call(sent).await, sent);
    check_text(&call("null").await, "{}");
    check_text(&call("[]").await, "{}");
    for (arguments, kind) in [
        ("[1]", "an array"),
        (r#""{}""#, "a string"),
        ("1", "a number"),
    ] {
        let error = &call(arguments).await["error"];
        let told = format!("invalid params: `arguments` must be an object, not {kind}");
        assert_eq!(
            (&error["code"], &error["message"]),
            (&json!(-32602), &json!(told))
        );
    }
    for (arguments, fault) in [
        (
            r#"{"a":1,"a":2}"#,
            "option `a`: expected each key once, got `a` twice",
        ),
        (
            r#"{"o":{"a":1,"a":2}}"#,
            "option `o`: expected each key once, got `a` twice",
        ),
    ] {
        let answer = call(arguments).await;
        check_text(&answer, &format!("Invalid arguments: {fault}"));
        assert_eq!(answer["result"]["isError"], true);
    }
}

#[tokio::test]
async fn schema_of_a_source_is_listed_in_portable_form() {
    let declared = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "model": true,
            "day": {"type": "string", "format": "date", "default": ""},
            "maße": {"type": "array", "items": {"properties": {"länge": {"type": "number"}}}},
        },
        "required": ["maße"],
    });
    let fixture = Fixture::new(|offer| {
        offer.tool(
            "measure",
            definition(&declared.to_string()),
            |arguments, _| async move { Ok(CallToolResult::text(arguments.get())) },
        );
    })
    .await;
    let (portable, _messages) = Connection::open(&fixture.server, ToolNames::Portable);
    let initialize = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}});
    answer(&portable, "initialize", initialize).await;
    let listed = answer(&portable, "tools/list", json!({})).await;
    let expected = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "model": {},
            "day": {"type": "string", "format": "date"},
            "masse": {
                "type": "array",
                "items": {"properties": {"lange": {"type": "number", "description": "Called `länge`."}}},
                "description": "Called `maße`.",
            },
        },
        "required": ["masse"],
    });
    let tools = listed["result"]["tools"].as_array().expect("a list");
    let tool = tools.iter().find(|tool| tool["name"] == "measure");
    assert_eq!(tool.expect("listed")["inputSchema"], expected);
    for sent in [
        r#"{"masse":[{"lange":1.50}],"day":"x"}"#,
        r#"{"maße":[{"länge":1.50}],"day":"x"}"#,
    ] {
        let call = format!(r#"{{"name":"measure","arguments":{sent}}}"#);
        let result = answer(&portable, "tools/call", call).await;
        check_text(&result, r#"{"maße":[{"länge":1.50}],"day":"x"}"#);
    }
    let catalog = fixture.server.catalog();
    let remarks = catalog.tool("measure").expect("served").remarks();
    let codes: Vec<_> = remarks.iter().map(|(code, _)| code.as_str()).collect();
    let expected = [
        "unportable-schema",
        "forbidden-default",
        "unportable-option-name",
        "unportable-option-name",
    ];
    assert_eq!(codes, expected);
    let by_path = fixture.request("tools/list", json!({})).await;
    assert!(by_path.to_string().contains("maße\":{\"type"), "{by_path}");
}

#[tokio::test]
async fn reserved_error_code_of_a_source_is_not_passed_on() {
    for (code, passed_on) in [
        (-32601, -32603),
        (-32042, -32603),
        (-32021, -32603),
        (-32000, -32603),
        (-32602, -32602),
        (429, 429),
    ] {
        let error = ErrorObject::new(ErrorCode::new(code), "not now").with_data(&json!({}));
        let served = Fixture::new(|offer| {
            let (tool, prompt, resource) = (error.clone(), error.clone(), error.clone());
            offer.tool("far", definition(r#"{"type": "object"}"#), move |_, _| {
                ready(Err(tool.clone()))
            });
            offer.prompt("far", Prompt::new("far"), move |_, _| {
                ready(Err(prompt.clone()))
            });
            offer.resource("far", Resource::new("far://", "far"), move |_, _| {
                ready(Err(resource.clone()))
            });
        })
        .await;
        for (method, params) in [
            ("tools/call", json!({"name": "far"})),
            ("prompts/get", json!({"name": "far"})),
            ("resources/read", json!({"uri": "far://"})),
        ] {
            let answer = served.request(method, params).await;
            assert_eq!(answer["error"]["code"], passed_on, "{method} {code}");
            assert_eq!(answer["error"]["message"], "not now");
        }
    }
}

#[tokio::test]
async fn remote_call_reports_progress() {
    let mut served = Fixture::new(|offer| {
        let definition = definition(r#"{"type": "object"}"#);
        offer.tool("work", definition, async |_, mut context| {
            context.progress(1.0, Some(2.0), Some("half"));
            context.log(LoggingLevel::Error, "it creaks");
            Ok(CallToolResult::text("done"))
        });
    })
    .await;
    let level = json!({"level": "debug"});
    served.request("logging/setLevel", level).await;
    let params = json!({"name": "work", "_meta": {"progressToken": "p"}});
    check_text(&served.request("tools/call", params).await, "done");
    let message = served.message().await;
    let told = json!({"progressToken": "p", "progress": 1, "total": 2, "message": "half"});
    assert_eq!(message["params"], told);
    let message = served.message().await;
    let told = json!({"level": "error", "logger": "work", "data": "it creaks"});
    assert_eq!(message["params"], told);
}

#[tokio::test]
async fn computing_source_does_not_delay_the_next_message() {
    let computed = Arc::new(AtomicUsize::new(0));
    let served = Fixture::new(|offer| {
        let compute = || {
            let computed = Arc::clone(&computed);
            move || computed.fetch_add(1, Ordering::Relaxed)
        };
        let work = compute();
        let tool = definition(r#"{"type": "object"}"#);
        offer.tool("work", tool, move |_, _| {
            let work = work.clone();
            async move { Ok(CallToolResult::text(work().to_string())) }
        });
        let work = compute();
        offer.prompt("work", Prompt::new("work"), move |_, _| {
            let work = work.clone();
            async move {
                work();
                Ok(GetPromptResult::default())
            }
        });
        let work = compute();
        let resource = Resource::new("work://1", "work");
        offer.resource("work/1", resource, move |_, _| {
            let work = work.clone();
            async move {
                work();
                Ok(ReadResourceResult::default())
            }
        });
    })
    .await;
    for (done, (method, params)) in [
        ("tools/call", json!({"name": "work"})),
        ("prompts/get", json!({"name": "work"})),
        ("resources/read", json!({"uri": "work://1"})),
    ]
    .into_iter()
    .enumerate()
    {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let reply = served.connection.receive(request.to_string().as_bytes());
        assert_eq!(computed.load(Ordering::Relaxed), done, "{method}");
        let Reply::Pending(answer) = reply else {
            panic!("it takes a turn of the runtime: {reply:?}");
        };
        answer.await.expect("not cancelled");
        assert_eq!(computed.load(Ordering::Relaxed), done + 1, "{method}");
    }
}

#[tokio::test]
async fn cancelled_remote_call_is_dropped() {
    /// Notifies when it is dropped.
    struct Held(Arc<Notify>);

    impl Drop for Held {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }

    let (started, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let served = Fixture::new(|offer| {
        let (started, dropped) = (Arc::clone(&started), Arc::clone(&dropped));
        let definition = definition(r#"{"type": "object"}"#);
        offer.tool("hang", definition, move |_, _| {
            let (started, held) = (Arc::clone(&started), Held(Arc::clone(&dropped)));
            async move {
                let _held = held;
                started.notify_one();
                std::future::pending().await
            }
        });
    })
    .await;
    let call =
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "hang"}});
    let Reply::Pending(call) = served.connection.receive(call.to_string().as_bytes()) else {
        panic!("it hangs");
    };
    let call = tokio::spawn(call);
    let patiently =
        async |notify: &Notify| tokio::time::timeout(HANG_TIMEOUT, notify.notified()).await;
    patiently(&started).await.expect("it has started");
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    served.connection.receive(cancel.to_string().as_bytes());
    patiently(&dropped).await.expect("it is dropped");
    assert_eq!(call.await.expect("no panic"), None);
}

#[tokio::test(start_paused = true)]
async fn silent_source_delays_the_first_list_by_seconds_only() {
    let (sender, publisher) = oneshot::channel();
    let server = Server::builder()
        .source(TestSource(sender))
        .start()
        .expect("starts");
    let began = Instant::now();
    let publisher = publisher.await.expect("started");
    server.catalog_ready().await;
    assert_eq!(began.elapsed().as_secs(), FIRST_WAIT.as_secs());
    let silent = ["has not listed its tools within 5 s"];
    assert_eq!(server.catalog().offers()[0].faults(), silent);
    drop(publisher);
}
