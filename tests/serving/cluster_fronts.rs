//! Two fronts behind a balancer that knows nothing of MCP but the beginning of session ids: the
//! round robin of these tests, nginx and HAProxy with the lines of `docs/proxies.md`.

use std::fs;
use std::net::TcpListener;
use std::process::Child;
use std::thread;
use std::time::Duration;

use mcpd_tests::{Client, Sandbox, TwoFronts, Worker, eventually, repository, skip};
use serde_json::{Value, json};

use crate::{call, text};

/// Number of requests of each client.
const REQUESTS: usize = 20;

/// Script that writes a line into a journal when it begins, and waits for a file.
const WORK: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Works."}'
  echo '{"gate": {"value_type": "string", "default_value": ""}}' >&2
  exit 0
fi
echo begun >>journal
while [ "$MCPD_OPT_gate" ] && [ ! -e "$MCPD_OPT_gate" ]; do sleep 0.02; done
echo "done on $NODE"
"#;

/// Program that balances. It is killed on drop.
struct Balancer(Child);

impl Drop for Balancer {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn sandbox() -> Sandbox {
    Sandbox::new().with_script("work", WORK)
}

/// Calls the script again and again, each time over a connection of its own.
#[track_caller]
fn check_stateless(client: &Client) {
    let client = client
        .clone()
        .with_header("MCP-Protocol-Version", "2026-07-28");
    let client = client
        .with_header("Mcp-Method", "tools/call")
        .with_header("Mcp-Name", "work");
    let mut message = call("work", json!({}));
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for _ in 0..REQUESTS {
        let (status, body) = client.post(&message.to_string()).unwrap();
        assert!(
            status == 200 && body.contains("done on w1"),
            "{status} {body}"
        );
    }
}

/// Opens sessions of an older revision, and uses each of them.
#[track_caller]
fn check_sessions(client: &Client) {
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }});
    for _ in 0..4 {
        let (head, body) = client
            .exchange("POST /mcp", &initialize.to_string())
            .unwrap();
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        let session = lines.find(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id"));
        let session = session.unwrap_or_else(|| panic!("{head}\n{body}")).1;
        assert!(session.starts_with("front-"), "{session}");
        let client = client.clone().with_header("Mcp-Session-Id", session);
        let client = client.with_header("MCP-Protocol-Version", "2025-11-25");
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(client.post(&initialized.to_string()).unwrap().0, 202);
        for _ in 0..REQUESTS / 4 {
            let (status, body) = client.post(&call("work", json!({})).to_string()).unwrap();
            assert!(
                status == 200 && body.contains("done on w1"),
                "{status} {body}"
            );
        }
    }
}

fn begun(sandbox: &Sandbox) -> usize {
    let journal = fs::read_to_string(sandbox.path().join("scripts/journal"));
    journal.unwrap_or_default().lines().count()
}

#[test]
fn clients_need_no_affinity() {
    let sandbox = sandbox();
    let Some(cluster) = TwoFronts::start(&sandbox, &["scripts"], &[]) else {
        return;
    };
    check_stateless(&cluster.client());
    assert_eq!(cluster.balancer.requests(), [REQUESTS / 2, REQUESTS / 2]);
    check_sessions(&cluster.client());
    assert_eq!(begun(&sandbox), 2 * REQUESTS);
    // A request about something that one front alone knows is answered as the protocol has it.
    let client = cluster
        .client()
        .with_header("Mcp-Session-Id", "front-9-0123");
    let (status, _) = client.post(&call("work", json!({})).to_string()).unwrap();
    assert_eq!(status, 404);
}

#[test]
fn call_of_a_front_that_dies_is_not_sent_again() {
    let sandbox = sandbox();
    let Some(cluster) = TwoFronts::start(&sandbox, &["scripts"], &[]) else {
        return;
    };
    let client = cluster.client();
    let gate = sandbox.path().join("never");
    let lost = {
        let (client, gate) = (client.clone(), gate.clone());
        thread::spawn(move || client.post(&call("work", json!({ "gate": gate })).to_string()))
    };
    eventually("a run", || (begun(&sandbox) == 1).then_some(()));
    let [first, second] = cluster.fronts;
    drop(first);
    // The client sees that its answer is lost, and no balancer asks the other front.
    assert!(lost.join().unwrap().is_err());
    let listed = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(second.client().post(&listed.to_string()).unwrap().0, 200);
    thread::sleep(Duration::from_secs(2));
    assert_eq!(begun(&sandbox), 1);
}

