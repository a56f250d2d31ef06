//! Client profiles: each client's rules for a list of tools as data, with the reasons. They are of
//! November 2026, and describe products, not MCP: a release may change them.

use mcpd_scriptspec::Severity;
use serde::Serialize;

mod forward;

pub use forward::{Forwarded, ForwardedTool, Remark, forward};

/// Name of the server in the client's configuration, as the documentation
/// suggests: part of some tool names.
const SERVER: &str = "mcpd";

/// Rules of one client.
#[derive(Debug)]
#[non_exhaustive]
pub struct Profile {
    /// The client's name for `--as`.
    pub key: &'static str,
    /// Name of the client, for people.
    pub name: &'static str,
    /// Prefix of tool names that the model sees.
    prefix: &'static str,
    characters: ProfileRule<fn(char) -> bool>,
    /// Maximum length of a name with its prefix.
    length: ProfileRule<usize>,
    /// Shortens a name that is too long, for clients that do so.
    shorten: fn(&str) -> String,
    /// Maximum number of tools.
    tools: Option<ProfileRule<usize>>,
    /// Maximum number of characters in a description.
    description: Option<ProfileRule<usize>>,
    schema: &'static [ProfileRule<Shape>],
}

/// A limit or a forbidden shape, with its effect and its reason.
#[derive(Debug)]
struct ProfileRule<T> {
    of: T,
    effect: Effect,
    why: &'static str,
}

/// A part of a schema that a client rejects.
#[derive(Debug)]
enum Shape {
    /// One of these keywords.
    Keyword(&'static [&'static str]),
    /// One of these keywords in the outermost schema.
    RootKeyword(&'static [&'static str]),
    /// An array without a schema of its elements.
    ArrayWithoutItems,
    /// An object without named properties.
    ObjectWithoutProperties,
    /// A value of any type in a property.
    WithoutType,
    /// An optional property.
    OptionalProperty,
    /// A property whose name does not match `[A-Za-z0-9_.-]{1,64}`.
    PropertyName,
    /// Nesting of objects and arrays beyond this depth.
    DeeperThan(usize),
}

/// Reaction of a client to a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Effect {
    /// The model gets a changed definition.
    Changed,
    /// Some versions or modes reject the tool.
    RefusedBySome,
    /// The client drops the tool.
    Refused,
    /// The client drops all tools.
    AllRefused,
}

impl Effect {
    /// Severity of a finding with this effect.
    #[must_use]
    pub fn severity(self) -> Severity {
        match self {
            Self::Changed => Severity::Info,
            Self::RefusedBySome => Severity::Warning,
            Self::Refused | Self::AllRefused => Severity::Error,
        }
    }

    /// Words for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::RefusedBySome => "refused by some versions or in some modes",
            Self::Refused => "refused",
            Self::AllRefused => "refused together with every other tool",
        }
    }
}

