//! Path of a script relative to its root, and its spellings in names and URIs.

use std::{borrow::Cow, fmt, str::FromStr};

use deunicode::deunicode;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::text::is_hidden;

/// Maximum length of a portable name, in bytes; several clients reject or
/// silently drop longer ones.
const MAX_PORTABLE: usize = 64;

/// Everything but the unreserved characters of RFC 3986.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The path of a script relative to its root, such as `math/add`: its identity everywhere.
///
/// Segments are separated by `/` on every platform; none is empty, `.` or `..`, and none contains
/// a control character, another [hidden](crate::is_hidden) one, or a backslash.
///
/// ```
/// use mcpd_scriptspec::ScriptPath;
///
/// let path: ScriptPath = "math/add".parse()?;
/// assert_eq!(path.portable(), "math_add");
/// assert_eq!(path.dotted(), "math.add");
/// assert_eq!(path.state_uri(), "mcpd://math/add/state");
/// # Ok::<(), mcpd_scriptspec::PathError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScriptPath(String);

/// Reason why a text is not the path of a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// An empty path, or an empty segment between two slashes.
    #[error("the path has an empty segment")]
    EmptySegment,
    /// `.` or `..`.
    #[error("the path has the segment `{0}`")]
    RelativeSegment(String),
    /// A hidden character or a backslash.
    #[error("the path has the character `{}`", .0.escape_debug())]
    Character(char),
}

impl FromStr for ScriptPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        for segment in text.split('/') {
            match segment {
                "" => return Err(PathError::EmptySegment),
                "." | ".." => return Err(PathError::RelativeSegment(segment.to_owned())),
                _ => {}
            }
        }
        let is_refused = |char: &char| char.is_control() || is_hidden(*char) || *char == '\\';
        match text.chars().find(is_refused) {
            Some(char) => Err(PathError::Character(char)),
            None => Ok(Self(text.to_owned())),
        }
    }
}

impl ScriptPath {
    /// The path itself: `math/add`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last segment: `add`.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The path with dots: `math.add`.
    #[must_use]
    pub fn dotted(&self) -> Cow<'_, str> {
        if self.0.contains('/') {
            self.0.replace('/', ".").into()
        } else {
            Cow::Borrowed(&self.0)
        }
    }

    /// The spelling that every client accepts: `math_add`.
    ///
    /// It matches `[A-Za-z][A-Za-z0-9_-]{0,63}`. Letters of other scripts are transliterated, and
    /// every other character becomes `_`; a name that does not start with a letter gets the prefix
    /// `t_`, and a longer one ends in a hash of the path. Two paths may have one portable name:
    /// see [`portable_hashed`](Self::portable_hashed).
    #[must_use]
    pub fn portable(&self) -> Cow<'_, str> {
        let is_portable = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if self.0.len() <= MAX_PORTABLE
            && self
                .0
                .starts_with(|first: char| first.is_ascii_alphabetic())
            && self.0.bytes().all(is_portable)
        {
            return Cow::Borrowed(&self.0);
        }
        let name = self.replace_characters();
        Cow::Owned(if name.len() > MAX_PORTABLE {
            self.portable_hashed()
        } else {
            name
        })
    }

    /// The portable name with a hash of the path at its end, for the later of
    /// two scripts that share one.
    ///
    /// The hash depends on the path alone, so the name is stable across runs and machines.
    #[must_use]
    pub fn portable_hashed(&self) -> String {
        let suffix = format!("_{:08x}", fnv1a(self.0.as_bytes()));
        let mut name = self.replace_characters();
        name.truncate(MAX_PORTABLE - suffix.len());
        name + &suffix
    }

    /// The URI of the path: `mcpd://math/add`.
    #[must_use]
    pub fn uri(&self) -> String {
        let segments: Vec<_> = self
            .0
            .split('/')
            .map(|part| utf8_percent_encode(part, SEGMENT).to_string())
            .collect();
        format!("mcpd://{}", segments.join("/"))
    }

    /// The URI of the page that shows results of the tool, as MCP Apps has them.
    #[must_use]
    pub fn app_uri(&self) -> String {
        self.uri().replacen("mcpd://", "ui://mcpd/", 1)
    }

    /// Parses the URI of a path, with segments encoded in any way; `None` if it is no such URI.
    #[must_use]
    pub fn from_uri(uri: &str) -> Option<Self> {
        let mut segments = Vec::new();
        for segment in uri.strip_prefix("mcpd://")?.split('/') {
            let segment = percent_decode_str(segment).decode_utf8().ok()?;
            // An encoded slash would give one path two URIs.
            if segment.contains('/') {
                return None;
            }
            segments.push(segment);
        }
        segments.join("/").parse().ok()
    }

    /// The URI of the script's state: `mcpd://math/add/state`.
    #[must_use]
    pub fn state_uri(&self) -> String {
        self.uri() + "/state"
    }

    /// Parses the URI of a script's state; `None` if it is no such URI.
    ///
    /// `mcpd://x/state/state` is the state of `x/state`.
    #[must_use]
    pub fn from_state_uri(uri: &str) -> Option<Self> {
        Self::from_uri(uri.strip_suffix("/state")?)
    }

    /// The path in portable characters, of any length.
    fn replace_characters(&self) -> String {
        let portable = |char: char| {
            if char.is_ascii_alphanumeric() || char == '-' {
                char
            } else {
                '_'
            }
        };
        let name: String = transliterate(&self.0).chars().map(portable).collect();
        if name.starts_with(|first: char| first.is_ascii_alphabetic()) {
            name
        } else {
            format!("t_{name}")
        }
    }
}

