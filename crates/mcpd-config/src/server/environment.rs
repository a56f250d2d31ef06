//! Environment of scripts from `mcpd.toml`: the variables of all, and those of some tools or
//! callers alone, whose values are secrets. Files are read and programs run here, once.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use mcpd_exec::Executor;
use mcpd_server::policy::{Environment, ToolPolicy};
use mcpd_server::transport::http::TokenExchange;

use crate::file::{File, suggestion};
use crate::tables::{Tables, Variables};
use crate::value::{Source, Spanned};
use crate::{directories, program};

mod keyring;

/// Environment of all scripts.
///
/// # Errors
///
/// A faulty name, with its place.
pub(crate) fn environment(file: &File) -> anyhow::Result<Environment> {
    let table = &file.tables.env;
    let mut environment = Environment::of_this_process();
    for name in &table.pass {
        check_name(file, name, true)?;
        environment = environment.pass(name.get_ref());
    }
    for name in &table.drop {
        check_name(file, name, true)?;
        environment = environment.drop(name.get_ref());
    }
    for name in &table.optional {
        check_name(file, name, true)?;
        for variable in empty_variables(name.get_ref()) {
            environment = environment.drop(variable);
        }
    }
    for (name, value) in &table.set {
        check_name(file, name, false)?;
        environment = environment.set(name.get_ref(), value);
    }
    // These variables are for some tools or callers alone.
    let tools = file.tables.tool.iter().map(|tool| &tool.env);
    let reserved = tools.chain(callers_variables(&file.tables)).flatten();
    for (name, source) in reserved {
        match source.get_ref() {
            Source::Pass => environment = environment.reserve(name.get_ref()),
            Source::Variable(name) => environment = environment.reserve(name),
            _ => {}
        }
    }
    Ok(environment)
}

/// Variables of all clients.
pub(super) fn callers_variables(tables: &Tables) -> impl Iterator<Item = &Variables> {
    let known = tables.token.iter().chain(&tables.certificate);
    let known = known.map(|table| &table.env);
    known.chain(tables.client.iter().map(|table| &table.env))
}

/// Variables of this process with the name, or with the prefix before a `*`, that have no value.
fn empty_variables(name: &str) -> impl Iterator<Item = String> {
    let is_meant = move |variable: &str| match name.strip_suffix('*') {
        Some(prefix) => variable.starts_with(prefix),
        None => variable == name,
    };
    env::vars_os().filter_map(move |(variable, value)| {
        let variable = variable.into_string().ok().filter(|one| is_meant(one))?;
        let value = value.to_str()?;
        let is_placeholder = value.starts_with("${user_config.") && value.ends_with('}');
        (value.is_empty() || is_placeholder).then_some(variable)
    })
}

/// Checks that a name is usable in a shell and not mcpd's own; a pattern may end with `*`.
pub(super) fn check_name(
    file: &File,
    name: &Spanned<String>,
    is_pattern: bool,
) -> anyhow::Result<()> {
    let text = name.get_ref().as_str();
    let plain = text.strip_suffix('*').filter(|_| is_pattern);
    let plain = plain.unwrap_or(text);
    let is_valid = |char: char| char.is_ascii_alphanumeric() || char == '_';
    if plain.is_empty()
        || plain.starts_with(|char: char| char.is_ascii_digit())
        || !plain.chars().all(is_valid)
    {
        let what = format!("`{text}` is not a valid variable name");
        return Err(file.error(name.span(), &what));
    }
    if plain.starts_with("MCPD_") {
        let what = format!("`{text}`: names that begin with `MCPD_` are reserved for mcpd");
        return Err(file.error(name.span(), &what));
    }
    Ok(())
}

/// Adds the variables of a `[[tool]]` to its policy.
pub(super) async fn with_variables(
    mut tool: ToolPolicy,
    file: &File,
    table: &Variables,
    exchanges: &BTreeMap<&str, Arc<TokenExchange>>,
    executor: Option<&Executor>,
) -> anyhow::Result<ToolPolicy> {
    for (key, source) in table {
        let name = key.get_ref().as_str();
        let wrong = |what: String| at(file, source.span(), name, &what);
        tool = match source.get_ref() {
            Source::Header(header) => {
                check_name(file, key, false)?;
                check_header_variable(name).map_err(|what| wrong(what.to_owned()))?;
                check_header(header).map_err(|what| wrong(format!("`{header}`: {what}")))?;
                tool.header_variable(name, header)
            }
            Source::Exchange(exchange) => {
                check_name(file, key, false)?;
                let known: Vec<_> = exchanges.keys().copied().collect();
                let exchange = exchanges.get(exchange.as_str()).ok_or_else(|| {
                    let suggestion = suggestion(exchange, &known);
                    wrong(format!(
                        "there is no `[[oauth.exchange]]` called `{exchange}`; {suggestion}"
                    ))
                })?;
                tool.credential_variable(name, Arc::clone(exchange) as _)
            }
            _ => tool.variable(name, variable(file, key, source, executor).await?),
        };
    }
    Ok(tool)
}

