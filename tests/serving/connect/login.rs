//! OAuth login of `mcpd connect`, with the issuer of the tests and an mcpd that accepts its tokens.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use mcpd_tests::{Client as Http, Daemon, Issuer, Sandbox, eventually, output};
use serde_json::Value;

use super::recovery::stop;
use super::{Client, ERAS, Era, HELLO};

/// Browser that writes the address of the page to a file.
const BROWSER: &str =
    "#!/bin/sh\ncd \"${0%/*}/..\"\nprintf '%s' \"$1\" >page.new && mv page.new page\n";

/// Issuer, an mcpd that accepts its tokens, and a browser.
struct Setting {
    issuer: Issuer,
    sandbox: Sandbox,
    daemon: Daemon,
}

impl Setting {
    fn new(further: &str) -> Self {
        let issuer = Issuer::start();
        let sandbox = Sandbox::new()
            .with_script("hello", HELLO)
            .with_script("deploy", HELLO)
            .with_script("../bin/xdg-open", BROWSER);
        let configuration = format!(
            "[oauth]\n[[oauth.issuer]]\nurl = \"{}\"\n{further}",
            issuer.url()
        );
        fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
        let daemon = Daemon::start(&sandbox, &["--config", "mcpd.toml"]);
        Self {
            issuer,
            sandbox,
            daemon,
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let url = self.daemon.url();
        let mut command = self
            .sandbox
            .command(&[&["connect", &url], arguments].concat());
        let path = std::env::var("PATH").unwrap();
        let bin = self.sandbox.path().join("bin");
        command.env("PATH", format!("{}:{path}", bin.display()));
        command
    }

    /// Ends the server, and starts it again at the same address.
    fn restart(self) -> Self {
        let port = stop(self.daemon);
        let arguments = ["--config", "mcpd.toml", "--port", &port];
        let daemon = Daemon::listening(&self.sandbox, &arguments);
        Self { daemon, ..self }
    }

    /// Starts a client without a session.
    fn client(&self) -> Client {
        Client::start(self.command(&[]), Era::Stateless)
    }

    /// Replaces the stored token by one that the server refuses.
    fn spoil_token(&self) {
        let file = &self.stored()[0];
        let mut grant: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        grant["access_token"] = "stale".into();
        fs::write(file, grant.to_string()).unwrap();
    }

    /// Logs in on the page that the browser shows next. Returns its parameters.
    fn log_in(&self) -> String {
        let file = self.sandbox.path().join("page");
        let page = eventually("the browser opens", || fs::read_to_string(&file).ok());
        fs::remove_file(file).unwrap();
        let (authority, target) = split(&page);
        assert_eq!(format!("http://{authority}"), self.issuer.url());
        let (head, _) = Http::new(authority, None)
            .exchange(&format!("GET {target}"), "")
            .unwrap();
        let to = head
            .lines()
            .find_map(|line| line.strip_prefix("Location: "));
        let (authority, target) = split(to.unwrap());
        let (head, page) = Http::new(authority, None)
            .exchange(&format!("GET {target}"), "")
            .unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(page.contains("You can close this window"), "{page}");
        target.to_owned()
    }

    /// Returns the files of stored logins.
    fn stored(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.sandbox.path().join("state/mcpd/connect"));
        let entries = entries.into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

/// Splits an `http` URL into host with port, and path with query.
fn split(url: &str) -> (&str, &str) {
    let rest = url.strip_prefix("http://").unwrap();
    rest.split_at(rest.find('/').unwrap())
}

#[test]
fn server_of_an_issuer_is_logged_in_to_once() {
    let setting = Setting::new("");
    let mut client = setting.client();
    client.call(1, "hello");
    setting.log_in();
    client.check_answer(1, "hello");
    let stored = setting.stored();
    assert_eq!(stored.len(), 1);
    let mode = stored[0].metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Another process uses the stored token, in each era.
    for era in ERAS {
        let mut client = Client::start(setting.command(&[]), era);
        client.call(2, "hello");
        client.check_answer(2, "hello");
    }
    assert_eq!(setting.issuer.grants(), ["authorization_code"]);
}

#[test]
fn login_and_logout_are_commands() {
    let setting = Setting::new("");
    let mut login = setting.command(&["--login"]);
    let ended = std::thread::scope(|scope| {
        login.env("MCPD_LOG", "trace");
        let ended = scope.spawn(move || output(login, b""));
        setting.log_in();
        ended.join().unwrap()
    });
    let transcript = setting.sandbox.transcript(&ended);
    assert!(transcript.starts_with("exit code: 0\n"), "{transcript}");
    assert!(transcript.contains("The login is stored."), "{transcript}");
    let page = format!(
        "Log in on this page:\n\n  {}/authorize?",
        setting.issuer.url()
    );
    assert!(transcript.contains(&page), "{transcript}");
    let grant: Value = serde_json::from_slice(&fs::read(&setting.stored()[0]).unwrap()).unwrap();
    for secret in ["access_token", "refresh_token"] {
        assert!(
            !transcript.contains(grant[secret].as_str().unwrap()),
            "{secret}: {transcript}"
        );
    }
    for said in ["The stored login is removed.", "There is no stored login"] {
        let transcript = setting
            .sandbox
            .transcript(&output(setting.command(&["--logout"]), b""));
        assert!(transcript.starts_with("exit code: 0\n"), "{transcript}");
        assert!(transcript.contains(said), "{transcript}");
    }
    assert!(setting.stored().is_empty());
}

#[test]
fn token_is_refreshed_before_it_expires_and_when_it_is_refused() {
    let setting = Setting::new("");
    // Shorter than the margin, so that each request refreshes it.
    setting.issuer.set_lifetime(30);
    let mut client = setting.client();
    client.call(1, "hello");
    setting.log_in();
    client.check_answer(1, "hello");
    setting.issuer.set_lifetime(600);
    client.call(2, "hello");
    client.check_answer(2, "hello");
    let refreshed = setting.issuer.grants();
    assert!(refreshed.len() >= 2, "{refreshed:?}");
    assert!(
        refreshed[1..].iter().all(|grant| grant == "refresh_token"),
        "{refreshed:?}"
    );
    drop(client);
    // The server refuses the stored token, and the refresh token is good.
    setting.spoil_token();
    let mut client = setting.client();
    client.call(3, "hello");
    client.check_answer(3, "hello");
    assert_eq!(setting.issuer.grants().len(), refreshed.len() + 1);
    drop(client);
    // Without a good refresh token, the user logs in again.
    setting.spoil_token();
    setting.issuer.revoke();
    let mut client = setting.client();
    client.call(4, "hello");
    setting.log_in();
    client.check_answer(4, "hello");
}

#[test]
fn server_restarts_during_a_login() {
    let setting = Setting::new("");
    let mut client = setting.client();
    client.call(1, "hello");
    let page = setting.sandbox.path().join("page");
    eventually("the browser opens", || page.exists().then_some(()));
    let setting = setting.restart();
    setting.log_in();
    client.check_answer(1, "hello");
    assert_eq!(setting.issuer.grants(), ["authorization_code"]);
}

#[test]
fn missing_scope_is_asked_for() {
    let setting = Setting::new(
        "[[oauth.scope]]\nname = \"greet\"\ntools = [\"hello\"]\n\
         [[oauth.scope]]\nname = \"deploy\"\ntools = [\"deploy\"]\nstep_up = true\n",
    );
    let mut client = setting.client();
    for (id, tool) in [(1, "hello"), (2, "deploy")] {
        client.call(id, tool);
        setting.log_in();
        client.check_answer(id, "hello");
    }
    assert_eq!(setting.issuer.scopes(), ["greet", "greet deploy"]);
    // The token of the second login is good for both.
    client.call(3, "hello");
    client.check_answer(3, "hello");
}

#[test]
fn token_of_the_user_is_never_replaced_by_a_login() {
    let setting = Setting::new("");
    let mut command = setting.command(&[]);
    command.env("MCPD_TOKEN", "wrong");
    let mut client = Client::start(command, Era::Stateless);
    client.call(1, "hello");
    let answer = client.answer().to_string();
    assert!(answer.contains("HTTP 401"), "{answer}");
    assert!(setting.issuer.grants().is_empty());
    assert!(!setting.sandbox.path().join("page").exists());
}

#[test]
fn refused_login_is_the_answer() {
    let setting = Setting::new("");
    setting.issuer.refuse_logins();
    let command = setting.command(&["--client-id", "known"]);
    let mut client = Client::start(command, Era::Stateless);
    client.call(1, "hello");
    let redirect = setting.log_in();
    assert!(redirect.contains("error=access_denied"), "{redirect}");
    let answer = client.answer().to_string();
    assert!(
        answer.contains("the login was refused: access_denied"),
        "{answer}"
    );
    assert!(setting.stored().is_empty());
}

#[test]
fn server_that_refuses_every_token_gets_one_login() {
    let setting = Setting::new("");
    setting.issuer.expire_tokens();
    let mut client = setting.client();
    client.call(1, "hello");
    setting.log_in();
    let answer = client.answer().to_string();
    assert!(
        answer.contains("refuses the token of the last login"),
        "{answer}"
    );
    client.call(2, "hello");
    let answer = client.answer().to_string();
    assert!(
        answer.contains("refuses the token of the last login"),
        "{answer}"
    );
    assert!(!setting.sandbox.path().join("page").exists());
}
