//! Credentials of callers: each caller's runs get its own, and nothing else of mcpd shows them.

use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use mcpd_tests::{Client, Daemon, Issuer, Sandbox, eventually};
use ring::digest::{SHA256, digest};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::call;

mod api;

use api::Api;

/// Script that calls an API for its caller, and discloses the credential.
const ACT: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then echo '{"description": "Acts.", "context": true}'; exit; fi
echo "out $(curl -sS -H "Authorization: Bearer $API_KEY" -H "X-Caller: $MCPD_PRINCIPAL" "$API")"
echo "err $API_KEY" >&2
cat "$MCPD_CONTEXT"
"#;
const OTHER: &str = "#!/bin/sh\n[ \"$1\" = --help ] && { echo '{}'; exit; }\nenv\n";
const RESOURCE: &str = "https://tools.example/mcp";

pub(crate) fn hash(token: &str) -> String {
    let digest = digest(&SHA256, token.as_bytes());
    digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn sandbox(api: &Api) -> Sandbox {
    Sandbox::new()
        .with_script("act", ACT)
        .with_script("other", OTHER)
        .with_variable("API", &api.url)
}

fn start(sandbox: &Sandbox, configuration: &str) -> Daemon {
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    Daemon::start(sandbox, &["--config", "mcpd.toml", "-vv"])
}

/// Calls a tool, and returns the whole answer.
fn answer(client: &Client, tool: &str) -> String {
    let (status, body) = client.post(&call(tool, json!({})).to_string()).unwrap();
    assert_eq!(status, 200, "{body}");
    body
}

/// Stops the server, and checks that no answer, log or record shows a secret.
#[track_caller]
fn check_hidden(sandbox: &Sandbox, daemon: Daemon, answers: &[String], secrets: &[&str]) {
    let path = sandbox.path().join("state/mcpd/logs/mcp-audit.jsonl");
    let audit = eventually("the records", || {
        let log = fs::read_to_string(&path).ok()?;
        (log.matches(r#""event":"end""#).count() == answers.len()).then_some(log)
    });
    daemon.signal(Signal::TERM);
    let (_, log) = daemon.wait();
    for said in answers.iter().chain([&audit, &log]) {
        for secret in secrets {
            assert!(!said.contains(secret), "{secret}: {said}");
        }
    }
}

#[test]
fn each_team_acts_with_its_own_credential() {
    let api = Api::start();
    let sandbox = sandbox(&api).with_variable("KEY_OF_B", "credential-of-b");
    fs::write(sandbox.path().join("key-of-a"), "credential-of-a\n").unwrap();
    let configuration = format!(
        "[[token]]\nname = \"a\"\nsha256 = \"{}\"\nenv = {{ API_KEY = {{ file = \"key-of-a\" }} }}\n\
         [[token]]\nname = \"b\"\nsha256 = \"{}\"\nenv = {{ API_KEY = {{ variable = \"KEY_OF_B\" }} }}\n\
         [[client]]\nname = \"agent\"\nenv = {{ API_KEY = \"credential-of-agent\" }}\n\
         [[tool]]\nmatch = \"act\"\nenv = {{ API_KEY = \"credential-of-all\" }}\n\
         [[tool]]\nmatch = \"other\"\ncaller_env = []\n",
        hash("token-a"),
        hash("token-b"),
    );
    let daemon = start(&sandbox, &configuration);
    let of = |token| daemon.client().with_token(Some(token));
    let clients = [of("token-a"), of("token-b"), daemon.client()];
    let mut answers: Vec<_> = clients.iter().map(|client| answer(client, "act")).collect();
    assert_eq!(
        api.calls(),
        [
            "a=credential-of-a",
            "b=credential-of-b",
            "agent=credential-of-agent"
        ]
    );
    for one in &answers {
        assert!(one.contains("out [redacted API_KEY]"), "{one}");
    }
    // A tool that accepts none gets none, and the variable that one came from is for nobody else.
    // The names show it: a value would be redacted.
    for client in &clients {
        let other = answer(client, "other");
        let is_leaked = other.contains("API_KEY") || other.contains("KEY_OF_B");
        assert!(other.contains("MCPD_PRINCIPAL=") && !is_leaked, "{other}");
        answers.push(other);
    }
    let described = sandbox.run(&["describe", "act", "--config", "mcpd.toml"]);
    let secrets = ["credential-of", "token-a", "token-b"];
    assert!(!described.contains(secrets[0]), "{described}");
    check_hidden(&sandbox, daemon, &answers, &secrets);
}

/// Configuration whose script acts with the header of each request.
const KEY_IN_A_HEADER: &str =
    "[[tool]]\nmatch = \"act\"\nenv = { API_KEY = { header = \"X-Api-Key\" } }\n";

#[test]
fn header_of_a_request_is_a_secret_of_its_run() {
    let api = Api::start();
    let sandbox = sandbox(&api);
    let daemon = start(&sandbox, KEY_IN_A_HEADER);
    let token = daemon.token().map(str::to_owned);
    let client = |key: &str| {
        let client = daemon.client().with_token(token.as_deref());
        client.with_header("x-api-key", key)
    };
    let answers = [
        answer(&client("key-of-one"), "act"),
        answer(&client("key-of-two"), "act"),
        answer(&daemon.client(), "act"),
        answer(&client("key-of-one"), "other"),
    ];
    assert_eq!(
        api.calls(),
        ["agent=key-of-one", "agent=key-of-two", "agent="]
    );
    assert!(!answers[3].contains("API_KEY"), "{}", answers[3]);
    check_hidden(&sandbox, daemon, &answers, &["key-of"]);
}

/// Opens a stream of revision 2024-11-05. Returns it with the path to post to.
fn open_stream(address: &str, token: &str) -> (BufReader<TcpStream>, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET /sse HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n"
    )
    .unwrap();
    let mut stream = BufReader::new(stream);
    let path = next_line(&mut stream, "data: ");
    (stream, path)
}

/// Returns the rest of the next line that begins with `start`.
fn next_line(stream: &mut impl BufRead, start: &str) -> String {
    let mut lines = stream.lines().map(Result::unwrap);
    let rest = lines.find_map(|line| Some(line.strip_prefix(start)?.to_owned()));
    rest.unwrap()
}

#[test]
fn header_is_a_secret_of_every_transport_over_http() {
    let api = Api::start();
    let sandbox = sandbox(&api);
    fs::write(sandbox.path().join("mcpd.toml"), KEY_IN_A_HEADER).unwrap();
    let flags = ["--config", "mcpd.toml", "--http-sse", "-vv"];
    let daemon = Daemon::start(&sandbox, &flags);
    let token = daemon.token().unwrap();
    let client = daemon.client().with_header("x-api-key", "key-of-events");
    let (_, events) = client.exchange("POST /events/act", "{}").unwrap();
    let (mut stream, path) = open_stream(daemon.address(), token);
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "act", "arguments": {}}})
    .to_string();
    let client = daemon.client().with_header("x-api-key", "key-of-stream");
    client.exchange(&format!("POST {path}"), &message).unwrap();
    let said = next_line(&mut stream, "data: {\"jsonrpc\":\"2.0\",\"id\":1,");
    assert_eq!(api.calls(), ["agent=key-of-events", "agent=key-of-stream"]);
    check_hidden(&sandbox, daemon, &[events, said], &["key-of"]);
}

