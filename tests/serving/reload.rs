//! Hot reload of the configuration: settings that apply at once, settings that need a restart, and
//! no lost calls.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use mcpd_tests::{Client, Daemon, Sandbox, eventually, repository};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Server as _, call};

const PRINTER: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then echo '{"description": "Prints a variable"}'; exit; fi
printf '%s' "$PLAIN"
"#;

fn configure(sandbox: &Sandbox, text: &str) {
    fs::write(sandbox.path().join("mcpd.toml"), text).unwrap();
}

const SILENCE: &str = "The script succeeded and printed nothing.";

/// Returns the output of the printer.
fn printer_output(client: &Client) -> Option<String> {
    let (status, body) = client.post(&call("printer", json!({})).to_string()).ok()?;
    let answer: Value = serde_json::from_str(&body).ok()?;
    let text = answer["result"]["content"][0]["text"].as_str()?;
    let text = if text == SILENCE { "" } else { text };
    (status == 200).then(|| text.to_owned())
}

/// Returns the listed tool names.
fn list_tools(daemon: &mut Daemon) -> Vec<String> {
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let answer = daemon.exchange(&list);
    let tools = answer["result"]["tools"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let names = tools.iter().filter_map(|tool| tool["name"].as_str());
    names.map(str::to_owned).collect()
}

#[test]
fn new_configuration_applies_at_once() {
    let sandbox = Sandbox::new().with_script("printer", PRINTER);
    configure(&sandbox, "[env]\nset = { PLAIN = \"old\" }\n");
    let mut daemon = Daemon::start(&sandbox, &[]);
    assert_eq!(printer_output(&daemon.client()).as_deref(), Some("old"));
    let echo = repository().join("examples/endpoints/echo_external");
    let endpoint = format!(
        "[[endpoint]]\ncommand = [\"{}\"]\nprefix = \"other\"\n",
        echo.display()
    );
    configure(
        &sandbox,
        &format!("[env]\nset = {{ PLAIN = \"new\" }}\n\n{endpoint}"),
    );
    daemon.signal(Signal::HUP);
    eventually("the new variable", || {
        (printer_output(&daemon.client()).as_deref() == Some("new")).then_some(())
    });
    eventually("the tool of the endpoint", || {
        list_tools(&mut daemon)
            .contains(&"other_echo_external".to_owned())
            .then_some(())
    });
    configure(&sandbox, "");
    daemon.signal(Signal::HUP);
    eventually("its end", || {
        (list_tools(&mut daemon) == ["printer"]).then_some(())
    });
    assert_eq!(printer_output(&daemon.client()).as_deref(), Some(""));
}

#[test]
fn concurrency_counts_runs_of_a_replaced_script() {
    const ALONE: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then echo '{"description": "DESCRIPTION", "concurrency": 1}'; exit; fi
mkdir running || exit 9
until [ -e go ]; do sleep 0.02; done
rmdir running
echo alone
"#;
    let sandbox = Sandbox::new()
        .with_script("alone", ALONE)
        .with_script("printer", PRINTER);
    configure(&sandbox, "[env]\nset = { PLAIN = \"old\" }\n");
    let daemon = Daemon::start(&sandbox, &[]);
    let scripts = sandbox.path().join("scripts");
    thread::scope(|scope| {
        let run = || {
            let (client, call) = (daemon.client(), call("alone", json!({})));
            scope.spawn(move || client.post(&call.to_string()).unwrap().1)
        };
        let first = run();
        eventually("the run", || scripts.join("running").exists().then_some(()));
        sandbox.write_script("alone", &ALONE.replace("DESCRIPTION", "Another."));
        configure(&sandbox, "[env]\nset = { PLAIN = \"new\" }\n");
        daemon.signal(Signal::HUP);
        eventually("the new description", || {
            let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
            let (_, listed) = daemon.client().post(&list.to_string()).ok()?;
            let is_new = printer_output(&daemon.client()).as_deref() == Some("new");
            (is_new && listed.contains("Another.")).then_some(())
        });
        let second = run();
        // Leaves the call time to begin.
        for _ in 0..20 {
            printer_output(&daemon.client());
        }
        fs::write(scripts.join("go"), "").unwrap();
        for run in [first, second] {
            let answer = run.join().unwrap();
            assert!(answer.contains("alone"), "{answer}");
        }
    });
}

#[test]
fn invalid_configuration_changes_nothing() {
    let sandbox = Sandbox::new().with_script("printer", PRINTER);
    configure(&sandbox, "[env]\nset = { PLAIN = \"old\" }\n");
    let daemon = Daemon::start(&sandbox, &[]);
    let wrong =
        "[env]\nset = { PLAIN = \"new\" }\n[[tool]]\nmatch = \"*\"\nsandbox = \"missing\"\n";
    configure(&sandbox, wrong);
    daemon.signal(Signal::HUP);
    daemon.wait_for_line("configuration not reloaded");
    assert_eq!(printer_output(&daemon.client()).as_deref(), Some("old"));
}

#[test]
fn settings_that_need_a_restart_are_named() {
    let sandbox = Sandbox::new().with_script("printer", PRINTER);
    let daemon = Daemon::start(&sandbox, &[]);
    configure(
        &sandbox,
        "page_size = 3\nlisten = [\"127.0.0.1:1\"]\n[env]\nset = { PLAIN = \"new\" }\n\
         [audit]\nargs = \"none\"\nmode = \"require\"\n",
    );
    daemon.signal(Signal::HUP);
    let said = daemon.wait_for_line("changed settings need a restart of mcpd to take effect: ");
    // `--port` overrides the address in the file, so `listen` is not reported.
    let keys = "effect: `audit.mode`, `page_size`";
    assert!(said.ends_with(keys), "{said}");
    eventually("the new variable", || {
        (printer_output(&daemon.client()).as_deref() == Some("new")).then_some(())
    });
}

#[test]
fn credentials_need_a_restart() {
    let sandbox = Sandbox::new().with_script("printer", PRINTER);
    let daemon = Daemon::start(&sandbox, &[]);
    configure(&sandbox, "auth = false\ntoken_file = \"other\"\n");
    daemon.signal(Signal::HUP);
    let said = daemon.wait_for_line("changed settings need a restart of mcpd to take effect: ");
    assert!(said.ends_with("effect: `auth`, `token_file`"), "{said}");
    assert_eq!(printer_output(&daemon.client()).as_deref(), Some(""));
    let stranger = daemon.client().with_token(None);
    let (status, _) = stranger
        .post(&call("printer", json!({})).to_string())
        .unwrap();
    assert_eq!(status, 401);
    assert!(!sandbox.path().join("other").exists());
}

#[test]
fn clients_of_an_issuer_still_need_a_url() {
    let sandbox = Sandbox::new().with_script("printer", PRINTER);
    let issuer = "[[oauth.issuer]]\nurl = \"https://auth.example\"\n";
    let resource = "[oauth]\nresource = \"http://tools.example/mcp\"\n";
    configure(&sandbox, &format!("{resource}{issuer}"));
    let daemon = Daemon::listening(&sandbox, &["--listen", "0.0.0.0:0"]);
    configure(&sandbox, &format!("[oauth]\n{issuer}"));
    daemon.signal(Signal::HUP);
    let said = daemon.wait_for_line("configuration not reloaded");
    assert!(said.contains("`resource` is missing"), "{said}");
}

/// The mode of the log applies from start to end of the server, so the log goes on.
#[test]
fn hidden_log_stays_hidden_after_a_reload() {
    let script = PRINTER.replace("printf '%s' \"$PLAIN\"", "cat \"$PLAIN\" 2>&1 || true");
    let sandbox = Sandbox::new().with_script("printer", &script);
    let directory = sandbox.path().display();
    let configure = |log: &str, audit: &str| {
        configure(
            &sandbox,
            &format!(
                "floor = \"guarded\"\n[env]\nset = {{ PLAIN = \"{directory}/{log}\" }}\n[audit]\n{audit}"
            ),
        );
    };
    configure("log.jsonl", "path = \"log.jsonl\"\n");
    let daemon = Daemon::start(&sandbox, &[]);
    printer_output(&daemon.client()).unwrap();
    // Another spelling of the same path shows in the message which configuration applies.
    configure("./log.jsonl", "path = \"other.jsonl\"\nmode = \"off\"\n");
    daemon.signal(Signal::HUP);
    let shown = eventually("the new configuration", || {
        printer_output(&daemon.client()).filter(|shown| shown.contains("/./"))
    });
    assert!(shown.contains("log.jsonl: Permission denied"), "{shown}");
}

#[test]
fn fault_is_located() {
    let sandbox = Sandbox::new().with_script("printer", PRINTER);
    let daemon = Daemon::start(&sandbox, &[]);
    configure(&sandbox, "[[tool]]\nmatch = \"*\"\nsandbox = \"missing\"\n");
    daemon.signal(Signal::HUP);
    let said = daemon.wait_for_line("configuration not reloaded");
    assert!(said.contains("mcpd.toml:3:11: in [[tool]]"), "{said}");
}

/// Reloads again and again, each time with another policy, while calls are made.
#[test]
fn reloads_lose_no_call() {
    const RELOADS: usize = 100;
    let sandbox = Sandbox::new().with_script("printer", PRINTER);
    configure(&sandbox, "");
    let daemon = Daemon::start(&sandbox, &[]);
    let client = daemon.client();
    let is_over = AtomicBool::new(false);
    let calls = AtomicUsize::new(0);
    let calling = || {
        while !is_over.load(Ordering::Relaxed) {
            let text = printer_output(&client).unwrap_or_else(|| "lost".to_owned());
            if !text.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(text);
            }
            calls.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    let called = thread::scope(|scope| {
        let callers: Vec<_> = (0..4).map(|_| scope.spawn(calling)).collect();
        for round in 0..RELOADS {
            configure(
                &sandbox,
                &format!("[env]\nset = {{ PLAIN = \"{round}\" }}\n"),
            );
            daemon.signal(Signal::HUP);
            let before = calls.load(Ordering::Relaxed);
            let is_called = || calls.load(Ordering::Relaxed) > before;
            eventually("a call, or its failure", || {
                let has_failed = callers.iter().any(|caller| caller.is_finished());
                (is_called() || has_failed).then_some(())
            });
        }
        is_over.store(true, Ordering::Relaxed);
        let results = callers.into_iter().map(|caller| caller.join().unwrap());
        results.collect::<Result<Vec<()>, _>>()
    });
    called.unwrap();
    let last = (RELOADS - 1).to_string();
    eventually("the last configuration", || {
        (printer_output(&daemon.client()).as_deref() == Some(&last)).then_some(())
    });
}
