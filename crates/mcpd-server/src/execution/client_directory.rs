//! Directory that a client works in: its first root, or the directory that the server was started
//! in over stdio. It counts only if the operator allows it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mcpd_protocol::method::{InputMethod, InputRequest};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::client::request::context::Context;
use crate::client::session::Session;
use crate::message::raw::raw;
use crate::policy::ClientDirectories;

/// Time for a client to name its roots, which no person has to look up.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the directory of the client, resolved.
///
/// # Errors
///
/// The reason why there is none, as a sentence fragment for the caller.
pub(crate) async fn of_client(
    context: &Context,
    allowed: &ClientDirectories,
) -> Result<PathBuf, String> {
    let named = match &context.session {
        Some(session) if session.capabilities.roots.is_some() => {
            first_root(session, context).await?
        }
        _ => context.peer.directory.as_deref().map(Path::to_owned),
    };
    let Some(named) = named else {
        return Err("the client names no directory that it works in".to_owned());
    };
    let is_local = context.peer.transport.shares_directory();
    let allowed = allowed.clone();
    let checked = spawn_blocking(move || allowed.check(&named, is_local));
    checked
        .await
        .unwrap_or_else(|_| Err("the directory could not be read".to_owned()))
}

/// Returns the first root of a client: asked once in a session, and again after a change.
async fn first_root(session: &Session, context: &Context) -> Result<Option<PathBuf>, String> {
    let mut roots = session.roots.lock().await;
    let changes = session.root_changes();
    if let Some((asked, known)) = &*roots
        && *asked == changes
    {
        return Ok(known.clone());
    }
    let question = InputRequest::new(InputMethod::RootsList, raw(&serde_json::json!({})));
    let asked = session.questions.ask(&context.peer.outbox, &question);
    let answer = timeout(ROOTS_TIMEOUT, asked)
        .await
        .map_err(|_| "the client was asked for its roots and did not answer".to_owned())?
        .map_err(|_| "the client refused to name its roots".to_owned())?;
    let first = parse_first(&answer)?;
    *roots = Some((changes, first.clone()));
    Ok(first)
}

/// Parses the first root of an answer.
fn parse_first(answer: &RawValue) -> Result<Option<PathBuf>, String> {
    #[derive(Deserialize)]
    struct Roots {
        roots: Vec<Root>,
    }
    #[derive(Deserialize)]
    struct Root {
        uri: String,
    }
    let roots: Roots = serde_json::from_str(answer.get())
        .map_err(|_| "the client answered the request for its roots with something else")?;
    let Some(Root { uri }) = roots.roots.first() else {
        return Ok(None);
    };
    let path = path_of(uri);
    path.map(Some)
        .ok_or_else(|| "the first root of the client is no directory on this machine".to_owned())
}

/// Returns the path of a `file:` URI on this machine. "This **MUST** be a `file://` URI"
/// -- 2025-11-25/client/roots#root
fn path_of(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    let decoded = percent_decode_str(rest).decode_utf8().ok()?;
    let path = match cfg!(windows) {
        true => decoded.strip_prefix('/').unwrap_or(&decoded),
        false => &*decoded,
    };
    let path = Path::new(path);
    (path.is_absolute() && !decoded.contains('\0')).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn roots_are_local_absolute_paths() {
        let path = |uri| path_of(uri).map(|path| path.display().to_string());
        assert_eq!(path("file:///a%20b/c").as_deref(), Some("/a b/c"));
        assert_eq!(path("file://localhost/a").as_deref(), Some("/a"));
        for other in [
            "/a",
            "https://a/b",
            "file://host/a",
            "file://",
            "file:///a%00b",
            "file:///%ff",
        ] {
            assert_eq!(path(other), None, "{other}");
        }
    }

    #[test]
    fn first_root_counts() {
        let parse = |text: &str| parse_first(&RawValue::from_string(text.to_owned()).unwrap());
        assert_eq!(parse(r#"{"roots": []}"#), Ok(None));
        assert!(parse(r#"{"roots": [{"uri": "https://a"}]}"#).is_err());
        assert!(parse("[]").is_err());
    }
}
