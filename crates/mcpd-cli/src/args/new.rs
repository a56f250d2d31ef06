//! Arguments of `mcpd new`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use mcpd_scriptspec::template::Language;

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Examples:
  mcpd new ~/tools/greet
  mcpd new ~/tools/report.py
  mcpd new ~/tools/review --prompt --lang python

The script describes itself in its comments, so that no list has to run it.")]
pub(crate) struct New {
    /// Script to create, such as `tools/greet`; its directories are created too.
    pub(crate) path: PathBuf,
    /// Language [default: that of the extension, otherwise sh]
    #[arg(long, value_name = "LANGUAGE", value_parser = languages())]
    pub(crate) lang: Option<Language>,
    /// Create a prompt instead of a tool.
    #[arg(long, conflicts_with = "resource")]
    pub(crate) prompt: bool,
    /// Create a resource instead of a tool.
    #[arg(long)]
    pub(crate) resource: bool,
}

/// Parser of a language by its name.
fn languages() -> impl TypedValueParser<Value = Language> {
    let values =
        Language::ALL.map(|language| PossibleValue::new(language.name()).help(title(language)));
    PossibleValuesParser::new(values).map(|name| {
        let mut all = Language::ALL.into_iter();
        let named = all.find(|language| language.name() == name);
        named.expect("a possible value")
    })
}

fn title(language: Language) -> &'static str {
    match language {
        Language::Sh => "POSIX shell",
        Language::Bash => "Bash",
        Language::Python => "Python, without packages",
        Language::Uv => "Python, with packages that uv installs",
        Language::Node => "JavaScript for Node",
        Language::Ts => "TypeScript for Node 22.18 and later",
        Language::Perl => "Perl",
        Language::Ruby => "Ruby",
        Language::RustScript => "Rust, compiled by rust-script",
        Language::Basic => "BASIC, which mcpd runs itself; tools only",
        _ => "",
    }
}
