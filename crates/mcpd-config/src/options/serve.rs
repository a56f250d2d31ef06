//! Arguments of `mcpd serve`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Host, Serving, WebOrigin, port};
use crate::layers::{Combine, Layers};
use crate::tables::{MetricsTable, TlsTable};
use crate::value::Amount;

pub(crate) const HTTP: &str = "HTTP options";

/// Options of a server over HTTP.
#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Examples:
  mcpd serve ~/tools
  mcpd serve ~/tools --port 8080
  mcpd serve ~/tools --listen 0.0.0.0:8080 --allow-host tools.example
  mcpd serve ~/tools --listen 127.0.0.1:8080 --listen unix:/tmp/mcpd.sock

The address comes from --listen or --port, otherwise from the first of MCPD_LISTEN, MCPD_PORT,
MCP_PORT and `listen` in mcpd.toml that is set.
The first start creates the token; clients send it as `Authorization: Bearer TOKEN`.")]
#[non_exhaustive]
pub struct Serve {
    /// Options of every server.
    #[command(flatten)]
    pub serving: Serving,
    /// Cluster whose scripts are served as well.
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    pub clustering: super::Clustering,
    /// Also run the scripts of the directories for the other fronts of the cluster.
    #[cfg(feature = "cluster")]
    #[arg(long, env = "MCPD_WORKER", help_heading = super::cluster::CLUSTER)]
    pub worker: bool,
    /// Labels and draining of that worker.
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    pub working: super::Working,
    /// Address to listen on: HOST:PORT, or unix:PATH for a Unix socket; repeat for more [default:
    /// 127.0.0.1:43210]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "port", help_heading = HTTP)]
    pub listen: Vec<String>,
    /// Port on 127.0.0.1 to listen on; 0 picks a free one.
    #[arg(long, value_parser = port, help_heading = HTTP)]
    pub port: Option<u16>,
    /// Token file, created if missing [default: $XDG_STATE_HOME/mcpd/agent-token]
    #[arg(
        long,
        value_name = "FILE",
        env = "MCPD_TOKEN_FILE",
        help_heading = HTTP
    )]
    pub token_file: Option<PathBuf>,
    /// Do not accept the token that mcpd makes: every client needs a credential of its own.
    #[arg(long, env = "MCPD_NO_AGENT_TOKEN", help_heading = HTTP)]
    pub no_agent_token: bool,
    /// Certificate of the server, in PEM; enables TLS on every address except Unix sockets.
    #[arg(
        long,
        value_name = "FILE",
        env = "MCPD_TLS_CERTIFICATE",
        help_heading = HTTP
    )]
    pub tls_certificate: Option<PathBuf>,
    /// Private key of the certificate, in PEM.
    #[arg(
        long,
        value_name = "FILE",
        env = "MCPD_TLS_KEY",
        help_heading = HTTP
    )]
    pub tls_key: Option<PathBuf>,
    /// Certificate authorities of clients, in PEM.
    #[arg(
        long,
        value_name = "FILE",
        env = "MCPD_TLS_CLIENT_CA",
        help_heading = HTTP
    )]
    pub tls_client_ca: Option<PathBuf>,
    /// Client certificates [default: required with --tls-client-ca]
    #[arg(
        long,
        value_name = "MODE",
        env = "MCPD_TLS_CLIENT_CERTIFICATES",
        help_heading = HTTP
    )]
    pub tls_client_certificates: Option<Certificates>,
    /// Serve without a token, to every program on this machine; only on loopback addresses and
    /// Unix sockets.
    #[arg(long, env = "MCPD_NO_AUTH", help_heading = HTTP)]
    pub no_auth: bool,
    /// Host name under which clients may reach the server, besides localhost and its own address.
    #[arg(long, value_name = "HOST", env = "MCPD_ALLOW_HOST", value_delimiter = ',', help_heading = HTTP)]
    pub allow_host: Vec<Host>,
    /// Web origin whose pages may send requests, such as `https://app.example`.
    #[arg(long, value_name = "ORIGIN", env = "MCPD_ALLOW_ORIGIN", value_delimiter = ',', help_heading = HTTP)]
    pub allow_origin: Vec<WebOrigin>,
    /// Also serve protocol revision 2024-11-05, at /sse and /messages.
    #[arg(long, env = "MCPD_HTTP_SSE", help_heading = HTTP)]
    pub http_sse: bool,
    /// Serve the web console at /console: tools to try, runs, and the state of the server; a link
    /// for the browser is printed at the start.
    #[arg(long, env = "MCPD_CONSOLE", help_heading = HTTP)]
    pub console: bool,
    /// Size of the event buffer of each session, from which clients resume a broken stream with
    /// Last-Event-ID; 0 disables it [default: 1048576]
    #[arg(
        long,
        value_name = "BYTES",
        env = "MCPD_RESUME_BUFFER",
        help_heading = HTTP
    )]
    pub resume_buffer: Option<usize>,
    /// Serve Prometheus metrics at /metrics on this loopback address, such as 127.0.0.1:9464, to
    /// every program on this machine.
    #[arg(
        long,
        value_name = "HOST:PORT",
        env = "MCPD_METRICS_LISTEN",
        help_heading = HTTP
    )]
    pub metrics_listen: Option<String>,
    /// Serve Prometheus metrics at /metrics beside /mcp, to clients with a token.
    #[arg(long, help_heading = HTTP)]
    pub metrics_to_clients: bool,
}

