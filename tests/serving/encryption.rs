//! TLS on the wire: server and client certificates, certificates that change while the server
//! runs, and connections that are not TLS.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcpd_tests::{Daemon, Sandbox, eventually, output};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use ring::digest::{SHA256, digest};
use rustix::process::Signal;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

const READ_TIMEOUT: Duration = Duration::from_secs(60);
pub(crate) const TLS: &[&str] = &["--tls-certificate", "server.pem", "--tls-key", "server.key"];

/// Certificate authority that client and server trust, and the files of the certificates it
/// issued.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    directory: PathBuf,
}

impl Authority {
    /// Creates the authority, with its own certificate in `ca.pem`.
    pub(crate) fn new(sandbox: &Sandbox) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let directory = sandbox.path().to_owned();
        fs::write(directory.join("ca.pem"), certificate.pem()).unwrap();
        Self {
            issuer: Issuer::new(params, key),
            directory,
        }
    }

    /// Issues a certificate for a name on this machine, in `NAME.pem` and `NAME.key`.
    pub(crate) fn certify(&self, name: &str) {
        let key = KeyPair::generate().unwrap();
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let write =
            |kind: &str, text| fs::write(self.directory.join(format!("{name}.{kind}")), text);
        write("pem", certificate.pem()).unwrap();
        write("key", key.serialize_pem()).unwrap();
    }

    /// Returns the fingerprint by which `[[certificate]]` names a certificate.
    fn fingerprint(&self, name: &str) -> String {
        let file = self.directory.join(format!("{name}.pem"));
        let certificate = CertificateDer::from_pem_file(file).unwrap();
        let hash = digest(&SHA256, &certificate);
        let bytes: Vec<_> = hash
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect();
        bytes.join(":")
    }

    /// Connects a client that trusts the authority, and completes the handshake.
    fn connect(&self, daemon: &Daemon) -> StreamOwned<ClientConnection, TcpStream> {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_file(self.directory.join("ca.pem")).unwrap();
        roots.add(authority).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = "localhost".try_into().unwrap();
        let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = TcpStream::connect(daemon.address()).unwrap();
        stream.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
        connection.complete_io(&mut stream).unwrap();
        StreamOwned::new(connection, stream)
    }

    /// Returns the certificate that a new client is shown.
    fn server_certificate(&self, daemon: &Daemon) -> CertificateDer<'static> {
        let stream = self.connect(daemon);
        stream.conn.peer_certificates().unwrap()[0]
            .clone()
            .into_owned()
    }
}

fn setting() -> (Sandbox, Authority) {
    let sandbox = Sandbox::new();
    let authority = Authority::new(&sandbox);
    authority.certify("server");
    (sandbox, authority)
}

/// Returns the output of `curl`; empty if it can't connect.
#[track_caller]
fn curl(sandbox: &Sandbox, daemon: &Daemon, arguments: &[&str]) -> String {
    let mut command = sandbox.program("curl");
    command.args(["--silent", "--max-time", "60", "--cacert", "ca.pem"]);
    command.args([
        "--output",
        "/dev/null",
        "--write-out",
        "%{http_version} %{http_code}",
    ]);
    command
        .args(arguments)
        .arg(daemon.url().replace("/mcp", "/ready"));
    let output = output(command, b"");
    let printed = String::from_utf8(output.stdout).unwrap();
    if output.status.success() {
        printed
    } else {
        String::new()
    }
}

#[test]
fn server_shows_its_certificate_and_encrypts() {
    let (sandbox, _authority) = setting();
    let daemon = Daemon::start(&sandbox, TLS);
    assert!(daemon.url().starts_with("https://127.0.0.1:"));
    let found = fs::read_to_string(sandbox.path().join("state/mcpd/server.json")).unwrap();
    assert!(found.contains(&daemon.url()), "{found}");
    assert_eq!(curl(&sandbox, &daemon, &[]), "2 200");
    assert_eq!(curl(&sandbox, &daemon, &["--http1.1"]), "1.1 200");
    assert_eq!(curl(&sandbox, &daemon, &["--tls-max", "1.2"]), "2 200");
    assert_eq!(curl(&sandbox, &daemon, &["--tls-max", "1.1"]), "");
}

