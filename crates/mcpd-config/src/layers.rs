//! Settings that are also flags, combined by type: a flag precedes its variable, both precede the
//! configuration file, and the default comes last.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};
use serde::Serialize;
use serde_json::{Value, json};

use crate::effective::Origin;
use crate::file::File;

/// The layers of one process: the parsed command line with its variables, and the file.
#[derive(Debug)]
pub struct Layers<'a> {
    command: &'a clap::Command,
    matches: &'a ArgMatches,
    /// The file, empty if there is none.
    pub file: &'a File,
    settings: Vec<Setting>,
}

/// A setting that is also a flag, after its layers were combined.
#[derive(Debug)]
#[non_exhaustive]
pub struct Setting {
    /// Key in the file, such as `log.filter`.
    pub key: &'static str,
    /// Argument of the command line, by the name of its field.
    pub argument: &'static str,
    /// Effective value, unless it is the default.
    pub value: Option<Value>,
    /// Flag or variable that sets it.
    pub origin: Option<Origin>,
}

/// Options that the configuration file sets too.
pub trait Combine {
    /// Takes each setting that neither a flag nor a variable has from the file.
    fn combine(&mut self, layers: &mut Layers<'_>);
}

impl<'a> Layers<'a> {
    /// Layers of a command: its definition, what was parsed for it, and the file.
    pub fn new(command: &'a clap::Command, matches: &'a ArgMatches, file: &'a File) -> Self {
        Self {
            command,
            matches,
            file,
            settings: Vec::new(),
        }
    }

    /// All settings that were combined.
    pub fn into_settings(self) -> Vec<Setting> {
        self.settings
    }

    /// Combines a setting with one value: that of the command line, or else that of the file.
    pub fn value<T: Serialize>(
        &mut self,
        key: &'static str,
        argument: &'static str,
        value: &mut Option<T>,
        in_file: Option<T>,
    ) {
        *value = value.take().or(in_file);
        let shown = value.as_ref().map(|value| json!(value));
        self.record(key, argument, shown);
    }

    /// Combines a list: that of the command line, or else that of the file.
    pub fn list<T: Serialize>(
        &mut self,
        key: &'static str,
        argument: &'static str,
        list: &mut Vec<T>,
        in_file: Option<Vec<T>>,
    ) {
        if list.is_empty() {
            *list = in_file.unwrap_or_default();
        }
        let shown = (!list.is_empty()).then(|| json!(list));
        self.record(key, argument, shown);
    }

    /// Combines a flag that switches on what its key switches on.
    pub fn switch(
        &mut self,
        key: &'static str,
        argument: &'static str,
        is_on: &mut bool,
        in_file: Option<bool>,
    ) {
        if self.origin(argument).is_none() {
            *is_on = in_file.unwrap_or(*is_on);
        }
        self.record(key, argument, Some(json!(*is_on)));
    }

    /// Combines a flag that switches off what its key switches on.
    pub fn switch_off(
        &mut self,
        key: &'static str,
        argument: &'static str,
        is_off: &mut bool,
        in_file: Option<bool>,
    ) {
        if self.origin(argument).is_none() {
            *is_off = in_file.map_or(*is_off, |is_on| !is_on);
        }
        self.record(key, argument, Some(json!(!*is_off)));
    }

    /// Returns whether `argument` is on the command line itself.
    pub fn is_flag(&self, argument: &str) -> bool {
        matches!(self.origin(argument), Some(Origin::Flag(_)))
    }

    fn record(&mut self, key: &'static str, argument: &'static str, value: Option<Value>) {
        let origin = self.origin(argument);
        self.settings.push(Setting {
            key,
            argument,
            value,
            origin,
        });
    }

    /// Flag or variable that sets `argument`.
    fn origin(&self, argument: &str) -> Option<Origin> {
        let mut known = self.command.get_arguments();
        let mut definition = || known.find(|known| known.get_id() == argument);
        match self.matches.value_source(argument)? {
            ValueSource::CommandLine => Some(Origin::Flag(spelling(definition()?))),
            ValueSource::EnvVariable => {
                let name = definition()?.get_env()?.to_string_lossy().into_owned();
                Some(Origin::Variable(name))
            }
            _ => None,
        }
    }
}

/// Returns the flag as users write it.
fn spelling(argument: &Arg) -> String {
    match argument.get_long() {
        Some(long) => format!("--{long}"),
        None => "the command line".to_owned(),
    }
}
