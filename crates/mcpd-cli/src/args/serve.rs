//! Arguments of `mcpd serve`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Host, Serving, WebOrigin, port};

pub(super) const HTTP: &str = "HTTP options";

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  mcpd serve ~/tools
  mcpd serve ~/tools --port 8080
  mcpd serve ~/tools --listen 0.0.0.0:8080 --allow-host tools.example
  mcpd serve ~/tools --listen 127.0.0.1:8080 --listen unix:/tmp/mcpd.sock

The address comes from --listen or --port, otherwise from the first of MCPD_LISTEN, MCPD_PORT,
MCP_PORT and `listen` in mcpd.toml that is set.
The first start creates the token; clients send it as `Authorization: Bearer TOKEN`.")]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) serving: Serving,
    /// Address to listen on: HOST:PORT, or unix:PATH for a Unix socket; repeat for more [default:
    /// 127.0.0.1:43210]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "port", help_heading = HTTP)]
    pub(crate) listen: Vec<String>,
    /// Port on 127.0.0.1 to listen on; 0 picks a free one.
    #[arg(long, value_parser = port, help_heading = HTTP)]
    pub(crate) port: Option<u16>,
    /// Token file, created if missing [default: $XDG_STATE_HOME/mcpd/agent-token]
    #[arg(
        long,
        value_name = "FILE",
        env = "MCPD_TOKEN_FILE",
        help_heading = HTTP
    )]
    pub(crate) token_file: Option<PathBuf>,
    /// Certificate of the server, in PEM; enables TLS on every address except Unix sockets.
    #[arg(
        long,
        value_name = "FILE",
        env = "MCPD_TLS_CERTIFICATE",
        help_heading = HTTP
    )]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// Private key of the certificate, in PEM.
    #[arg(
        long,
        value_name = "FILE",
        env = "MCPD_TLS_KEY",
        help_heading = HTTP
    )]
    pub(crate) tls_key: Option<PathBuf>,
    /// Certificate authorities of clients, in PEM.
    #[arg(
        long,
        value_name = "FILE",
        env = "MCPD_TLS_CLIENT_CA",
        help_heading = HTTP
    )]
    pub(crate) tls_client_ca: Option<PathBuf>,
    /// Client certificates [default: required with --tls-client-ca]
    #[arg(
        long,
        value_name = "MODE",
        env = "MCPD_TLS_CLIENT_CERTIFICATES",
        help_heading = HTTP
    )]
    pub(crate) tls_client_certificates: Option<Certificates>,
    /// Serve without a token, to every program on this machine; only on loopback addresses and
    /// Unix sockets.
    #[arg(long, env = "MCPD_NO_AUTH", help_heading = HTTP)]
    pub(crate) no_auth: bool,
    /// Host name under which clients may reach the server, besides localhost and its own address.
    #[arg(long, value_name = "HOST", env = "MCPD_ALLOW_HOST", value_delimiter = ',', help_heading = HTTP)]
    pub(crate) allow_host: Vec<Host>,
    /// Web origin whose pages may send requests, such as `https://app.example`.
    #[arg(long, value_name = "ORIGIN", env = "MCPD_ALLOW_ORIGIN", value_delimiter = ',', help_heading = HTTP)]
    pub(crate) allow_origin: Vec<WebOrigin>,
    /// Also serve protocol revision 2024-11-05, at /sse and /messages.
    #[arg(long, env = "MCPD_HTTP_SSE", help_heading = HTTP)]
    pub(crate) http_sse: bool,
    /// Size of the event buffer of each session, from which clients resume a broken stream with
    /// Last-Event-ID; 0 disables it.
    #[arg(long, value_name = "BYTES", env = "MCPD_RESUME_BUFFER", default_value_t = mcpd_server::transport::http::DEFAULT_RESUME_BUFFER, help_heading = HTTP)]
    pub(crate) resume_buffer: usize,
    /// Serve Prometheus metrics at /metrics on this loopback address, such as 127.0.0.1:9464, to
    /// every program on this machine.
    #[arg(
        long,
        value_name = "HOST:PORT",
        env = "MCPD_METRICS_LISTEN",
        help_heading = HTTP
    )]
    pub(crate) metrics_listen: Option<String>,
    /// Serve Prometheus metrics at /metrics beside /mcp, to clients with a token.
    #[arg(long, help_heading = HTTP)]
    pub(crate) metrics_to_clients: bool,
}

/// Requirement of client certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Certificates {
    /// Clients may connect without a certificate; one that is presented must be valid
    Optional,
    /// Clients without a certificate cannot connect
    Required,
}
