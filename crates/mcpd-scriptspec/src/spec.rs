//! Validated spec of a script: only valid specs can exist, and only this crate creates them.

use std::{num::NonZeroU32, time::Duration};

use serde_json::{Map, Value, value::RawValue};

use crate::decimal::{Decimal, Parts};

mod argument;
mod pattern;

pub use argument::{Argument, CommandWord, ListForm, Template};
pub use pattern::Pattern;

/// Validated description of a script.
///
/// Created by [`parse`](crate::parse); used by [`input_schema`](Self::input_schema) and
/// [`invocation`](Self::invocation).
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ScriptSpec {
    /// Name for people; the name of the file by default.
    pub title: Option<String>,
    /// Purpose of the script, for models.
    pub description: Option<String>,
    /// The script's own version, in any form.
    pub version: Option<String>,
    /// The script answers `--state`.
    pub state: bool,
    /// The options in declared order; none if the script declares a schema of its own.
    pub options: Vec<ScriptOption>,
    /// JSON Schema of the arguments in place of options; only its outermost shape was checked.
    pub declared_schema: Option<Value>,
    /// Role of the script for its callers.
    pub role: Role,
    /// Format of the script's output.
    pub output: OutputFormat,
    /// JSON Schema of the output; only its outermost shape was checked.
    pub output_schema: Option<Value>,
    /// Behaviour of the script, as a hint for approvals.
    pub annotations: Annotations,
    /// Icons of the script, best first.
    pub icons: Vec<Icon>,
    /// Keywords for searches.
    pub tags: Vec<String>,
    /// Longest expected run.
    pub timeout: Option<Duration>,
    /// Maximum number of concurrent runs.
    pub concurrency: Option<NonZeroU32>,
    /// Requested sandbox, if any.
    pub sandbox: Option<SandboxRequest>,
    /// Capabilities that a client needs to use the script.
    pub requires: Vec<String>,
    /// Each run gets a file that describes its caller.
    pub context: bool,
    /// Execution of the script as a task.
    pub task: TaskSupport,
    /// The author's text about guardrails.
    pub safety: Option<String>,
    /// The author's text about the command line.
    pub command: Option<String>,
    /// Words on the command line that select a subcommand, before all options.
    pub subcommand: Vec<String>,
    /// Words of the command line after the subcommand; without any, it is [`CommandWord::Rest`].
    pub command_line: Vec<CommandWord>,
    /// Metadata that is passed on to clients unchanged.
    pub meta: Map<String, Value>,
}

/// Role of a script for its callers.
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
        /// `uri` is a template.
        is_template: bool,
        /// Type of the content.
        mime_type: Option<String>,
    },
}

/// Format of a script's output.
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

/// Requested sandbox: access that the script does not need, even if its host allows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxRequest {
    /// Requested level.
    pub level: SandboxLevel,
    /// Files and directories that it writes, relative to the directory of its file.
    pub write: Vec<String>,
    /// Files and directories that it reads although confined scripts cannot,
    /// relative to the same directory.
    pub read: Vec<String>,
    /// Files and directories that it need not read, relative to the same directory.
    pub hide: Vec<String>,
    /// Network that it uses.
    pub network: NetworkRequest,
}

/// Network that a script uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetworkRequest {
    /// Any.
    #[default]
    Host,
    /// These destinations, each `HOST:PORT`.
    Only(Vec<String>),
    /// None.
    Off,
}

/// Requested sandbox level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SandboxLevel {
    /// The script writes only declared files.
    #[default]
    Guarded,
    /// `Guarded`, in a separate view of the system.
    Strict,
}

/// Execution of a script as a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskSupport {
    /// Callers wait for the result.
    #[default]
    Never,
    /// The caller chooses.
    Auto,
    /// Callers must not wait for the result.
    Required,
}

/// Behaviour of a script as its author declares it: not a guarantee.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Annotations {
    /// The script changes nothing.
    pub read_only: Option<bool>,
    /// The script may destroy data.
    pub destructive: Option<bool>,
    /// A second identical call has no further effect.
    pub idempotent: Option<bool>,
    /// The script reaches beyond this machine.
    pub open_world: Option<bool>,
}

/// An icon of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Icon {
    /// An `https:`, `http:` or `data:` URI.
    pub src: String,
    /// Media type of the icon.
    pub mime_type: Option<String>,
    /// Sizes, such as `48x48`, or `any`.
    pub sizes: Vec<String>,
    /// `light` or `dark`: background that the icon is drawn for.
    pub theme: Option<String>,
}

/// One declared input of a script, or one property of an object in one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ScriptOption {
    /// Name, not empty, without `=` and control characters.
    pub name: String,
    /// Name for people.
    pub title: Option<String>,
    /// Meaning of the option, for models.
    pub description: Option<String>,
    /// Every call must provide the option.
    pub required: bool,
    /// Type of the value.
    pub value_type: ValueType,
    /// Value of an optional option that a call leaves out: valid for `value_type`, in the form
    /// that the script gets.
    pub default_value: Option<Box<RawValue>>,
    /// Example values, each valid for `value_type`.
    pub examples: Vec<Box<RawValue>>,
    /// Values are kept out of logs and messages.
    pub secret: bool,
    /// The HTTP header `Mcp-Param-…` that repeats the value.
    pub header: Option<String>,
    /// Position of the value on the command line, if it is passed there, too.
    pub argument: Option<Argument>,
    /// A further variable with the value: a shell identifier without a meaning for a
    /// system or an interpreter.
    pub variable: Option<String>,
    /// Variable of the script's environment that provides the value if a call leaves the option
    /// out; it takes precedence over the default.
    pub env: Option<String>,
}

/// Type of a value.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ValueType {
    /// Text.
    #[non_exhaustive]
    String {
        /// Bounds of the number of code points.
        size: Bounds,
        /// Pattern that some part of the text must match.
        pattern: Option<Pattern>,
        /// Format of the text, such as `date`: published, not checked.
        format: Option<String>,
    },
    /// An integer of any size.
    #[non_exhaustive]
    Integer {
        /// Bounds of the value.
        size: Bounds,
    },
    /// Any number.
    #[non_exhaustive]
    Float {
        /// Bounds of the value.
        size: Bounds,
    },
    /// `true` or `false`.
    Boolean,
    /// Any JSON value.
    #[non_exhaustive]
    Any {
        /// Bounds of a string's code points, or of a number's value; checked but not published.
        size: Bounds,
    },
    /// One value of a list.
    #[non_exhaustive]
    Enum {
        /// Values, at least one, all distinct.
        values: Vec<String>,
    },
    /// A list.
    #[non_exhaustive]
    Array {
        /// Bounds of the number of elements.
        size: Bounds,
        /// Type of each element.
        items: Option<Box<Self>>,
    },
    /// A JSON object.
    #[non_exhaustive]
    Object {
        /// All allowed properties; `None` allows any.
        properties: Option<Vec<ScriptOption>>,
    },
}

/// Smallest and largest allowed size, both inclusive.
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
