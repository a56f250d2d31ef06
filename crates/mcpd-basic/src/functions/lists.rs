//! List functions, and functions of any value.

use std::sync::Arc;

use super::{Arguments, Builtin};
use crate::error::Error;
use crate::value::{Size, Value};

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("len", (1, 1), |arguments| {
        Ok(Value::count(match arguments.value(0) {
            Value::List(list) => list.items.len(),
            Value::Object(object) => object.members.len(),
            _ => arguments.text(0)?.chars().count(),
        }))
    }),
    Builtin::new("isempty", (1, 1), |arguments| {
        Ok(Value::Boolean(arguments.value(0).is_empty()))
    }),
    Builtin::new("contains", (2, 2), |arguments| {
        let Value::List(list) = arguments.value(0) else {
            let text = arguments.text(0)?;
            return Ok(Value::Boolean(text.contains(&*arguments.text(1)?)));
        };
        let list = Arc::clone(list);
        arguments.meter.read(list.size.bytes)?;
        Ok(Value::Boolean(list.items.contains(arguments.value(1))))
    }),
    Builtin::new("append", (2, 2), |arguments| {
        let list = arguments.list(0)?;
        let value = arguments.value(1).clone();
        arguments.meter.make(list.size.with(value.size()))?;
        let mut list = Arc::unwrap_or_clone(list);
        list.push(value);
        Ok(Value::List(Arc::new(list)))
    }),
    Builtin::new("join", (2, 2), join),
];

fn join(arguments: &mut Arguments<'_>) -> Result<Value, Error> {
    let list = arguments.list(0)?;
    let separator = arguments.text(1)?;
    let separators = list.items.len().saturating_sub(1);
    let bytes = list
        .size
        .bytes
        .saturating_add(separators.saturating_mul(separator.len()));
    arguments.meter.make(Size::of_text(bytes))?;
    let parts: Vec<String> = list.items.iter().map(Value::to_string).collect();
    arguments.make_text(&parts.join(&separator))
}