impl Combine for Serve {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        self.serving.combine(layers);
        #[cfg(feature = "cluster")]
        {
            self.clustering.combine(layers);
            self.working.combine(layers);
        }
        let file = layers.file;
        let tables = &file.tables;
        layers.switch_off("auth", "no_auth", &mut self.no_auth, tables.auth);
        // A token file on the command line asks for authentication.
        self.no_auth &= !layers.is_flag("token_file");
        let token_file = file.token_file();
        layers.value("token_file", "token_file", &mut self.token_file, token_file);
        layers.switch_off(
            "agent_token",
            "no_agent_token",
            &mut self.no_agent_token,
            tables.agent_token,
        );
        let hosts = tables.allow_hosts.clone();
        layers.list("allow_hosts", "allow_host", &mut self.allow_host, hosts);
        let origins = tables.allow_origins.clone();
        layers.list(
            "allow_origins",
            "allow_origin",
            &mut self.allow_origin,
            origins,
        );
        layers.switch("http_sse", "http_sse", &mut self.http_sse, tables.http_sse);
        layers.switch("console", "console", &mut self.console, tables.console);
        let resume_buffer = tables.resume_buffer.map(Amount::to_usize);
        layers.value(
            "resume_buffer",
            "resume_buffer",
            &mut self.resume_buffer,
            resume_buffer,
        );
        self.combine_tls(layers);
        let MetricsTable { listen, to_clients } = &tables.metrics;
        let listen = listen.as_ref().map(|address| address.get_ref().clone());
        layers.value(
            "metrics.listen",
            "metrics_listen",
            &mut self.metrics_listen,
            listen,
        );
        let is_on = &mut self.metrics_to_clients;
        layers.switch(
            "metrics.to_clients",
            "metrics_to_clients",
            is_on,
            *to_clients,
        );
    }
}

impl Serve {
    fn combine_tls(&mut self, layers: &mut Layers<'_>) {
        let file = layers.file;
        let TlsTable {
            certificate,
            key,
            client_ca,
            client_certificates,
        } = &file.tables.tls;
        let certificate = file.absolute_path(certificate.as_ref());
        layers.value(
            "tls.certificate",
            "tls_certificate",
            &mut self.tls_certificate,
            certificate,
        );
        let key = file.absolute_path(key.as_ref());
        layers.value("tls.key", "tls_key", &mut self.tls_key, key);
        let client_ca = file.absolute_path(client_ca.as_ref());
        layers.value(
            "tls.client_ca",
            "tls_client_ca",
            &mut self.tls_client_ca,
            client_ca,
        );
        let demand = client_certificates.as_ref().map(|demand| *demand.get_ref());
        layers.value(
            "tls.client_certificates",
            "tls_client_certificates",
            &mut self.tls_client_certificates,
            demand,
        );
    }
}

/// Requirement of client certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Certificates {
    /// Clients may connect without a certificate; one that is presented must be valid
    Optional,
    /// Clients without a certificate cannot connect
    Required,
}
