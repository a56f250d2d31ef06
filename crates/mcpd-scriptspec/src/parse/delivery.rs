//! Optional channels of an option to a script, besides stdin and `MCPD_OPT_*`: the command line,
//! and a declared variable.

use std::collections::BTreeSet;

use super::{
    Report,
    template::{self, TemplateFault},
};
use crate::{
    json::Member,
    rules::Code,
    spec::{Argument, CommandWord, ListForm, ScriptOption, ScriptSpec, ValueType},
    suggest::suggest,
    text,
};

/// Variables with a meaning for a system or an interpreter.
const RESERVED: &[&str] = &[
    "_",
    "APPDATA",
    "AWKLIBPATH",
    "AWKPATH",
    "BAGGAGE",
    "BASHOPTS",
    "BASH_ENV",
    "BASH_LOADABLES_PATH",
    "BROWSER",
    "CDPATH",
    "CLASSPATH",
    "COMSPEC",
    "CURL_CA_BUNDLE",
    "CURL_HOME",
    "EDITOR",
    "EMACSDATA",
    "EMACSLOADPATH",
    "EMACSPATH",
    "ENV",
    "FCEDIT",
    "FPATH",
    "GCONV_PATH",
    "GETCONF_DIR",
    "GLIBC_TUNABLES",
    "GOFLAGS",
    "GOPATH",
    "GOROOT",
    "GRADLE_OPTS",
    "HOME",
    "HOSTALIASES",
    "IFS",
    "JAVA_HOME",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "KRB5_CONFIG",
    "LANG",
    "LANGUAGE",
    "LESS",
    "LESSCLOSE",
    "LESSKEY",
    "LESSKEYIN",
    "LESSOPEN",
    "LOCALAPPDATA",
    "LOCALDOMAIN",
    "LOCPATH",
    "LOGNAME",
    "MAKEFLAGS",
    "MANPAGER",
    "MAVEN_OPTS",
    "NETRC",
    "NLSPATH",
    "OCAMLRUNPARAM",
    "OLDPWD",
    "PAGER",
    "PATH",
    "PATHEXT",
    "PGSERVICEFILE",
    "PGSYSCONFDIR",
    "POSIXLY_CORRECT",
    "PROGRAMDATA",
    "PROMPT_COMMAND",
    "PS0",
    "PS4",
    "PSEXECUTIONPOLICYPREFERENCE",
    "PSMODULEPATH",
    "PWD",
    "RESOLV_HOST_CONF",
    "RES_OPTIONS",
    "SHELL",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "SSH_AUTH_SOCK",
    "SUDO_ASKPASS",
    "SYSTEMROOT",
    "TCLLIBPATH",
    "TCL_LIBRARY",
    "TEMP",
    "TERMINFO",
    "TERMINFO_DIRS",
    "TK_LIBRARY",
    "TMP",
    "TMPDIR",
    "TOOL_ARGS",
    "TOOL_QUERY",
    "TRACEPARENT",
    "TRACESTATE",
    "TZ",
    "USER",
    "USERPROFILE",
    "VISUAL",
    "WGETRC",
    "WINDIR",
    "WSLENV",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
];

/// Prefixes of variables with a meaning for a system or an interpreter.
const RESERVED_PREFIXES: &[&str] = &[
    "BUNDLE_", "BUN_", "CARGO_", "CORECLR_", "COR_", "DENO_", "DOTNET_", "DYLD_", "ERL_", "GEM_",
    "GIT_", "GUILE_", "JULIA_", "LC_", "LD_", "LUA_", "MALLOC_", "MCPD_", "MCP_", "NODE_", "NPM_",
    "OPENSSL_", "PERL5", "PERL_", "PHPRC", "PHP_", "PIP_", "PYTHON", "RUBY", "R_", "SSL_", "UV_",
    "XDG_",
];

const POSITIONAL: &str = "positional";
const OPERAND: &str = "operand";
const PLAIN: &str = "plain";
const PERCENT_ENCODED: &str = "plain-percent-encoded";

