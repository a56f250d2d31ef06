//! Client profiles: each client's rules for a list of tools as data, with the reasons. They are of
//! November 2026, and describe products, not MCP; so they live here, where a release changes them,
//! and not in a library.

use mcpd_scriptspec::Severity;
use serde::Serialize;

mod forward;

pub(crate) use forward::{Forwarded, ForwardedTool, Remark, forward};

/// Name of the server in the client's configuration, as the documentation
/// suggests: part of some tool names.
const SERVER: &str = "mcpd";

/// Rules of one client.
#[derive(Debug)]
pub(crate) struct Profile {
    /// The client's name for `--as`.
    pub(crate) key: &'static str,
    pub(crate) name: &'static str,
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
pub(crate) enum Effect {
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
    pub(crate) fn severity(self) -> Severity {
        match self {
            Self::Changed => Severity::Info,
            Self::RefusedBySome => Severity::Warning,
            Self::Refused | Self::AllRefused => Severity::Error,
        }
    }

    /// Words for people.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::RefusedBySome => "refused by some versions or in some modes",
            Self::Refused => "refused",
            Self::AllRefused => "refused, and every other tool with it",
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

/// All clients with a profile.
pub(crate) const PROFILES: &[Profile] = &[CLAUDE, OPENAI, GEMINI, CURSOR, VSCODE];

const CLAUDE: Profile = Profile {
    key: "claude",
    name: "Claude Desktop and claude.ai",
    prefix: "",
    characters: ProfileRule {
        of: is_word_or_dash,
        effect: Effect::AllRefused,
        why: "one name outside `[a-zA-Z0-9_-]` makes Claude withhold all tools of the server, or every chat fail",
    },
    length: ProfileRule {
        of: 64,
        effect: Effect::AllRefused,
        why: "one name of more than 64 characters makes Claude withhold all tools of the server, or every chat fail",
    },
    shorten: cut_end,
    tools: None,
    description: None,
    schema: &[
        ProfileRule {
            of: Shape::RootKeyword(&["oneOf", "anyOf", "allOf"]),
            effect: Effect::AllRefused,
            why: "Anthropic's API refuses a request with these at the root of a tool's schema",
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
        why: "one function name outside `[a-zA-Z0-9_-]` is a bad request",
    },
    length: ProfileRule {
        of: 64,
        effect: Effect::AllRefused,
        why: "one function name of more than 64 characters is a bad request",
    },
    shorten: cut_end,
    tools: Some(ProfileRule {
        of: 128,
        effect: Effect::AllRefused,
        why: "a request takes 128 tools at most, those of other servers included",
    }),
    description: Some(ProfileRule {
        of: 1024,
        effect: Effect::AllRefused,
        why: "the description of a function has 1024 characters at most",
    }),
    schema: &[
        ProfileRule {
            of: Shape::ArrayWithoutItems,
            effect: Effect::AllRefused,
            why: "a function with an array without `items` is a bad request",
        },
        ProfileRule {
            of: Shape::ObjectWithoutProperties,
            effect: Effect::AllRefused,
            why: "a function with an object without `properties`, be they none, is a bad request",
        },
        ProfileRule {
            of: Shape::Keyword(&["format"]),
            effect: Effect::RefusedBySome,
            why: "strict mode refuses it",
        },
        ProfileRule {
            of: Shape::OptionalProperty,
            effect: Effect::RefusedBySome,
            why: "strict mode wants every property to be required",
        },
        ProfileRule {
            of: Shape::WithoutType,
            effect: Effect::RefusedBySome,
            why: "strict mode wants every property to have a type",
        },
        ProfileRule {
            of: Shape::DeeperThan(10),
            effect: Effect::RefusedBySome,
            why: "strict mode takes 10 levels at most",
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
        why: "Gemini CLI puts `_` for every character outside `[a-zA-Z0-9_.-]`",
    },
    length: ProfileRule {
        of: 63,
        effect: Effect::Changed,
        why: "Gemini CLI takes the middle out of names of more than 63 characters",
    },
    shorten: cut_middle,
    tools: None,
    description: Some(ProfileRule {
        of: 1024,
        effect: Effect::RefusedBySome,
        why: "the description of a function has 1024 characters at most",
    }),
    schema: &[
        ProfileRule {
            of: Shape::Keyword(&["$schema", "additionalProperties"]),
            effect: Effect::Changed,
            why: "Gemini CLI takes it out",
        },
        ProfileRule {
            of: Shape::WithoutType,
            effect: Effect::Refused,
            why: "Gemini CLI leaves out a tool with a property that has no type",
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
            why: "Gemini's own form of schemas does not know it, and a client that sends that form has to take it out",
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
        why: "Cursor marks names outside `[a-zA-Z0-9_]`, and some versions leave the tool out",
    },
    length: ProfileRule {
        of: 60 - SERVER.len(),
        effect: Effect::Refused,
        why: "Cursor leaves out tools whose name has more than 60 characters together with the server's, taken to be `mcpd`",
    },
    shorten: cut_end,
    tools: Some(ProfileRule {
        of: 80,
        effect: Effect::Refused,
        why: "Cursor gives its model 80 tools at most, those of other servers included; older versions 40",
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
        why: "VS Code puts `_` for every character outside `[a-zA-Z0-9_-]`",
    },
    length: ProfileRule {
        of: 64,
        effect: Effect::Changed,
        why: "VS Code cuts names after 64 characters, the prefix included",
    },
    shorten: cut_end,
    tools: Some(ProfileRule {
        of: 128,
        effect: Effect::AllRefused,
        why: "a request takes 128 tools at most, those of other servers included",
    }),
    description: None,
    schema: &[ProfileRule {
        of: Shape::ArrayWithoutItems,
        effect: Effect::Refused,
        why: "VS Code leaves out tools with an array without `items`",
    }],
};
