//! Changes to a served directory: lists follow, subscribers are notified, runs finish, and a
//! second start probes nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use mcpd_exec::{Config, Executor, Level};
use mcpd_server::policy::{Access, CallPattern, Probing};
use mcpd_server::{
    Connection, Database, Policy, Principal, Reply, Server, ServerBuilder, ToolNames,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Far longer than any step here; only a hang reaches it.
const HANG_TIMEOUT: Duration = Duration::from_secs(20);

fn write(path: &Path, body: &str) {
    fs::create_dir_all(path.parent().expect("a directory")).expect("created");
    // As editors do: written completely beside the old file, then renamed.
    let new = path.with_extension("new~");
    fs::write(&new, body).expect("written");
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).expect("executable");
    fs::rename(&new, path).expect("renamed");
}

fn script(description: &str, run: &str) -> String {
    describe(&json!({"description": description}), run)
}

fn describe(metadata: &Value, run: &str) -> String {
    format!("#!/bin/sh\nif [ \"$1\" = --help ]; then\n  echo '{metadata}'\n  exit 0\nfi\n{run}\n")
}

/// Returns the response to a request.
async fn ask(connection: &Connection, request: &Value) -> Value {
    let answer = match connection.receive(request.to_string().as_bytes()) {
        Reply::Ready(answer) => answer,
        Reply::Pending(answer) => answer.await.expect("not cancelled"),
        Reply::Nothing => panic!("no answer to {request}"),
    };
    serde_json::from_slice(&answer).expect("JSON")
}

/// Served directory, and a client that listens to it.
struct Fixture {
    root: TempDir,
    server: Server,
    connection: Connection,
    messages: mpsc::Receiver<bytes::Bytes>,
}

impl Fixture {
    async fn new() -> Self {
        Self::of(Server::builder()).await
    }

    async fn of(server: ServerBuilder) -> Self {
        let root = tempfile::tempdir().expect("a directory");
        write(&root.path().join("first"), &script("one", "echo 1"));
        let server = server.scripts(root.path()).start().expect("starts");
        let (connection, messages) = Connection::open(&server, ToolNames::Path);
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}});
        let fixture = Self {
            root,
            server,
            connection,
            messages,
        };
        fixture.request(&initialize).await;
        fixture.server.catalog_ready().await;
        fixture
    }

    async fn request(&self, request: &Value) -> Value {
        ask(&self.connection, request).await
    }

    /// Begins a call of a script that creates the file `started` when it runs.
    async fn begin(&self, call: &Value) -> JoinHandle<Option<bytes::Bytes>> {
        let Reply::Pending(running) = self.connection.receive(call.to_string().as_bytes()) else {
            panic!("runs")
        };
        let running = tokio::spawn(running);
        let started = self.root.path().join("started");
        while !started.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        running
    }

    /// Path and description of every listed tool.
    async fn list(&self) -> Vec<String> {
        self.list_of("tools").await
    }

    /// Name and description of every entry of a list.
    async fn list_of(&self, what: &str) -> Vec<String> {
        let method = format!("{what}/list");
        let list = self
            .request(&json!({"jsonrpc": "2.0", "id": 1, "method": method}))
            .await;
        let entries = list["result"][what].as_array().expect("a list");
        entries
            .iter()
            .map(|entry| {
                format!(
                    "{}: {}",
                    entry["name"].as_str().unwrap_or("?"),
                    entry["description"].as_str().unwrap_or("-")
                )
            })
            .collect()
    }

    /// Returns the next message that is no response.
    async fn message(&mut self) -> Value {
        let message = tokio::time::timeout(HANG_TIMEOUT, self.messages.recv())
            .await
            .expect("announced")
            .expect("open");
        serde_json::from_slice(&message).expect("JSON")
    }

    /// Waits for exactly these notifications, in order.
    async fn expect_events(&mut self, methods: &[&str]) {
        for method in methods {
            let message = self.message().await;
            assert_eq!(
                message["method"],
                format!("notifications/{method}"),
                "{message}"
            );
        }
    }

    /// Waits for the notification of a changed list, and compares that.
    async fn expect(&mut self, expected: &[&str]) {
        let changed = Instant::now();
        self.expect_events(&["tools/list_changed"]).await;
        assert_eq!(self.list().await, expected, "after {:?}", changed.elapsed());
    }
}

