//! Tokens of an OAuth issuer: validation, scopes, and the challenges that clients receive.

use std::fs;
use std::thread;

use mcpd_tests::{Algorithm, Client, Conduct, Daemon, Issuer, Sandbox, eventually, now};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::call;

/// Audience of the tokens.
const RESOURCE: &str = "https://tools.example/mcp";
const SCRIPT: &str = "#!/bin/sh\necho '{}'\n";
const LIST: &str = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#;

/// Issuer, and an mcpd that accepts its tokens.
struct Setting {
    issuer: Issuer,
    sandbox: Sandbox,
    daemon: Daemon,
}

impl Setting {
    fn new(further: &str) -> Self {
        Self::with(Sandbox::new(), further)
    }

    fn with(sandbox: Sandbox, further: &str) -> Self {
        let issuer = Issuer::start();
        let scripts = ["hello", "fail", "math/calc"].into_iter();
        let sandbox = scripts.fold(sandbox, |sandbox, path| sandbox.with_script(path, SCRIPT));
        configure(&sandbox, &issuer, further);
        let daemon = Daemon::start(&sandbox, &["--config", "mcpd.toml"]);
        Self {
            issuer,
            sandbox,
            daemon,
        }
    }

    fn client(&self, token: &str) -> Client {
        self.daemon.client().with_token(Some(token))
    }

    /// Returns the status and the challenge that `token` gets.
    fn try_token(&self, token: &str) -> (u16, String) {
        answer(&self.client(token), LIST)
    }

    /// Signs a valid token with these claims replaced; `null` removes one.
    fn token_with(&self, claims: Value) -> String {
        self.issuer.token(&self.claims_with(claims))
    }

    fn claims_with(&self, claims: Value) -> Value {
        let mut all = self.issuer.claims(RESOURCE);
        all.as_object_mut()
            .unwrap()
            .extend(claims.as_object().unwrap().clone());
        all.as_object_mut()
            .unwrap()
            .retain(|_, claim| !claim.is_null());
        all
    }

    /// Signs a valid token with this header, by the key for ES256.
    fn token_headed(&self, header: &Value) -> String {
        let claims = self.issuer.claims(RESOURCE).to_string();
        self.issuer.sign("ES256", &header.to_string(), &claims)
    }
}

fn configure(sandbox: &Sandbox, issuer: &Issuer, further: &str) {
    let configuration = format!(
        "[oauth]\nresource = \"{RESOURCE}\"\naudience = [\"api://tools\"]\n\
         [[oauth.issuer]]\nurl = \"{}\"\n{further}",
        issuer.url()
    );
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
}

/// Returns the status and the challenge of an answer.
fn answer(client: &Client, message: &str) -> (u16, String) {
    let (head, _) = client.exchange("POST /mcp", message).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, header(&head, "www-authenticate"))
}

fn header(head: &str, name: &str) -> String {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    let mut values = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
    values
        .next()
        .map_or_else(String::new, |(_, value)| value.to_owned())
}

#[track_caller]
fn check_accepted(setting: &Setting, token: &str, what: &str) {
    assert_eq!(setting.try_token(token), (200, String::new()), "{what}");
}

/// Checks that the token is refused, with a challenge that calls it invalid.
#[track_caller]
fn check_refused(setting: &Setting, token: &str, what: &str) {
    let (status, challenge) = setting.try_token(token);
    assert_eq!(status, 401, "{what}");
    assert!(
        challenge.contains("error=\"invalid_token\""),
        "{what}: {challenge}"
    );
}

#[test]
fn tokens_of_each_algorithm_are_accepted() {
    let setting = Setting::new("");
    let claims = setting.issuer.claims(RESOURCE).to_string();
    for algorithm in Algorithm::ALL.map(Algorithm::name) {
        for kind in [
            json!("at+jwt"),
            json!("JWT"),
            json!("application/at+JWT"),
            Value::Null,
        ] {
            let mut header = json!({"alg": algorithm, "kid": algorithm, "typ": kind});
            header
                .as_object_mut()
                .unwrap()
                .retain(|_, member| !member.is_null());
            let token = setting.issuer.sign(algorithm, &header.to_string(), &claims);
            check_accepted(&setting, &token, algorithm);
        }
    }
}