#[test]
fn client_certificate_is_required_if_configured() {
    let (sandbox, authority) = setting();
    authority.certify("client");
    let known = ["--cert", "client.pem", "--key", "client.key"];
    let other = Sandbox::new();
    Authority::new(&other).certify("stranger");
    let of_stranger = |kind| other.path().join(format!("stranger.{kind}"));
    let (certificate, key) = (of_stranger("pem"), of_stranger("key"));
    let stranger = [
        "--cert",
        certificate.to_str().unwrap(),
        "--key",
        key.to_str().unwrap(),
    ];
    let check = |arguments: &[&str], without: &str| {
        let arguments = [TLS, &["--tls-client-ca", "ca.pem"], arguments].concat();
        let daemon = Daemon::start(&sandbox, &arguments);
        assert_eq!(curl(&sandbox, &daemon, &known), "2 200");
        assert_eq!(curl(&sandbox, &daemon, &stranger), "");
        assert_eq!(curl(&sandbox, &daemon, &[]), without);
    };
    check(&[], "");
    check(&["--tls-client-certificates", "optional"], "2 200");
}

/// Returns the tool names listed for `curl` with these arguments, or the status if there is no
/// list.
#[track_caller]
fn list_tools(sandbox: &Sandbox, daemon: &Daemon, arguments: &[&str]) -> Result<Vec<String>, u16> {
    let mut command = sandbox.program("curl");
    command.args(["--silent", "--max-time", "60", "--cacert", "ca.pem"]);
    command.args(["--header", "Content-Type: application/json"]);
    command.args([
        "--data",
        r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#,
    ]);
    command
        .args(["--write-out", "\n%{http_code}"])
        .args(arguments);
    let printed = output(
        {
            command.arg(daemon.url());
            command
        },
        b"",
    )
    .stdout;
    let printed = String::from_utf8(printed).unwrap();
    let (body, status) = printed.rsplit_once('\n').unwrap();
    if status != "200" {
        return Err(status.parse().unwrap());
    }
    let answer: Value = serde_json::from_str(body).unwrap();
    let tools = answer["result"]["tools"].as_array().unwrap().iter();
    Ok(tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect())
}

/// An answer that is sent before its request was read resets the stream, and the client usually
/// never sees it.
#[test]
fn refusals_over_http_2_arrive() {
    let (sandbox, _) = setting();
    let daemon = Daemon::start(&sandbox, TLS);
    let token = format!("Authorization: Bearer {}", daemon.token().unwrap());
    for _ in 0..20 {
        assert_eq!(list_tools(&sandbox, &daemon, &["--http2"]), Err(401));
        let put = ["--http2", "--header", &token, "--request", "PUT"];
        assert_eq!(list_tools(&sandbox, &daemon, &put), Err(405));
    }
}

#[test]
fn client_certificate_identifies_the_caller() {
    let (sandbox, authority) = setting();
    let sandbox = sandbox.with_counter("count").with_counter("other");
    authority.certify("robot");
    authority.certify("guest");
    let table = format!(
        "[[certificate]]\nname = \"robot\"\nsha256 = \"{}\"\ntools = [\"count\"]\n",
        authority.fingerprint("robot")
    );
    let config = sandbox.path().join("mcpd.toml");
    fs::write(&config, &table).unwrap();
    let asking = [
        "--tls-client-ca",
        "ca.pem",
        "--tls-client-certificates",
        "optional",
    ];
    let daemon = Daemon::start(&sandbox, &[TLS, &asking].concat());
    let token = format!("Authorization: Bearer {}", daemon.token().unwrap());
    let robot = ["--cert", "robot.pem", "--key", "robot.key"];
    let guest = ["--cert", "guest.pem", "--key", "guest.key"];
    let list = |shown: &[&[&str]]| list_tools(&sandbox, &daemon, &shown.concat());

    let all = || Ok(vec!["count".to_owned(), "other".to_owned()]);
    assert_eq!(list(&[&robot]), Ok(vec!["count".to_owned()]));
    assert_eq!(list(&[&robot, &["--http1.1"]]), list(&[&robot]));
    assert_eq!(list(&[&guest]), Err(401));
    assert_eq!(list(&[&guest, &["--header", &token]]), all());
    assert_eq!(list(&[&robot, &["--header", &token]]), all());
    assert_eq!(
        list(&[&robot, &["--header", "Authorization: Bearer no"]]),
        Err(401)
    );
    assert_eq!(list(&[]), Err(401));

    let denied = "[[rule]]\nclients = [\"robot\"]\ndeny = [\"**\"]\n";
    fs::write(&config, table + denied).unwrap();
    daemon.signal(Signal::HUP);
    eventually("the rule", || {
        (list(&[&robot]) == Ok(Vec::new())).then_some(())
    });
    fs::write(&config, "").unwrap();
    daemon.signal(Signal::HUP);
    eventually("a stranger", || (list(&[&robot]) == Err(401)).then_some(()));
}