#[tokio::test]
async fn list_follows_every_kind_of_change() {
    let mut served = Fixture::new().await;
    assert_eq!(served.list().await, ["first: one"]);
    let at = |name: &str| served.root.path().join(name);
    let (first, second) = (at("first"), at("sub/second"));

    write(&first, &script("edited", "echo 1"));
    served.expect(&["first: edited"]).await;
    write(&second, &script("added", "echo 2"));
    served.expect(&["first: edited", "sub/second: added"]).await;
    write(&first, "#!/bin/sh\necho broken\n");
    served.expect(&["sub/second: added"]).await;
    let catalog = served.server.catalog();
    let faulty: Vec<_> = catalog
        .scan()
        .scripts
        .iter()
        .filter(|script| script.spec.is_none())
        .collect();
    assert_eq!(faulty[0].path.as_str(), "first");
    assert!(!faulty[0].diagnostics.is_empty());
    write(&first, &script("mended", "echo 1"));
    served.expect(&["first: mended", "sub/second: added"]).await;
    fs::remove_dir_all(second.parent().expect("sub")).expect("removed");
    served.expect(&["first: mended"]).await;
    fs::set_permissions(&first, fs::Permissions::from_mode(0o644)).expect("no longer executable");
    served.expect(&[]).await;
}

#[tokio::test]
async fn change_of_each_list_is_announced_separately() {
    let mut served = Fixture::new().await;
    let at = |name: &str| served.root.path().join(name);
    let (first, page, notes) = (at("first"), at("page"), at("notes"));
    let prompt = json!({"kind": "prompt", "description": "asks"});
    write(&page, &describe(&prompt, "echo"));
    served.expect_events(&["prompts/list_changed"]).await;
    assert_eq!(served.list_of("prompts").await, ["page: asks"]);

    write(&first, &describe(&prompt, "echo"));
    served
        .expect_events(&["tools/list_changed", "prompts/list_changed"])
        .await;
    assert_eq!(
        served.list_of("prompts").await,
        ["first: asks", "page: asks"]
    );
    assert!(served.list().await.is_empty());

    let resource = json!({"kind": "resource", "uri": "notes://today", "description": "of today"});
    write(&notes, &describe(&resource, "echo"));
    served.expect_events(&["resources/list_changed"]).await;
    assert_eq!(served.list_of("resources").await, ["notes: of today"]);
    let template =
        json!({"kind": "resource", "uri_template": "notes://{day}", "description": "of a day"});
    let options = r#"echo '{"day": {"description": "Which", "required": true}}' >&2"#;
    let script = describe(&template, "echo").replace("  exit 0", &format!("  {options}\n  exit 0"));
    write(&notes, &script);
    served.expect_events(&["resources/list_changed"]).await;
    assert!(served.list_of("resources").await.is_empty());
    assert_eq!(served.server.catalog().templates().len(), 1);
}

#[tokio::test]
async fn static_file_is_followed_by_its_content() {
    let mut served = Fixture::new().await;
    let file = served.root.path().join("resources/log.txt");
    write(&file, "one");
    served.expect_events(&["resources/list_changed"]).await;
    assert_eq!(served.list_of("resources").await, ["log.txt: -"]);
    let on_it = |id: u32, method: &str| {
        json!({"jsonrpc": "2.0", "id": id, "method": method,
            "params": {"uri": "mcpd://resources/log.txt"}})
    };
    let mut subscribe = on_it(2, "resources/subscribe");
    // An equivalent spelling is the same resource, and appears in notifications.
    subscribe["params"]["uri"] = json!("mcpd://resources/l%6Fg.txt");
    served.request(&subscribe).await;

    // Written in place, and longer than before: its list is unchanged.
    fs::write(&file, "one, two").expect("written");
    let message = served.message().await;
    assert_eq!(message["method"], "notifications/resources/updated");
    assert_eq!(message["params"]["uri"], "mcpd://resources/l%6Fg.txt");
    let read = served.request(&on_it(3, "resources/read")).await;
    assert_eq!(read["result"]["contents"][0]["text"], "one, two");

    let both = ["resources/list_changed", "resources/updated"];
    fs::remove_file(&file).expect("removed");
    served.expect_events(&both).await;
    let read = served.request(&on_it(4, "resources/read")).await;
    assert_eq!(read["error"]["code"], -32002, "{read}");
    write(&file, "three");
    served.expect_events(&both).await;
    let read = served.request(&on_it(5, "resources/read")).await;
    assert_eq!(read["result"]["contents"][0]["text"], "three");
}

