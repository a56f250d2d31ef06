//! `mcpd connect`: a client on stdin and stdout, its server over HTTP.

use std::env;
use std::io;
use std::time::Duration;

use anyhow::{Context as _, bail};
use mcpd_config::{TOKEN, directories, token};
use mcpd_connect::{Bridge, Login, Target};
use mcpd_service::signals::Termination;

use crate::args::Connect;
use crate::exit_code::ExitCode;
use crate::output;

/// Passes on messages until the input ends, or logs in or out.
pub(crate) async fn run(args: &Connect) -> anyhow::Result<ExitCode> {
    if args.logout {
        return log_out(&args.url);
    }
    let bridge = Bridge::new(target(args)?)?
        .with_retry_time(Duration::from_secs(args.retry_for.into()))
        .with_max_message(args.max_message.get());
    // Without a home directory there is no place for a login, and none may be needed.
    let bridge = match directories::logins() {
        Ok(directory) => bridge.with_login(login(args, &directory)),
        Err(error) if args.login => return Err(error),
        Err(_) => bridge,
    };
    let mut termination = Termination::listen().context("listen for signals")?;
    if args.login {
        let logged_in = tokio::select! {
            logged_in = bridge.log_in() => logged_in?,
            () = termination.wait() => return Ok(ExitCode::Interrupted),
        };
        output::note(match logged_in {
            true => "The login is stored.\n",
            false => "The server asks for no login.\n",
        });
        return Ok(ExitCode::Success);
    }
    let served = bridge.run(io::stdin(), io::stdout(), termination.wait());
    served.await.context("start a thread")?;
    Ok(ExitCode::Success)
}

fn target(args: &Connect) -> anyhow::Result<Target> {
    let mut target = Target::new(&args.url)?;
    #[cfg(unix)]
    if let Some(socket) = &args.socket {
        target = target.socket(socket);
    }
    for header in &args.headers {
        target = target.header(&expand_variables(header)?)?;
    }
    if let Some(file) = &args.token_file {
        let token = token::load(file)?;
        let token = token.with_context(|| {
            format!(
                "read the token file `{}`: it does not exist",
                file.display()
            )
        })?;
        target = target.token(&token)?;
    } else if let Some(name) = &args.token_env {
        target = target.token(&variable(name)?)?;
    } else if !target.has_credentials() && target.is_local() {
        // The token of this machine is not for others.
        if env::var_os(TOKEN).is_some_and(|token| !token.is_empty()) {
            target = target.token(&variable(TOKEN)?)?;
        }
    }
    if args.allow_http {
        target = target.allow_plaintext();
    }
    Ok(target)
}

/// Replaces each `${NAME}` by the value of the variable, so that a secret is not in the arguments,
/// which all users of the machine can read.
fn expand_variables(text: &str) -> anyhow::Result<String> {
    let mut parts = text.split("${");
    let mut expanded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let Some((name, rest)) = part.split_once('}') else {
            bail!("use a header: `${{` has no `}}`");
        };
        expanded += &variable(name)?;
        expanded += rest;
    }
    Ok(expanded)
}

fn variable(name: &str) -> anyhow::Result<String> {
    let value = env::var_os(name).filter(|value| !value.is_empty());
    let shown = name.escape_debug();
    let value = value.with_context(|| format!("use the variable `{shown}`: it is not set"))?;
    let value = value.into_string();
    let value =
        value.map_err(|_| anyhow::anyhow!("use the variable `{shown}`: it is not UTF-8"))?;
    Ok(value.trim().to_owned())
}

fn login(args: &Connect, directory: &std::path::Path) -> Login {
    let opens_browser = !args.no_browser;
    let login = Login::new(directory, move |page| {
        output::note(&format!("Log in on this page:\n\n  {page}\n\n"));
        if opens_browser && let Err(error) = open_browser(page) {
            tracing::debug!("no browser was opened: {error}");
        }
    });
    match &args.client_id {
        Some(client_id) => login.client_id(client_id),
        None => login,
    }
}

fn log_out(url: &str) -> anyhow::Result<ExitCode> {
    let removed = mcpd_connect::log_out(&directories::logins()?, url)?;
    output::note(match removed {
        0 => "There is no stored login for this URL.\n",
        _ => "The stored login is removed.\n",
    });
    Ok(ExitCode::Success)
}

/// Opens a page in the browser. The URL is an argument of its own, never part of a shell's text.
#[expect(
    clippy::disallowed_methods,
    reason = "a browser is no script, and outlives mcpd"
)]
fn open_browser(page: &str) -> io::Result<()> {
    use std::process::{Command, Stdio};
    let mut command = if cfg!(target_os = "macos") {
        Command::new("open")
    } else if cfg!(windows) {
        // It takes no shell, unlike `start`.
        let mut command = Command::new("rundll32");
        command.arg("url.dll,FileProtocolHandler");
        command
    } else {
        Command::new("xdg-open")
    };
    // Standard output is the wire.
    let command = command
        .arg(page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn()?;
    // Waits on a thread of its own, so that no zombie is left.
    std::thread::spawn(move || child.wait());
    Ok(())
}