#[test]
fn token_with_wrong_claims_is_refused() {
    let setting = Setting::new("");
    let with = |claims: Value| setting.token_with(claims);
    check_accepted(&setting, &with(json!({})), "a good one");
    check_accepted(
        &setting,
        &with(json!({"aud": ["https://else.example", RESOURCE]})),
        "one of several",
    );
    check_accepted(
        &setting,
        &with(json!({"aud": "api://tools"})),
        "another audience",
    );
    check_accepted(
        &setting,
        &with(json!({"nbf": now() + 20, "iat": now() + 20})),
        "clocks apart",
    );
    eventually(
        "a token that has expired 29 seconds ago is accepted",
        || {
            let token = with(json!({"exp": now() - 29}));
            (setting.try_token(&token).0 == 200).then_some(())
        },
    );
    let url = setting.issuer.url();
    for wrong in [
        json!({"exp": now() - 31}),
        json!({"exp": null}),
        json!({"exp": "2999-01-01"}),
        json!({"exp": (now() + 600).to_string()}),
        json!({"nbf": now() + 90}),
        json!({"nbf": "now"}),
        json!({"aud": null}),
        json!({"aud": []}),
        json!({"aud": "https://else.example/mcp"}),
        json!({"aud": ["https://else.example/mcp"]}),
        json!({"aud": format!("{RESOURCE}/")}),
        json!({"aud": "https://tools.example"}),
        json!({"aud": {"https://tools.example/mcp": true}}),
        json!({"sub": null}),
        json!({"sub": ""}),
        json!({"sub": 7}),
        json!({"sub": "a\nb"}),
        json!({"sub": "a".repeat(256)}),
    ] {
        check_refused(&setting, &with(wrong.clone()), &wrong.to_string());
    }
    // The issuer of these is unknown, so each counts as a guess.
    for wrong in [
        json!(null),
        json!(format!("{url}/")),
        json!([url]),
        json!("https://else.example"),
    ] {
        check_refused(&setting, &with(json!({"iss": wrong})), &wrong.to_string());
    }
}

#[test]
fn token_header_does_not_choose_the_key() {
    let setting = Setting::new("");
    let issuer = &setting.issuer;
    check_accepted(
        &setting,
        &setting.token_headed(&json!({"alg": "ES256", "kid": "ES256"})),
        "a good one",
    );
    let key = issuer.keys()["keys"][0].clone();
    for wrong in [
        json!({"alg": "none", "kid": "ES256"}),
        json!({"alg": "None", "kid": "ES256"}),
        json!({"alg": "HS256", "kid": "ES256"}),
        json!({"alg": "HS256", "kid": "RS256"}),
        json!({"alg": "RS256", "kid": "ES256"}),
        json!({"alg": "RS256", "kid": "RS256"}),
        json!({"alg": "PS256", "kid": "RS256"}),
        json!({"alg": "ES384", "kid": "ES256"}),
        json!({"alg": "ES512", "kid": "ES256"}),
        json!({"kid": "ES256"}),
        json!({"alg": "ES256", "kid": "../../../../etc/passwd"}),
        json!({"alg": "ES256", "kid": "'; DROP TABLE keys; --"}),
        json!({"alg": "ES256", "kid": ["ES256"]}),
        json!({"alg": "ES256", "kid": "ES256", "typ": "dpop+jwt"}),
        json!({"alg": "ES256", "kid": "ES256", "crit": ["b64"], "b64": true}),
        json!({"alg": "ES256", "kid": "ES256", "crit": []}),
        json!({"alg": "ES256", "kid": "mine", "jku": format!("{}/keys", issuer.url())}),
        json!({"alg": "ES256", "kid": "mine", "x5u": format!("{}/keys", issuer.url())}),
        json!({"alg": "ES256", "kid": "mine", "jwk": key}),
    ] {
        check_refused(&setting, &setting.token_headed(&wrong), &wrong.to_string());
    }
    // The key id is optional if only one key fits.
    check_accepted(
        &setting,
        &setting.token_headed(&json!({"alg": "ES256"})),
        "no name",
    );
    let good = setting.token_with(json!({}));
    let (message, signature) = good.rsplit_once('.').unwrap();
    let (head, claims) = message.split_once('.').unwrap();
    let mallory = Issuer::start();
    for (what, wrong) in [
        ("of another", mallory.token(&issuer.claims(RESOURCE))),
        ("unsigned", format!("{message}.")),
        ("shortened", good[..good.len() - 2].to_owned()),
        (
            "signature of zeros",
            format!("{message}.{}", "A".repeat(86)),
        ),
        ("padded", format!("{good}=")),
        ("four parts", format!("{good}.{signature}")),
        (
            "other claims",
            format!("{head}.{}.{signature}", claims.replacen('e', "f", 1)),
        ),
        ("huge", format!("{good}{}", "A".repeat(9000))),
    ] {
        let (status, _) = setting.try_token(&wrong);
        assert_eq!(status, 401, "{what}");
    }
}