#[tokio::test]
async fn change_of_a_denied_file_is_not_announced() {
    let served = Fixture::new().await;
    let closed = CallPattern::default().tool("resources/closed.txt").unwrap();
    let guest = Principal::new("guest").with_access(Access::default().deny(closed));
    let (connection, mut messages) = Connection::open_for(guest, &served.server, ToolNames::Path);
    let uris = ["closed", "open"].map(|name| format!("mcpd://resources/{name}.txt"));
    let listen = json!({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": {
        "notifications": {"resourceSubscriptions": uris},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}}});
    let Reply::Pending(listening) = connection.receive(listen.to_string().as_bytes()) else {
        panic!("stays open")
    };
    tokio::spawn(listening);
    let mut heard = async || {
        let message = tokio::time::timeout(HANG_TIMEOUT, messages.recv()).await;
        let message = message.expect("told").expect("open");
        let message: Value = serde_json::from_slice(&message).expect("JSON");
        message["params"]["uri"].clone()
    };
    assert!(heard().await.is_null(), "the acknowledgement");

    let [closed, open] =
        ["closed.txt", "open.txt"].map(|name| served.root.path().join("resources").join(name));
    let is_there = |uri: &String| served.server.catalog().resource(uri).is_some();
    write(&closed, "one");
    eventually(|| is_there(&uris[0])).await;
    write(&open, "one");
    assert_eq!(heard().await, uris[1]);
    fs::remove_file(&closed).expect("removed");
    eventually(|| !is_there(&uris[0])).await;
    fs::remove_file(&open).expect("removed");
    assert_eq!(heard().await, uris[1]);
}

#[tokio::test]
async fn listener_is_notified_of_prompts_if_subscribed() {
    let mut served = Fixture::new().await;
    let listen = json!({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": {
        "notifications": {"promptsListChanged": true},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}}});
    let Reply::Pending(listening) = served.connection.receive(listen.to_string().as_bytes()) else {
        panic!("stays open")
    };
    let listening = tokio::spawn(listening);
    let acknowledged = served.message().await;
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({"promptsListChanged": true})
    );
    let prompt = describe(&json!({"kind": "prompt", "description": "asks"}), "echo");
    write(&served.root.path().join("page"), &prompt);
    // The session of the same client gets it too; the listener's copy has its subscription id.
    let messages = [served.message().await, served.message().await];
    let ids = messages.map(|message| {
        assert_eq!(message["method"], "notifications/prompts/list_changed");
        message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone()
    });
    assert!(
        ids.contains(&json!("l")) && ids.contains(&Value::Null),
        "{ids:?}"
    );
    served.connection.close();
    let ended = tokio::time::timeout(HANG_TIMEOUT, listening).await;
    assert!(ended.expect("ends").expect("no panic").is_some());
}

#[tokio::test]
async fn state_subscriber_is_notified_of_cancelled_calls() {
    let mut served = Fixture::new().await;
    let keeper = describe(
        &json!({"description": "keeps", "state": true}),
        "touch started; exec sleep 60",
    );
    write(&served.root.path().join("keeper"), &keeper);
    served.expect(&["first: one", "keeper: keeps"]).await;
    served.expect_events(&["resources/list_changed"]).await;
    let uri = json!({"uri": "mcpd://keeper/state"});
    let subscribe =
        json!({"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": uri});
    served.request(&subscribe).await;
    let call =
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "keeper"}});
    let running = served.begin(&call).await;
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}});
    served.connection.receive(cancel.to_string().as_bytes());
    let message = served.message().await;
    assert_eq!(message["method"], "notifications/resources/updated");
    assert_eq!(message["params"]["uri"], "mcpd://keeper/state");
    assert!(running.await.expect("no panic").is_none());
}

