//! Templates of scripts: a description in comments, and the smallest body that reads an option.
//!
//! ```
//! use mcpd_scriptspec::Dialect;
//! use mcpd_scriptspec::template::{self, Kind, Language};
//!
//! let language = Language::of_extension("py").expect("Python");
//! let text = template::script(language, Kind::Tool, "greet").expect("every language has tools");
//! let dialect = Dialect::of("greet.py", text.as_bytes()).expect("it describes itself");
//! let tools = dialect.read("greet.py", text.as_bytes());
//! let spec = tools[0].parsed.spec.as_ref().expect("a description without faults");
//! assert_eq!(spec.description.as_deref(), Some("Greet someone by name"));
//! ```

/// Role of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "MCP has these three")]
pub enum Kind {
    /// Called by models.
    Tool,
    /// Chosen by people.
    Prompt,
    /// Read by applications.
    Resource,
}

/// Language with a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Language {
    /// POSIX shell.
    Sh,
    /// Bash.
    Bash,
    /// Python, without packages.
    Python,
    /// Python, with packages that uv installs.
    Uv,
    /// JavaScript for Node.
    Node,
    /// TypeScript for Node 22.18 and later.
    Ts,
    /// Perl.
    Perl,
    /// Ruby.
    Ruby,
    /// Rust, compiled by rust-script.
    RustScript,
    /// BASIC, whose scripts are tools alone.
    Basic,
}

impl Language {
    /// All languages.
    pub const ALL: [Self; 10] = [
        Self::Sh,
        Self::Bash,
        Self::Python,
        Self::Uv,
        Self::Node,
        Self::Ts,
        Self::Perl,
        Self::Ruby,
        Self::RustScript,
        Self::Basic,
    ];

    /// Short name, such as `rust-script`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.template().name
    }

    /// Language of a file extension, in any case, if it is the usual one of a language.
    #[must_use]
    pub fn of_extension(extension: &str) -> Option<Self> {
        Some(match &*extension.to_lowercase() {
            "sh" => Self::Sh,
            "bash" => Self::Bash,
            "py" => Self::Python,
            "js" | "mjs" => Self::Node,
            "ts" => Self::Ts,
            "pl" => Self::Perl,
            "rb" => Self::Ruby,
            "rs" => Self::RustScript,
            "bas" => Self::Basic,
            _ => return None,
        })
    }

    /// Extension without which the interpreter does not run a file, if there is one.
    #[must_use]
    pub fn extension(self) -> Option<&'static str> {
        self.template().extension
    }

    fn template(self) -> &'static Template {
        match self {
            Self::Sh => &SH,
            Self::Bash => &BASH,
            Self::Python => &PYTHON,
            Self::Uv => &UV,
            Self::Node => &NODE,
            Self::Ts => &TS,
            Self::Perl => &PERL,
            Self::Ruby => &RUBY,
            Self::RustScript => &RUST_SCRIPT,
            Self::Basic => &BASIC,
        }
    }
}

/// Template of a language.
#[derive(Debug)]
struct Template {
    name: &'static str,
    /// Extension that the interpreter needs.
    extension: Option<&'static str>,
    first_line: &'static str,
    comment: &'static str,
    /// Table of the description in a block that other tools read too, after lines of theirs.
    table: Option<(&'static str, &'static str)>,
    /// Body that reads the option `name` and prints a greeting.
    call: &'static str,
    /// Body that prints the content of a resource.
    content: &'static str,
}

const PYTHON: Template = Template {
    name: "python",
    extension: None,
    first_line: "#!/usr/bin/env python3",
    comment: "#",
    table: None,
    call: "import json\nimport sys\n\nname = json.load(sys.stdin)[\"name\"]\nprint(f\"Hello, {name}!\")\n",
    content: "print(\"Hello!\")\n",
};

const SH: Template = Template {
    name: "sh",
    first_line: "#!/bin/sh",
    call: "set -eu\n\nprintf 'Hello, %s!\\n' \"$MCPD_OPT_name\"\n",
    content: "set -eu\n\necho 'Hello!'\n",
    ..PYTHON
};

const BASH: Template = Template {
    name: "bash",
    first_line: "#!/usr/bin/env bash",
    call: "set -euo pipefail\n\nprintf 'Hello, %s!\\n' \"$MCPD_OPT_name\"\n",
    content: "set -euo pipefail\n\necho 'Hello!'\n",
    ..PYTHON
};

const UV: Template = Template {
    name: "uv",
    first_line: "#!/usr/bin/env -S uv run --script",
    table: Some((
        "tool.mcpd",
        "requires-python = \">=3.12\"\ndependencies = []\n",
    )),
    ..PYTHON
};

const NODE: Template = Template {
    name: "node",
    extension: Some("mjs"),
    first_line: "#!/usr/bin/env node",
    comment: "//",
    call: "console.log(`Hello, ${process.env.MCPD_OPT_name}!`)\n",
    content: "console.log('Hello!')\n",
    ..PYTHON
};

const TS: Template = Template {
    name: "ts",
    // Without a first line mcpd chooses the interpreter.
    extension: Some("ts"),
    first_line: "",
    comment: "//",
    call: "const name: string = process.env.MCPD_OPT_name ?? ''\nconsole.log(`Hello, ${name}!`)\n",
    content: "const text: string = 'Hello!'\nconsole.log(text)\n",
    ..PYTHON
};

