//! HTTP addresses, certificates and authentication, from flags, variables
//! and `listen` in the file.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use mcpd_server::transport::http::{Listener, Options};

use self::certificates::CertificateFiles;
pub use self::certificates::TlsCertificates;
pub use self::metrics::Metrics;
pub use self::shortage::Shortage;
pub use self::sockets::Address;
use crate::effective::Origin;
use crate::file::File;
use crate::options::{self, Certificates as Demand, Serve};
use crate::server::cluster::FrontNode;
use crate::server::{authentication, oauth};
use crate::variables::variable;

mod certificates;
mod metrics;
mod shortage;
mod sockets;

/// Default port.
const DEFAULT_PORT: u16 = 43210;
/// Prefix of the path of a Unix domain socket.
const UNIX: &str = "unix:";

/// Variables with listen addresses, in order of precedence.
pub(crate) const VARIABLES: [&str; 3] = ["MCPD_LISTEN", "MCPD_PORT", "MCP_PORT"];

/// A place to listen at.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a socket is one or the other")]
pub enum ListenPlace {
    /// One of these network addresses.
    Network(Vec<SocketAddr>),
    /// A Unix domain socket.
    File(PathBuf),
}

impl ListenPlace {
    /// The network addresses.
    pub fn addresses(&self) -> &[SocketAddr] {
        match self {
            Self::Network(addresses) => addresses,
            Self::File(_) => &[],
        }
    }
}

/// HTTP part of the configuration of `mcpd serve`.
#[derive(Debug)]
#[non_exhaustive]
pub struct Http {
    /// All addresses to listen at.
    pub places: Vec<ListenPlace>,
    /// Path of the token that mcpd has made, if clients can present it.
    pub token_file: Option<PathBuf>,
    /// Clients need no credential.
    pub is_open: bool,
    /// Certificates for TLS, if it is on.
    pub certificates: Option<TlsCertificates>,
    /// Reason for fewer connections than the default, if the system limits them.
    pub shortage: Option<Shortage>,
    /// Options of the transport.
    pub options: Options,
    /// Front of a cluster.
    pub front: FrontNode,
}

/// Reads everything about HTTP. Creates the token, if there is none yet.
pub(crate) fn read_http(file: &File, args: &Serve) -> anyhow::Result<Http> {
    let places = match requested_addresses(&args.listen, args.port, variable)? {
        Some((wanted, origin)) => wanted
            .iter()
            .map(|text| place(text, Path::to_owned))
            .collect::<anyhow::Result<_>>()
            .with_context(|| format!("listen at the address of {origin}"))?,
        None => file_places(file)?,
    };
    let (auth, token_file) = authentication(file, args)?;
    let mut options = Options::new(auth);
    options.allowed_hosts = args.allow_host.iter().map(ToString::to_string).collect();
    options.allowed_origins = args.allow_origin.iter().map(ToString::to_string).collect();
    options.names = args.serving.tool_names.map(Into::into);
    options.http_sse = args.http_sse;
    options.resume_buffer = args.resume_buffer.unwrap_or(options.resume_buffer);
    options.metrics = args.metrics_to_clients;
    if let Some(max_message) = args.serving.max_message {
        options.max_message = max_message.get();
    }
    let shortage = Shortage::of(options.max_connections);
    if let Some(shortage) = shortage {
        options.max_connections = shortage.connections;
    }
    let http = Http {
        places,
        token_file,
        is_open: args.no_auth,
        certificates: certificates(args)?,
        shortage,
        options,
        front: FrontNode::default(),
    };
    let mut addresses = http.places.iter().flat_map(ListenPlace::addresses);
    addresses.try_for_each(|address| http.check_exposure(*address))?;
    oauth::check_resource(file, &http.places)?;
    Ok(http)
}

impl Http {
    /// Opens the sockets, one at least; those that a service manager passes take precedence over
    /// the configured places. Unix sockets are there as long as their addresses.
    ///
    /// # Errors
    ///
    /// A place can't be listened at, or is reachable without a token from other machines.
    ///
    /// # Cancel safety
    ///
    /// The sockets are closed.
    pub async fn open(&self) -> anyhow::Result<(Listener, Vec<Address>)> {
        sockets::open(self).await
    }

    /// Refuses to listen without a token at an `address` that other machines can reach.
    ///
    /// # Errors
    ///
    /// Such an address.
    pub fn check_exposure(&self, address: SocketAddr) -> anyhow::Result<()> {
        match self.is_open {
            false => Ok(()),
            true => check_exposure(address),
        }
    }
}

