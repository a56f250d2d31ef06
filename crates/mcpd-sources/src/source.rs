//! Addresses of sources: a git repository at a revision, or an archive with its digest.

use std::fmt;
use std::str::FromStr;

use url::Url;

use crate::{Digest, SourceError};

/// Address of a directory that is not on this machine.
///
/// `git+URL?rev=REVISION&path=DIRECTORY` is a directory of a git repository, and
/// `URL.tar.gz?sha256=DIGEST` or `URL.zip?sha256=DIGEST` an archive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Source {
    /// A git repository.
    Git {
        /// Address for `git`, without query; its scheme is https, http, ssh or file.
        url: Url,
        /// Branch, tag or commit; the default branch without it.
        revision: Option<String>,
        /// Directory inside the repository, relative and without `..`.
        path: Option<String>,
    },
    /// An archive.
    Archive {
        /// Address of the archive, without its digest; its scheme is https, http or file.
        url: Url,
        /// Digest of the bytes of the archive.
        digest: Digest,
    },
}

impl FromStr for Source {
    type Err = SourceError;

    /// Reads an address.
    ///
    /// # Errors
    ///
    /// [`SourceError`] names the part that is wrong: the scheme, a parameter, or its value.
    fn from_str(text: &str) -> Result<Self, SourceError> {
        match text.strip_prefix("git+") {
            Some(address) => git(&parse(address, &["https", "http", "ssh", "file"])?),
            None => archive(&parse(text, &["https", "http", "file"])?),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (prefix, mut url) = match self {
            Self::Git { url, .. } => ("git+", url.clone()),
            Self::Archive { url, .. } => ("", url.clone()),
        };
        match self {
            Self::Git { revision, path, .. } => {
                let given = [("rev", revision), ("path", path)];
                for (name, value) in given {
                    if let Some(value) = value {
                        url.query_pairs_mut().append_pair(name, value);
                    }
                }
            }
            Self::Archive { digest, .. } => {
                url.query_pairs_mut()
                    .append_pair("sha256", &digest.to_string());
            }
        }
        write!(formatter, "{prefix}{url}")
    }
}

fn parse(address: &str, schemes: &[&str]) -> Result<Url, SourceError> {
    // Text before the `@` may be a password.
    let shown = address.rsplit('@').next().unwrap_or_default();
    let url = Url::parse(address).map_err(|error| SourceError::Address {
        address: shown.to_owned(),
        reason: error.to_string(),
    })?;
    if !schemes.contains(&url.scheme()) {
        return Err(SourceError::Scheme {
            found: url.scheme().to_owned(),
            known: schemes.join(", "),
        });
    }
    if url.password().is_some() {
        return Err(SourceError::Password);
    }
    // `ssh` takes a host or a user that begins with a dash for an option.
    if url.username().starts_with('-') || url.host_str().is_some_and(|host| host.starts_with('-')) {
        return Err(SourceError::Address {
            address: address.to_owned(),
            reason: "the host or the user begins with a dash".to_owned(),
        });
    }
    Ok(url)
}

fn git(url: &Url) -> Result<Source, SourceError> {
    let (mut revision, mut path) = (None, None);
    for (name, value) in url.query_pairs() {
        let place = match &*name {
            "rev" => &mut revision,
            "path" => &mut path,
            _ => {
                return Err(SourceError::Parameter {
                    name: name.into(),
                    known: "rev, path",
                });
            }
        };
        if place.replace(value.into_owned()).is_some() {
            return Err(SourceError::Twice { name: name.into() });
        }
    }
    if let Some(value) = revision.as_deref().filter(|value| !is_revision(value)) {
        return Err(SourceError::Revision {
            value: value.to_owned(),
        });
    }
    if let Some(value) = path.as_deref().filter(|value| !is_inside(value)) {
        return Err(SourceError::Path {
            value: value.to_owned(),
        });
    }
    Ok(Source::Git {
        url: bare(url),
        revision,
        path,
    })
}

fn archive(url: &Url) -> Result<Source, SourceError> {
    if !url.path().ends_with(".tar.gz") && !url.path().ends_with(".zip") {
        return Err(SourceError::Kind {
            path: url.path().to_owned(),
        });
    }
    let mut digest = None;
    for (name, value) in url.query_pairs() {
        if name != "sha256" {
            return Err(SourceError::Parameter {
                name: name.into(),
                known: "sha256",
            });
        }
        if digest.replace(value.parse()?).is_some() {
            return Err(SourceError::Twice { name: name.into() });
        }
    }
    let digest = digest.ok_or(SourceError::NoDigest)?;
    Ok(Source::Archive {
        url: bare(url),
        digest,
    })
}

fn bare(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url
}

/// Names that `git` takes for a reference or a commit, and never for an option or a refspec.
fn is_revision(text: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-+".contains(&byte);
    !text.is_empty()
        && text.bytes().all(known)
        && !text.starts_with(['-', '+'])
        && !text.contains("..")
}

fn is_inside(path: &str) -> bool {
    let known = |part: &str| !matches!(part, "" | "." | "..") && !part.eq_ignore_ascii_case(".git");
    !path.contains(['\\', '\0']) && path.split('/').all(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        text.parse::<Source>().unwrap_err().to_string()
    }

    #[test]
    fn an_address_is_written_as_it_was_read() {
        let digest = "ab".repeat(32);
        for text in [
            "git+https://host.example/team/tools",
            "git+https://host.example/tools?rev=v1.2&path=scripts%2Fteam",
            "git+ssh://git@host.example/tools?rev=main",
            &format!("https://host.example/tools.tar.gz?sha256={digest}"),
            &format!("file:///srv/tools.zip?sha256={digest}"),
        ] {
            assert_eq!(text.parse::<Source>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn transports_that_run_commands_are_refused() {
        assert!(refusal("git+ext::sh -c id").contains("`ext`"));
        assert!(refusal("git+ssh://-oProxyCommand=id/x").contains("dash"));
        assert!(refusal("git+ssh://-oProxyCommand@host/x").contains("dash"));
        assert!(refusal("git+--upload-pack=id").contains("--upload-pack"));
    }

    #[test]
    fn values_that_could_be_options_or_leave_the_tree_are_refused() {
        for revision in ["--output=x", "%2Bmain:main", "a..b", "a%20b", ""] {
            let text = format!("git+https://host.example/x?rev={revision}");
            assert!(refusal(&text).contains("revision"), "{text}");
        }
        for path in [
            "../x",
            "/etc",
            "a//b",
            "a/./b",
            ".git",
            "a%5Cb",
            ".GIT/hooks",
            "",
        ] {
            let text = format!("git+https://host.example/x?path={path}");
            assert!(refusal(&text).contains("directory"), "{text}");
        }
    }

    #[test]
    fn parameters_that_are_unknown_double_or_missing_are_named() {
        assert!(refusal("git+https://host.example/x?ref=main").contains("`ref`"));
        assert!(refusal("git+https://host.example/x?rev=a&rev=b").contains("`rev` twice"));
        assert!(refusal("https://host.example/x.zip").contains("sha256"));
        assert!(refusal("https://host.example/x.zip?sha256=12").contains("64"));
        assert!(refusal("https://host.example/x.rar").contains("/x.rar"));
        assert!(refusal("git+https://user:secret@host.example/x").contains("password"));
        assert!(!refusal("git+https://user:secret@host.example:99999/x").contains("secret"));
    }
}
