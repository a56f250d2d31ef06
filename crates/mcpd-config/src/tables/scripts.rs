//! Tables of scripts: their sandbox, and the rules for some of them.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use mcpd_exec::egress::Destination;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Unexpected, Visitor};

use super::approval::ToolApproval;
use super::warm::Warm;
use super::{ProbeTable, Rerun, Variables};
use crate::value::{Amount, Seconds, Spanned};

#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table with a name, `[sandbox.NAME]`"
)]
pub(crate) struct SandboxTable {
    /// Level that the sandbox starts from; `strict` with a `backend` and `guarded` without it.
    pub(crate) level: Option<Level>,
    /// Program that isolates the script in place of mcpd, which must be installed.
    pub(crate) backend: Option<Spanned<Backend>>,
    /// Paths that may be written, with everything below. They must exist when the script is run;
    /// links are followed, except those that lie where the script may write.
    pub(crate) write: Option<Vec<PathBuf>>,
    /// Paths that may be read although they are hidden, such as `~/.config/tool`, except what is
    /// hidden by name below them.
    pub(crate) read: Option<Vec<PathBuf>>,
    /// Paths that may not be read, besides the secrets that mcpd knows of, such as `~/.ssh`.
    pub(crate) hide: Option<Vec<PathBuf>>,
    /// Network of the script: `host`, `off`, or the only destinations that it may connect to, such
    /// as `["api.example.com:443"]`; `off` at level `strict` and `host` at other levels without it.
    pub(crate) network: Option<NetworkAccess>,
    /// Reaction if the system can't enforce all of this; `refuse` at level `strict` and `report`
    /// at other levels without it.
    pub(crate) missing: Option<Missing>,
    /// Scripts with `run_in = "client"` may write the directory that the client works in.
    #[serde(default)]
    pub(crate) write_client_directory: bool,
    /// User that scripts run as, `user` or `user:group`, by name or number; only if mcpd runs as
    /// root. `HOME`, `USER`, `LOGNAME` and `SHELL` are that user's.
    pub(crate) run_as: Option<Spanned<String>>,
    /// Processor time of each process, in seconds; 300 without it if the script is confined.
    pub(crate) cpu: Option<Seconds>,
    /// Address space of each process.
    pub(crate) address_space: Option<Amount>,
    /// Size of the largest file that may be written; 1 GiB without it if the script is confined.
    pub(crate) file_size: Option<Amount>,
    /// Memory of the whole run. It needs a control group that was delegated to mcpd.
    pub(crate) memory: Option<Amount>,
    /// Open files of each process; 1024 without it if the script is confined.
    pub(crate) open_files: Option<u64>,
    /// Processes of the whole run; 256 without it at level `strict`. It is exact only with a
    /// control group that was delegated to mcpd.
    pub(crate) processes: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// No confinement: the script may do what mcpd may do.
    None,
    /// The script writes only what is allowed, reads no secrets, gains no rights, and leaves no
    /// process behind.
    Guarded,
    /// The script is also isolated in namespaces of its own, without a network; if the kernel
    /// can't do that, it is not run.
    Strict,
}

#[derive(Debug, Clone, Copy, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Backend {
    /// Bubblewrap.
    Bwrap,
    /// gVisor, `runsc` in namespaces of Bubblewrap; not tested.
    Gvisor,
    /// Podman; not tested.
    Podman,
    /// Firejail; not tested.
    Firejail,
}

#[derive(Debug, Clone, Copy, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Network {
    /// Network of the host.
    Host,
    /// No connections, not even to this machine.
    Off,
}

/// Network of a sandbox: a word, or a list of destinations.
#[derive(Debug, Clone)]
pub(crate) enum NetworkAccess {
    Word(Network),
    Only(Vec<Destination>),
}