/// Refuses to serve without authentication at an `address` that other machines can reach.
fn check_exposure(address: SocketAddr) -> anyhow::Result<()> {
    if !address.ip().is_loopback() {
        bail!(
            "serve on `{address}` without a token: `--no-auth` and `auth = false` require a loopback address, such as 127.0.0.1"
        );
    }
    Ok(())
}

/// Certificates for TLS, if it is on.
fn certificates(args: &Serve) -> anyhow::Result<Option<TlsCertificates>> {
    let Serve {
        tls_certificate,
        tls_key,
        tls_client_ca,
        tls_client_certificates,
        ..
    } = args;
    load(
        [tls_certificate, tls_key, tls_client_ca].map(Option::clone),
        *tls_client_certificates,
    )
}

/// Loads the certificate, its key and the authorities of clients.
///
/// # Errors
///
/// A file is missing, or the three do not fit together.
pub(crate) fn load(
    [certificate, key, authorities]: [Option<PathBuf>; 3],
    demand: Option<Demand>,
) -> anyhow::Result<Option<TlsCertificates>> {
    let clients = match (authorities, demand) {
        (Some(authorities), demand) => Some((authorities, demand.unwrap_or(Demand::Required))),
        (None, Some(_)) => bail!(
            "ask clients for certificates: no certificate authorities are set; use `--tls-client-ca` or `client_ca` in `[tls]`"
        ),
        (None, None) => None,
    };
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some(TlsCertificates::load(CertificateFiles {
            certificate,
            key,
            clients,
        })?)),
        (None, None) if clients.is_none() => Ok(None),
        _ => bail!(
            "serve over TLS: both a certificate and its key are required; use `--tls-certificate` and `--tls-key` or the keys of `[tls]`"
        ),
    }
}

/// Listen addresses from flags or variables, with their origin: both flags take
/// precedence over all variables.
pub(crate) fn requested_addresses(
    listen: &[String],
    port: Option<u16>,
    variable: impl Fn(&str) -> anyhow::Result<Option<String>>,
) -> anyhow::Result<Option<(Vec<String>, Origin)>> {
    let flag = |name: &str| Origin::Flag(name.to_owned());
    if !listen.is_empty() {
        return Ok(Some((listen.to_owned(), flag("--listen"))));
    }
    if let Some(port) = port {
        return Ok(Some((vec![local_address(port)], flag("--port"))));
    }
    let [name, ports @ ..] = VARIABLES;
    if let Some(listen) = variable(name)? {
        let listen = listen.split(',').map(str::to_owned).collect();
        return Ok(Some((listen, Origin::Variable(name.to_owned()))));
    }
    for name in ports {
        if let Some(port) = variable(name)? {
            let number = options::port(&port)
                .map_err(|expected| anyhow!("use the port `{port}` of {name}: {expected}"))?;
            let address = vec![local_address(number)];
            return Ok(Some((address, Origin::Variable(name.to_owned()))));
        }
    }
    Ok(None)
}

/// Listen addresses from the file, or else the default.
fn file_places(file: &File) -> anyhow::Result<Vec<ListenPlace>> {
    if file.tables.listen.is_empty() {
        return Ok(vec![place(&local_address(DEFAULT_PORT), Path::to_owned)?]);
    }
    each_address(file, |text| place(text, |path| file.absolute(path)))
}

/// Rejects listen addresses in the file that are malformed or exposed without authentication.
/// Names are not looked up.
pub(crate) fn addresses(file: &File) -> anyhow::Result<()> {
    let places = each_address(file, |text| {
        check_form(text)?;
        let number = text.parse().ok();
        if let (Some(number), Some(false)) = (number, file.tables.auth) {
            check_exposure(number)?;
        }
        Ok(ListenPlace::Network(number.into_iter().collect()))
    })?;
    oauth::check_resource(file, &places)
}

/// Rejects a metrics address in the file that is malformed or reachable from other machines. Names
/// are not looked up.
pub(crate) fn metrics(file: &File) -> anyhow::Result<()> {
    let Some(text) = &file.tables.metrics.listen else {
        return Ok(());
    };
    let address = text.get_ref();
    let checked = match address.parse() {
        Ok(number) => check_metrics_exposure(address, &[number]),
        Err(_) if is_host_and_port(address) => Ok(()),
        Err(_) => Err(anyhow!(
            "serve metrics at `{address}`: expected HOST:PORT, such as 127.0.0.1:9464"
        )),
    };
    checked.map_err(|error| file.failure("listen", text.span(), &error))
}