impl fmt::Display for ScriptPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Transliterates text to ASCII as a person would spell it: `grosse` for `größe`.
pub(crate) fn transliterate(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return text.into();
    }
    // In some writing systems a space follows each syllable.
    let spelled = deunicode(text).replace(" /", "/").replace(" .", ".");
    spelled.trim().to_owned().into()
}

/// FNV-1a: short and stable across versions; it need not resist inversion.
pub(crate) fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, portable: &str, uri: &str) {
        let path: ScriptPath = path.parse().unwrap();
        assert_eq!(path.portable(), portable);
        assert_eq!(path.state_uri(), uri);
        assert_eq!(ScriptPath::from_state_uri(uri), Some(path));
    }

    #[test]
    fn path_has_a_portable_name_and_a_state_uri() {
        check("greet", "greet", "mcpd://greet/state");
        check("math/add", "math_add", "mcpd://math/add/state");
        check("x/state", "x_state", "mcpd://x/state/state");
        check(
            "Caps-and_rest",
            "Caps-and_rest",
            "mcpd://Caps-and_rest/state",
        );
        check("run.sh", "run_sh", "mcpd://run.sh/state");
        check("7zip", "t_7zip", "mcpd://7zip/state");
        check("_private", "t__private", "mcpd://_private/state");
        check(
            "größe/a b",
            "grosse_a_b",
            "mcpd://gr%C3%B6%C3%9Fe/a%20b/state",
        );
        check(
            "日本/привет",
            "Ri_Ben_privet",
            "mcpd://%E6%97%A5%E6%9C%AC/%D0%BF%D1%80%D0%B8%D0%B2%D0%B5%D1%82/state",
        );
        check("50%/a?b#c", "t_50__a_b_c", "mcpd://50%25/a%3Fb%23c/state");
    }

    #[test]
    fn long_name_ends_in_a_hash_of_the_path() {
        let long = |last: &str| {
            format!("{}/{last}", "a".repeat(70))
                .parse::<ScriptPath>()
                .unwrap()
        };
        assert_eq!(
            long("one").portable(),
            format!("{}_6cd7fc70", "a".repeat(55))
        );
        assert_ne!(long("one").portable(), long("two").portable());
        let longest = "b".repeat(64);
        assert_eq!(longest.parse::<ScriptPath>().unwrap().portable(), longest);
        assert_eq!(
            "greet".parse::<ScriptPath>().unwrap().portable_hashed(),
            "greet_fb1de34a"
        );
    }

    #[test]
    fn path_outside_the_root_is_rejected() {
        assert_eq!("".parse::<ScriptPath>(), Err(PathError::EmptySegment));
        for path in ["/etc/passwd", "math//add", "math/"] {
            assert_eq!(
                path.parse::<ScriptPath>(),
                Err(PathError::EmptySegment),
                "{path}"
            );
        }
        assert_eq!(
            "../x".parse::<ScriptPath>(),
            Err(PathError::RelativeSegment("..".to_owned()))
        );
        assert_eq!(
            "a/./b".parse::<ScriptPath>(),
            Err(PathError::RelativeSegment(".".to_owned()))
        );
        assert_eq!(
            "a\\b".parse::<ScriptPath>(),
            Err(PathError::Character('\\'))
        );
        assert_eq!("a\0".parse::<ScriptPath>(), Err(PathError::Character('\0')));
    }

    #[test]
    fn state_uri_rejects_other_uris() {
        for uri in [
            "mcpd://greet",
            "mcpd:///state",
            "mcpd://state",
            "http://greet/state",
            "mcpd://a%2Fb/state",
            "mcpd://a/%2E%2E/state",
            "mcpd://%ff/state",
            "mcpd://a/state?x",
        ] {
            assert_eq!(ScriptPath::from_state_uri(uri), None, "{uri}");
        }
    }
}