/// Two readers, one of the first and one of the last occurrence, would see two different tokens.
#[test]
fn repeated_claims_are_refused() {
    let setting = Setting::new("");
    let claims = setting.issuer.claims(RESOURCE);
    let header = r#"{"alg": "ES256", "kid": "ES256"}"#;
    let twice = |name: &str| {
        let text = claims.to_string();
        format!("{{\"{name}\": {}, {}", claims[name], &text[1..])
    };
    let sign = |header: &str, claims: &str| setting.issuer.sign("ES256", header, claims);
    for name in ["iss", "sub", "aud", "exp"] {
        let (status, _) = setting.try_token(&sign(header, &twice(name)));
        assert_eq!(status, 401, "{name}");
    }
    let header = r#"{"alg": "ES256", "kid": "ES256", "kid": "ES256"}"#;
    check_refused(&setting, &sign(header, &claims.to_string()), "two kids");
}

#[test]
fn keys_are_fetched_once_for_concurrent_requests() {
    let setting = Setting::new("");
    let ask_at_once = |token: &dyn Fn(usize) -> String, expected: u16| {
        thread::scope(|scope| {
            for client in (0..100).map(|number| setting.client(&token(number))) {
                scope.spawn(move || assert_eq!(answer(&client, LIST).0, expected));
            }
        });
    };
    assert_eq!(setting.issuer.key_requests(), 0);
    let good = |number: usize| setting.token_with(json!({"jti": number.to_string()}));
    ask_at_once(&good, 200);
    assert_eq!(setting.issuer.key_requests(), 1);
    let unknown = |number: usize| {
        let header = json!({"alg": "ES256", "kid": format!("unknown-{number}")});
        setting.token_headed(&header)
    };
    ask_at_once(&unknown, 401);
    assert_eq!(setting.issuer.key_requests(), 2);
}

#[test]
fn rotated_keys_are_fetched_and_old_ones_dropped() {
    let setting = Setting::new("");
    let before = setting.token_with(json!({"sub": "before"}));
    let kept = setting.token_with(json!({"sub": "kept"}));
    check_accepted(&setting, &before, "before");
    setting.issuer.rotate("new");
    check_accepted(&setting, &setting.token_with(json!({})), "a new key");
    check_refused(&setting, &kept, "an old key");
    assert_eq!(setting.issuer.key_requests(), 2);
}

#[test]
fn issuer_outage_is_bridged_by_cached_keys() {
    let setting = Setting::new("");
    check_accepted(&setting, &setting.token_with(json!({})), "while it is up");
    setting.issuer.conduct(Conduct::Down);
    check_accepted(
        &setting,
        &setting.token_with(json!({"sub": "bob"})),
        "while it is down",
    );
    let unknown = setting.token_headed(&json!({"alg": "ES256", "kid": "unknown"}));
    assert_eq!(setting.try_token(&unknown).0, 503);
    check_accepted(
        &setting,
        &setting.token_with(json!({"sub": "carol"})),
        "after that",
    );
    configure(
        &setting.sandbox,
        &setting.issuer,
        "[[rule]]\ndeny = [\"hello\"]\n",
    );
    setting.daemon.signal(Signal::HUP);
    let dave = setting.token_with(json!({"sub": "dave"}));
    eventually("the rule is read", || {
        let (status, body) = setting.client(&dave).post(LIST).unwrap();
        assert_eq!(status, 200, "{body}");
        (!body.contains("hello")).then_some(())
    });
}