#[tokio::test]
async fn failing_state_is_an_error_with_the_exit_code() {
    let mut served = Fixture::new().await;
    let closed = describe(
        &json!({"description": "keeps", "state": true}),
        "echo why >&2; exit 3",
    );
    write(&served.root.path().join("closed"), &closed);
    served.expect(&["closed: keeps", "first: one"]).await;
    let read = json!({"jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": {"uri": "mcpd://closed/state"}});
    let answer = served.request(&read).await;
    assert_eq!(
        answer["error"]["message"],
        "failed to read the state of `closed`: `--state` failed with exit code 3 (forbidden). The end of its stderr:\nwhy"
    );
}

#[tokio::test]
async fn access_change_is_announced() {
    let mut served = Fixture::new().await;
    served.server.notify_access_changed();
    served
        .expect_events(&[
            "tools/list_changed",
            "prompts/list_changed",
            "resources/list_changed",
        ])
        .await;
}

#[tokio::test]
async fn script_replaced_or_removed_during_a_run_finishes() {
    let mut served = Fixture::new().await;
    let path = served.root.path().join("slow");
    write(
        &path,
        &script(
            "slow",
            "touch started; while [ ! -e go ]; do sleep 0.01; done; echo old",
        ),
    );
    served.expect(&["first: one", "slow: slow"]).await;
    let call =
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "slow"}});
    let running = served.begin(&call).await;
    fs::remove_file(&path).expect("removed");
    served.expect(&["first: one"]).await;
    fs::write(served.root.path().join("go"), "").expect("written");
    let answer = tokio::time::timeout(HANG_TIMEOUT, running)
        .await
        .expect("ends")
        .expect("no panic")
        .expect("an answer");
    assert!(
        String::from_utf8_lossy(&answer).contains("old"),
        "{answer:?}"
    );
    let answer = served.request(&call).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[tokio::test]
async fn script_has_a_grace_period_when_the_server_stops() {
    let executor = Executor::new(Config::default()).expect("starts");
    let one_for_both = Server::builder()
        .probes(executor.clone())
        .executor(executor);
    for server in [Server::builder(), one_for_both] {
        let mut served = Fixture::of(server).await;
        let tidy = "trap 'sleep 0.3; touch tidied; exit 1' TERM; touch started; sleep 60 & wait";
        write(&served.root.path().join("tidy"), &script("tidy", tidy));
        served.expect(&["first: one", "tidy: tidy"]).await;
        let call =
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "tidy"}});
        let running = served.begin(&call).await;
        served.server.shutdown().await;
        running.await.expect("no panic").expect("an answer");
        assert!(served.root.path().join("tidied").exists());
    }
}

#[tokio::test]
async fn second_start_probes_no_script() {
    let root = tempfile::tempdir().expect("a directory");
    let cache = tempfile::tempdir().expect("a directory");
    let runs = root.path().join("runs");
    let counted = format!(
        "#!/bin/sh\necho run >> {}\necho '{{\"description\": \"counted\"}}'\n",
        runs.display()
    );
    for name in ["a", "b", "c"] {
        write(&root.path().join(name), &counted);
    }
    // Nor is a script that was no tool probed again, nor a faulty one.
    let other = format!("#!/bin/sh\necho run >> {}\nexit 1\n", runs.display());
    write(&root.path().join("other"), &other);
    write(
        &root.path().join("faulty"),
        &format!("{other}# MCPD_OPT_a\n"),
    );
    // Confinement would keep them from counting.
    let policy = Policy::default().probing(Probing::default().level(Level::None));
    let start = || {
        Server::builder()
            .scripts(root.path())
            .policy(policy.clone())
            .database(Database::new(cache.path().join("mcpd.db")))
            .watch(false)
            .start()
            .expect("starts")
    };
    let count = || fs::read_to_string(&runs).map_or(0, |text| text.lines().count());

    let first = start();
    first.catalog_ready().await;
    assert_eq!((first.catalog().tools().len(), count()), (3, 5));
    let second = start();
    second.catalog_ready().await;
    assert_eq!((second.catalog().tools().len(), count()), (3, 5));

    // Only the changed script is probed again, and a damaged cache counts as none.
    write(&root.path().join("b"), &counted);
    let third = start();
    third.catalog_ready().await;
    assert_eq!((third.catalog().tools().len(), count()), (3, 6));
    for file in fs::read_dir(cache.path()).expect("the cache") {
        fs::write(file.expect("an entry").path(), "{torn").expect("written");
    }
    let fourth = start();
    fourth.catalog_ready().await;
    assert_eq!((fourth.catalog().tools().len(), count()), (3, 11));
}