const PERL: Template = Template {
    name: "perl",
    first_line: "#!/usr/bin/env perl",
    call: "use strict;\nuse warnings;\n\nprint \"Hello, $ENV{MCPD_OPT_name}!\\n\";\n",
    content: "use strict;\nuse warnings;\n\nprint \"Hello!\\n\";\n",
    ..PYTHON
};

const RUBY: Template = Template {
    name: "ruby",
    first_line: "#!/usr/bin/env ruby",
    call: "puts \"Hello, #{ENV.fetch('MCPD_OPT_name')}!\"\n",
    content: "puts 'Hello!'\n",
    ..PYTHON
};

const RUST_SCRIPT: Template = Template {
    name: "rust-script",
    extension: Some("rs"),
    first_line: "#!/usr/bin/env rust-script",
    comment: "//",
    call: "fn main() {\n    let name = std::env::var(\"MCPD_OPT_name\").unwrap_or_default();\n    println!(\"Hello, {name}!\");\n}\n",
    content: "fn main() {\n    println!(\"Hello!\");\n}\n",
    ..PYTHON
};

const BASIC: Template = Template {
    name: "basic",
    extension: Some("bas"),
    first_line: "' Greets someone.",
    comment: "'",
    call: "DESCRIPTION \"Greet someone by name\"\nPARAM name AS string LIKE \"Ada\" DESCRIPTION \"Whom to greet\"\n\nTALK \"Hello, \" + name + \"!\"\n",
    content: "",
    ..PYTHON
};

/// Text of a script with this name; none if the language has no scripts of the kind.
#[must_use]
pub fn script(language: Language, kind: Kind, name: &str) -> Option<String> {
    let template = language.template();
    let body = match kind {
        Kind::Resource => template.content,
        Kind::Tool | Kind::Prompt => template.call,
    };
    if language == Language::Basic {
        // BASIC describes itself, as a tool.
        return (kind == Kind::Tool).then(|| format!("{}\n{body}", template.first_line));
    }
    let (marker, others, prefix) = match template.table {
        Some((table, others)) => (
            "script",
            format!("{others}\n[{table}]\n"),
            format!("{table}."),
        ),
        None => ("mcpd", String::new(), String::new()),
    };
    let description = describe(kind, name, &prefix);
    let lines = format!("/// {marker}\n{others}{description}///\n");
    let header: String = lines
        .lines()
        .map(|line| format!("{} {line}", template.comment).trim_end().to_owned() + "\n")
        .collect();
    let text = format!("{}\n{header}\n{body}", template.first_line);
    Some(text.trim_start().to_owned())
}

/// URI of the resource of the script with this name.
#[must_use]
pub fn resource_uri(name: &str) -> String {
    format!("notes://{}", percent_encode(name))
}

/// Encodes what a host of a URI cannot have.
fn percent_encode(name: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
    let encode = |byte: u8| match is_plain(&byte) {
        true => char::from(byte).to_lowercase().to_string(),
        false => format!("%{byte:02X}"),
    };
    name.bytes().map(encode).collect()
}

/// Description as TOML; `prefix` precedes the names of tables.
fn describe(kind: Kind, name: &str, prefix: &str) -> String {
    let option = format!(
        "\n[{prefix}options.name]\ndescription = \"Whom to greet\"\nrequired = true\n\
         value_type = \"string\"\nsize = {{ min = 1, max = 100 }}\n"
    );
    match kind {
        Kind::Tool => format!("description = \"Greet someone by name\"\n{option}"),
        Kind::Prompt => {
            format!("kind = \"prompt\"\ndescription = \"Greet someone by name\"\n{option}")
        }
        Kind::Resource => format!(
            "kind = \"resource\"\nuri = \"{}\"\ndescription = \"A greeting to read\"\n",
            resource_uri(name)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dialect, Role};

    #[test]
    fn template_describes_a_script_without_faults() {
        for language in Language::ALL {
            for kind in [Kind::Tool, Kind::Prompt, Kind::Resource] {
                let Some(text) = script(language, kind, "greet me") else {
                    assert!(language == Language::Basic && kind != Kind::Tool);
                    continue;
                };
                let path = format!("greet me.{}", language.extension().unwrap_or("x"));
                let dialect = Dialect::of(&path, text.as_bytes()).expect("a description");
                let tools = dialect.read(&path, text.as_bytes());
                let parsed = &tools[0].parsed;
                assert_eq!(parsed.diagnostics, [], "{text}");
                let spec = parsed.spec.as_ref().expect("a spec");
                match kind {
                    Kind::Tool => assert_eq!(spec.role, Role::Tool),
                    Kind::Prompt => assert_eq!(spec.role, Role::Prompt),
                    Kind::Resource => assert!(
                        matches!(&spec.role, Role::Resource { uri, .. } if uri == "notes://greet%20me")
                    ),
                }
                assert_eq!(spec.options.len(), usize::from(kind != Kind::Resource));
            }
        }
    }

    #[test]
    fn extension_names_the_language_that_needs_it() {
        for language in Language::ALL {
            let of_extension = language.extension().and_then(Language::of_extension);
            assert_eq!(of_extension.unwrap_or(language), language);
        }
        assert_eq!(Language::of_extension("PY"), Some(Language::Python));
        assert_eq!(Language::of_extension("txt"), None);
    }
}
