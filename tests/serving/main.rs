//! The binary at work, over stdio and HTTP, with scripts and clients that misbehave.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod admission;
mod apps;
mod audit;
mod callers;
mod client_directory;
mod cluster;
mod cluster_fronts;
mod cluster_nodes;
mod cluster_update;
mod commands;
mod connect;
mod connections;
mod console;
mod destinations;
mod development;
mod encryption;
mod ending;
mod endpoints;
mod faulty;
mod floods;
mod framing;
mod half_close;
mod hostile;
mod instructions;
mod limits;
mod locked;
mod malformed;
mod metrics;
mod oauth;
mod policies;
mod profiles;
mod proxy;
mod reload;
mod saving;
mod tasks;
mod telemetry;
mod tripwires;
mod unread_log;
mod warm;

use mcpd_tests::{Daemon, Pipes, Sandbox, eventually, processes_of, repository};
use serde_json::{Value, json};

/// Running mcpd, on any transport.
trait Server {
    /// Sends one message verbatim and returns its answer.
    fn exchange_raw(&mut self, message: &str) -> Value;

    /// Sends one message and returns its answer.
    fn exchange(&mut self, message: &Value) -> Value {
        self.exchange_raw(&message.to_string())
    }

    /// Returns its process id.
    fn id(&self) -> u32;

    /// Calls a tool and returns the result.
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let mut answer = self.exchange(&call(tool, arguments));
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].take()
    }
}

impl Server for Pipes {
    fn exchange_raw(&mut self, message: &str) -> Value {
        self.send(message.as_bytes());
        self.receive()
    }

    fn id(&self) -> u32 {
        self.id()
    }
}

impl Server for Daemon {
    fn exchange_raw(&mut self, message: &str) -> Value {
        let (status, body) = self.client().post(message).unwrap();
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    fn id(&self) -> u32 {
        self.id()
    }
}

/// Serves a directory of `tests/scripts` over stdio and then over HTTP.
fn on_each_transport(
    directory: &str,
    arguments: &[&str],
    check: impl Fn(&mut dyn Server, &Sandbox),
) {
    let directory = scripts(directory);
    let arguments = [&[&*directory], arguments].concat();
    let sandbox = Sandbox::new();
    check(&mut Pipes::start(&sandbox, &arguments), &sandbox);
    check(&mut Daemon::start(&sandbox, &arguments), &sandbox);
}

/// Returns the path of a directory in `tests/scripts`.
fn scripts(directory: &str) -> String {
    let path = repository().join("tests/scripts").join(directory);
    path.to_str().unwrap().to_owned()
}

/// Builds the call of a tool as a message.
fn call(tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

/// Returns the only text of a result apart from the notes on the run, or the only note.
#[track_caller]
fn text(result: &Value) -> &str {
    let content = result["content"].as_array().unwrap();
    let (notes, printed): (Vec<_>, Vec<_>) = content
        .iter()
        .partition(|block| block["_meta"]["mcpd/note"] == true);
    match (&printed[..], &notes[..]) {
        ([only], _) | ([], [only]) => only["text"].as_str().unwrap(),
        _ => panic!("not one text: {result}"),
    }
}

/// Waits until no process but the named ones has the environment of the sandbox.
#[track_caller]
fn wait_until_nothing_left(sandbox: &Sandbox, but: &[u32]) {
    eventually("the end of all scripts", || {
        (processes_of(sandbox) == but).then_some(())
    });
}