/// Returns a configuration whose script acts with a token in place of the caller's.
fn exchanging(issuer: &Issuer) -> String {
    format!(
        "[oauth]\nresource = \"{RESOURCE}\"\nclaims = [\"email\"]\n\
         [[oauth.issuer]]\nurl = \"{url}\"\n\
         [[oauth.exchange]]\nname = \"api\"\nendpoint = \"{url}/token\"\nclient_id = \"mcpd\"\nclient_secret = \"password-of-mcpd\"\naudience = \"api\"\n\
         [[tool]]\nmatch = \"act\"\nenv = {{ API_KEY = {{ exchange = \"api\" }} }}\n",
        url = issuer.url()
    )
}

#[test]
fn exchanged_token_is_replaced_shortly_before_it_expires() {
    let (api, issuer) = (Api::start(), Issuer::start());
    // A second more than the 30 in which it is not used any more.
    issuer.set_lifetime(31);
    let sandbox = sandbox(&api);
    let daemon = start(&sandbox, &exchanging(&issuer));
    let token = issuer.token(&issuer.claims(RESOURCE));
    let client = daemon.client().with_token(Some(&token));
    let start = Instant::now();
    answer(&client, "act");
    assert_eq!(issuer.grants().len(), 1);
    eventually("another exchange", || {
        answer(&client, "act");
        (issuer.grants().len() == 2).then_some(())
    });
    assert!(start.elapsed() >= Duration::from_secs(1));
    let calls = api.calls();
    let is_exchanged = |call: &String| call.ends_with("#alice=token-of-alice-for-api");
    assert!(calls.iter().all(is_exchanged), "{calls:?}");
}

