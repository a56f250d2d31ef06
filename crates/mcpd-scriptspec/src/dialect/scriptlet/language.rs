//! The languages of scriptlets: how a block names them, which extension they have, and how they read variables.

use super::{
    placeholder::{Placeholder, placeholders},
    shell::{self, Shell},
};
use crate::{invocation::alias, json::Span};

/// What a block says of its language, and the extension of the files in it.
const LANGUAGES: &[(&str, &str)] = &[
    ("", "sh"),
    ("sh", "sh"),
    ("shell", "sh"),
    ("bash", "bash"),
    ("zsh", "zsh"),
    ("fish", "fish"),
    ("python", "py"),
    ("python3", "py"),
    ("py", "py"),
    ("javascript", "js"),
    ("js", "js"),
    ("node", "js"),
    ("typescript", "ts"),
    ("ts", "ts"),
    ("ruby", "rb"),
    ("rb", "rb"),
    ("perl", "pl"),
    ("pl", "pl"),
    ("php", "php"),
    ("lua", "lua"),
    ("r", "r"),
    ("powershell", "ps1"),
    ("pwsh", "ps1"),
    ("ps1", "ps1"),
    ("basic", "bas"),
    ("bas", "bas"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Language {
    pub(super) extension: &'static str,
}

/// What blocks can say.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let names = LANGUAGES.iter().map(|(name, _)| *name);
    names.filter(|name| !name.is_empty())
}

impl Language {
    pub(super) fn of(name: &str) -> Option<Self> {
        let known = LANGUAGES.iter().find(|(known, _)| *known == name);
        known.map(|(_, extension)| Self { extension })
    }

    /// The code with variables for its placeholders. They are faults in languages that don't read variables as shells do.
    pub(super) fn fill(
        self,
        code: &str,
        is_number: &dyn Fn(&str) -> bool,
    ) -> (String, Vec<Placeholder>) {
        let shell = match self.extension {
            "sh" => Shell::Plain,
            "bash" => Shell::Bash,
            "zsh" => Shell::Zsh,
            "fish" => Shell::Fish,
            _ => {
                let misplaced = |(name, span): (&str, Span)| Placeholder {
                    name: name.to_owned(),
                    span,
                    fault: Some(
                        "values are never pasted into code, and this language reads variables in another way",
                    ),
                };
                return (code.to_owned(), placeholders(code).map(misplaced).collect());
            }
        };
        shell::fill(code, shell, is_number)
    }

    /// How code reads an input.
    pub(super) fn reading(self, input: &str) -> String {
        let variable = variable(input);
        let expression = match self.extension {
            "sh" | "bash" | "zsh" => format!("\"${{{variable}}}\""),
            "fish" => format!("\"${variable}\""),
            "py" => format!("os.environ[\"{variable}\"]"),
            "js" | "ts" => format!("process.env.{variable}"),
            "rb" => format!("ENV[\"{variable}\"]"),
            "pl" => format!("$ENV{{{variable}}}"),
            "php" => format!("getenv(\"{variable}\")"),
            "lua" => format!("os.getenv(\"{variable}\")"),
            "r" => format!("Sys.getenv(\"{variable}\")"),
            "ps1" => format!("$env:{variable}"),
            _ => input.to_owned(),
        };
        format!("declare `{input}` as an input, and write `{expression}`")
    }
}

/// The variable that every shell can read.
pub(super) fn variable(input: &str) -> String {
    let name = alias(input).unwrap_or_else(|| input.to_owned());
    format!("MCPD_OPT_{name}")
}
