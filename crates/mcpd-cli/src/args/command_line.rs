//! Parser of flags and variables. Settings that neither of them has come from the configuration
//! file: see [`Layers`].

use std::any::TypeId;
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{BoolishValueParser, PathBufValueParser, TypedValueParser as _};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory as _, FromArgMatches as _};
use mcpd_config::{Combine as _, Effective, File, Layers, Search, Setting};

use super::{Args, ConfigAction, Roots, with_command};

/// Arguments of this process.
#[derive(Debug)]
pub(crate) struct CommandLine {
    /// Flags and variables.
    args: Args,
    /// Name of the command.
    command: String,
    /// Definition and matches of the last subcommand, such as that of `token rotate`.
    definition: Command,
    matches: ArgMatches,
}

impl CommandLine {
    /// Parses flags and variables.
    ///
    /// # Errors
    ///
    /// Returns the usage error, or the text of `--help` or `--version`.
    pub(crate) fn parse(words: impl Iterator<Item = OsString>) -> Result<Self, clap::Error> {
        let words = with_command(words.collect());
        let mut definition = parser();
        let matches = definition.try_get_matches_from_mut(&words);
        let matches = matches.map_err(|error| with_variable(error, &definition, &words))?;
        let args = Args::from_arg_matches(&matches)?;
        let command = matches.subcommand_name().unwrap_or_default().to_owned();
        let (last, matches) = last_command(&definition, matches);
        let line = Self {
            args,
            command,
            definition: last,
            matches,
        };
        // clap can't detect this conflict: it treats a variable like a flag, while here each flag
        // overrides the variable of the other.
        if line.is_given("no_auth") && line.is_given("token_file") {
            let what = "the argument '--no-auth' cannot be used with '--token-file <FILE>'";
            return Err(definition.error(ErrorKind::ArgumentConflict, what));
        }
        Ok(line)
    }

    /// Returns whether the command reads a configuration before it begins. `config check` reads
    /// files itself, faulty ones too.
    pub(crate) fn is_configured(&self) -> bool {
        let is_check = matches!(
            &self.args.command,
            super::Command::Config(config) if matches!(config.action, ConfigAction::Check { .. })
        );
        !is_check && self.matches.try_contains_id("config").is_ok()
    }

    /// Returns whether `--config` names a file; the variable of the flag does not count.
    pub(crate) fn names_configuration(&self) -> bool {
        self.is_given("config")
    }

    /// Places of the configuration file, in order.
    pub(crate) fn search(&self) -> Search<'_> {
        let named = self.matches.try_get_one::<PathBuf>("config");
        Search {
            named: named.ok().flatten().map(PathBuf::as_path),
            // A client chooses the directory in which `mcpd stdio` runs, and others often write its
            // content: a configuration must not come from there.
            in_project: self.command() != "stdio",
        }
    }

    /// Returns whether the command serves the directories of the configuration, because it names
    /// none itself.
    pub(crate) fn serves_roots_of_file(&self) -> bool {
        self.args.command.roots().is_some_and(Roots::is_empty)
    }

    /// Name of the command.
    pub(crate) fn command(&self) -> &str {
        &self.command
    }

    /// Takes each setting that neither a flag nor a variable has from `file`.
    ///
    /// # Errors
    ///
    /// Returns the usage error if there is nothing to serve.
    pub(crate) fn combine(&self, file: &File) -> Result<Args, clap::Error> {
        let (args, _) = self.settings(file);
        let mut roots = self.args.command.roots().into_iter().flat_map(Roots::all);
        // Other addresses are those of servers.
        let is_source = |root: &&PathBuf| {
            let text = root.to_string_lossy();
            text.starts_with("git+") || text.parse::<mcpd_sources::Source>().is_ok()
        };
        if let Some(address) = roots.find(is_source) {
            let what = format!(
                "`{}` is an address: name it in `roots` of mcpd.toml, and review it with `mcpd update`",
                address.display()
            );
            let mut definition = self.definition.clone();
            return Err(definition.error(ErrorKind::InvalidValue, what));
        }
        let is_idle = args.command.roots().is_some_and(Roots::is_empty);
        if is_idle && !args.command.serves_more() && !file.says_what_to_serve() {
            let what = "a directory is required: name it as DIR, or in `roots` of mcpd.toml";
            let mut definition = self.definition.clone();
            return Err(definition.error(ErrorKind::MissingRequiredArgument, what));
        }
        Ok(args)
    }

    /// Returns every effective value of `mcpd serve`; none for other commands.
    ///
    /// # Errors
    ///
    /// A variable with an address is faulty.
    pub(crate) fn effective(&self, file: &File) -> anyhow::Result<Vec<Effective>> {
        let (args, settings) = self.settings(file);
        let serve = args.serve();
        let values = serve.map(|serve| mcpd_config::effective(serve, settings, file));
        Ok(values.transpose()?.unwrap_or_default())
    }

    /// Returns the arguments after [`combine`](Self::combine), and the settings among them.
    fn settings(&self, file: &File) -> (Args, Vec<Setting>) {
        let mut args = self.args.clone();
        let mut layers = Layers::new(&self.definition, &self.matches, file);
        args.combine(&mut layers);
        (args, layers.into_settings())
    }

    /// Warns of variables that have no effect.
    pub(crate) fn warn_of_variables(&self, file: &File) {
        mcpd_config::warn_of_variables(file, variables);
    }

    fn is_given(&self, argument: &str) -> bool {
        let is_known = self.matches.try_contains_id(argument).is_ok();
        is_known && self.matches.value_source(argument) == Some(ValueSource::CommandLine)
    }
}

