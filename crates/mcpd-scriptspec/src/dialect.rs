//! Dialects: other formats in which files describe themselves without being run, converted to the
//! same specs by the same rules.
//!
//! Each dialect has a front end: a pure function from a text to a draft, which is the
//! description as JSON with the place of every part. The one parser of descriptions checks and
//! interprets all drafts.

use std::fmt::{self, Write as _};

use crate::{
    diagnostic::{Diagnostic, Stream},
    invocation::Invocation,
    parse::{Parsed, is_subcommand},
    rules::Code,
    text,
};

mod argc;
mod basic;
mod draft;
mod header;
mod raycast;
mod script_kit;
mod scriptlet;
mod sidecar;
mod toml_text;
mod usage;

pub use header::HeaderText;

use draft::{Draft, Literal, Node};

/// Format in which a file describes itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// A file `NAME.mcpd.toml` or `NAME.mcpd.json`, which describes the file `NAME` beside it.
    Sidecar,
    /// TOML in comments between `# /// mcpd` and `# ///`.
    Header,
    /// JavaScript or TypeScript with a `schema` for Script Kit.
    ScriptKit,
    /// Markdown with code blocks: Script Kit's format of short scripts.
    Scriptlets,
    /// BASIC with `PARAM` and `DESCRIPTION`.
    Basic,
    /// Scripts with comments for `usage` or `mise`.
    Usage,
    /// Shell scripts whose arguments `argc` parses.
    Argc,
    /// Script commands for Raycast.
    Raycast,
}

/// One tool that a file describes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DescribedTool {
    /// Path below its root, unless it is the path of the file.
    pub path: Option<String>,
    /// Parsed description. Diagnostics point into the text of the file.
    pub parsed: Parsed,
    /// Program that a call runs.
    pub body: Body,
}

/// Program that a call of a tool runs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Body {
    /// The file itself: as an executable, or by the interpreter for its extension.
    File,
    /// Nothing, for a reason among the diagnostics.
    None,
    /// A part of the file, by the interpreter for an extension.
    #[non_exhaustive]
    Code {
        /// Extension without a dot, such as `sh`.
        extension: String,
        /// The program; several if conditions choose among them, one of which matches each call.
        variants: Vec<Variant>,
    },
}

/// Variant of a tool's program, under some conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Variant {
    /// Conditions that a call must meet, all of them.
    pub conditions: Vec<Condition>,
    /// Text of the program.
    pub text: String,
}

/// Condition on the value of one option.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Condition {
    /// Name of the option.
    pub option: String,
    /// The value must be present, neither empty nor `false`; or, if this is false, the reverse.
    pub is_set: bool,
}

impl Condition {
    /// Returns whether a call meets the condition.
    #[must_use]
    pub fn is_met_by(&self, invocation: &Invocation) -> bool {
        invocation.is_set(&self.option) == self.is_set
    }
}

impl Dialect {
    /// All dialects.
    const ALL: [Self; 8] = [
        Self::Sidecar,
        Self::Header,
        Self::ScriptKit,
        Self::Scriptlets,
        Self::Basic,
        Self::Usage,
        Self::Argc,
        Self::Raycast,
    ];

