//! Bearer token of HTTP clients, in a file that only its owner can read. It is created once, and
//! replaced only on request: every server that uses the file picks up the new token.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use mcpd_server::transport::http::Auth;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::server::clients;
use crate::{directories, private_file};

mod list;
mod table;

pub use list::{TokenList, agent_token};
pub use table::TokenTable;

/// Random bytes of a token: 256 bits.
const TOKEN_BYTES: usize = 32;

/// Minimum length of a random token, long enough not to be guessed.
const MIN_TOKEN_CHARS: usize = 16;

/// Poll interval of the file.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Loads the token in `file`, and creates a missing one.
///
/// # Errors
///
/// The file can't be read or written, or has no usable token.
pub fn load_or_create(file: &Path) -> anyhow::Result<String> {
    match load(file)? {
        Some(token) => Ok(token),
        None => create(file).with_context(|| format!("create the token file `{}`", file.display())),
    }
}

/// Keeps the token of `auth` equal to the one in `file`, for ever. An invalid file changes
/// nothing, and is logged once.
pub async fn follow(file: &Path, auth: &Auth) -> Infallible {
    let mut told = None;
    loop {
        sleep(POLL_INTERVAL).await;
        let (path, accepting) = (file.to_owned(), auth.clone());
        let refreshed = spawn_blocking(move || refresh(&path, &accepting)).await;
        let fault = refreshed.ok().and_then(Result::err);
        let fault = fault.map(|error| format!("{error:#}"));
        if fault != told
            && let Some(fault) = &fault
        {
            tracing::error!("token not reloaded, still using the previous one: failed to {fault}");
        }
        told = fault;
    }
}

fn refresh(file: &Path, auth: &Auth) -> anyhow::Result<()> {
    let name = file.display();
    let token = read(file)?.with_context(|| format!("find the token file `{name}`"))?;
    if auth.exchange(clients::AGENT, &token) {
        warn_of(file, &token);
        tracing::info!("new token loaded from `{name}`; the previous token is no longer accepted");
    }
    Ok(())
}

/// Loads the token in `file`, if there is one.
///
/// # Errors
///
/// The file can't be read, or has no usable token.
pub fn load(file: &Path) -> anyhow::Result<Option<String>> {
    let token = read(file)?;
    if let Some(token) = &token {
        warn_of(file, token);
    }
    Ok(token)
}

fn read(file: &Path) -> anyhow::Result<Option<String>> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.with_context(|| format!("read the token file `{}`", file.display()))?,
    };
    let token = text.trim();
    if token.is_empty() {
        bail!(
            "use the token file `{}`: it is empty; delete it and restart to create a new token",
            file.display()
        );
    }
    // Other characters can't be part of a header.
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!(
            "use the token file `{}`: the token must be one word of printable ASCII characters",
            file.display()
        );
    }
    Ok(Some(token.to_owned()))
}

fn warn_of(file: &Path, token: &str) {
    // systemd controls access to credentials with access lists, which look
    // like group permissions here.
    let is_credential = directories::credentials().is_some_and(|place| file.starts_with(place));
    if !is_credential && is_open_to_others(file) {
        tracing::warn!(
            "token file `{}` is readable by other users; fix it with `chmod 600`",
            file.display()
        );
    }
    if token.len() < MIN_TOKEN_CHARS {
        let name = file.to_string_lossy();
        let rotate = ["mcpd", "token", "rotate", "--token-file", &name];
        tracing::warn!(
            "the token in `{name}` is short enough to be guessed; create a new one with `{}`",
            shlex::try_join(rotate).unwrap_or_default()
        );
    }
}

/// Creates the token. Of two servers that start at once, both use the first one's.
fn create(file: &Path) -> anyhow::Result<String> {
    let token = random()?;
    match private_file::create(file, line(&token).as_bytes())? {
        true => Ok(token),
        false => load(file)?.context("find the file that another server has just created"),
    }
}

/// Writes a new token into `file`.
///
/// # Errors
///
/// The file can't be written.
pub fn replace(file: &Path) -> anyhow::Result<()> {
    private_file::replace(file, line(&random()?).as_bytes())
        .with_context(|| format!("write the token file `{}`", file.display()))
}

fn line(token: &str) -> String {
    format!("{token}\n")
}

/// Creates a random token.
///
/// # Errors
///
/// The system has no random bytes.
pub fn random() -> anyhow::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).context("get random bytes")?;
    Ok(bytes.iter().fold(String::new(), |mut token, byte| {
        write!(token, "{byte:02x}").expect("a string takes everything");
        token
    }))
}

/// Returns whether users besides the owner have any access.
fn is_open_to_others(file: &Path) -> bool {
    private_file::permissions(file) & 0o077 != 0
}

#[cfg(test)]
mod tests {
    use mcpd_server::Principal;
    use mcpd_server::transport::http::Token;

    use super::*;

    #[test]
    fn token_is_created_once_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("mcpd/agent-token");
        let token = load_or_create(&file).unwrap();
        assert_eq!(token.len(), 2 * TOKEN_BYTES);
        assert!(!is_open_to_others(&file));
        assert!(!is_open_to_others(file.parent().unwrap()));
        assert_eq!(load_or_create(&file).unwrap(), token);
    }

    #[test]
    fn token_is_replaced_by_another() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("mcpd/agent-token");
        replace(&file).unwrap();
        let token = load_or_create(&file).unwrap();
        replace(&file).unwrap();
        assert_ne!(load_or_create(&file).unwrap(), token);
        assert!(!is_open_to_others(&file));
    }

    #[test]
    fn token_file_change_is_followed() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("agent-token");
        let auth = Auth::tokens([Token::new("before", Principal::new(clients::AGENT))]);
        refresh(&file, &auth).unwrap_err();
        fs::write(&file, "two words").unwrap();
        refresh(&file, &auth).unwrap_err();
        assert!(!auth.exchange(clients::AGENT, "before"), "it stays");
        replace(&file).unwrap();
        refresh(&file, &auth).unwrap();
        let token = load_or_create(&file).unwrap();
        assert!(!auth.exchange(clients::AGENT, &token), "it is in force");
    }

    #[test]
    fn concurrent_starts_share_one_token() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("agent-token");
        let first = create(&file).unwrap();
        assert_eq!(create(&file).unwrap(), first);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[track_caller]
    fn check_refused(content: &str, reason: &str) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("agent-token");
        fs::write(&file, content).unwrap();
        let error = load_or_create(&file).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), content);
    }

    #[test]
    fn unusable_token_file_is_refused_and_kept() {
        check_refused("\n", "it is empty");
        check_refused("two words", "one word");
    }
}
