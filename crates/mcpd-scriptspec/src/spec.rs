//! What a script says of itself, checked: only valid specs can be made, and only by this crate.

use std::{num::NonZeroU32, time::Duration};

use serde_json::{Map, Value, value::RawValue};

use crate::decimal::{Decimal, Parts};

mod pattern;

pub use pattern::Pattern;

/// What a script says of itself.
///
/// [`parse`](crate::parse) makes it; [`input_schema`](Self::input_schema) and [`invocation`](Self::invocation) use it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ScriptSpec {
    /// Name for people; without it the name of the file serves.
    pub title: Option<String>,
    /// What the script does, for models.
    pub description: Option<String>,
    /// The script's own version, in whatever form.
    pub version: Option<String>,
    /// Whether the script answers `--state`.
    pub state: bool,
    /// The options in the order they were declared; none where the script declares a schema of its own.
    pub options: Vec<ScriptOption>,
    /// A JSON Schema of the arguments in place of options, of which only the outermost shape was checked.
    pub declared_schema: Option<Value>,
    /// What the script is to its callers.
    pub role: Role,
    /// What the script prints.
    pub output: OutputFormat,
    /// A JSON Schema of what the script prints, of which only the outermost shape was checked.
    pub output_schema: Option<Value>,
    /// How the script behaves, for people who permit calls.
    pub annotations: Annotations,
    /// Pictures of the script, best first.
    pub icons: Vec<Icon>,
    /// Words to find the script by.
    pub tags: Vec<String>,
    /// Longest run the script expects.
    pub timeout: Option<Duration>,
    /// How many runs the script bears at once.
    pub concurrency: Option<NonZeroU32>,
    /// How the script wants to be confined, if at all.
    pub sandbox: Option<SandboxWish>,
    /// Capabilities without which a client cannot use the script.
    pub requires: Vec<String>,
    /// Whether each run gets a file that describes its caller.
    pub context: bool,
    /// Whether the script runs as a task.
    pub task: TaskSupport,
    /// The script's own words on its guardrails.
    pub safety: Option<String>,
    /// The script's own words on its command line.
    pub command: Option<String>,
    /// The words on its command line that choose one of its commands, before all options.
    pub subcommand: Vec<String>,
    /// Passed on to clients as it is.
    pub meta: Map<String, Value>,
}

/// What a script is to its callers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// Called by models.
    #[default]
    Tool,
    /// Chosen by people; the options are its arguments.
    Prompt,
    /// Read by applications.
    #[non_exhaustive]
    Resource {
        /// A URI, or a URI template (RFC 6570) whose variables are options.
        uri: String,
        /// Whether `uri` is a template.
        is_template: bool,
        /// Type of the content.
        mime_type: Option<String>,
    },
}

/// What a script prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputFormat {
    /// Text for models.
    #[default]
    Text,
    /// One JSON value.
    Json,
    /// One object in the shape of the method's result.
    Mcp,
}

/// How a script wants to be confined: what it can do without, whatever its host allows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxWish {
    /// How far.
    pub level: SandboxLevel,
    /// Files and directories it writes, as it names them: relative to the directory of its file.
    pub write: Vec<String>,
    /// Files and directories it reads although they are hidden from confined scripts, likewise.
    pub read: Vec<String>,
    /// Files and directories it need not read, likewise.
    pub hide: Vec<String>,
    /// Whether it uses the network.
    pub network: bool,
}

/// How far a script wants to be confined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SandboxLevel {
    /// It writes only what it declares.
    #[default]
    Guarded,
    /// The same, in a system of its own.
    Strict,
}

/// Whether a script runs as a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskSupport {
    /// Callers wait for it.
    #[default]
    Never,
    /// As the caller likes.
    Auto,
    /// Callers must not wait for it.
    Required,
}

/// How a script behaves, in its own words: nothing to rely on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Annotations {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy something.
    pub destructive: Option<bool>,
    /// Calling it twice does no more than calling it once.
    pub idempotent: Option<bool>,
    /// It reaches beyond this machine.
    pub open_world: Option<bool>,
}