fn is_word(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

fn is_word_or_dash(char: char) -> bool {
    is_word(char) || char == '-'
}

fn is_word_dash_or_dot(char: char) -> bool {
    is_word_or_dash(char) || char == '.'
}

/// The first 64 characters.
fn cut_end(name: &str) -> String {
    name.chars().take(64).collect()
}

/// The beginning and the end, without the middle.
fn cut_middle(name: &str) -> String {
    let length = name.chars().count();
    let (head, tail) = (name.chars().take(28), name.chars().skip(length - 32));
    head.chain("___".chars()).chain(tail).collect()
}

/// Maximum numbers of tools of clients without a profile.
const OTHER_TOOL_LIMITS: &[(&str, usize)] = &[("Windsurf", 100)];

/// Describes the clients that do not pass on as many tools to their model, if there are any.
#[must_use]
pub fn describe_tool_limits(tools: usize) -> Option<String> {
    let known = PROFILES.iter();
    let known = known.filter_map(|profile| Some((profile.name, profile.tools.as_ref()?.of)));
    let mut limits: Vec<_> = known.chain(OTHER_TOOL_LIMITS.iter().copied()).collect();
    limits.retain(|(_, limit)| tools > *limit);
    limits.sort_by_key(|(_, limit)| *limit);
    let limits: Vec<_> = limits
        .iter()
        .map(|(client, limit)| format!("{client} at most {limit}"))
        .collect();
    (!limits.is_empty()).then(|| {
        format!(
            "{tools} tools are too many for some clients: {}, including those of other servers; serve them with `--search`, which lists only two",
            limits.join(", ")
        )
    })
}

/// All clients with a profile.
pub const PROFILES: &[Profile] = &[CLAUDE, OPENAI, GEMINI, CURSOR, VSCODE];

const CLAUDE: Profile = Profile {
    key: "claude",
    name: "Claude Desktop and claude.ai",
    prefix: "",
    characters: ProfileRule {
        of: is_word_or_dash,
        effect: Effect::AllRefused,
        why: "one name outside `[a-zA-Z0-9_-]` makes Claude hide all tools of the server or fail every chat",
    },
    length: ProfileRule {
        of: 64,
        effect: Effect::AllRefused,
        why: "one name of more than 64 characters makes Claude hide all tools of the server or fail every chat",
    },
    shorten: cut_end,
    tools: None,
    description: None,
    schema: &[
        ProfileRule {
            of: Shape::RootKeyword(&["oneOf", "anyOf", "allOf"]),
            effect: Effect::AllRefused,
            why: "Anthropic's API refuses a request with these keywords at the root of a tool's schema",
        },
        ProfileRule {
            of: Shape::Keyword(&["$ref"]),
            effect: Effect::RefusedBySome,
            why: "Anthropic's managed agents refuse tools with references",
        },
        ProfileRule {
            of: Shape::PropertyName,
            effect: Effect::AllRefused,
            why: "Anthropic's API refuses a request with a property name outside `[a-zA-Z0-9_.-]{1,64}`",
        },
    ],
};

const OPENAI: Profile = Profile {
    key: "openai",
    name: "OpenAI's API",
    prefix: "",
    characters: ProfileRule {
        of: is_word_or_dash,
        effect: Effect::AllRefused,
        why: "one function name outside `[a-zA-Z0-9_-]` makes the request fail",
    },
    length: ProfileRule {
        of: 64,
        effect: Effect::AllRefused,
        why: "one function name of more than 64 characters makes the request fail",
    },
    shorten: cut_end,
    tools: Some(ProfileRule {
        of: 128,
        effect: Effect::AllRefused,
        why: "a request may have at most 128 tools, including those of other servers",
    }),
    description: Some(ProfileRule {
        of: 1024,
        effect: Effect::AllRefused,
        why: "a function description may have at most 1024 characters",
    }),
    schema: &[
        ProfileRule {
            of: Shape::ArrayWithoutItems,
            effect: Effect::AllRefused,
            why: "an array without `items` makes the request fail",
        },
        ProfileRule {
            of: Shape::ObjectWithoutProperties,
            effect: Effect::AllRefused,
            why: "an object without `properties`, even empty ones, makes the request fail",
        },
        ProfileRule {
            of: Shape::Keyword(&["format"]),
            effect: Effect::RefusedBySome,
            why: "strict mode refuses this keyword",
        },
        ProfileRule {
            of: Shape::OptionalProperty,
            effect: Effect::RefusedBySome,
            why: "strict mode requires every property in `required`",
        },
        ProfileRule {
            of: Shape::WithoutType,
            effect: Effect::RefusedBySome,
            why: "strict mode requires a type for every property",
        },
        ProfileRule {
            of: Shape::DeeperThan(10),
            effect: Effect::RefusedBySome,
            why: "strict mode allows at most 10 levels",
        },
    ],
};

const GEMINI: Profile = Profile {
    key: "gemini",
    name: "Gemini CLI",
    prefix: "",
    characters: ProfileRule {
        of: is_word_dash_or_dot,
        effect: Effect::Changed,
        why: "Gemini CLI replaces every character outside `[a-zA-Z0-9_.-]` with `_`",
    },
    length: ProfileRule {
        of: 63,
        effect: Effect::Changed,
        why: "Gemini CLI removes the middle of names of more than 63 characters",
    },
    shorten: cut_middle,
    tools: None,
    description: Some(ProfileRule {
        of: 1024,
        effect: Effect::RefusedBySome,
        why: "a function description may have at most 1024 characters",
    }),
    schema: &[
        ProfileRule {
            of: Shape::Keyword(&["$schema", "additionalProperties"]),
            effect: Effect::Changed,
            why: "Gemini CLI removes this keyword",
        },
        ProfileRule {
            of: Shape::WithoutType,
            effect: Effect::Refused,
            why: "Gemini CLI drops a tool with a property that has no type",
        },
        ProfileRule {
            of: Shape::Keyword(&[
                "const",
                "default",
                "exclusiveMaximum",
                "exclusiveMinimum",
                "format",
                "patternProperties",
                "propertyNames",
                "uniqueItems",
            ]),
            effect: Effect::RefusedBySome,
            why: "Gemini's own schema format does not support this keyword, so clients that send that format remove it",
        },
    ],
};

const CURSOR: Profile = Profile {
    key: "cursor",
    name: "Cursor",
    prefix: "",
    characters: ProfileRule {
        of: is_word,
        effect: Effect::RefusedBySome,
        why: "Cursor warns about names outside `[a-zA-Z0-9_]`, and some versions drop the tool",
    },
    length: ProfileRule {
        of: 60 - SERVER.len(),
        effect: Effect::Refused,
        why: "Cursor drops tools if the names of the server (here `mcpd`) and the tool have more than 60 characters together",
    },
    shorten: cut_end,
    tools: Some(ProfileRule {
        of: 80,
        effect: Effect::Refused,
        why: "Cursor gives its model at most 80 tools (older versions 40), including those of other servers",
    }),
    description: None,
    schema: &[],
};

const VSCODE: Profile = Profile {
    key: "vscode",
    name: "VS Code",
    prefix: "mcp_mcpd_",
    characters: ProfileRule {
        of: is_word_or_dash,
        effect: Effect::Changed,
        why: "VS Code replaces every character outside `[a-zA-Z0-9_-]` with `_`",
    },
    length: ProfileRule {
        of: 64,
        effect: Effect::Changed,
        why: "VS Code cuts names, including the prefix, after 64 characters",
    },
    shorten: cut_end,
    tools: Some(ProfileRule {
        of: 128,
        effect: Effect::AllRefused,
        why: "a request may have at most 128 tools, including those of other servers",
    }),
    description: None,
    schema: &[ProfileRule {
        of: Shape::ArrayWithoutItems,
        effect: Effect::Refused,
        why: "VS Code drops tools with an array without `items`",
    }],
};