/// Returns whether the word declares a positional of a script without flags.
fn is_plain(word: &str) -> bool {
    matches!(word, PLAIN | PERCENT_ENCODED)
}

/// Reports, among the fields of all options, duplicate flags and variables, and flags that a
/// script without flags could not read.
pub(super) fn check(fields: &[Member<'_>], report: &mut Report<'_>) {
    let (mut flags, mut variables) = (BTreeSet::new(), BTreeSet::new());
    let mut others = fields.iter().filter(|field| field.key == "argument");
    let has_others = others.any(|field| field.value.string().is_some_and(|word| !is_plain(&word)));
    for field in fields {
        let Some(word) = field.value.string() else {
            continue;
        };
        let span = field.value.span();
        let message = match &*field.key {
            "argument" if is_plain(&word) && has_others => {
                "`plain` and other kinds of arguments cannot be combined".to_owned()
            }
            "argument" => {
                let mut names = template::flags(&word);
                match names.find(|flag| !flags.insert((*flag).to_owned())) {
                    Some(flag) => format!("two options have the flag {}", text::name(flag)),
                    None => continue,
                }
            }
            "variable" if !variables.insert(word.clone()) => {
                let name = text::name(&word);
                let message = format!("two options have the variable {name}");
                report.fault(Code::InvalidVariable, span, message);
                continue;
            }
            _ => continue,
        };
        report.fault(Code::InvalidArgument, span, message);
    }
}

pub(super) fn argument(
    field: &Member<'_>,
    value_type: &ValueType,
    is_secret: bool,
    report: &mut Report<'_>,
) -> Option<Argument> {
    let word = report.string("argument", field.value)?;
    if is_secret {
        let message = "every user of the machine can see the secret on the command line";
        report.fault(Code::SecretArgument, field.value.span(), message);
    }
    match &*word {
        POSITIONAL => Some(Argument::Positional),
        OPERAND => Some(Argument::Operand),
        PLAIN => Some(Argument::Plain),
        PERCENT_ENCODED => Some(Argument::PlainPercentEncoded),
        flag if is_flag(flag) => Some(Argument::Flag(flag.to_owned())),
        words => match template::read(words, value_type) {
            Ok(argument) => Some(argument),
            Err(fault) => {
                report
                    .fault(Code::InvalidArgument, field.value.span(), fault.message)
                    .help(fault.help);
                None
            }
        },
    }
}

/// Reads the words of the command line.
pub(super) fn command_line(field: &Member<'_>, report: &mut Report<'_>) -> Vec<CommandWord> {
    let mut words = Vec::new();
    for element in field.value.elements() {
        let Some(word) = element.string() else {
            continue;
        };
        let fault = match template::command_word(&word) {
            Ok(word) if matches!(word, CommandWord::Fixed(_)) || !words.contains(&word) => {
                words.push(word);
                continue;
            }
            Ok(_) => TemplateFault::new(
                format!("{} stands twice on the command line", text::name(&word)),
                "name each option once",
            ),
            Err(fault) => fault,
        };
        report
            .fault(Code::InvalidArgument, element.span(), fault.message)
            .help(fault.help);
    }
    // The other elements are no strings, and are reported here.
    report.strings(field);
    words
}

/// Reports operands that a list of words before them would take, as in `--names {...}` and then
/// `{file}`: only a fixed flag between them ends the list for certain.
pub(super) fn check_open_lists(field: &Member<'_>, spec: &ScriptSpec, report: &mut Report<'_>) {
    let option = |name: &str| spec.options.iter().find(|option| option.name == name);
    let is_spread = |option: &&ScriptOption| {
        let argument = option.argument.as_ref();
        argument.is_some_and(
            |argument| matches!(argument, Argument::Template(template) if template.list == ListForm::Spread),
        )
    };
    let mut open: Option<&str> = None;
    for element in field.value.elements() {
        let word = element.string().map(|word| template::command_word(&word));
        match word {
            Some(Ok(CommandWord::Fixed(word))) if word.starts_with('-') => open = None,
            Some(Ok(CommandWord::Option(name))) => {
                let Some(option) = option(&name) else {
                    continue;
                };
                if let Some(list) =
                    open.filter(|_| option.argument.as_ref().is_some_and(Argument::is_operand))
                {
                    let message = format!(
                        "{} would be one of the words of the list {}",
                        text::name(&name),
                        text::name(list)
                    );
                    report
                        .fault(Code::InvalidArgument, element.span(), message)
                        .help("put it before the list, or a fixed word such as `--` between them");
                }
                if is_spread(&option) {
                    open = Some(&option.name);
                }
            }
            Some(Ok(CommandWord::Rest)) => {
                let is_placed = |option: &&ScriptOption| {
                    let word = CommandWord::Option(option.name.clone());
                    spec.command_line.contains(&word)
                };
                let mut rest = spec.options.iter().filter(|option| !is_placed(option));
                open = rest.find(is_spread).map(|option| &*option.name).or(open);
            }
            _ => {}
        }
    }
}

/// Reports options of the command line that do not exist, or have no form.
pub(super) fn check_command_line(field: &Member<'_>, spec: &ScriptSpec, report: &mut Report<'_>) {
    for element in field.value.elements() {
        let word = element.string().map(|word| template::command_word(&word));
        let Some(Ok(CommandWord::Option(name))) = word else {
            continue;
        };
        let mut names = spec.options.iter().map(|option| option.name.as_str());
        let (message, help) = match spec.options.iter().find(|option| option.name == name) {
            Some(option) if option.argument.is_some() => continue,
            Some(_) => (
                format!("option {} has no `argument`", text::name(&name)),
                "add `argument = \"{}\"`, or another form".to_owned(),
            ),
            None => (
                format!("{} is not an option", text::name(&name)),
                match suggest(&name, &mut names) {
                    Some(near) => format!("did you mean `{{{near}}}`?"),
                    None => "declare the option, or write `{{` for a brace".to_owned(),
                },
            ),
        };
        report
            .fault(Code::InvalidArgument, element.span(), message)
            .help(help);
    }
}

/// Returns whether a word is `--name` or `-n`.
fn is_flag(word: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    match word.strip_prefix("--") {
        Some(name) => {
            name.bytes().all(is_name) && name.starts_with(|first: char| first.is_alphanumeric())
        }
        None => matches!(word.as_bytes(), [b'-', byte] if byte.is_ascii_alphanumeric()),
    }
}

pub(super) fn variable(field: &Member<'_>, report: &mut Report<'_>) -> Option<String> {
    let name = report.string("variable", field.value)?;
    let message = if !is_identifier(&name) {
        no_identifier(&name)
    } else if is_reserved(&name) {
        format!(
            "{} has a meaning to the system or an interpreter, so callers must not set it",
            text::name(&name)
        )
    } else {
        return Some(name.into_owned());
    };
    report.fault(Code::InvalidVariable, field.value.span(), message);
    None
}

/// Reads the name of a variable that can provide the value: any shell identifier, because the
/// script could read it, too.
pub(super) fn env(field: &Member<'_>, report: &mut Report<'_>) -> Option<String> {
    let name = report.string("env", field.value)?;
    if is_identifier(&name) {
        return Some(name.into_owned());
    }
    report.fault(
        Code::InvalidVariable,
        field.value.span(),
        no_identifier(&name),
    );
    None
}

fn is_identifier(name: &str) -> bool {
    let is_word = |char: char| char.is_ascii_alphanumeric() || char == '_';
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.chars().all(is_word)
}

fn no_identifier(name: &str) -> String {
    format!("{} is not a valid shell variable name", text::name(name))
}

/// Returns whether a variable is reserved, in any case: some systems and shells ignore case.
fn is_reserved(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    RESERVED.contains(&name.as_str())
        || name.ends_with("_PROXY")
        || RESERVED_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}