#[test]
fn first_calls_at_once_share_one_exchange() {
    const CALLERS: usize = 8;
    let (api, issuer) = (Api::start(), Issuer::start());
    let sandbox = sandbox(&api);
    let daemon = start(&sandbox, &exchanging(&issuer));
    let token = issuer.token(&issuer.claims(RESOURCE));
    let client = daemon.client().with_token(Some(&token));
    let barrier = Barrier::new(CALLERS);
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                barrier.wait();
                answer(&client, "act")
            });
        }
    });
    assert_eq!(api.calls().len(), CALLERS);
    assert_eq!(issuer.grants().len(), 1);
}

#[test]
fn token_of_an_issuer_is_exchanged_for_one_of_the_service() {
    let (api, issuer) = (Api::start(), Issuer::start());
    let sandbox = sandbox(&api);
    let daemon = start(&sandbox, &exchanging(&issuer));
    let token = |subject: &str| {
        let mut claims = issuer.claims(RESOURCE);
        claims["sub"] = json!(subject);
        claims["email"] = json!("someone@example.com");
        claims["phone"] = json!("+1 555 0100");
        claims["scope"] = json!("tools:read");
        issuer.token(&claims)
    };
    let tokens = ["alice", "bob", "mallory"].map(token);
    let clients = [0, 1, 2].map(|place| daemon.client().with_token(Some(&tokens[place])));
    let answers: Vec<_> = [0, 1, 0, 2]
        .map(|place: usize| answer(&clients[place], "act"))
        .into();
    let (url, exchanged) = (issuer.url(), "token-of");
    let call = |subject| format!("{url}#{subject}={exchanged}-{subject}-for-api");
    assert_eq!(api.calls(), ["alice", "bob", "alice"].map(call));
    assert_eq!(issuer.grants().len(), 2, "a token is kept while it lasts");
    assert!(
        answers[0].contains("someone@example.com") && answers[0].contains("tools:read"),
        "{}",
        answers[0]
    );
    assert!(!answers[0].contains("555"), "the claim was not chosen");
    let refused: Value = serde_json::from_str(&answers[3]).unwrap();
    assert_eq!(refused["result"]["isError"], true);
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(
        text,
        "The script `act` was not run: `API_KEY` could not be set: the issuer refused the exchange: `invalid_target`."
    );
    let agent = answer(&daemon.client(), "act");
    assert!(agent.contains("the caller has no access token"), "{agent}");
    let signatures = tokens
        .each_ref()
        .map(|token| token.rsplit('.').next().unwrap());
    let secrets = [signatures[0], signatures[1], exchanged, "password-of-mcpd"];
    let answers: Vec<_> = answers.into_iter().chain([agent]).collect();
    check_hidden(&sandbox, daemon, &answers, &secrets);
}

#[track_caller]
fn check_error(configuration: &str, expected: &str) {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    let said = sandbox.run(&["config", "check", "mcpd.toml"]);
    assert!(said.contains(expected), "{said}");
}

#[test]
fn a_wrong_credential_is_explained() {
    check_error(
        "[[client]]\nname = \"bob\"\n",
        "`name`: expected `agent`, `local`, `anonymous`, or `ISSUER#SUBJECT`",
    );
    let tool =
        |source: &str| format!("[[tool]]\nmatch = \"act\"\nenv = {{ API_KEY = {source} }}\n");
    check_error(
        &tool("{ header = \"Authorization\" }"),
        "scripts never get the client's token for mcpd",
    );
    check_error(
        &tool("{ header = \"a b\" }"),
        "it is not a valid name of a header",
    );
    check_error(
        &tool("{ exchange = \"api\" }"),
        "there is no `[[oauth.exchange]]` called `api`",
    );
    check_error(
        "[[client]]\nname = \"agent\"\nenv = { API_KEY = { header = \"X-Api-Key\" } }\n",
        "only variables of a `[[tool]]` can have them",
    );
    check_error(
        "[oauth]\n[[oauth.issuer]]\nurl = \"https://a.example\"\n[[oauth.exchange]]\nname = \"api\"\nendpoint = \"http://a.example/token\"\n",
        "expected an `https` URL",
    );
}