/// Checks the name of a variable that has the value of a header.
///
/// # Errors
///
/// A client would decide which code the script runs.
fn check_header_variable(name: &str) -> Result<(), &'static str> {
    const NAMES: [&str; 9] = [
        "PATH",
        "ENV",
        "BASH_ENV",
        "NODE_OPTIONS",
        "NODE_PATH",
        "PERL5LIB",
        "PERL5OPT",
        "RUBYLIB",
        "RUBYOPT",
    ];
    let is_of_loader = ["LD_", "DYLD_", "PYTHON"]
        .iter()
        .any(|prefix| name.starts_with(prefix));
    match is_of_loader || NAMES.contains(&name) {
        true => Err("a client would decide with it which code the script runs; use another name"),
        false => Ok(()),
    }
}

/// Checks the name of a header whose value a script gets.
///
/// # Errors
///
/// The reason why scripts don't get it.
fn check_header(header: &str) -> Result<(), &'static str> {
    let lower = header.to_ascii_lowercase();
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if header.is_empty() || !header.bytes().all(is_token) {
        Err("it is not a valid name of a header")
    } else if matches!(lower.as_str(), "authorization" | "proxy-authorization") {
        Err(
            "scripts never get the client's token for mcpd; use another header, or an `[[oauth.exchange]]`",
        )
    } else {
        Ok(())
    }
}

/// Variables of a table, by name.
pub(crate) async fn variables<'a>(
    file: &File,
    table: &'a Variables,
    executor: Option<&Executor>,
) -> anyhow::Result<Vec<(&'a str, String)>> {
    let mut variables = Vec::with_capacity(table.len());
    for (name, source) in table {
        let value = variable(file, name, source, executor).await?;
        variables.push((name.get_ref().as_str(), value));
    }
    Ok(variables)
}

/// Resolves the value of a variable, and checks its name and its length.
async fn variable(
    file: &File,
    name: &Spanned<String>,
    source: &Spanned<Source>,
    executor: Option<&Executor>,
) -> anyhow::Result<String> {
    check_name(file, name, false)?;
    let name = name.get_ref().as_str();
    let value = value(file, name, source, executor).await?;
    if name.len() + value.len() > MAX_VARIABLE {
        let what = format!(
            "the value has {} bytes, but programs cannot start with a variable of 128 KiB or more; pass the path of a file instead",
            value.len()
        );
        return Err(at(file, source.span(), name, &what));
    }
    Ok(value)
}

/// Maximum length of a variable with its name in bytes: the limit of Linux with pages of 4 KiB.
const MAX_VARIABLE: usize = 128 * 1024 - 2;

/// Resolves the value of a variable. Errors name its source, never its content.
pub(crate) async fn value(
    file: &File,
    name: &str,
    source: &Spanned<Source>,
    executor: Option<&Executor>,
) -> anyhow::Result<String> {
    let value = match source.get_ref() {
        Source::Literal(text) => Ok(text.clone()),
        Source::Pass => own_variable(name),
        Source::Variable(name) => own_variable(name),
        Source::File(path) => content(&file.absolute(path)),
        Source::Credential(name) => match directories::credential(name) {
            Some(path) => content(&path),
            None => Err(format!(
                "the service manager provides no credential `{name}`"
            )),
        },
        Source::Keyring(entry) => keyring::read_password(entry, file, executor).await,
        Source::Command(words) => run_secret_command(file, words, executor).await,
        Source::Header(_) | Source::Exchange(_) => Err(
            "a `header` and an `exchange` differ from call to call, and only variables of a `[[tool]]` can have them"
                .to_owned(),
        ),
    };
    let wrong = |what: String| at(file, source.span(), name, &what);
    let mut value = value.map_err(wrong)?;
    let is_text = matches!(
        source.get_ref(),
        Source::File(_) | Source::Credential(_) | Source::Keyring(_) | Source::Command(_)
    );
    if is_text && value.ends_with('\n') {
        value.pop();
    }
    if value.contains('\0') {
        return Err(wrong("the value contains a NUL character".to_owned()));
    }
    Ok(value)
}

fn content(path: &Path) -> Result<String, String> {
    fs::read_to_string(path)
        .map_err(|error| format!("failed to read the file `{}`: {error}", path.display()))
}

/// Value of a variable in mcpd's own environment.
fn own_variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| match error {
        env::VarError::NotPresent => {
            format!("the variable `{name}` is not set in mcpd's own environment")
        }
        env::VarError::NotUnicode(_) => "the value is not UTF-8".to_owned(),
    })
}

fn at(file: &File, span: Range<usize>, name: &str, what: &str) -> anyhow::Error {
    file.error(span, &format!("`{name}`: {what}"))
}

/// Runs a program and returns its output. Its stderr is not repeated,
/// because it may contain secrets.
async fn run_secret_command(
    file: &File,
    words: &[String],
    executor: Option<&Executor>,
) -> Result<String, String> {
    let Some(executor) = executor else {
        return Ok(String::new());
    };
    program::output(&file.command(words), file.directory(), executor).await
}