/// Returns a block of the page about proxies, with these addresses.
fn block(language: &str, number: usize, cluster: &TwoFronts, port: u16) -> String {
    let page = fs::read_to_string(repository().join("docs/proxies.md")).unwrap();
    let block = page.split(&format!("```{language}\n")).nth(number).unwrap();
    let block = block.split("```").next().unwrap();
    let [first, second] = &cluster.fronts;
    block
        .replace("front-1.internal:43210", first.address())
        .replace("front-2.internal:43210", second.address())
        .replace("listen 8080", &format!("listen 127.0.0.1:{port}"))
        .replace("bind :8080", &format!("bind 127.0.0.1:{port}"))
}

/// Checks both kinds of clients through a program, which gets its configuration as the last
/// argument.
#[track_caller]
fn check_program(
    name: &str,
    configure: impl Fn(&Sandbox, &TwoFronts, u16) -> String,
    arguments: &[&str],
) {
    let sandbox = sandbox();
    let mut shell = sandbox.program("sh");
    let installed = shell.args(["-c", &format!("command -v {name}")]).status();
    if !installed.unwrap().success() {
        skip(&format!(
            "no front is behind `{name}`, as it is not installed"
        ));
        return;
    }
    let Some(cluster) = TwoFronts::start(&sandbox, &["scripts"], &[]) else {
        return;
    };
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let file = sandbox.path().join("balancer.conf");
    fs::write(&file, configure(&sandbox, &cluster, port)).unwrap();
    let mut program = sandbox.program(name);
    program.args(arguments).arg(&file);
    let _balancer = Balancer(program.spawn().unwrap());
    let address = format!("127.0.0.1:{port}");
    let client = Client::new(&address, cluster.fronts[0].token());
    eventually("the balancer answers", || {
        let (status, _) = client.get("/ready").ok()?;
        (status == 200).then_some(())
    });
    check_stateless(&client);
    check_sessions(&client);
    assert_eq!(begun(&sandbox), 2 * REQUESTS);
}

#[test]
fn clients_need_no_affinity_behind_nginx() {
    let configure = |sandbox: &Sandbox, cluster: &TwoFronts, port| {
        let home = sandbox.path().display();
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let paths = paths.map(|name| format!("{name}_temp_path {home}/{name};\n"));
        let block = block("nginx", 2, cluster, port);
        format!(
            "daemon off;\nmaster_process off;\npid {home}/nginx.pid;\nerror_log {home}/error.log;\n\
             events {{}}\nhttp {{\naccess_log off;\n{}{block}}}\n",
            paths.concat()
        )
    };
    check_program("nginx", configure, &["-e", "stderr", "-c"]);
}

#[test]
fn clients_need_no_affinity_behind_haproxy() {
    let configure = |_: &Sandbox, cluster: &TwoFronts, port| block("haproxy", 1, cluster, port);
    check_program("haproxy", configure, &["-db", "-f"]);
}

/// Scripts and workers are replaced one after the other, while clients call.
#[test]
fn rolling_update_fails_no_call() {
    let sandbox = sandbox();
    let version = |number: u32| WORK.replace("Works.", &format!("Works as version {number}."));
    let Some(cluster) = TwoFronts::start(&sandbox, &["scripts"], &[]) else {
        return;
    };
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let client = cluster.client();
    let load = thread::spawn(move || {
        let mut calls = 0;
        while stopped.try_recv().is_err() {
            let (status, body) = client.post(&call("work", json!({})).to_string()).unwrap();
            let answer: Value = serde_json::from_str(&body).unwrap();
            assert!(
                status == 200 && answer["result"].is_object(),
                "{status} {body}"
            );
            assert!(text(&answer["result"]).starts_with("done on w"), "{body}");
            calls += 1;
        }
        calls
    });
    let mut workers = vec![cluster.worker];
    for number in 2..=4 {
        let directory = format!("version-{number}");
        fs::create_dir(sandbox.path().join(&directory)).unwrap();
        sandbox.write_script(&format!("../{directory}/work"), &version(number));
        let name = format!("w{number}");
        workers.push(Worker::start(&sandbox, &cluster.nats, &name, &[&directory]));
        let listed = |name: &str| {
            let nodes = ["cluster", "status", "--cluster", &cluster.nats.url()];
            sandbox.run(&nodes).contains(&format!("{name}  worker"))
        };
        eventually("the new worker", || listed(&name).then_some(()));
        // The old one drains, as the service manager has it with SIGTERM.
        let mut old = workers.remove(0);
        old.signal(rustix::process::Signal::TERM);
        assert_eq!(old.wait(), Some(0));
    }
    stop.send(()).unwrap();
    let calls = load.join().unwrap();
    assert!(calls > 20, "only {calls} calls");
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    eventually("the last version", || {
        let lists = cluster
            .fronts
            .iter()
            .map(|front| front.client().post(&list).unwrap().1);
        let mut lists = lists.map(|list| list.contains("Works as version 4."));
        lists.all(|is_new| is_new).then_some(())
    });
}
