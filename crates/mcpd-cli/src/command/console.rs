//! `mcpd console`: a new link to the web console of a running server. The holder of the token asks
//! the server for it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use mcpd_check::terminal::visible;
use mcpd_config::discovery::Discovery;
use mcpd_config::token;
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};
use serde::Deserialize;

use crate::args::Console;
use crate::exit_code::ExitCode;
use crate::output;

/// Time limit of the request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of an answer that is shown, in bytes.
const MAX_SHOWN: usize = 500;

#[derive(Debug, Deserialize)]
struct Answer {
    code: String,
}

/// Prints a link that opens the console once.
pub(crate) async fn run(args: &Console) -> anyhow::Result<ExitCode> {
    let (url, token_file) = find(args)?;
    let console = url
        .join("/console")
        .context("make the address of the console")?;
    let Some(token_file) = token_file else {
        output::write_text(console.as_str())?;
        output::note("the server requires no token\n");
        return Ok(ExitCode::Success);
    };
    let missing = || format!("`{}` has no token", token_file.display());
    let token = token::load(&token_file)?.with_context(missing)?;
    let request = client(&url)?
        .post(format!("{console}/code"))
        .bearer_auth(token)
        .send();
    let response = match request.await {
        Ok(response) => response,
        Err(error) => {
            output::error(&format!(
                "failed to reach `{url}`: {:#}",
                anyhow::Error::from(error)
            ));
            return Ok(ExitCode::Unreachable);
        }
    };
    match response.status() {
        StatusCode::OK => {
            let answer = response.json::<Answer>().await;
            let code = answer.context("read the answer of the server")?.code;
            output::write_text(&format!("{console}#code={code}"))?;
            Ok(ExitCode::Success)
        }
        StatusCode::UNAUTHORIZED => {
            output::error(&format!(
                "`{url}` does not accept the token of `{}`",
                token_file.display()
            ));
            Ok(ExitCode::Unauthorized)
        }
        StatusCode::NOT_FOUND => {
            bail!("open the console: the server was started without `--console`")
        }
        status => {
            let text = response.text().await.unwrap_or_default();
            let text: String = text.chars().take(MAX_SHOWN).collect();
            bail!(
                "open the console: the server answers {status}: {}",
                visible(&text)
            )
        }
    }
}

/// Returns the URL of the server, and the file of its token if it requires one.
fn find(args: &Console) -> anyhow::Result<(Url, Option<PathBuf>)> {
    if let Some(url) = &args.url {
        let url = Url::parse(url).with_context(|| format!("use the URL `{url}`"))?;
        return Ok((url, args.token_file.clone()));
    }
    let running = Discovery::read_running()?;
    let running = running.context(
        "find the server: none runs on this machine for this user; `mcpd serve --console` starts one",
    )?;
    let url = Url::parse(&running.url).context("read the address of the server")?;
    Ok((url, running.token_path))
}

fn client(url: &Url) -> anyhow::Result<Client> {
    // Another part of this program may have installed it already.
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    let is_local = url
        .host_str()
        .is_some_and(|host| host == "localhost" || host.starts_with("127.") || host == "[::1]");
    let mut builder = Client::builder()
        .timeout(ANSWER_TIMEOUT)
        .redirect(Policy::none());
    if is_local {
        builder = builder.no_proxy();
    }
    // Plain HTTP needs no certificate authorities, so that it works on a system without any.
    if url.scheme() == "http" {
        builder = builder.tls_certs_only([]);
    }
    builder.build().context("prepare the request")
}
