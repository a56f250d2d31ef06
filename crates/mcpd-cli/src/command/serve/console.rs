//! Web console of `mcpd serve`: what this program adds to it, and the link that opens it.

use std::convert::Infallible;
use std::future::pending;
use std::path::Path;

use mcpd_config::Effective;
use mcpd_config::listening::Address;
use mcpd_config::options::Serve;
use mcpd_config::token;
use mcpd_console::{Connection, ConsoleSite};
use mcpd_doctor::entry;
use mcpd_doctor::report::examine_with;
use mcpd_server::transport::http::console::Console;
use mcpd_server::{Server, ServerBuilder};

use crate::reload::Reloading;

/// Callers on this machine, who may see everything: the holder of the token that mcpd makes, and
/// every caller of a server without tokens.
const OPERATORS: [&str; 2] = ["agent", "anonymous"];
/// Name of the server in the files of clients.
const NAME: &str = "mcpd";

/// Console of a server that listens at an address.
#[derive(Debug)]
pub(super) struct ServedConsole {
    site: ConsoleSite,
    console: Console,
    url: String,
}

impl ServedConsole {
    /// Prepares the console, if it is on: by its option, or for the author of scripts.
    pub(super) fn prepare(
        args: &Serve,
        is_for_author: bool,
        (address, token_file): (&Address, Option<&Path>),
        reloading: &Reloading<'_>,
    ) -> anyhow::Result<Option<Self>> {
        if !args.console && !is_for_author {
            return Ok(None);
        }
        let url = address.url();
        let program = entry::stable_program().unwrap_or_else(|_| "mcpd".into());
        let mut connection = Connection::new(NAME, &url, &program.to_string_lossy());
        if let Some(file) = token_file {
            let file = std::path::absolute(file).unwrap_or(file.to_owned());
            connection = connection.token_file(&file.to_string_lossy());
        }
        if args.no_auth {
            connection = connection.without_token();
        }
        if let Ok(places) = entry::places() {
            connection = connection.places(places);
        }
        let configuration = reloading.line.effective(reloading.file)?;
        let mut site = ConsoleSite::new().connection(connection);
        site.set_configuration(serde_json::to_value(configuration)?);
        let file = reloading.file.path().map(Path::to_owned);
        site = site.report("doctor", move || Box::pin(examine_with(file.clone())));
        #[cfg(feature = "cluster")]
        if !args.clustering.cluster.is_empty() {
            let settings = mcpd_config::cluster_settings(&args.clustering, reloading.file)?;
            let nodes = move || mcpd_cluster::described_status(settings.clone());
            site = site.report("cluster", move || Box::pin(nodes()));
        }
        for name in OPERATORS {
            site = site.operator(name);
        }
        let base = url.strip_suffix("/mcp").unwrap_or(&url);
        Ok(Some(Self {
            console: Console::new(site.clone()),
            site,
            url: format!("{base}/console"),
        }))
    }

    /// Console for the options of the listener.
    pub(super) fn console(&self) -> Console {
        self.console.clone()
    }

    /// Shows the requests of the server.
    pub(super) fn observe(&self, server: ServerBuilder) -> ServerBuilder {
        self.site.observe(server)
    }

    /// Returns the link that opens the console once; without a code if nothing is required, or
    /// only credentials that the caller has.
    pub(super) fn link(&self, token_file: Option<&Path>) -> String {
        let secret = token_file.and_then(|file| token::load(file).ok().flatten());
        match secret {
            Some(secret) => format!("{}#code={}", self.url, self.console.one_time_code(&secret)),
            None => self.url.clone(),
        }
    }
}

/// Observes requests, if there is a console.
pub(super) fn observe(console: Option<&ServedConsole>, server: ServerBuilder) -> ServerBuilder {
    match console {
        Some(console) => console.observe(server),
        None => server,
    }
}

/// Shows the configuration that is in force after a reload, if there is a console.
pub(super) fn show_configuration(console: Option<&ServedConsole>, in_force: &[Effective]) {
    if let Some(console) = console {
        // A list of values can always be encoded.
        let in_force = serde_json::json!(in_force);
        console.site.set_configuration(in_force);
    }
}

/// Records the metrics of the server, if there is a console.
pub(super) async fn follow(console: Option<&ServedConsole>, server: &Server) -> Infallible {
    match console {
        Some(console) => console.site.follow(server).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use mcpd_server::Principal;

    use super::*;

    #[test]
    fn operators_are_the_callers_of_this_machine() {
        assert!(OPERATORS.contains(&Principal::anonymous().name()));
        for name in OPERATORS {
            assert!(mcpd_config::name_fault(name).is_some(), "no other has it");
        }
    }
}