/// A picture of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Icon {
    /// An `https:`, `http:` or `data:` URI.
    pub src: String,
    /// Type of the picture.
    pub mime_type: Option<String>,
    /// Such as `48x48`, or `any`.
    pub sizes: Vec<String>,
    /// `light` or `dark`: the background it is drawn for.
    pub theme: Option<String>,
}

/// One declared input of a script, or one property of an object that is one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ScriptOption {
    /// Never empty, and without `=` and control characters.
    pub name: String,
    /// Name for people.
    pub title: Option<String>,
    /// What the option means, for models.
    pub description: Option<String>,
    /// Whether every call must give it.
    pub required: bool,
    /// What a value must be.
    pub value_type: ValueType,
    /// The value of an optional option that a call leaves out: valid for `value_type`, as the script gets it.
    pub default_value: Option<Box<RawValue>>,
    /// Values to learn from, each valid for `value_type`.
    pub examples: Vec<Box<RawValue>>,
    /// Whether values are kept out of logs and messages.
    pub secret: bool,
    /// The HTTP header `Mcp-Param-…` that repeats the value.
    pub header: Option<String>,
    /// Where on the command line the value stands too.
    pub argument: Option<Argument>,
    /// A further variable with the value: a shell identifier, and none that means something to a system or an interpreter.
    pub variable: Option<String>,
    /// The variable of the script's environment whose value an option has that a call leaves out,
    /// before its default.
    pub env: Option<String>,
}

/// Where on the command line of a script the value of an option stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Argument {
    /// After a flag such as `--user` or `-u`, with its dashes; a boolean is the flag alone, or nothing.
    Flag(String),
    /// In its place after `--`.
    Positional,
    /// In its place after the flags, with `--` before the first only where one of them begins
    /// with `-` or `+`.
    Operand,
    /// In its place, in a script that reads no flags; empty where there is no value.
    Plain,
    /// The value percent-encoded but for letters, digits and `-._~`, for a script that puts it into an address.
    PlainPercentEncoded,
}

/// What a value must be.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ValueType {
    /// Text.
    #[non_exhaustive]
    String {
        /// Code points.
        size: Bounds,
        /// What some part of the text must match.
        pattern: Option<Pattern>,
        /// What the text is, such as `date`: published, not checked.
        format: Option<String>,
    },
    /// A whole number of any size.
    #[non_exhaustive]
    Integer {
        /// The value itself.
        size: Bounds,
    },
    /// Any number.
    #[non_exhaustive]
    Float {
        /// The value itself.
        size: Bounds,
    },
    /// `true` or `false`.
    Boolean,
    /// Any JSON value.
    #[non_exhaustive]
    Any {
        /// Code points of a string, or the value of a number; checked but not published.
        size: Bounds,
    },
    /// One of a list.
    #[non_exhaustive]
    Enum {
        /// At least one, and all different.
        values: Vec<String>,
    },
    /// A list.
    #[non_exhaustive]
    Array {
        /// Number of elements.
        size: Bounds,
        /// What each element must be.
        items: Option<Box<Self>>,
    },
    /// A JSON object.
    #[non_exhaustive]
    Object {
        /// All properties it may have; without them it may have any.
        properties: Option<Vec<ScriptOption>>,
    },
}

/// The smallest and the largest size allowed, both inclusive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// Not above `max`.
    pub min: Option<Decimal>,
    /// Not below `min`.
    pub max: Option<Decimal>,
}

impl Bounds {
    pub(crate) fn contain(&self, number: &Parts<'_>) -> bool {
        let above = self
            .min
            .as_ref()
            .is_none_or(|min| min.parts().cmp(number).is_le());
        let below = self
            .max
            .as_ref()
            .is_none_or(|max| max.parts().cmp(number).is_ge());
        above && below
    }

    pub(crate) fn are_open(&self) -> bool {
        self.min.is_none() && self.max.is_none()
    }
}
