//! Console of a server, without a browser: its files, its one-time link, its sessions, and what
//! each caller gets.

use std::fs;

use mcpd_tests::{Daemon, Nats, Sandbox, Worker, eventually, wait_for_tools, write_audit_log};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

const TOKEN: &str = "a-token-of-team-a-that-is-long";

/// Headers of a request.
type Headers<'a> = Vec<(&'a str, &'a str)>;

/// Session of a page.
struct Page {
    cookie: String,
    key: String,
}

impl Page {
    /// Signs in with a token or a code, and returns the session or the answer.
    fn sign_in(daemon: &Daemon, token: Option<&str>, code: Option<&str>) -> Result<Self, String> {
        let client = daemon.client().with_token(token);
        let client = client.with_header("Mcpd-Console", "none");
        let body = json!({"code": code}).to_string();
        let (head, answer) = client.exchange("POST /console/session", &body).unwrap();
        let cookie = head
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "));
        let Some(cookie) = cookie else {
            return Err(format!("{} {answer}", status(&head)));
        };
        assert!(cookie.contains("; HttpOnly; SameSite=Strict"), "{cookie}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        Ok(Self {
            cookie: cookie.split(';').next().unwrap().to_owned(),
            key: answer["key"].as_str().unwrap().to_owned(),
        })
    }

    /// Signs in with the code of the printed link.
    #[track_caller]
    fn of_link(daemon: &Daemon) -> Self {
        let page = Self::sign_in(daemon, None, Some(code(daemon)));
        page.unwrap_or_else(|answer| panic!("{answer}"))
    }

    fn headers(&self) -> Headers<'_> {
        vec![("Cookie", &self.cookie), ("Mcpd-Console", &self.key)]
    }

    /// Returns the status and the body of data.
    fn get(&self, daemon: &Daemon, path: &str) -> (u16, Value) {
        let path = format!("GET /console/api/{path}");
        let (head, body) = exchange(daemon, &path, &self.headers());
        let policy = "content-security-policy: default-src 'none'";
        assert!(head.contains(policy), "{head}");
        (
            status(&head),
            serde_json::from_str(&body).unwrap_or_default(),
        )
    }
}

/// Sends a request such as `GET /console` with these headers, and no token.
fn exchange(daemon: &Daemon, request: &str, headers: &[(&str, &str)]) -> (String, String) {
    let mut client = daemon.client().with_token(None);
    for (name, value) in headers {
        client = client.with_header(name, value);
    }
    let body = if request.starts_with("POST") {
        "{}"
    } else {
        ""
    };
    client.exchange(request, body).unwrap()
}