#[tokio::test]
async fn change_is_listed_while_the_database_is_locked() {
    /// Time limit of the wait for another writer.
    const GIVEN_UP: Duration = Duration::from_secs(5);
    let roots = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let cache = tempfile::tempdir().expect("a directory");
    let database = Database::new(cache.path().join("mcpd.db"));
    for (number, root) in roots.iter().enumerate() {
        write(
            &root.path().join(format!("tool-{number}")),
            &script("old", ""),
        );
    }
    let server = Server::builder()
        .scripts(roots[0].path())
        .scripts(roots[1].path())
        .database(database.clone())
        .start()
        .expect("starts");
    server.catalog_ready().await;

    let other = rusqlite::Connection::open(database.file()).expect("opened");
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");
    for (number, root) in roots.iter().enumerate() {
        write(
            &root.path().join(format!("tool-{number}")),
            &script("new", ""),
        );
    }
    let written = Instant::now();
    let is_new = |name: &str| {
        let catalog = server.catalog();
        let tool = catalog.tool(name);
        tool.is_some_and(|tool| tool.definition().description.as_deref() == Some("new"))
    };
    eventually(|| is_new("tool-0") && is_new("tool-1")).await;
    assert!(written.elapsed() < GIVEN_UP, "{:?}", written.elapsed());

    // The listed script is saved as soon as possible.
    other.execute_batch("COMMIT").expect("unlocked");
    eventually(|| {
        let known = database.definitions(None).expect("read");
        let mut metadata = known.iter().map(|known| known.metadata.get());
        metadata.all(|metadata| metadata.contains("\"new\""))
    })
    .await;
}

#[tokio::test]
async fn cached_script_is_served_only_with_its_interpreter() {
    let root = tempfile::tempdir().expect("a directory");
    let elsewhere = tempfile::tempdir().expect("a directory");
    let interpreter = elsewhere.path().join("interpreter");
    let link = || std::os::unix::fs::symlink("/bin/sh", &interpreter).expect("linked");
    link();
    let ours = format!("#!{}", interpreter.display());
    let theirs = script("described", "echo");
    for name in ["a", "b"] {
        write(&root.path().join(name), &theirs.replace("#!/bin/sh", &ours));
    }
    write(&root.path().join("c"), &theirs);
    let tools = async || {
        let server = Server::builder()
            .scripts(root.path())
            .database(Database::new(elsewhere.path().join("mcpd.db")))
            .watch(false)
            .start()
            .expect("starts");
        server.catalog_ready().await;
        let catalog = server.catalog();
        for faulty in catalog.scan().faulty() {
            let fault = &faulty.diagnostics[0];
            assert_eq!(fault.code.as_str(), "help-not-started");
        }
        catalog.tools().len()
    };
    assert_eq!(tools().await, 3);
    assert_eq!(tools().await, 3);
    fs::remove_file(&interpreter).expect("removed");
    assert_eq!(tools().await, 1);
    link();
    assert_eq!(tools().await, 3);
}

#[tokio::test]
async fn uri_conflict_serves_the_first() {
    let root = tempfile::tempdir().expect("a directory");
    let other = tempfile::tempdir().expect("a directory");
    let resource = |uri: &str, name: &str| {
        let metadata = json!({"kind": "resource", "uri": uri, "description": name});
        describe(&metadata, &format!("echo {name}"))
    };
    write(&root.path().join("a"), &resource("x://1", "a"));
    write(&root.path().join("b"), &resource("x://1", "b"));
    write(
        &root.path().join("c"),
        &resource("mcpd://resources/f.txt", "c"),
    );
    write(&other.path().join("a"), &script("a tool", "echo"));
    for directory in [&root, &other] {
        let file = directory.path().join("resources/f.txt");
        fs::create_dir(file.parent().expect("resources")).expect("created");
        fs::write(&file, directory.path().to_string_lossy().as_bytes()).expect("written");
    }
    let server = serve_both(root.path(), other.path()).await;
    let catalog = server.catalog();
    let served: Vec<_> = catalog
        .resources()
        .iter()
        .map(|resource| (resource.definition().uri.as_str(), resource.path().as_str()))
        .collect();
    let expected = [
        ("mcpd://resources/f.txt", "resources/f.txt"),
        ("x://1", "a"),
    ];
    assert_eq!(served, expected);
    assert!(catalog.tools().is_empty(), "a path means one script");
    let conflicts: Vec<_> = catalog
        .conflicts()
        .iter()
        .map(|conflict| (conflict.path.as_str(), conflict.message.contains("URI")))
        .collect();
    let expected = [
        ("a", false),
        ("resources/f.txt", true),
        ("b", true),
        ("c", true),
    ];
    assert_eq!(conflicts, expected);
    let (connection, _messages) = Connection::open(&server, ToolNames::Path);
    let read = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read",
        "params": {"uri": "mcpd://resources/f.txt"}});
    let answer = ask(&connection, &read).await;
    let text = answer["result"]["contents"][0]["text"].as_str();
    assert_eq!(text, root.path().to_str());
}

