//! Built-in functions, and access to their arguments.

use std::sync::Arc;

use jiff::civil::DateTime;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use crate::error::Error;
use crate::limits::Meter;
use crate::value::{List, Size, Value};

mod dates;
mod lists;
mod numbers;
mod texts;

/// Built-in function.
#[derive(Debug)]
pub(crate) struct Builtin {
    /// Name in lower case.
    name: &'static str,
    at_least: usize,
    at_most: usize,
    run: fn(&mut Arguments<'_>) -> Result<Value, Error>,
}

/// Argument limit of functions that take any number.
const MAX_ARGUMENTS: usize = 1000;

fn all() -> impl Iterator<Item = &'static Builtin> {
    [
        texts::FUNCTIONS,
        numbers::FUNCTIONS,
        lists::FUNCTIONS,
        dates::FUNCTIONS,
    ]
    .into_iter()
    .flatten()
}

/// Returns the function of this name, which is in lower case.
pub(crate) fn find(name: &str) -> Option<&'static Builtin> {
    all().find(|builtin| builtin.name == name)
}

pub(crate) fn names<'a>() -> impl Iterator<Item = &'a str> {
    all().map(|builtin| builtin.name)
}

impl Builtin {
    const fn new(
        name: &'static str,
        (at_least, at_most): (usize, usize),
        run: fn(&mut Arguments<'_>) -> Result<Value, Error>,
    ) -> Self {
        Self {
            name,
            at_least,
            at_most,
            run,
        }
    }

    pub(crate) fn check_count(&self, count: usize) -> Result<(), Error> {
        if (self.at_least..=self.at_most).contains(&count) {
            return Ok(());
        }
        let takes = match (self.at_least, self.at_most) {
            (least, most) if least == most => arguments(least),
            (least, MAX_ARGUMENTS) => format!("at least {}", arguments(least)),
            (least, most) => format!("{least} to {}", arguments(most)),
        };
        let name = self.name.to_uppercase();
        Err(Error::new(format!("{name} takes {takes}, not {count}")))
    }

    pub(crate) fn call(&self, values: Vec<Value>, meter: &mut Meter) -> Result<Value, Error> {
        (self.run)(&mut Arguments {
            name: self.name,
            values,
            meter,
        })
    }
}

/// Returns a number of arguments, in words.
pub(crate) fn arguments(count: usize) -> String {
    match count {
        0 => "no arguments".to_owned(),
        1 => "1 argument".to_owned(),
        _ => format!("{count} arguments"),
    }
}

/// Arguments of a call. Every access to a text counts as reading it.
struct Arguments<'m> {
    name: &'static str,
    values: Vec<Value>,
    meter: &'m mut Meter,
}

impl Arguments<'_> {
    fn is_given(&self, index: usize) -> bool {
        index < self.values.len()
    }

    fn value(&self, index: usize) -> &Value {
        self.values.get(index).unwrap_or(&Value::Nothing)
    }

    fn number(&self, index: usize) -> Result<Decimal, Error> {
        match self.value(index) {
            Value::Number(number) => Ok(*number),
            _ => Err(self.argument_error(index, "a number")),
        }
    }

    /// Returns an argument that is a whole number within bounds.
    fn whole(&self, index: usize, least: usize, most: usize) -> Result<usize, Error> {
        let number = self.number(index)?;
        let whole = number.is_integer().then(|| number.to_usize()).flatten();
        let is_fit = |whole: &usize| (least..=most).contains(whole);
        whole.filter(is_fit).ok_or_else(|| {
            let (name, place) = (self.name.to_uppercase(), index + 1);
            let bounds = match most {
                usize::MAX => format!("{least} or more"),
                _ => format!("from {least} to {most}"),
            };
            Error::new(format!(
                "{name} needs a whole number as argument {place}, {bounds}"
            ))
        })
    }

    /// Returns an argument that is a text; NOTHING counts as an empty one.
    fn text(&mut self, index: usize) -> Result<Arc<str>, Error> {
        let text: Arc<str> = match self.value(index) {
            Value::Text(text) => Arc::clone(text),
            Value::Nothing => "".into(),
            _ => return Err(self.argument_error(index, "a string")),
        };
        self.meter.read(text.len())?;
        Ok(text)
    }

    fn list(&self, index: usize) -> Result<Arc<List>, Error> {
        match self.value(index) {
            Value::List(list) => Ok(Arc::clone(list)),
            _ => Err(self.argument_error(index, "a list")),
        }
    }

    fn date(&self, index: usize) -> Result<DateTime, Error> {
        match self.value(index) {
            Value::Date(date) => Ok(*date),
            Value::Text(_) => Err(self
                .argument_error(index, "a date")
                .help("DATE(\"2026-01-31\") converts a string to a date")),
            _ => Err(self.argument_error(index, "a date")),
        }
    }

    /// Returns the error for an argument.
    fn argument_error(&self, index: usize, wanted: &str) -> Error {
        let name = self.name.to_uppercase();
        let found = self.value(index).kind();
        let place = index + 1;
        Error::new(format!(
            "{name} needs {wanted} as argument {place}, and got {found}"
        ))
    }

    /// Returns the text as the result of a function, and counts its size.
    fn make_text(&mut self, text: &str) -> Result<Value, Error> {
        self.meter.make(Size::of_text(text.len()))?;
        Ok(Value::text(text))
    }
}