    /// Returns the dialect that is displayed as `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|dialect| dialect.to_string() == name)
    }

    /// Suffixes of sidecars, after the name of the described file.
    pub const SIDECARS: &[&str] = sidecar::SUFFIXES;

    /// The path of the file that the one at `path` describes, if it is a sidecar.
    #[must_use]
    pub fn subject_of_sidecar(path: &str) -> Option<&str> {
        sidecar::described_path(path)
    }

    /// Returns whether a file of this name may describe itself and should
    /// be read, executable or not.
    #[must_use]
    pub fn may_describe(path: &str) -> bool {
        const EXTENSIONS: &[&str] = &["bas", "ts", "tsx", "js", "mjs", "cjs", "md"];
        let (_, extension) = split_extension(path);
        EXTENSIONS
            .iter()
            .any(|known| extension.eq_ignore_ascii_case(known))
    }

    /// The dialect of the file at `path`, relative to its root; `None` if only a probe can tell.
    #[must_use]
    pub fn of(path: &str, text: &[u8]) -> Option<Self> {
        if sidecar::described_path(path).is_some() {
            return Some(Self::Sidecar);
        }
        let (_, extension) = split_extension(path);
        let extension = extension.to_ascii_lowercase();
        // A manual may have such a line in an example, and is not a program.
        let is_misspelt = || extension != "md" && header::is_misspelt(text);
        if header::is_in(text) || is_misspelt() {
            return Some(Self::Header);
        }
        // The part that was read of a large file may end inside a character.
        let valid = text.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        match extension.as_str() {
            "bas" => Some(Self::Basic),
            "md" if scriptlet::is_file(path) => Some(Self::Scriptlets),
            // Comments in a manual are those of its examples.
            "md" if !text.starts_with(b"#!") => None,
            "ts" | "tsx" | "js" | "mjs" | "cjs" if script_kit::is_tool(valid) => {
                Some(Self::ScriptKit)
            }
            _ if usage::is_in(text) => Some(Self::Usage),
            _ if argc::is_in(text) => Some(Self::Argc),
            _ if raycast::is_in(text) => Some(Self::Raycast),
            _ => None,
        }
    }

    /// Reads the description of the file at `path` in this dialect.
    #[must_use]
    pub fn read(self, path: &str, text: &[u8]) -> Vec<DescribedTool> {
        let text = match std::str::from_utf8(text) {
            Ok(text) => text,
            Err(error) => {
                return vec![DescribedTool {
                    path: sidecar::described_path(path).map(str::to_owned),
                    ..DescribedTool::of_file(not_utf8(text, error))
                }];
            }
        };
        let mut tools = self.tools(path, text);
        let faults = (tools.iter_mut()).flat_map(|tool| &mut tool.parsed.diagnostics);
        faults.for_each(|fault| fault.locate_edits(text));
        tools
    }

    fn tools(self, path: &str, text: &str) -> Vec<DescribedTool> {
        match self {
            Self::Sidecar => vec![DescribedTool {
                path: sidecar::described_path(path).map(str::to_owned),
                ..DescribedTool::of_file(sidecar::read(path, text))
            }],
            Self::Header => vec![DescribedTool::of_file(header::read(text))],
            Self::ScriptKit => vec![script_kit::read(path, text)],
            Self::Scriptlets => scriptlet::read(text),
            Self::Basic => {
                let (name, _) = split_extension(path);
                vec![DescribedTool {
                    path: Some(name.to_owned()),
                    ..DescribedTool::of_file(basic::read(text).finish())
                }]
            }
            Self::Usage => commands(path, usage::read(text)),
            Self::Argc => commands(path, argc::read(text)),
            Self::Raycast => vec![DescribedTool::of_file(raycast::read(text).finish())],
        }
    }
}

/// Name of the dialect, such as `script-kit`.
impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, char) in format!("{self:?}").char_indices() {
            if place > 0 && char.is_ascii_uppercase() {
                f.write_char('-')?;
            }
            f.write_char(char.to_ascii_lowercase())?;
        }
        Ok(())
    }
}

/// Splits the extension from a path, without its dot; a directory has none.
fn split_extension(path: &str) -> (&str, &str) {
    match path.rsplit_once('.') {
        Some((rest, extension)) if !extension.contains('/') => (rest, extension),
        _ => (path, ""),
    }
}

/// The tools of a file with subcommands: their paths are the name of the file and
/// the words of the subcommand.
fn commands(path: &str, commands: Vec<(Vec<String>, Draft)>) -> Vec<DescribedTool> {
    let (name, _) = split_extension(path);
    let described = commands.into_iter().map(|(words, mut draft)| {
        // A command with any other word has a fault, and no path.
        let is_path = !words.is_empty() && words.iter().all(|word| is_subcommand(word));
        let path = is_path.then(|| format!("{name}/{}", words.join("/")));
        let span = draft.metadata.span.clone();
        if !words.is_empty() {
            let words = words
                .into_iter()
                .map(|word| Node::string(span.clone(), word));
            let words = Node::new(span.clone(), Literal::Array(words.collect()));
            draft.metadata.add("subcommand", span, words);
        }
        DescribedTool {
            path,
            ..DescribedTool::of_file(draft.finish())
        }
    });
    described.collect()
}

impl DescribedTool {
    fn of_file(parsed: Parsed) -> Self {
        Self {
            path: None,
            parsed,
            body: Body::File,
        }
    }
}

fn not_utf8(text: &[u8], error: std::str::Utf8Error) -> Parsed {
    let (span, message) = text::not_utf8(text, error);
    Parsed {
        diagnostics: vec![Diagnostic::new(
            Code::SourceNotUtf8,
            Stream::Source,
            span,
            message,
        )],
        ..Parsed::default()
    }
}
