//! OAuth issuer on this machine, with all that a client and a resource server need: metadata, keys
//! that rotate, registration, the code flow with PKCE, and tokens signed in any way a test wants.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

mod signer;

pub use signer::Algorithm;
use signer::Signer;

/// Behaviour of an issuer when its keys are requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "tests name all of them")]
pub enum Conduct {
    /// Answers properly.
    Sound,
    /// Refuses connections.
    Down,
    /// Never answers.
    Slow,
    /// Redirects elsewhere.
    Redirecting,
    /// Answers with a megabyte.
    Huge,
}

/// Issuer. Clones share it; its threads end with the process.
#[derive(Debug, Clone)]
pub struct Issuer {
    url: String,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    keys: Vec<(String, Signer)>,
    conduct: Conduct,
    key_requests: usize,
    /// Challenge, resource, scope and redirect of each code.
    codes: BTreeMap<String, [String; 4]>,
    /// Resource and scope of each refresh token. A token is good once.
    refresh_tokens: BTreeMap<String, [String; 2]>,
    /// Grants that were exchanged for tokens.
    grants: Vec<String>,
    /// Scopes that logins have asked for.
    scopes: Vec<String>,
    /// Lifetime of tokens, in seconds.
    lifetime: u64,
    refuses_logins: bool,
    /// Tokens have expired before they are used.
    issues_expired_tokens: bool,
}