impl<'de> Deserialize<'de> for NetworkAccess {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = NetworkAccess;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"host\", \"off\", or destinations such as [\"api.example.com:443\"]")
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<NetworkAccess, E> {
                match word {
                    "host" => Ok(NetworkAccess::Word(Network::Host)),
                    "off" => Ok(NetworkAccess::Word(Network::Off)),
                    _ => Err(E::invalid_value(Unexpected::Str(word), &self)),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<NetworkAccess, A::Error> {
                let mut destinations = Vec::new();
                while let Some(text) = list.next_element::<String>()? {
                    destinations.push(text.parse().map_err(A::Error::custom)?);
                }
                match destinations.is_empty() {
                    true => Err(A::Error::custom("it lists no destination; write \"off\"")),
                    false => Ok(NetworkAccess::Only(destinations)),
                }
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for NetworkAccess {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "NetworkAccess".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "oneOf": [
                {
                    "description": "Network of the host.",
                    "type": "string",
                    "const": "host"
                },
                {
                    "description": "No connections, not even to this machine.",
                    "type": "string",
                    "const": "off"
                },
                {
                    "description": "These destinations alone, each `HOST:PORT`.",
                    "type": "array",
                    "items": { "type": "string", "pattern": "^[^@ ]+:([0-9]+|\\*)$" },
                    "minItems": 1
                }
            ]
        })
    }
}

#[derive(Debug, Clone, Copy, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Missing {
    /// The script runs, and the log names the missing part once.
    Report,
    /// The script does not run.
    Refuse,
}

#[derive(Debug, Clone, Copy, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Task {
    /// Calls wait for their result.
    Never,
    /// Calls become tasks if they are not over within half a second.
    Auto,
    /// Calls always become tasks; clients without support for tasks are refused.
    Required,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RunIn {
    /// Root of the script.
    Root,
    /// Directory that the client works in: its first root, or over stdio the one that mcpd was
    /// started in.
    Client,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Terminal {
    /// As a terminal would show it in the end: without colours, and with the last state of a
    /// progress bar.
    Shown,
    /// As it was printed, with all escape sequences and carriage returns.
    Raw,
}

#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "tables `[[tool]]`")]
pub(crate) struct ToolTable {
    /// Pattern of paths, such as `math/*`: `*` stands for a part of a name, `**` for any number
    /// of names.
    #[serde(rename = "match")]
    pub(crate) pattern: Spanned<String>,
    /// Name of the sandbox that confines the tools.
    pub(crate) sandbox: Option<Spanned<String>>,
    /// Time limit of a run, in seconds; overrides the script's own, and that overrides
    /// `--timeout`.
    pub(crate) timeout: Option<Seconds>,
    /// Number of runs of each tool at the same time; overrides the script's own.
    pub(crate) concurrency: Option<NonZeroUsize>,
    /// Remove secrets from output.
    #[schemars(extend("default" = true))]
    pub(crate) redact: Option<bool>,
    /// Form in which models read output.
    #[schemars(extend("default" = "shown"))]
    pub(crate) terminal: Option<Terminal>,
    /// Calls in the background; overrides the script's own setting.
    pub(crate) task: Option<Task>,
    /// Approval of calls by a person; overrides `[approval]`.
    pub(crate) approval: Option<ToolApproval>,
    /// Confinement while mcpd asks for their descriptions; overrides `[probe]`.
    #[serde(default)]
    pub(crate) probe: ProbeTable,
    /// Directory that they start in; `root` without it.
    pub(crate) run_in: Option<RunIn>,
    /// Start Python once ahead, and fork it for each run; a list names modules that it imports
    /// ahead as well.
    #[schemars(extend("default" = false))]
    pub(crate) warm: Option<Spanned<Warm>>,
    /// Labels that a worker of `[cluster]` must have to run them, all of these.
    #[cfg_attr(
        not(feature = "cluster"),
        expect(dead_code, reason = "a cluster reads it")
    )]
    pub(crate) on: Option<Vec<Spanned<String>>>,
    /// Runs that may be made again on another worker, when it is not known how theirs has ended.
    #[schemars(extend("default" = "read-only"))]
    #[cfg_attr(
        not(feature = "cluster"),
        expect(dead_code, reason = "a cluster reads it")
    )]
    pub(crate) rerun: Option<Rerun>,
    /// Run each always on the same worker, as scripts with state or `concurrency` are.
    #[schemars(extend("default" = false))]
    #[cfg_attr(
        not(feature = "cluster"),
        expect(dead_code, reason = "a cluster reads it")
    )]
    pub(crate) home: Option<bool>,
    /// Variables for these tools alone. Their values are secrets.
    #[serde(default)]
    pub(crate) env: Variables,
    /// Names of the variables of `[[token]]`, `[[certificate]]` and `[[client]]` that these tools
    /// get when such a client calls; a name that ends with `*` means all with that prefix. All
    /// without it.
    pub(crate) caller_env: Option<Vec<Spanned<String>>>,
}
