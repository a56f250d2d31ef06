//! Languages of scriptlets: their names in blocks, their extensions, and
//! their access to variables.

use super::{
    literal::{self, Syntax},
    placeholder::{Placeholder, placeholders},
    shell::{self, Shell},
    text_template,
};
use crate::{invocation::alias, json::Span};

/// Names of languages in blocks, and the extensions of their files.
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
    ("kit", "ts"),
    ("bun", "ts"),
    ("deno", "ts"),
    ("clojure", "clj"),
    ("csharp", "cs"),
    ("dart", "dart"),
    ("elixir", "exs"),
    ("erlang", "erl"),
    ("go", "go"),
    ("groovy", "groovy"),
    ("haskell", "hs"),
    ("java", "java"),
    ("julia", "jl"),
    ("kotlin", "kts"),
    ("ocaml", "ml"),
    ("rust", "rs"),
    ("scala", "scala"),
    ("swift", "swift"),
];

/// Kind of a text that is the result; a shell prints it.
const TEMPLATE: &str = "template";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Language {
    pub(super) extension: &'static str,
    /// The block is a text with placeholders, and not code.
    is_template: bool,
}

/// Names that blocks can have.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let names = LANGUAGES.iter().map(|(name, _)| *name);
    names.filter(|name| !name.is_empty()).chain([TEMPLATE])
}

impl Language {
    /// Returns the language that a block names; after a colon Script Kit has the name of a tool.
    pub(super) fn of(name: &str) -> Option<Self> {
        let kind = match name.split_once(':') {
            Some(("tool", _)) => "kit",
            Some((TEMPLATE, _)) => TEMPLATE,
            _ => name,
        };
        let is_template = kind == TEMPLATE;
        let kind = if is_template { "sh" } else { kind };
        let (_, extension) = LANGUAGES.iter().find(|(known, _)| *known == kind)?;
        Some(Self {
            extension,
            is_template,
        })
    }

    /// Returns whether this is JavaScript or TypeScript, for which Script Kit declares names.
    pub(super) fn is_javascript(self) -> bool {
        matches!(self.extension, "js" | "ts")
    }

    /// Returns whether code reads arguments as a shell does.
    pub(super) fn has_arguments(self) -> bool {
        !self.is_template && matches!(self.extension, "sh" | "bash" | "zsh")
    }

    /// Returns whether code is a list of commands.
    pub(super) fn is_shell(self) -> bool {
        !self.is_template && matches!(self.extension, "sh" | "bash" | "zsh" | "fish")
    }

    /// Returns the statement that changes the directory, if this language has one on a single
    /// line. All shells agree on the quotes around a path without quotes and backslashes.
    pub(super) fn change_directory(self, path: &str) -> Option<String> {
        if path.contains(['\'', '"', '\\']) || path.contains("{{") {
            return None;
        }
        let below_home = path.strip_prefix("~/").or((path == "~").then_some(""));
        match (self.extension, below_home) {
            (_, Some(rest)) if self.is_shell() => Some(format!("cd ~/'{rest}' || exit\n")),
            (_, None) if self.is_shell() => Some(format!("cd '{path}' || exit\n")),
            ("js" | "ts", Some(rest)) => {
                Some(format!("process.chdir(process.env.HOME + '/{rest}');\n"))
            }
            ("js" | "ts", None) => Some(format!("process.chdir('{path}');\n")),
            ("py", _) => Some(format!(
                "import os; os.chdir(os.path.expanduser('{path}'))\n"
            )),
            _ => None,
        }
    }

    /// Replaces the placeholders in code by variables. They are faults in languages with other
    /// access to variables.
    pub(super) fn fill(
        self,
        code: &str,
        is_number: &dyn Fn(&str) -> bool,
    ) -> (String, Vec<Placeholder>) {
        let shell = match self.extension {
            _ if self.is_template => return text_template::fill(code),
            "js" | "ts" => return literal::fill(code, Syntax::JavaScript, is_number),
            "py" => return literal::fill(code, Syntax::Python, is_number),
            "sh" => Shell::Plain,
            "bash" => Shell::Bash,
            "zsh" => Shell::Zsh,
            "fish" => Shell::Fish,
            _ => {
                let misplaced = |(name, span): (&str, Span)| Placeholder {
                    name: name.to_owned(),
                    span,
                    fault: Some(
                        "values are never inserted into code, and this language reads variables differently",
                    ),
                };
                return (code.to_owned(), placeholders(code).map(misplaced).collect());
            }
        };
        shell::fill(code, shell, is_number)
    }

    /// Expression that reads an input.
    pub(super) fn input_expression(self, input: &str) -> String {
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

/// Name of the input's variable that every shell can read.
pub(super) fn variable(input: &str) -> String {
    let name = alias(input).unwrap_or_else(|| input.to_owned());
    format!("MCPD_OPT_{name}")
}