fn status(head: &str) -> u16 {
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Code of the printed link.
fn code(daemon: &Daemon) -> &str {
    let (_, rest) = daemon.announcement().split_once("/console#code=").unwrap();
    rest.lines().next().unwrap()
}

fn start() -> (Sandbox, Daemon) {
    let sandbox = Sandbox::new()
        .with_counter("count")
        .with_counter("secret/count");
    start_with(sandbox, &team_table("tools = [\"count\"]\n"))
}

/// Starts a server with a console and more configuration.
fn start_with(sandbox: Sandbox, configuration: &str) -> (Sandbox, Daemon) {
    let file = format!("console = true\n{configuration}");
    fs::write(sandbox.path().join("mcpd.toml"), file).unwrap();
    let daemon = Daemon::start(&sandbox, &["--config", "mcpd.toml"]);
    (sandbox, daemon)
}

/// Table of the token of team A, with more keys.
fn team_table(more: &str) -> String {
    let hash = digest(&SHA256, TOKEN.as_bytes());
    let hash: String = hash
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("[[token]]\nname = \"team-a\"\nsha256 = \"{hash}\"\n{more}")
}

#[test]
fn console_link_works_once_and_needs_cookie_and_key() {
    let (_sandbox, daemon) = start();
    let page = Page::of_link(&daemon);
    let again = Page::sign_in(&daemon, None, Some(code(&daemon)))
        .err()
        .unwrap();
    assert!(
        again.starts_with("401 this link was used already"),
        "{again}"
    );
    let (status_code, about) = page.get(&daemon, "about");
    assert_eq!((status_code, &about["caller"]), (200, &json!("agent")));
    assert_eq!(about["operator"], true);
    let with = |name, value| {
        let mut headers = page.headers();
        headers.push((name, value));
        headers
    };
    for headers in [
        vec![("Cookie", &*page.cookie), ("Mcpd-Console", "none")],
        vec![("Mcpd-Console", &*page.key)],
        vec![("Cookie", &*page.cookie)],
        with("Sec-Fetch-Site", "same-site"),
        with("Sec-Fetch-Site", "none"),
        with("Origin", "http://127.0.0.1:1"),
        with("Host", "evil.example"),
    ] {
        for request in ["GET /console/api/about", "POST /mcp"] {
            let (head, answer) = exchange(&daemon, request, &headers);
            let refused = [400, 401, 403].contains(&status(&head));
            assert!(
                refused && !answer.contains("agent\""),
                "{request} {headers:?}: {head}"
            );
        }
    }
    let (head, _) = exchange(&daemon, "DELETE /console/session", &page.headers());
    assert_eq!(status(&head), 204);
    assert_eq!(page.get(&daemon, "about").0, 401);
}

#[test]
fn console_shows_callers_only_what_is_theirs() {
    let (_sandbox, daemon) = start();
    let operator = Page::of_link(&daemon);
    let team = Page::sign_in(&daemon, Some(TOKEN), None).ok().unwrap();
    let call = crate::call("secret/count", json!({})).to_string();
    daemon.client().post(&call).unwrap();
    let mine = crate::call("count", json!({})).to_string();
    daemon.client().with_token(Some(TOKEN)).post(&mine).unwrap();
    let total = |page: &Page| {
        let (_, found) = page.get(&daemon, "runs");
        found["total"].as_u64().unwrap()
    };
    eventually("the records", || (total(&operator) == 2).then_some(()));
    assert_eq!(total(&team), 1);
    let (_, live) = team.get(&daemon, "live");
    assert_eq!(live["runs"].as_array().unwrap().len(), 1);
    assert_eq!(live["runs"][0]["caller"], "team-a");
    let (_, runs) = operator.get(&daemon, "runs?caller=agent");
    let id = runs["runs"][0]["id"].as_str().unwrap();
    assert_eq!(
        operator.get(&daemon, &format!("runs/{id}")).1["tool"],
        "secret/count"
    );
    assert_eq!(team.get(&daemon, &format!("runs/{id}")).0, 404);
    let (_, catalog) = team.get(&daemon, "catalog");
    assert_eq!(catalog["tools"].as_array().unwrap().len(), 1);
    assert!(!catalog.to_string().contains("scripts"), "{catalog}");
    for path in [
        "server",
        "history",
        "configuration",
        "verify",
        "files",
        "viewpoints",
    ] {
        assert_eq!(team.get(&daemon, path).0, 403, "{path}");
        assert_eq!(operator.get(&daemon, path).0, 200, "{path}");
    }
    assert_eq!(operator.get(&daemon, "nothing").0, 404);
    assert_eq!(operator.get(&daemon, "runs?since=soon").0, 400);
}

#[test]
fn operator_sees_refusals_and_the_limits_in_force() {
    let sandbox = Sandbox::new().with_counter("count");
    let table = |rate: u32| team_table(&format!("rate = {rate}\nburst = 1\nconcurrency = 3\n"));
    let (sandbox, daemon) = start_with(sandbox, &format!("page_size = 5\n{}", table(1)));
    let operator = Page::of_link(&daemon);
    let call = crate::call("count", json!({})).to_string();
    let team = daemon.client().with_token(Some(TOKEN));
    let answers = [(); 3].map(|()| team.post(&call).unwrap().1);
    let refused = answers
        .iter()
        .filter(|answer| answer.contains("too many calls"));
    let refused = refused.count();
    assert!(refused > 0, "{answers:?}");
    let (_, server) = operator.get(&daemon, "server");
    assert_eq!(server["refusals"]["rate"], refused);
    let limits = &server["limits"];
    assert!(limits["running"].as_u64().unwrap() > 0 && limits["queued"] == 1024);
    let limit = |server: &Value| {
        let callers = server["limits"]["callers"].as_array().unwrap();
        let mut callers = callers.iter();
        callers
            .find(|one| one["caller"] == "team-a")
            .unwrap()
            .clone()
    };
    let expected = json!({"caller": "team-a", "concurrency": 3, "rate": 1.0, "burst": 1});
    assert_eq!(limit(&server), expected);
    let file = format!("console = true\npage_size = 7\n{}", table(4));
    fs::write(sandbox.path().join("mcpd.toml"), file).unwrap();
    daemon.signal(rustix::process::Signal::HUP);
    let settings = eventually("the new rate", || {
        let (_, answer) = operator.get(&daemon, "configuration");
        let settings = answer["settings"].as_array()?.clone();
        let rate = settings.iter().find(|one| one["key"] == "token[0].rate")?;
        (rate["value"] == 4.0).then_some(settings)
    });
    let (_, server) = operator.get(&daemon, "server");
    assert_eq!(limit(&server)["rate"], 4.0);
    // This key needs a restart.
    let page_size = settings.iter().find(|one| one["key"] == "page_size");
    assert_eq!(page_size.unwrap()["value"], 5);
}

#[test]
fn token_without_tools_reads_and_calls_nothing() {
    let sandbox = Sandbox::new().with_counter("count");
    let (sandbox, daemon) = start_with(sandbox, &team_table("tools = []\n"));
    let page = Page::sign_in(&daemon, Some(TOKEN), None).ok().unwrap();
    let (_, about) = page.get(&daemon, "about");
    assert_eq!(
        (&about["caller"], &about["operator"]),
        (&json!("team-a"), &json!(false))
    );
    assert_eq!(page.get(&daemon, "catalog").1["tools"], json!([]));
    assert_eq!(page.get(&daemon, "live").0, 200);
    assert_eq!(page.get(&daemon, "runs").0, 200);
    let call = crate::call("count", json!({})).to_string();
    let (_, answer) = daemon.client().with_token(Some(TOKEN)).post(&call).unwrap();
    assert!(answer.contains("unknown tool `count`"), "{answer}");
    let (head, _) = exchange(&daemon, "POST /console/api/cancel?run=1", &page.headers());
    assert_eq!(status(&head), 403);
    assert_eq!(sandbox.runs(), 0);
}

#[test]
fn token_with_the_role_is_an_operator_until_a_reload() {
    let sandbox = Sandbox::new().with_counter("count");
    let table = team_table("tools = []\nconsole = \"operator\"\n");
    let (sandbox, daemon) = start_with(sandbox, &format!("agent_token = false\n{table}"));
    let page = Page::sign_in(&daemon, Some(TOKEN), None).ok().unwrap();
    assert_eq!(page.get(&daemon, "about").1["operator"], true);
    assert_eq!(page.get(&daemon, "server").0, 200);
    let (head, _) = exchange(&daemon, "POST /console/api/cancel?run=1", &page.headers());
    assert_eq!(status(&head), 404);
    let file = format!("console = true\nagent_token = false\n{}", team_table(""));
    fs::write(sandbox.path().join("mcpd.toml"), file).unwrap();
    daemon.signal(rustix::process::Signal::HUP);
    eventually("the role to end", || {
        (page.get(&daemon, "server").0 == 403).then_some(())
    });
    assert_eq!(page.get(&daemon, "about").1["operator"], false);
}

#[test]
fn console_session_ends_with_its_token() {
    let (sandbox, daemon) = start();
    let page = Page::of_link(&daemon);
    assert_eq!(page.get(&daemon, "about").0, 200);
    sandbox.stdout(&["token", "rotate"]);
    eventually("the new token", || {
        (page.get(&daemon, "about").0 == 401).then_some(())
    });
}

#[test]
fn console_is_off_by_default() {
    let sandbox = Sandbox::new().with_counter("count");
    let daemon = Daemon::start(&sandbox, &[]);
    assert!(!daemon.announcement().contains("console"));
    for path in [
        "GET /console",
        "GET /console/app.js",
        "POST /console/session",
    ] {
        let (head, _) = exchange(&daemon, path, &[]);
        assert_eq!(status(&head), 401, "{path}");
    }
}

#[test]
fn console_files_need_no_credentials_and_have_no_data() {
    let sandbox = Sandbox::new().with_counter("count");
    let daemon = Daemon::developing(&sandbox);
    for path in [
        "/console",
        "/console/",
        "/console/app.js",
        "/console/app.css",
    ] {
        let (head, body) = exchange(&daemon, &format!("GET {path}"), &[]);
        assert_eq!(status(&head), 200, "{path}");
        assert!(head.contains("frame-ancestors 'none'"), "{head}");
        assert!(!body.contains("count\""), "{path}");
    }
    for (request, expected) in [
        ("GET /console/../mcpd.toml", 404),
        ("GET /console/nothing", 404),
        ("POST /console/app.js", 405),
        ("GET /console/session", 405),
        ("GET /console/api/about", 403),
    ] {
        let (head, _) = exchange(&daemon, request, &[]);
        assert_eq!(status(&head), expected, "{request}");
    }
}

/// Waits for a minute, and says that it does.
const SLOW: &str = r#"#!/bin/sh
[ "$1" = --help ] && { echo '{"description": "Waits."}'; exit; }
echo 'INFO waiting' >&2
sleep 60
"#;

#[test]
fn operator_cancels_the_run_of_another_caller() {
    let (sandbox, daemon) = start();
    sandbox.write_script("slow", SLOW);
    let operator = Page::of_link(&daemon);
    let team = Page::sign_in(&daemon, Some(TOKEN), None).ok().unwrap();
    eventually("the new tool", || {
        let (_, catalog) = operator.get(&daemon, "catalog");
        catalog.to_string().contains("\"slow\"").then_some(())
    });
    let client = daemon.client();
    let call = crate::call("slow", json!({})).to_string();
    let answer = std::thread::spawn(move || client.post(&call).unwrap().1);
    // Its output is there although no page was open when it began.
    let number = eventually("the run with its line", || {
        let (_, live) = operator.get(&daemon, "live?open=1");
        let run = live["runs"].as_array()?.first()?.clone();
        (run["lines"][0] == "INFO waiting").then_some(run["number"].as_u64()?)
    });
    let path = format!("POST /console/api/cancel?run={number}");
    let (head, _) = exchange(&daemon, &path, &team.headers());
    assert_eq!(status(&head), 403);
    let key = vec![("Mcpd-Console", &*operator.key)];
    assert_eq!(status(&exchange(&daemon, &path, &key).0), 401);
    let (head, body) = exchange(&daemon, &path, &operator.headers());
    assert_eq!(status(&head), 200, "{body}");
    let answer = answer.join().unwrap();
    assert!(
        answer.contains("an operator of the server has cancelled"),
        "{answer}"
    );
    let (head, _) = exchange(&daemon, &path, &operator.headers());
    assert_eq!(status(&head), 404);
    let log = sandbox.path().join("state/mcpd/logs/mcp-audit.jsonl");
    eventually("the note and the record", || {
        let log = fs::read_to_string(&log).ok()?;
        let note = log.lines().find(|line| line.contains("console/cancel"))?;
        let note: Value = serde_json::from_str(note).ok()?;
        assert_eq!(note["params"]["operator"], "agent");
        assert_eq!(note["params"]["tool"], "slow");
        log.contains("\"outcome\":\"cancelled\"").then_some(())
    });
    assert_eq!(operator.get(&daemon, "verify").1["faults"], json!([]));
}

/// Prints a secret of the server and one of its caller, to both outputs.
const TALKATIVE: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Talks."}'
  echo '{"word": {}, "count": {"value_type": "integer"}, "password": {"secret": true}}' >&2
  exit
fi
echo "INFO key $KEY, password $MCPD_OPT_password" >&2
echo "key $KEY, password $MCPD_OPT_password"
"#;

/// Key that the script above gets.
const KEY: &str = "[[tool]]\nmatch = \"*\"\n[tool.env]\nKEY = \"correct horse\"\n";

/// Calls `talkative`, and returns the live run with all that is kept of it.
#[track_caller]
fn run_live(daemon: &Daemon, page: &Page, number: u64, arguments: Value) -> Value {
    let call = crate::call("talkative", arguments).to_string();
    daemon.client().post(&call).unwrap();
    let (_, live) = page.get(daemon, &format!("live?open={number}"));
    let mut runs = live["runs"].as_array().unwrap().iter();
    let run = runs.find(|run| run["number"] == number);
    run.unwrap_or_else(|| panic!("{live}")).clone()
}

#[test]
fn live_run_has_no_secrets() {
    let sandbox = Sandbox::new().with_script("talkative", TALKATIVE);
    let (_sandbox, daemon) = start_with(sandbox, KEY);
    let page = Page::of_link(&daemon);
    let arguments = json!({"word": "my correct horse", "password": "hunter2 and more"});
    let run = run_live(&daemon, &page, 1, arguments);
    let recorded = json!({"word": "my [redacted KEY]", "password": "[redacted]"});
    assert_eq!(run["params"]["arguments"], recorded);
    let said = "key [redacted KEY], password [redacted password]";
    assert_eq!(run["lines"], json!([format!("INFO {said}")]));
    assert_eq!(run["result"]["content"][0]["text"], said);
}

#[test]
fn live_run_has_the_arguments_that_the_audit_log_has() {
    let sandbox = Sandbox::new().with_script("talkative", TALKATIVE);
    let (_sandbox, daemon) = start_with(sandbox, "[audit]\nargs = \"none\"\n");
    let page = Page::of_link(&daemon);
    let run = run_live(&daemon, &page, 1, json!({"word": "marmalade"}));
    assert_eq!(run["params"], json!({"name": "talkative"}));
    assert_eq!(run["state"], "succeeded");
    // The message about this mistake repeats the argument.
    let run = run_live(&daemon, &page, 2, json!({"count": "marmalade"}));
    assert_eq!(run["result"], json!({"error": "invalid-arguments"}));
    let run = run_live(&daemon, &page, 3, json!({"marmalade": 1}));
    assert_eq!(run["state"], "failed");
    assert!(!run.to_string().contains("marmalade"), "{run}");
}

#[test]
fn runs_have_the_trace_of_their_caller() {
    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    let (_sandbox, daemon) = start();
    let page = Page::of_link(&daemon);
    let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
    let mut in_meta = crate::call("count", json!({}));
    in_meta["params"]["_meta"]["traceparent"] = json!(parent);
    let call = crate::call("count", json!({})).to_string();
    let client = daemon.client().with_header("traceparent", &parent);
    client.post(&call).unwrap();
    daemon.client().post(&in_meta.to_string()).unwrap();
    // An id of zeros is none, and most callers send nothing.
    let zero = parent.replace(TRACE, &"0".repeat(32));
    let client = daemon.client().with_header("traceparent", &zero);
    client.post(&call).unwrap();
    daemon.client().post(&call).unwrap();
    let runs = eventually("the records", || {
        let (_, found) = page.get(&daemon, "runs");
        (found["total"] == 4).then(|| found["runs"].clone())
    });
    let recorded: Vec<_> = (runs.as_array().unwrap().iter())
        .map(|run| {
            let path = format!("runs/{}", run["id"].as_str().unwrap());
            page.get(&daemon, &path).1["trace_id"].clone()
        })
        .collect();
    let expected = [json!(null), json!(null), json!(TRACE), json!(TRACE)];
    assert_eq!(recorded, expected);
    let (_, live) = page.get(&daemon, "live");
    let live = live["runs"].as_array().unwrap().iter();
    let live: Vec<_> = live.map(|run| run["traceId"].clone()).collect();
    assert_eq!(live, expected);
}

#[test]
fn operator_sees_the_tools_as_another_caller_does() {
    let (_sandbox, daemon) = start();
    let operator = Page::of_link(&daemon);
    let team = Page::sign_in(&daemon, Some(TOKEN), None).ok().unwrap();
    let (_, viewpoints) = operator.get(&daemon, "viewpoints");
    assert_eq!(viewpoints["callers"], json!(["team-a"]));
    let (_, seen) = operator.get(&daemon, "catalog?as=caller:team-a");
    let list = seen["list"].as_array().unwrap();
    assert_eq!(list.len(), 1);
    assert_eq!(list[0]["name"], "count");
    assert_eq!(operator.get(&daemon, "catalog?as=caller:nobody").0, 404);
    assert_eq!(team.get(&daemon, "catalog?as=caller:agent").0, 403);
}

#[test]
fn new_link_needs_the_token() {
    let (sandbox, daemon) = start();
    let printed = sandbox.stdout(&["console"]);
    let printed = String::from_utf8(printed).unwrap();
    let (url, code) = printed.trim().split_once("#code=").unwrap();
    assert!(url.ends_with("/console"), "{printed}");
    let page = Page::sign_in(&daemon, None, Some(code)).ok().unwrap();
    assert_eq!(page.get(&daemon, "about").1["caller"], "agent");
    assert!(Page::sign_in(&daemon, None, Some(code)).is_err());
    let (head, _) = exchange(&daemon, "POST /console/code", &[]);
    assert_eq!(status(&head), 400);
    let wrong = [("Authorization", "Bearer wrong")];
    let (head, _) = exchange(&daemon, "POST /console/code", &wrong);
    assert_eq!(status(&head), 401);
}

#[test]
#[cfg(target_os = "linux")]
fn record_is_read_without_the_rest_of_the_log() {
    const RECORDS: usize = 100_000;
    let sandbox = Sandbox::new().with_counter("count");
    let state = sandbox.path().join("state");
    write_audit_log(&state, RECORDS, |_| "count".to_owned());
    let (sandbox, daemon) = start_with(sandbox, "");
    let page = Page::of_link(&daemon);
    let open = |skip: usize| {
        let (_, found) = page.get(&daemon, &format!("runs?skip={skip}"));
        assert_eq!(found["total"], RECORDS);
        let id = found["runs"][0]["id"].as_str().unwrap().to_owned();
        let before = mcpd_tests::bytes_read(daemon.id());
        let (_, record) = page.get(&daemon, &format!("runs/{id}"));
        let read = mcpd_tests::bytes_read(daemon.id()) - before;
        assert!(read < 200_000, "{read} bytes for record {skip}");
        (id, record["seq"].clone())
    };
    assert_eq!(open(0).1, RECORDS);
    assert_eq!(open(RECORDS / 2).1, RECORDS / 2);
    let (id, seq) = open(RECORDS - 1);
    assert_eq!(seq, 1);
    // A full file that is no longer kept has taken its records along.
    let log = sandbox.path().join("state/mcpd/logs/mcp-audit.jsonl");
    fs::remove_file(log.with_extension("jsonl.3")).unwrap();
    assert_eq!(page.get(&daemon, &format!("runs/{id}")).0, 404);
    let call = crate::call("count", json!({})).to_string();
    daemon.client().post(&call).unwrap();
    eventually("the new record", || {
        (page.get(&daemon, "runs").1["total"] == RECORDS + 1).then_some(())
    });
    assert_eq!(page.get(&daemon, "verify").1["faults"], json!([]));
}

#[test]
fn operator_sees_the_nodes_of_a_cluster() {
    let sandbox = Sandbox::new().with_counter("count");
    let Some(nats) = Nats::start(&sandbox) else {
        return;
    };
    let _worker = Worker::start(&sandbox, &nats, "w1", &["scripts"]);
    let arguments = ["--cluster", &nats.url(), "--node", "f1", "--console"];
    let daemon = Daemon::front(&sandbox, &arguments);
    wait_for_tools(&daemon.client(), 1..=1);
    let operator = Page::of_link(&daemon);
    let (code, answer) = operator.get(&daemon, "report/cluster");
    let report = answer["report"].as_str().unwrap_or_default();
    assert_eq!(code, 200, "{answer}");
    assert!(
        report.contains("f1  front  ") && report.contains("w1  worker  "),
        "{report}"
    );
}
