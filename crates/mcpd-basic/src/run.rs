//! Interpreter of the tree. Assignments in a function are local; it can read the variables of the
//! program.

use std::collections::BTreeMap;
use std::io;
use std::io::Write;
use std::sync::Arc;

use crate::error::{Error, Span};
use crate::limits::{Limits, Meter};
use crate::tree::{Block, Expression, Loop, Name, Place, Statement, StatementKind, Tree};
use crate::value::{Size, Value};

mod blocks;
mod elements;
mod expressions;
mod operators;

pub(crate) type Variables = BTreeMap<Name, Value>;

/// Reason why a run ended before its last line.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Boxed, because the result of every nested evaluation has this size.
    Error(Box<Error>),
    Output(io::Error),
    /// The program ended itself.
    End,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Error(Box::new(error))
    }
}

impl Stop {
    fn at(self, span: &Span) -> Self {
        match self {
            Self::Error(error) => Self::Error(Box::new(error.at(span))),
            Self::Output(_) | Self::End => self,
        }
    }
}

/// Control flow after a statement.
enum Flow {
    Next,
    Exit(Loop),
    Return(Value),
}

/// Runs a program from its first line.
pub(crate) fn run(
    tree: &Tree,
    variables: Variables,
    output: &mut dyn Write,
    limits: Limits,
) -> Result<(), Stop> {
    let mut run = Run {
        tree,
        frames: vec![variables],
        meter: Meter::new(limits),
        output,
    };
    let ended = run.block(&tree.body).and_then(|flow| match flow {
        Flow::Return(value) => run.print_result(&value),
        Flow::Next | Flow::Exit(_) => Ok(()),
    });
    run.output.flush().map_err(Stop::Output)?;
    ended
}

struct Run<'r> {
    tree: &'r Tree,
    /// Variables of the program, and those of each active function call.
    frames: Vec<Variables>,
    meter: Meter,
    output: &'r mut dyn Write,
}

impl Run<'_> {
    fn block(&mut self, block: &Block) -> Result<Flow, Stop> {
        for statement in block {
            let flow = self.statement(statement);
            match flow.map_err(|stop| stop.at(&statement.span))? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, statement: &Statement) -> Result<Flow, Stop> {
        self.meter.enter()?;
        let flow = self.execute(&statement.kind)?;
        self.meter.leave();
        Ok(flow)
    }

    fn execute(&mut self, statement: &StatementKind) -> Result<Flow, Stop> {
        match statement {
            StatementKind::Assign(place, value) => {
                let value = self.value(value)?;
                if place.path.is_empty() {
                    self.assign(&place.name, value);
                } else {
                    self.change(place, |slot, _| {
                        *slot = value;
                        Ok(())
                    })?;
                }
            }
            StatementKind::Push(place, value) => {
                let value = self.value(value)?;
                self.change(place, |slot, meter| elements::push(slot, value, meter))?;
            }
            StatementKind::Print(parts) => self.print(parts)?,
            StatementKind::If {
                branches,
                otherwise,
            } => return self.choose(branches, otherwise),
            StatementKind::For {
                variable,
                from,
                to,
                step,
                body,
            } => return self.count(variable, [from, to], step.as_ref(), body),
            StatementKind::ForEach {
                variable,
                list,
                body,
            } => {
                let Value::List(list) = self.value(list)? else {
                    return Err(Error::new("FOR EACH needs a list").at(&list.span).into());
                };
                return self.each(variable, &list, body);
            }
            StatementKind::While { condition, body } => return self.repeat(condition, body),
            StatementKind::Exit(exited) => return Ok(Flow::Exit(*exited)),
            StatementKind::Call(call) => {
                self.value(call)?;
            }
            StatementKind::Return(value) => {
                return Ok(Flow::Return(match value {
                    Some(value) => self.value(value)?,
                    None => Value::Nothing,
                }));
            }
            StatementKind::End => return Err(Stop::End),
            StatementKind::Error(message) => {
                let message = self.value(message)?.to_string();
                return Err(Error::new(message).into());
            }
        }
        Ok(Flow::Next)
    }
}

impl Run<'_> {
    /// Writes all parts at once, so that lines are never torn.
    fn print(&mut self, parts: &[(Expression, &'static str)]) -> Result<(), Stop> {
        let mut text = String::new();
        for (part, separator) in parts {
            let part = self.value(part)?.to_string();
            self.meter.read(part.len())?;
            self.meter.fits(Size::of_text(text.len() + part.len()))?;
            text.push_str(&part);
            text.push_str(separator);
        }
        if parts.is_empty() {
            text.push('\n');
        }
        self.output.write_all(text.as_bytes()).map_err(Stop::Output)
    }

    /// Prints the program's return value as TALK would, unless it is NOTHING.
    fn print_result(&mut self, value: &Value) -> Result<(), Stop> {
        if matches!(value, Value::Nothing) {
            return Ok(());
        }
        let text = format!("{value}\n");
        self.meter.read(text.len())?;
        self.meter.fits(Size::of_text(text.len()))?;
        self.output.write_all(text.as_bytes()).map_err(Stop::Output)
    }

    fn assign(&mut self, name: &Name, value: Value) {
        if let Some(scope) = self.frames.last_mut() {
            scope.insert(Arc::clone(name), value);
        }
    }

    /// Changes the value of a variable, or an element of it.
    fn change(
        &mut self,
        place: &Place,
        edit: impl FnOnce(&mut Value, &mut Meter) -> Result<(), Error>,
    ) -> Result<(), Stop> {
        let path = self.values(&place.path)?;
        let name = &place.name;
        let Some(value) = self.frames.last_mut().and_then(|scope| scope.get_mut(name)) else {
            self.variable(name).map_err(|error| error.at(&place.span))?;
            let message = format!("a function cannot change the program's variable `{name}`");
            let help = format!("pass `{name}` to it and RETURN the new value");
            return Err(Error::new(message).help(help).at(&place.span).into());
        };
        let changed = elements::change(value, &path, &mut self.meter, edit);
        Ok(changed.map_err(|error| error.at(&place.span))?)
    }
}