#[test]
fn missing_keys_are_503_not_401() {
    for conduct in [
        Conduct::Down,
        Conduct::Slow,
        Conduct::Redirecting,
        Conduct::Huge,
    ] {
        let setting = Setting::new("");
        setting.issuer.conduct(conduct);
        let token = setting.token_with(json!({}));
        let (head, _) = setting.client(&token).exchange("POST /mcp", LIST).unwrap();
        assert!(head.starts_with("HTTP/1.1 503"), "{conduct:?}: {head}");
        let wait: u64 = header(&head, "retry-after").parse().unwrap();
        assert!((1..=11).contains(&wait), "{wait}");
        assert_eq!(setting.issuer.key_requests(), 1);
        // A client with another token is unaffected by the rate limit.
        assert_eq!(answer(&setting.daemon.client(), LIST).0, 200);
        setting.issuer.conduct(Conduct::Sound);
        eventually("the keys are fetched", || {
            (setting.try_token(&token).0 == 200).then_some(())
        });
    }
}

const SCOPES: &str = r#"
[[oauth.scope]]
name = "greet"
tools = ["hello"]

[[oauth.scope]]
name = "fail"
tools = ["fail"]
step_up = true

[[oauth.scope]]
name = "read"
tools = ["resources/**"]
step_up = true
"#;

#[test]
fn scope_of_a_file_is_requested_as_well() {
    let sandbox = Sandbox::new();
    let resources = sandbox.path().join("scripts/resources");
    fs::create_dir_all(&resources).unwrap();
    fs::write(resources.join("handbook.txt"), "How it is done").unwrap();
    let setting = Setting::with(sandbox, SCOPES);
    let read = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read",
        "params": {"uri": "mcpd://resources/handbook.txt"}});
    let read = |token: &str| {
        let client = setting.client(token);
        client.exchange("POST /mcp", &read.to_string()).unwrap()
    };
    let (head, _) = read(&setting.token_with(json!({"scope": "greet"})));
    assert!(head.starts_with("HTTP/1.1 403"), "{head}");
    let challenge = header(&head, "www-authenticate");
    assert!(challenge.contains("scope=\"read\""), "{challenge}");
    let (head, body) = read(&setting.token_with(json!({"scope": "read"})));
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(body.contains("How it is done"), "{body}");
}