#[test]
fn certificate_entry_without_client_certificates_is_refused() {
    let (sandbox, authority) = setting();
    let hash = authority.fingerprint("server");
    let table = format!("[[certificate]]\nname = \"robot\"\nsha256 = \"{hash}\"\n");
    fs::write(sandbox.path().join("mcpd.toml"), table).unwrap();
    let said = sandbox.run(&[&["serve", "scripts", "--port", "0"], TLS].concat());
    let reason = "mcpd.toml:2:8: in [[certificate]]: no client is asked for a certificate";
    assert!(said.contains(reason), "{said}");
}

/// Existing connections continue when the certificate files change.
#[test]
fn certificate_change_applies_to_new_connections() {
    let (sandbox, authority) = setting();
    let daemon = Daemon::start(&sandbox, TLS);
    let mut connected = authority.connect(&daemon);
    let first = authority.server_certificate(&daemon);

    authority.certify("server");
    let second = eventually("the new certificate to be shown", || {
        Some(authority.server_certificate(&daemon)).filter(|shown| *shown != first)
    });

    fs::write(sandbox.path().join("server.pem"), "no certificate").unwrap();
    daemon.signal(Signal::HUP);
    daemon.wait_for_line("TLS certificate not reloaded");
    assert_eq!(authority.server_certificate(&daemon), second);

    authority.certify("server");
    daemon.signal(Signal::HUP);
    eventually("the third certificate to be shown", || {
        Some(authority.server_certificate(&daemon)).filter(|shown| *shown != second)
    });

    let request = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    connected.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    connected.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// A client that fails the handshake, or stays silent, does not block others and is disconnected.
#[test]
fn connection_without_tls_is_closed() {
    let (sandbox, _authority) = setting();
    let daemon = Daemon::start(&sandbox, TLS);
    let beginnings: [&[u8]; 5] = [
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        // Three of these: the beginning of a handshake, a whole record of nonsense, and no byte at
        // all.
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x16\x03\x01\x00\x05hello",
        b"",
    ];
    let connections = beginnings.map(|beginning| {
        let mut stream = TcpStream::connect(daemon.address()).unwrap();
        stream.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
        stream.write_all(beginning).unwrap();
        stream
    });
    assert_eq!(curl(&sandbox, &daemon, &[]), "2 200");
    for (mut stream, beginning) in connections.into_iter().zip(beginnings) {
        let mut answer = Vec::new();
        let ended = stream.read_to_end(&mut answer);
        let is_reset = |error: std::io::Error| error.kind() == std::io::ErrorKind::ConnectionReset;
        assert!(
            ended.map_or_else(is_reset, |_| true),
            "{}",
            beginning.escape_ascii()
        );
        assert!(!answer.starts_with(b"HTTP"), "{}", beginning.escape_ascii());
    }
}

#[track_caller]
fn check_refused(arguments: &[&str], reason: &str) {
    let (sandbox, authority) = setting();
    authority.certify("other");
    let said = sandbox.run(&[&["serve", "scripts", "--port", "0"], arguments].concat());
    assert!(said.contains(reason), "{said}");
}

#[test]
fn invalid_certificate_prevents_the_start() {
    let certificate = ["--tls-certificate", "server.pem"];
    check_refused(&certificate, "both a certificate and its key are required");
    let mismatch =
        "serve `server.pem`: use the certificate: the key belongs to another certificate";
    check_refused(
        &[&certificate[..], &["--tls-key", "other.key"]].concat(),
        mismatch,
    );
    let missing = "read the file `none`: No such file or directory";
    check_refused(
        &[&certificate[..], &["--tls-key", "none"]].concat(),
        missing,
    );
    let demand = ["--tls-client-certificates", "required"];
    check_refused(
        &[TLS, &demand].concat(),
        "no certificate authorities are set",
    );
}