/// Rejects the `address` if other machines can reach any address that it resolves to.
fn check_metrics_exposure(address: &str, addresses: &[SocketAddr]) -> anyhow::Result<()> {
    if !addresses.iter().all(|address| address.ip().is_loopback()) {
        bail!(
            "serve metrics at `{address}`: without a token they are served on loopback addresses only, such as 127.0.0.1:9464; use `--metrics-to-clients` to serve them to clients with a token"
        );
    }
    Ok(())
}

/// Applies `of` to each address in the file; an error has its place.
fn each_address<T>(file: &File, of: impl Fn(&str) -> anyhow::Result<T>) -> anyhow::Result<Vec<T>> {
    let addresses = file.tables.listen.iter().map(|text| {
        of(text.get_ref()).map_err(|error| file.failure("listen", text.span(), &error))
    });
    addresses.collect()
}

fn local_address(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// Resolves `text` to a place; `absolute` makes its path absolute.
fn place(text: &str, absolute: impl Fn(&Path) -> PathBuf) -> anyhow::Result<ListenPlace> {
    check_form(text)?;
    if let Some(path) = text.strip_prefix(UNIX) {
        return Ok(ListenPlace::File(absolute(Path::new(path))));
    }
    let addresses = text
        .to_socket_addrs()
        .with_context(|| format!("use the address `{text}`"))?;
    Ok(ListenPlace::Network(addresses.collect()))
}

/// Rejects text that is not an address. The system would look up a URL as a host name.
fn check_form(text: &str) -> anyhow::Result<()> {
    let is_address = match text.strip_prefix(UNIX) {
        Some(path) => !path.is_empty(),
        None => is_host_and_port(text),
    };
    if !is_address {
        bail!(
            "use the address `{text}`: expected HOST:PORT, such as {}, or unix:PATH",
            local_address(DEFAULT_PORT)
        );
    }
    Ok(())
}

fn is_host_and_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !host.contains(['/', '*']) && port.parse::<u16>().is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(listen: &[&str], port: Option<u16>, variables: &[(&str, &str)], expected: &str) {
        let variable = |name: &str| {
            Ok(variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned()))
        };
        let listen: Vec<_> = listen.iter().map(|&text| text.to_owned()).collect();
        let wanted = match requested_addresses(&listen, port, variable) {
            Ok(Some((all, origin))) => format!("{} of {origin}", all.join(" ")),
            Ok(None) => "the default".to_owned(),
            Err(error) => format!("{error:#}"),
        };
        assert_eq!(wanted, expected);
    }

    #[test]
    fn listen_flags_precede_variables_and_default() {
        let all = [
            ("MCPD_LISTEN", "[::1]:3,unix:a b"),
            ("MCPD_PORT", "4"),
            ("MCP_PORT", "5"),
        ];
        let flags = ["localhost:1", "unix:a"];
        check(&flags, None, &all, "localhost:1 unix:a of --listen");
        check(&[], Some(2), &all, "127.0.0.1:2 of --port");
        check(&[], None, &all, "[::1]:3 unix:a b of MCPD_LISTEN");
        check(&[], None, &all[1..], "127.0.0.1:4 of MCPD_PORT");
        check(&[], None, &all[2..], "127.0.0.1:5 of MCP_PORT");
        check(&[], None, &[], "the default");
    }

    #[test]
    fn invalid_port_variable_is_named() {
        for wrong in ["http", "99999", ""] {
            let expected = "expected a number from 0 to 65535";
            let expected = format!("use the port `{wrong}` of MCP_PORT: {expected}");
            check(&[], None, &[("MCP_PORT", wrong)], &expected);
        }
    }

    #[test]
    fn unix_path_becomes_a_socket_place() {
        let place = |text| place(text, |path| Path::new("/etc").join(path)).ok();
        assert_eq!(place("unix:a"), Some(ListenPlace::File("/etc/a".into())));
        assert_eq!(place("unix:/b:1"), Some(ListenPlace::File("/b:1".into())));
        let address = ([127, 0, 0, 1], 80).into();
        assert_eq!(
            place("127.0.0.1:80"),
            Some(ListenPlace::Network(vec![address]))
        );
    }

    #[test]
    fn malformed_address_is_not_looked_up() {
        for wrong in [
            "unix:",
            "",
            "8080",
            ":8080",
            "*:8080",
            "127.0.0.1",
            "127.0.0.1:65536",
            "/a",
            "http://127.0.0.1:80",
        ] {
            let error = place(wrong, Path::to_owned).unwrap_err();
            let expected = "expected HOST:PORT, such as 127.0.0.1:43210, or unix:PATH";
            assert_eq!(
                format!("{error:#}"),
                format!("use the address `{wrong}`: {expected}")
            );
        }
    }
}
