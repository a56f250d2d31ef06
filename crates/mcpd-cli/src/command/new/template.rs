//! Templates of scripts: a description in comments, and the smallest body that reads an option.

use crate::args::Language;

/// Role of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Tool,
    Prompt,
    Resource,
}

/// Template of a language.
#[derive(Debug)]
pub(super) struct Template {
    /// Extension that the interpreter needs.
    pub(super) extension: Option<&'static str>,
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
    extension: None,
    first_line: "#!/usr/bin/env python3",
    comment: "#",
    table: None,
    call: "import json\nimport sys\n\nname = json.load(sys.stdin)[\"name\"]\nprint(f\"Hello, {name}!\")\n",
    content: "print(\"Hello!\")\n",
};

const SH: Template = Template {
    first_line: "#!/bin/sh",
    call: "set -eu\n\nprintf 'Hello, %s!\\n' \"$MCPD_OPT_name\"\n",
    content: "set -eu\n\necho 'Hello!'\n",
    ..PYTHON
};

const BASH: Template = Template {
    first_line: "#!/usr/bin/env bash",
    call: "set -euo pipefail\n\nprintf 'Hello, %s!\\n' \"$MCPD_OPT_name\"\n",
    content: "set -euo pipefail\n\necho 'Hello!'\n",
    ..PYTHON
};

const UV: Template = Template {
    first_line: "#!/usr/bin/env -S uv run --script",
    table: Some((
        "tool.mcpd",
        "requires-python = \">=3.12\"\ndependencies = []\n",
    )),
    ..PYTHON
};

const NODE: Template = Template {
    extension: Some("mjs"),
    first_line: "#!/usr/bin/env node",
    comment: "//",
    call: "console.log(`Hello, ${process.env.MCPD_OPT_name}!`)\n",
    content: "console.log('Hello!')\n",
    ..PYTHON
};

const TS: Template = Template {
    // Without a first line mcpd chooses the interpreter.
    extension: Some("ts"),
    first_line: "",
    comment: "//",
    call: "const name: string = process.env.MCPD_OPT_name ?? ''\nconsole.log(`Hello, ${name}!`)\n",
    content: "const text: string = 'Hello!'\nconsole.log(text)\n",
    ..PYTHON
};

const PERL: Template = Template {
    first_line: "#!/usr/bin/env perl",
    call: "use strict;\nuse warnings;\n\nprint \"Hello, $ENV{MCPD_OPT_name}!\\n\";\n",
    content: "use strict;\nuse warnings;\n\nprint \"Hello!\\n\";\n",
    ..PYTHON
};

const RUBY: Template = Template {
    first_line: "#!/usr/bin/env ruby",
    call: "puts \"Hello, #{ENV.fetch('MCPD_OPT_name')}!\"\n",
    content: "puts 'Hello!'\n",
    ..PYTHON
};

const RUST_SCRIPT: Template = Template {
    extension: Some("rs"),
    first_line: "#!/usr/bin/env rust-script",
    comment: "//",
    call: "fn main() {\n    let name = std::env::var(\"MCPD_OPT_name\").unwrap_or_default();\n    println!(\"Hello, {name}!\");\n}\n",
    content: "fn main() {\n    println!(\"Hello!\");\n}\n",
    ..PYTHON
};

const BASIC: Template = Template {
    extension: Some("bas"),
    first_line: "' Greets someone.",
    comment: "'",
    call: "DESCRIPTION \"Greet someone by name\"\nPARAM name AS string LIKE \"Ada\" DESCRIPTION \"Whom to greet\"\n\nTALK \"Hello, \" + name + \"!\"\n",
    content: "",
    ..PYTHON
};

/// URI of the resource with the name of its script.
pub(super) fn uri(name: &str) -> String {
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

impl Template {
    /// Template of a language.
    pub(super) fn of(language: Language) -> Self {
        match language {
            Language::Sh => SH,
            Language::Bash => BASH,
            Language::Python => PYTHON,
            Language::Uv => UV,
            Language::Node => NODE,
            Language::Ts => TS,
            Language::Perl => PERL,
            Language::Ruby => RUBY,
            Language::RustScript => RUST_SCRIPT,
            Language::Basic => BASIC,
        }
    }

    /// Text of a script; none if the language has no such scripts.
    pub(super) fn render(&self, kind: Kind, name: &str) -> Option<String> {
        let body = match kind {
            Kind::Resource => self.content,
            Kind::Tool | Kind::Prompt => self.call,
        };
        if self.extension == Some("bas") {
            // BASIC describes itself, as a tool.
            return (kind == Kind::Tool).then(|| format!("{}\n{body}", self.first_line));
        }
        let (marker, others, prefix) = match self.table {
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
            .map(|line| format!("{} {line}", self.comment).trim_end().to_owned() + "\n")
            .collect();
        let text = format!("{}\n{header}\n{body}", self.first_line);
        Some(text.trim_start().to_owned())
    }
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
            uri(name)
        ),
    }
}