#[test]
fn missing_scope_is_requested() {
    let setting = Setting::new(SCOPES);
    let names = |token: &str| {
        let (_, body) = setting.client(token).post(LIST).unwrap();
        let answer: Value = serde_json::from_str(&body).unwrap();
        let tools = answer["result"]["tools"].as_array().unwrap().clone();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let none = setting.token_with(json!({}));
    let greets = setting.token_with(json!({"scope": "openid greet"}));
    let fails = setting.token_with(json!({"scp": ["fail"], "sub": "bob"}));
    assert_eq!(names(&none), [""; 0]);
    assert_eq!(names(&greets), ["hello"]);
    assert_eq!(names(&fails), ["fail"]);

    let call = |token: &str, tool: &str| {
        let message = call(tool, json!({})).to_string();
        setting
            .client(token)
            .exchange("POST /mcp", &message)
            .unwrap()
    };
    let (head, _) = call(&greets, "hello");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let (head, body) = call(&greets, "fail");
    assert!(head.starts_with("HTTP/1.1 403"), "{head}");
    let metadata = "https://tools.example/.well-known/oauth-protected-resource/mcp";
    let challenge = format!(
        "Bearer resource_metadata=\"{metadata}\", scope=\"fail\", error=\"insufficient_scope\""
    );
    assert_eq!(header(&head, "www-authenticate"), challenge);
    assert!(body.contains("`fail` requires the scope `fail`"), "{body}");
    let (head, _) = setting
        .client(&greets)
        .exchange("POST /events/fail", "{}")
        .unwrap();
    assert!(head.starts_with("HTTP/1.1 403"), "{head}");
    assert_eq!(header(&head, "www-authenticate"), challenge);
    // A tool that no scope grants is reported as unknown, like a tool that does not exist.
    for tool in ["math_calc", "nowhere"] {
        let (head, body) = call(&greets, tool);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(body.contains("unknown tool"), "{body}");
    }
}

#[test]
fn rules_apply_to_clients_of_an_issuer_by_name() {
    let setting = Setting::new("");
    let rule = format!(
        "[[rule]]\nclients = [\"{}#bob\"]\nallow = [\"hello\"]\n[[rule]]\ndeny = [\"fail\"]\n",
        setting.issuer.url()
    );
    configure(&setting.sandbox, &setting.issuer, &rule);
    setting.daemon.signal(Signal::HUP);
    let names = |subject: &str| {
        let token = setting.token_with(json!({"sub": subject}));
        let (_, body) = setting.client(&token).post(LIST).unwrap();
        body
    };
    eventually("the rules are read", || {
        (!names("bob").contains("math")).then_some(())
    });
    assert!(names("bob").contains("hello"));
    let of_alice = names("alice");
    assert!(
        of_alice.contains("math") && !of_alice.contains("\"fail\""),
        "{of_alice}"
    );
}

#[test]
fn request_without_token_names_the_issuer() {
    let setting = Setting::new(SCOPES);
    let client = setting.daemon.client().with_token(None);
    let (status, challenge) = answer(&client, LIST);
    assert_eq!(status, 401);
    let metadata = "https://tools.example/.well-known/oauth-protected-resource/mcp";
    assert_eq!(
        challenge,
        format!("Bearer resource_metadata=\"{metadata}\", scope=\"greet\"")
    );
    let well_known = "/.well-known/oauth-protected-resource";
    for path in [well_known.to_owned(), format!("{well_known}/mcp")] {
        let (head, body) = client.exchange(&format!("GET {path}"), "").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let metadata: Value = serde_json::from_str(&body).unwrap();
        let expected = json!({
            "resource": RESOURCE,
            "authorization_servers": [setting.issuer.url()],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["greet"],
        });
        assert_eq!(metadata, expected);
    }
    // A page of a foreign origin may not read the metadata, and there are no other metadata.
    let (head, _) = client
        .exchange("POST /.well-known/oauth-protected-resource", "")
        .unwrap();
    assert!(head.starts_with("HTTP/1.1 405"), "{head}");
    let (head, _) = client
        .exchange("GET /.well-known/openid-configuration", "")
        .unwrap();
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
}

#[test]
fn metadata_are_404_without_an_issuer() {
    let sandbox = Sandbox::new().with_script("hello", SCRIPT);
    let daemon = Daemon::start(&sandbox, &[]);
    let client = daemon.client().with_token(None);
    assert_eq!(answer(&client, LIST), (401, "Bearer".to_owned()));
    let (head, _) = client
        .exchange("GET /.well-known/oauth-protected-resource", "")
        .unwrap();
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
}

#[test]
fn token_is_not_forwarded_and_its_subject_is_audited() {
    let issuer = Issuer::start();
    let tell = "#!/bin/sh\n[ \"$1\" = --help ] && { echo '{}'; exit; }\nenv; cat; cat \"/proc/$PPID/environ\" 2>/dev/null; true\n";
    let sandbox = Sandbox::new().with_script("tell", tell);
    configure(&sandbox, &issuer, "");
    let arguments = ["--config", "mcpd.toml", "-vv"];
    let daemon = Daemon::start(&sandbox, &arguments);
    let token = issuer.token(&issuer.claims(RESOURCE));
    let expired = {
        let mut claims = issuer.claims(RESOURCE);
        claims["exp"] = json!(now() - 100);
        issuer.token(&claims)
    };
    let client = daemon.client().with_token(Some(&token));
    let (status, told) = client.post(&call("tell", json!({})).to_string()).unwrap();
    assert_eq!(status, 200);
    assert_eq!(answer(&client.with_token(Some(&expired)), LIST).0, 401);
    let audit = sandbox.path().join("state/mcpd/logs/mcp-audit.jsonl");
    let audit = eventually("a record", || {
        fs::read_to_string(&audit)
            .ok()
            .filter(|log| log.contains("tell"))
    });
    let name = format!("\"{}#alice\"", issuer.url());
    assert!(audit.contains(&name), "{audit}");
    daemon.signal(Signal::TERM);
    let (_, log) = daemon.wait();
    assert!(log.contains("token accepted"), "{log}");
    for token in [token, expired] {
        let signature = token.rsplit('.').next().unwrap();
        for said in [&told, &audit, &log] {
            assert!(!said.contains(signature), "{said}");
        }
    }
}

/// Returns a sandbox like a system where `ca-certificates` is not installed.
fn without_authorities() -> Sandbox {
    Sandbox::new()
        .with_variable("SSL_CERT_FILE", "/dev/null")
        .with_variable("SSL_CERT_DIR", "/nonexistent")
}

#[test]
fn local_issuer_needs_no_certificate_authorities() {
    let setting = Setting::with(without_authorities(), "");
    check_accepted(&setting, &setting.token_with(json!({})), "over http");

    let issuer = "[oauth]\nresource = \"https://tools.example\"\n\
                  [[oauth.issuer]]\nurl = \"https://auth.example\"\n";
    check_error_in(
        &without_authorities(),
        issuer,
        "`url`: failed to create an HTTP client: builder error: unexpected error: \
         No CA certificates were loaded from the system",
    );
}

/// Checks the error of a configuration with these keys in `[oauth]`.
#[track_caller]
fn check_error(oauth: &str, expected: &str) {
    let sandbox = Sandbox::new().with_script("hello", SCRIPT);
    check_error_in(&sandbox, oauth, expected);
}

#[track_caller]
fn check_error_in(sandbox: &Sandbox, oauth: &str, expected: &str) {
    fs::write(sandbox.path().join("mcpd.toml"), oauth).unwrap();
    let arguments = [
        "serve",
        "scripts",
        "--listen",
        "0.0.0.0:0",
        "--config",
        "mcpd.toml",
    ];
    let said = sandbox.run(&arguments);
    assert!(said.contains(expected), "{said}");
}

#[test]
fn a_wrong_configuration_is_explained() {
    let issuer = "[oauth]\n[[oauth.issuer]]\nurl = \"https://auth.example\"\n";
    check_error(issuer, "mcpd.toml:1:1: in [oauth]: `resource` is missing");
    check_error(
        "[oauth]\n",
        "mcpd.toml:1:1: in [oauth]: at least one `[[oauth.issuer]]` is required",
    );
    check_error(
        "[oauth]\n[[oauth.issuer]]\nurl = \"http://auth.example\"\n",
        "mcpd.toml:3:7: in [[oauth.issuer]]: `url`: failed to use the URL `http://auth.example`: expected an `https` URL, or `http` on this machine",
    );
    check_error(
        &format!("{issuer}jwks = \"nowhere.json\"\n"),
        "in [[oauth.issuer]]: `jwks`: failed to read `",
    );
    check_error(
        &format!("{issuer}jwks = \"mcpd.toml\"\n"),
        "`jwks`: failed to use the keys: it is not a JSON Web Key Set",
    );
    check_error(
        &format!("{issuer}jwks = \"http://auth.example/keys\"\n"),
        "`jwks`: failed to use the URL",
    );
    check_error(
        &issuer.replace("[oauth]\n", "[oauth]\nresource = \"tools\"\n"),
        "mcpd.toml:2:12: in [oauth]: `resource`: failed to use the URL `tools`: it is not a URL",
    );
    check_error(
        &format!("{issuer}[[oauth.scope]]\nname = \"a b\"\ntools = []\n"),
        "`name`: failed to use the scope `a b`: invalid name of a scope",
    );
    check_error(
        &format!("{issuer}[[oauth.scope]]\nname = \"a\"\ntools = [\"[\"]\n"),
        "`tools`: failed to parse the pattern `[`",
    );
    check_error(
        &format!("{issuer}[[rule]]\nclients = [\"https://else.example#bob\"]\ndeny = [\"a\"]\n"),
        "there is no client `https://else.example#bob`",
    );
}

#[test]
fn keys_are_read_from_an_address_or_a_file() {
    let issuer = Issuer::start();
    let sandbox = Sandbox::new().with_script("hello", SCRIPT);
    fs::write(sandbox.path().join("keys.json"), issuer.keys().to_string()).unwrap();
    let address = format!("{}/keys", issuer.url());
    for (jwks, asked) in [("keys.json", 0), (&*address, 1)] {
        configure(&sandbox, &issuer, &format!("jwks = \"{jwks}\"\n"));
        let daemon = Daemon::start(&sandbox, &["--config", "mcpd.toml"]);
        let token = issuer.token(&issuer.claims(RESOURCE));
        let client = daemon.client().with_token(Some(&token));
        assert_eq!(answer(&client, LIST).0, 200, "{jwks}");
        assert_eq!(issuer.key_requests(), asked, "{jwks}");
    }
}
