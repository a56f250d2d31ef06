//! Server that the flags of `mcpd install` ask for.

use std::path::{self, Path};

use anyhow::{Context as _, bail};
use mcpd_clients::Request;
use mcpd_connect::Target;
use mcpd_doctor::entry;
use reqwest::Url;

use crate::args::Install;
use crate::output;

/// Server to install, as the flags say.
pub(super) fn request(args: &Install) -> anyhow::Result<Request> {
    if let Some(url) = &args.url {
        return remote(args, url);
    }
    if args.directories.is_empty() {
        bail!("install a server: name a directory with scripts, or a server with `--url`");
    }
    let mut directories = Vec::new();
    for directory in &args.directories {
        if directory.is_file() {
            bail!(
                "serve `{}`: it is a file; name its directory",
                directory.display()
            );
        }
        directories.push(absolute_text(directory)?);
    }
    let mut request = Request::serve(&args.name, program()?, directories);
    request = request.set_search_path(entry::search_path());
    if let Some(path) = args.configuration.named() {
        request = request.set_configuration(absolute_text(path)?);
    }
    for variable in &args.env {
        let Some((name, value)) = variable.split_once('=') else {
            bail!("use `--env {variable}`: expected NAME=VALUE");
        };
        request = request.set_env(name, value);
    }
    Ok(args.pass_env.iter().fold(request, Request::pass_env))
}

/// Server at a URL.
fn remote(args: &Install, url: &str) -> anyhow::Result<Request> {
    let parsed = Url::parse(url).ok();
    let parsed = parsed.filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some(parsed) = parsed else {
        bail!(
            "use the URL `{}`: expected an `http` or `https` URL",
            mcpd_config::shown_url(url)
        );
    };
    if !parsed.username().is_empty() || parsed.password().is_some() {
        bail!("use the URL: it has a password, which the file would show; use `--token-file`");
    }
    let has_token = args.token_env.is_some() || args.token_file.is_some();
    if has_token && !Target::new(url)?.is_confidential() {
        bail!("send the token to `{url}`: networks on the way could read it; use https");
    }
    let mut request = Request::connect(&args.name, program()?, url);
    if let Some(transport) = args.transport {
        request = request.set_transport(transport.into());
    }
    if let Some(file) = &args.token_file {
        request = request.send_token_file(absolute_text(file)?);
    }
    if let Some(variable) = &args.token_env {
        request = request.send_token(variable);
    }
    Ok(request)
}

/// Rejects names that no client could use, above all a token in place of the name of its variable.
pub(super) fn check_names(args: &Install) -> anyhow::Result<()> {
    let set = args.env.iter().map(|variable| {
        let name = variable.split('=').next().unwrap_or_default();
        ("--env", name)
    });
    let passed = args
        .pass_env
        .iter()
        .map(|name| ("--pass-env", name.as_str()));
    let token = args
        .token_env
        .iter()
        .map(|name| ("--token-env", name.as_str()));
    for (flag, name) in set.chain(passed).chain(token) {
        if !entry::is_variable_name(name) {
            // It may be the secret itself, which no message repeats.
            bail!(
                "use the value of `{flag}`: expected the name of a variable, such as TOOLS_TOKEN"
            );
        }
    }
    let is_plain = |char: char| !char.is_control() && !"/\\".contains(char);
    if args.name.trim().is_empty() || !args.name.chars().all(is_plain) {
        bail!(
            "use the name `{}`: expected a name without slashes",
            args.name.escape_debug()
        );
    }
    if args.url.is_none() && (args.token_env.is_some() || args.token_file.is_some()) {
        bail!("use the token: it is for a server at a URL; add `--url`");
    }
    Ok(())
}

/// Path of this program for the file of a client.
fn program() -> anyhow::Result<String> {
    let program = entry::stable_program()?;
    warn_of_build_directory(&program);
    absolute_text(&program)
}

/// Warns of a program that does not last.
pub(in crate::command) fn warn_of_build_directory(program: &Path) {
    let mut parts = program.components();
    if parts.any(|part| part.as_os_str() == "target") {
        output::note(&format!(
            "`{}` is in a build directory; install mcpd first, or the client loses it at the next clean-up\n",
            program.display()
        ));
    }
}

fn absolute_text(path: &Path) -> anyhow::Result<String> {
    let absolute =
        path::absolute(path).with_context(|| format!("use the path `{}`", path.display()))?;
    if !absolute.exists() {
        bail!(
            "use the path `{}`: there is no such file or directory",
            path.display()
        );
    }
    let text = absolute.into_os_string().into_string();
    text.map_err(|path| anyhow::anyhow!("use the path {path:?}: it is not UTF-8"))
}
