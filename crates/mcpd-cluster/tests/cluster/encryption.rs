//! TLS between nodes and the server, with certificates on both sides, and nodes that a JWT
//! authorizes.

use std::fs;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcpd_cluster::{Credentials, Role, Settings, Worker, examine};
use nkeys::KeyPair;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::fixture::{EVENT_TIMEOUT, Front, LocalWorker, NAMES, Scripts, settings};
use crate::grants::Nodes;
use crate::nats::Nats;

/// Certificate authority, with the files of the certificates that it has issued.
struct Authority {
    issuer: Issuer<'static, rcgen::KeyPair>,
    directory: tempfile::TempDir,
}

impl Authority {
    /// Creates an authority of this name, with its own certificate in `ca.pem`.
    fn new(name: &str) -> Self {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a certificate");
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("ca.pem"), certificate.pem()).expect("a file");
        let issuer = Issuer::new(params, key);
        Self { issuer, directory }
    }

    /// Issues a certificate, in `NAME.pem` and `NAME.key`.
    fn certify(&self, name: &str) {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("an address");
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let write = |kind: &str, text| fs::write(self.file(name, kind), text).expect("a file");
        write("pem", certificate.pem());
        write("key", key.serialize_pem());
    }

    fn file(&self, name: &str, kind: &str) -> PathBuf {
        self.directory.path().join(format!("{name}.{kind}"))
    }

    /// Credentials that are a certificate of this authority.
    fn credentials(&self, name: &str) -> Credentials {
        self.certify(name);
        Credentials::certificate(self.file(name, "pem"), self.file(name, "key"))
    }

    /// Starts a server that has TLS and checks the certificates of its clients.
    fn server(&self, more: &str) -> Option<Nats> {
        self.certify("server");
        let file = |name: &str, kind: &str| format!("{:?}", self.file(name, kind));
        Nats::start(&format!(
            "tls {{\n  cert_file: {}\n  key_file: {}\n  ca_file: {}\n  verify: true\n}}\n{more}",
            file("server", "pem"),
            file("server", "key"),
            file("ca", "pem"),
        ))
    }
}

fn tls_url(nats: &Nats) -> String {
    nats.url().replace("nats://", "tls://")
}

/// Runs a script on a worker for a front.
async fn check_run(worker: Settings, front: Settings) {
    let scripts = Scripts::new();
    let _worker = LocalWorker::with(Worker::new(worker), &scripts);
    let front = Front::with(front);
    front.wait_for(&NAMES).await;
    let told = front.run("change", "one", "0").await;
    assert_eq!(told, Ok((true, "did one".to_owned())));
}

/// Returns what an examination says of the only server.
async fn server_line(settings: &Settings) -> String {
    let examined = timeout(EVENT_TIMEOUT, examine(settings)).await;
    let text = examined.expect("an end").expect("usable settings");
    let text = text.to_string();
    let (_, said) = text
        .split_once("servers\n  tls://127.0.0.1:")
        .expect("a server");
    let (_, said) = said.split_once(": ").expect("a port");
    said.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn server_and_nodes_check_the_certificates_of_each_other() {
    let authority = Authority::new("ours");
    let nodes = Nodes::new().add(Role::Worker, "w1").add(Role::Front, "f1");
    let Some(nats) = authority.server(&nodes.authorization()) else {
        return;
    };
    let node = |name: &str| {
        let mut settings = nodes.settings(&nats, name);
        settings.urls = vec![tls_url(&nats)];
        settings.ca = Some(authority.file("ca", "pem"));
        settings.credentials.push(authority.credentials(name));
        settings
    };
    check_run(node("w1"), node("f1")).await;
    let said = server_line(&node("f1")).await;
    assert!(said.starts_with("nats-server "), "{said}");

    // The server is not of the authority that the node trusts.
    let other = Authority::new("other");
    let mut wrong = node("f1");
    wrong.ca = Some(other.file("ca", "pem"));
    let said = server_line(&wrong).await;
    assert!(
        said.starts_with("not reached: ") && said.contains("UnknownIssuer"),
        "{said}"
    );
    assert!(said.contains("check `ca` in `[cluster]`"), "{said}");

    // The node has no certificate, or one of another authority.
    let mut without = node("f1");
    without.credentials.pop();
    let mut foreign = without.clone();
    foreign.credentials.push(other.credentials("f1"));
    for settings in [without, foreign] {
        let said = server_line(&settings).await;
        assert!(said.starts_with("not reached: "), "{said}");
        assert!(
            said.contains("check `certificate` and `key` in `[cluster]`"),
            "{said}"
        );
    }
}

/// Signs claims, as `nsc` does.
fn sign(issuer: &KeyPair, subject: &KeyPair, name: &str, claims: Value) -> String {
    let header = json!({"typ": "JWT", "alg": "ed25519-nkey"});
    let claims = json!({
        "jti": name, "iat": 0, "iss": issuer.public_key(), "sub": subject.public_key(),
        "name": name, "nats": claims,
    });
    let parts = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
    let text = parts.join(".");
    let signature = issuer.sign(text.as_bytes()).expect("a signature");
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_file_authorizes_a_node() {
    let [operator, account] = [KeyPair::new_operator(), KeyPair::new_account()];
    let none = json!({"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1,
        "wildcards": true, "conn": -1, "leaf": -1});
    let kind = |kind: &str| json!({"type": kind, "version": 2, "limits": none});
    let of_operator = sign(&operator, &operator, "operator", kind("operator"));
    let of_account = sign(&operator, &account, "account", kind("account"));
    let Some(nats) = Nats::start(&format!(
        "operator: {of_operator}\nresolver: MEMORY\nresolver_preload: {{{}: {of_account}}}",
        account.public_key(),
    )) else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let node = |name: &str| {
        let user = KeyPair::new_user();
        let claims = json!({"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1});
        let jwt = sign(&account, &user, name, claims);
        let seed = user.seed().expect("a seed");
        let file = directory.path().join(name);
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        fs::write(&file, text).expect("a file");
        let mut settings = settings(&nats.url(), name);
        settings.credentials = vec![Credentials::CredentialsFile(file)];
        settings
    };
    check_run(node("w1"), node("f1")).await;

    let mut missing = node("f1");
    missing.credentials = vec![Credentials::CredentialsFile(directory.path().join("none"))];
    let error = examine(&missing).await.expect_err("no file").to_string();
    let file = directory.path().join("none");
    assert_eq!(
        error,
        format!("read the credentials in `{}`", file.display())
    );
}