impl Issuer {
    /// Starts an issuer with one key for each algorithm, with the algorithm's name as key id.
    ///
    /// # Panics
    ///
    /// Panics if there is no port for it.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let keys =
            Algorithm::ALL.map(|algorithm| (algorithm.name().to_owned(), Signer::new(algorithm)));
        let state = State {
            keys: keys.into(),
            conduct: Conduct::Sound,
            key_requests: 0,
            codes: BTreeMap::new(),
            refresh_tokens: BTreeMap::new(),
            grants: Vec::new(),
            scopes: Vec::new(),
            lifetime: 600,
            refuses_logins: false,
            issues_expired_tokens: false,
        };
        let issuer = Self {
            url: format!("http://{address}"),
            state: Arc::new(Mutex::new(state)),
        };
        let serving = issuer.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let serving = serving.clone();
                thread::spawn(move || serving.serve(stream).ok());
            }
        });
        issuer
    }

    /// Returns its issuer identifier.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Changes its behaviour from now on.
    pub fn conduct(&self, conduct: Conduct) {
        self.state().conduct = conduct;
    }

    /// Replaces all keys by one with this id.
    pub fn rotate(&self, key_id: &str) {
        let signer = Signer::new(Algorithm::Es256);
        self.state().keys = vec![(key_id.to_owned(), signer)];
    }

    /// Returns the number of requests for its keys.
    #[must_use]
    pub fn key_requests(&self) -> usize {
        self.state().key_requests
    }

    /// Returns the types of the grants that were exchanged for tokens.
    #[must_use]
    pub fn grants(&self) -> Vec<String> {
        self.state().grants.clone()
    }

    /// Returns the scopes that logins have asked for.
    #[must_use]
    pub fn scopes(&self) -> Vec<String> {
        self.state().scopes.clone()
    }

    /// Sets the lifetime of tokens from now on, in seconds.
    pub fn set_lifetime(&self, seconds: u64) {
        self.state().lifetime = seconds;
    }

    /// Issues expired tokens from now on.
    pub fn expire_tokens(&self) {
        self.state().issues_expired_tokens = true;
    }

    /// Revokes all refresh tokens.
    pub fn revoke(&self) {
        self.state().refresh_tokens.clear();
    }

    /// Refuses all logins from now on.
    pub fn refuse_logins(&self) {
        self.state().refuses_logins = true;
    }

    /// Returns its keys as published.
    #[must_use]
    pub fn keys(&self) -> Value {
        let state = self.state();
        let keys = state.keys.iter().map(|(id, signer)| {
            let mut key = signer.public_key();
            key["kid"] = json!(id);
            key
        });
        json!({"keys": keys.collect::<Vec<_>>()})
    }

    /// Returns the claims of a token for `resource` that is valid for ten minutes.
    #[must_use]
    pub fn claims(&self, resource: &str) -> Value {
        json!({"iss": self.url, "sub": "alice", "aud": resource, "exp": now() + 600, "client_id": "test"})
    }

    /// Signs a token with these claims by the first key.
    ///
    /// # Panics
    ///
    /// Panics if there is none.
    #[must_use]
    pub fn token(&self, claims: &Value) -> String {
        let state = self.state();
        let (id, signer) = state.keys.first().expect("it has a key");
        let header = json!({"typ": "at+jwt", "alg": signer.algorithm().name(), "kid": id});
        sign(signer, &header.to_string(), &claims.to_string())
    }

    /// Signs a token with this header and these claims verbatim, by the key called `key_id`.
    ///
    /// # Panics
    ///
    /// Panics if there is none.
    #[must_use]
    pub fn sign(&self, key_id: &str, header: &str, claims: &str) -> String {
        let state = self.state();
        let key = state.keys.iter().find(|(id, _)| id == key_id);
        sign(&key.expect("it has the key").1, header, claims)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_owned()),
            }
        }
        let mut lengths = head.iter().filter_map(|line| line.split_once(": "));
        let length = lengths.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let length = length
            .and_then(|(_, length)| length.parse().ok())
            .unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let target = head
            .first()
            .and_then(|line| line.split(' ').nth(1))
            .unwrap_or_default();
        if let Some(response) = self.respond(target, &String::from_utf8_lossy(&body)) {
            (&stream).write_all(response.as_bytes())?;
        }
        Ok(())
    }

    fn respond(&self, target: &str, body: &str) -> Option<String> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Some(match path {
            "/.well-known/oauth-authorization-server" => ok(&self.metadata()),
            "/keys" => return self.respond_with_keys(),
            "/register" => register_client(body),
            "/authorize" => self.authorize(&form(query)),
            "/token" => self.exchange(&form(body)),
            _ => response("404 Not Found", "", ""),
        })
    }

    fn metadata(&self) -> Value {
        let at = |path: &str| format!("{}{path}", self.url);
        json!({
            "issuer": self.url,
            "jwks_uri": at("/keys"),
            "authorization_endpoint": at("/authorize"),
            "token_endpoint": at("/token"),
            "registration_endpoint": at("/register"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "authorization_response_iss_parameter_supported": true,
        })
    }

    fn respond_with_keys(&self) -> Option<String> {
        self.state().key_requests += 1;
        let conduct = self.state().conduct;
        match conduct {
            Conduct::Sound => Some(ok(&self.keys())),
            Conduct::Down => None,
            Conduct::Slow => loop {
                thread::park();
            },
            Conduct::Redirecting => {
                let location = "Location: http://localhost:1/keys\r\n";
                Some(response("302 Found", location, ""))
            }
            Conduct::Huge => {
                let mut keys = self.keys();
                keys["padding"] = json!("x".repeat(1 << 20));
                Some(ok(&keys))
            }
        }
    }

    /// Answers an authorization request; the user always consents, unless logins are refused.
    fn authorize(&self, query: &BTreeMap<String, String>) -> String {
        let get = |name: &str| query.get(name).cloned().unwrap_or_default();
        let (to, sent, issuer) = (get("redirect_uri"), get("state"), &self.url);
        let mut state = self.state();
        state.scopes.push(get("scope"));
        let outcome = match state.refuses_logins {
            true => "error=access_denied".to_owned(),
            false => {
                let code = format!("code-{}", state.scopes.len());
                let names = ["code_challenge", "resource", "scope", "redirect_uri"];
                state.codes.insert(code.clone(), names.map(get));
                format!("code={code}")
            }
        };
        response(
            "302 Found",
            &format!("Location: {to}?{outcome}&state={sent}&iss={issuer}\r\n"),
            "",
        )
    }

    fn exchange(&self, form: &BTreeMap<String, String>) -> String {
        let get = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
        if get("grant_type").ends_with("token-exchange") {
            return self.exchange_for_another(form);
        }
        let granted = match get("grant_type") {
            "refresh_token" => {
                let granted = self.state().refresh_tokens.remove(get("refresh_token"));
                granted.filter(|[resource, _]| resource == get("resource"))
            }
            _ => {
                let verifier = digest(&SHA256, get("code_verifier").as_bytes());
                let verifier = URL_SAFE_NO_PAD.encode(verifier);
                let expected = [&verifier, get("resource"), get("redirect_uri")];
                let granted = self.state().codes.remove(get("code"));
                let granted = granted.filter(|[challenge, resource, _, redirect]| {
                    [&**challenge, resource, redirect] == expected
                });
                granted.map(|[_, resource, scope, _]| [resource, scope])
            }
        };
        match granted {
            Some([resource, scope]) => self.grant(get("grant_type"), resource, scope),
            None => response("400 Bad Request", "", r#"{"error": "invalid_grant"}"#),
        }
    }

    /// Issues an opaque token that names the subject and the audience of the exchange.
    fn exchange_for_another(&self, form: &BTreeMap<String, String>) -> String {
        let get = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
        let claims = get("subject_token").split('.').nth(1).unwrap_or_default();
        let claims = URL_SAFE_NO_PAD.decode(claims).unwrap_or_default();
        let claims: Value = serde_json::from_slice(&claims).unwrap_or_default();
        let Some(subject) = claims["sub"]
            .as_str()
            .filter(|subject| *subject != "mallory")
        else {
            return response("400 Bad Request", "", r#"{"error": "invalid_target"}"#);
        };
        let mut state = self.state();
        state.grants.push(get("grant_type").to_owned());
        let token = format!("token-of-{subject}-for-{}", get("audience"));
        ok(
            &json!({"access_token": token, "token_type": "Bearer", "expires_in": state.lifetime,
            "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}),
        )
    }

    fn grant(&self, kind: &str, resource: String, scope: String) -> String {
        let mut claims = self.claims(&resource);
        let lifetime = self.state().lifetime;
        claims["scope"] = json!(scope);
        claims["exp"] = match self.state().issues_expired_tokens {
            true => json!(now() - 100),
            false => json!(now() + lifetime),
        };
        let token = self.token(&claims);
        let mut state = self.state();
        state.grants.push(kind.to_owned());
        let refresh_token = format!("refresh-{}", state.grants.len());
        let answer = json!({"access_token": token, "token_type": "Bearer", "expires_in": lifetime,
            "refresh_token": refresh_token, "scope": scope});
        state
            .refresh_tokens
            .insert(refresh_token, [resource, scope]);
        ok(&answer)
    }
}

/// Returns the seconds since 1970.
///
/// # Panics
///
/// Panics if it is earlier.
#[must_use]
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("it is later").as_secs()
}

fn sign(signer: &Signer, header: &str, claims: &str) -> String {
    let message = format!("{}.{}", encode(header), encode(claims));
    let signature = URL_SAFE_NO_PAD.encode(signer.sign(message.as_bytes()));
    format!("{message}.{signature}")
}

fn encode(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

/// Answers a client that registers.
fn register_client(body: &str) -> String {
    let mut client: Value = serde_json::from_str(body).unwrap_or_default();
    client["client_id"] = json!("test");
    response("201 Created", "", &client.to_string())
}

fn ok(body: &Value) -> String {
    response("200 OK", "", &body.to_string())
}

fn response(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: application/json\r\n{headers}\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

/// Parses the fields of a form or a query.
fn form(text: &str) -> BTreeMap<String, String> {
    let fields = text.split('&').filter_map(|field| field.split_once('='));
    fields
        .map(|(name, value)| (name.to_owned(), percent_decode(value)))
        .collect()
}

fn percent_decode(value: &str) -> String {
    let mut parts = value.split('%');
    let mut text = parts
        .next()
        .unwrap_or_default()
        .replace('+', " ")
        .into_bytes();
    for part in parts {
        let (code, rest) = part.split_at(2.min(part.len()));
        text.push(u8::from_str_radix(code, 16).unwrap_or(b'?'));
        text.extend_from_slice(rest.replace('+', " ").as_bytes());
    }
    String::from_utf8_lossy(&text).into_owned()
}