/// Serves two roots, scanned once.
async fn serve_both(root: &Path, other: &Path) -> Server {
    let server = Server::builder()
        .scripts(root)
        .scripts(other)
        .watch(false)
        .start()
        .expect("starts");
    server.catalog_ready().await;
    server
}

#[tokio::test]
async fn tools_with_one_portable_name_get_distinct_names() {
    let root = tempfile::tempdir().expect("a directory");
    let other = tempfile::tempdir().expect("a directory");
    for name in ["a/b", "a_b"] {
        write(&root.path().join(name), &script(name, "echo"));
    }
    write(&other.path().join("a_b"), &script("hidden", "echo"));
    write(&other.path().join("x".repeat(100)), &script("long", "echo"));
    let server = serve_both(root.path(), other.path()).await;
    let catalog = server.catalog();
    let names: Vec<_> = catalog
        .tools()
        .iter()
        .map(|tool| tool.portable_name())
        .collect();
    assert_eq!(names.len(), 3);
    assert!(
        names[0].starts_with("a_b_") && names[1] == "a_b" && names[2].len() == 64,
        "{names:?}"
    );
    // Whatever name a list shows, and whatever path it stands for, a call of it runs that tool.
    for tool in catalog.tools() {
        for name in [tool.portable_name(), tool.path().as_str()] {
            assert_eq!(
                catalog.tool(name).map(|found| found.path()),
                Some(tool.path())
            );
        }
    }
    let conflicts: Vec<_> = catalog
        .conflicts()
        .iter()
        .map(|conflict| conflict.path.as_str())
        .collect();
    assert_eq!(conflicts, ["a_b", "a/b"]);
}

#[tokio::test]
async fn client_that_initializes_again_is_notified_once() {
    let mut served = Fixture::new().await;
    for id in 0..3 {
        let initialize = json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}});
        served.request(&initialize).await;
    }
    let path = served.root.path().join("second");
    write(&path, &script("two", "echo 2"));
    served.expect(&["first: one", "second: two"]).await;
    fs::remove_file(&path).expect("removed");
    // Another notification of the first change would arrive before this one.
    served.expect(&["first: one"]).await;
    assert!(
        served.messages.try_recv().is_err(),
        "a change is announced twice"
    );
}

/// Such a client has no subscription.
#[tokio::test]
async fn client_that_does_not_initialize_is_not_notified() {
    let mut served = Fixture::new().await;
    let (stranger, mut messages) = Connection::open(&served.server, ToolNames::Path);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    ask(&stranger, &ping).await;
    write(&served.root.path().join("second"), &script("two", "echo 2"));
    served.expect(&["first: one", "second: two"]).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(messages.try_recv().is_err(), "it hears of a change");
}

