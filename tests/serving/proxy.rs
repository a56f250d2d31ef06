//! A silent call through nginx, with the lines of `docs/proxies.md`.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use mcpd_tests::{Client, Daemon, Sandbox, eventually, repository, skip};

/// Silent for longer than the proxy waits between two bytes.
const SILENT: &str =
    "#!/bin/sh\n# /// mcpd\n# description = \"Takes its time\"\n# ///\nsleep 17\necho done\n";

/// The server block of the page, with the address of mcpd, for the proxy alone.
fn configuration(sandbox: &Path, port: u16, server: &str) -> String {
    let page = fs::read_to_string(repository().join("docs/proxies.md")).unwrap();
    let lines = page.split("```nginx\n").nth(1).unwrap();
    let lines = lines.split("```").next().unwrap();
    let lines = lines.replace("127.0.0.1:43210", server);
    let home = sandbox.display();
    let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let paths = paths.map(|name| format!("{name}_temp_path {home}/{name};\n"));
    format!(
        "daemon off;\nmaster_process off;\npid {home}/nginx.pid;\nerror_log {home}/error.log;\n\
         events {{}}\nhttp {{\naccess_log off;\n{}server {{\nlisten 127.0.0.1:{port};\n{lines}}}\n}}\n",
        paths.concat()
    )
}

#[test]
fn silent_call_survives_the_read_timeout_of_nginx() {
    let sandbox = Sandbox::new().with_script("silent", SILENT);
    let installed = sandbox
        .program("sh")
        .args(["-c", "command -v nginx"])
        .status();
    if !installed.unwrap().success() {
        skip("no call goes through a proxy, as `nginx` is not installed");
        return;
    }
    let daemon = Daemon::start(&sandbox, &["scripts"]);
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let file = sandbox.path().join("nginx.conf");
    fs::write(&file, configuration(sandbox.path(), port, daemon.address())).unwrap();
    let mut nginx = sandbox.program("nginx");
    nginx
        .arg("-c")
        .arg(&file)
        .arg("-e")
        .arg(sandbox.path().join("error.log"));
    let mut nginx = nginx.spawn().unwrap();
    let client = Client::new(&format!("127.0.0.1:{port}"), daemon.token());
    eventually("nginx answers", || {
        client
            .get("/ready")
            .ok()
            .filter(|(status, _)| *status == 200)
    });

    let call = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "silent", "arguments": {}}}"#;
    let answer = client.post(call);
    nginx.kill().unwrap();
    nginx.wait().unwrap();
    let (status, body) = answer.unwrap();
    assert_eq!(status, 200, "{body}");
    // The client sees the pieces as they were sent, each with its length.
    assert!(body.contains(":\r\n\r\n"), "{body}");
    assert!(body.contains(r#""text":"done""#), "{body}");
}