/// Names the variable instead of the flag in `error`, if the invalid value comes from the variable.
fn with_variable(mut error: clap::Error, definition: &Command, words: &[OsString]) -> clap::Error {
    let flag = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(shown)) => shown.split([' ', '[', '=']).next(),
        _ => None,
    };
    let Some(name) = flag.and_then(|flag| flag.strip_prefix("--")) else {
        return error;
    };
    let is_given = words.iter().any(|word| {
        let flag = word.to_str().and_then(|word| word.split('=').next());
        flag.and_then(|flag| flag.strip_prefix("--")) == Some(name)
    });
    let mut arguments = all_arguments(definition).into_iter();
    let argument = arguments.find(|argument| argument.get_long() == Some(name));
    let variable = argument.and_then(Arg::get_env);
    if let Some(variable) = variable.filter(|name| !is_given && env::var_os(name).is_some()) {
        let variable = variable.to_string_lossy().into_owned();
        error.insert(ContextKind::InvalidArg, ContextValue::String(variable));
    }
    error
}

/// Returns the definition and the matches of the last subcommand.
fn last_command(definition: &Command, mut matches: ArgMatches) -> (Command, ArgMatches) {
    let mut last = definition;
    while let Some((name, inner)) = matches.remove_subcommand() {
        last = last.find_subcommand(&name).unwrap_or(last);
        matches = inner;
    }
    (last.clone(), matches)
}

/// Definition of all commands. The help never shows the values of variables, which may
/// be secrets. The variable of a flag without a value accepts `1` as well as `true`. In paths, `~/`
/// is the home directory: clients start programs without a shell that would expand it.
pub(super) fn parser() -> Command {
    everywhere(Args::command(), &|command| {
        command.mut_args(|argument| {
            let argument = argument.hide_env_values(true);
            if argument.get_value_parser().type_id() == TypeId::of::<PathBuf>() {
                let read = |path: PathBuf| mcpd_exec::expand_home(&path);
                return argument.value_parser(PathBufValueParser::new().map(read));
            }
            match (argument.get_action(), argument.get_env()) {
                (ArgAction::SetTrue, Some(_)) => argument.value_parser(BoolishValueParser::new()),
                _ => argument,
            }
        })
    })
}

/// Applies `change` to a command and all its subcommands.
fn everywhere(command: Command, change: &impl Fn(Command) -> Command) -> Command {
    change(command).mut_subcommands(|below| everywhere(below, change))
}

/// Returns the names of all variables that set flags.
fn variables() -> Vec<String> {
    let definition = Args::command();
    let variables = all_arguments(&definition)
        .into_iter()
        .filter_map(Arg::get_env);
    variables
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

/// Returns the arguments of a command and of all its subcommands.
fn all_arguments(command: &Command) -> Vec<&Arg> {
    let below = command.get_subcommands().flat_map(all_arguments);
    command.get_arguments().chain(below).collect()
}