#[tokio::test]
async fn replaced_root_is_followed() {
    let place = tempfile::tempdir().expect("a directory");
    let at = |name: &str| place.path().join(name);
    write(&at("one/a"), &script("a", "echo"));
    write(&at("two/b"), &script("b", "echo"));
    std::os::unix::fs::symlink("one", at("current")).expect("linked");
    let server = Server::builder()
        .scripts(at("current"))
        .start()
        .expect("starts");
    server.catalog_ready().await;
    let names = || {
        server
            .catalog()
            .tools()
            .iter()
            .map(|tool| tool.path().to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(), ["a"]);

    std::os::unix::fs::symlink("two", at("next")).expect("linked");
    fs::rename(at("next"), at("current")).expect("swapped");
    eventually(|| names() == ["b"]).await;
    // The new directory is watched as well.
    write(&at("two/c"), &script("c", "echo"));
    eventually(|| names() == ["b", "c"]).await;
    fs::remove_dir_all(at("two")).expect("removed");
    eventually(|| names().is_empty()).await;
    write(&at("two/d"), &script("d", "echo"));
    eventually(|| names() == ["d"]).await;
}

#[tokio::test]
async fn file_under_two_roots_is_two_scripts() {
    let root = tempfile::tempdir().expect("a directory");
    let at = |name: &str| root.path().join(name);
    write(&at("sub/x"), &script("x", "echo"));
    let server = Server::builder()
        .scripts(root.path())
        .scripts(at("sub"))
        .start()
        .expect("starts");
    server.catalog_ready().await;
    let names = || {
        server
            .catalog()
            .tools()
            .iter()
            .map(|tool| tool.path().to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(), ["sub/x", "x"]);
    write(&at("y"), &script("y", "echo"));
    eventually(|| names() == ["sub/x", "x", "y"]).await;
}

/// Script that describes itself only once the file `answer` exists.
fn script_without_answer(description: &str) -> String {
    let answer = script(description, "");
    answer.replace(
        "--help ]; then",
        "--help ]; then\n  until [ -e \"${0%/*}/answer\" ]; do sleep 0.01; done",
    )
}

#[tokio::test]
async fn unanswered_probe_delays_no_other_script() {
    let mut served = Fixture::new().await;
    let at = |name: &str| served.root.path().join(name);
    let [first, second, new, answer] = ["first", "second", "new", "answer"].map(at);
    write(&new, &script_without_answer("new"));
    write(&first, &script_without_answer("edited"));
    write(&second, &script("added", "echo 2"));
    // One keeps its previous entry, and the other is unknown so far.
    served.expect(&["first: one", "second: added"]).await;
    let faulty = served.server.catalog().scan().faulty().count();
    assert_eq!(faulty, 0, "nobody has been given up");
    fs::write(answer, "").expect("written");
    served.expect_events(&["tools/list_changed"]).await;
    while served.list().await != ["first: edited", "new: new", "second: added"] {
        served.expect_events(&["tools/list_changed"]).await;
    }
}

#[tokio::test]
async fn script_changed_during_its_probe_is_probed_again() {
    let mut served = Fixture::new().await;
    let at = |name: &str| served.root.path().join(name);
    let [first, second, gone, answer] = ["first", "second", "gone", "answer"].map(at);
    write(&first, &script_without_answer("two"));
    write(&gone, &script_without_answer("gone"));
    write(&second, &script("added", "echo 2"));
    served.expect(&["first: one", "second: added"]).await;
    fs::remove_file(&gone).expect("removed");
    write(&first, &script("three", "echo 3"));
    served.expect(&["first: three", "second: added"]).await;
    fs::write(answer, "").expect("written");
    write(&second, &script("edited", "echo 2"));
    served.expect(&["first: three", "second: edited"]).await;
}

#[tokio::test]
async fn script_still_being_written_is_probed_again() {
    use std::io::Write as _;
    let served = Fixture::new().await;
    let path = served.root.path().join("slow-writer");
    let mut file = fs::File::create(&path).expect("created");
    file.write_all(script("slow", "echo").as_bytes())
        .expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    // Longer than attempts to start it continue.
    tokio::time::sleep(Duration::from_millis(1000)).await;
    drop(file);
    eventually(|| served.server.catalog().tool("slow-writer").is_some()).await;
}

/// The end of the writing goes unnoticed, because another name is written.
#[tokio::test]
async fn script_written_for_long_is_probed_repeatedly() {
    let served = Fixture::new().await;
    let elsewhere = tempfile::tempdir().expect("made");
    let path = elsewhere.path().join("script");
    write(&path, &script("slow", "echo"));
    let file = fs::OpenOptions::new().append(true).open(&path);
    let file = file.expect("opened");
    fs::hard_link(&path, served.root.path().join("slow-writer")).expect("linked");
    // After this time it is probed less often than the roots are scanned.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(served.server.catalog().tool("slow-writer").is_none());
    drop(file);
    eventually(|| served.server.catalog().tool("slow-writer").is_some()).await;
}

async fn eventually(condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(HANG_TIMEOUT, waiting)
        .await
        .expect("it never happens");
}
