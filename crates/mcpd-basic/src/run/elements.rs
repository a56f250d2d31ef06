//! Elements of lists and objects: reading and changing them.

use std::sync::Arc;

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use crate::error::Error;
use crate::limits::Meter;
use crate::value::{Size, Value};

/// Returns the element at a key. An object has NOTHING under an unknown name.
pub(super) fn element(value: &Value, key: &Value) -> Result<Value, Error> {
    match (value, key) {
        (Value::List(list), Value::Number(number)) => {
            let index = index(*number, list.items.len())?;
            Ok(list.items.get(index).cloned().unwrap_or(Value::Nothing))
        }
        (Value::Object(object), Value::Text(name)) => Ok(object
            .members
            .get(&**name)
            .cloned()
            .unwrap_or(Value::Nothing)),
        _ => Err(key_error(value, key)),
    }
}

/// Changes the element at a path; an unknown name is added to its object.
pub(super) fn change(
    value: &mut Value,
    path: &[Value],
    meter: &mut Meter,
    edit: impl FnOnce(&mut Value, &mut Meter) -> Result<(), Error>,
) -> Result<(), Error> {
    let Some((key, path)) = path.split_first() else {
        return edit(value, meter);
    };
    match (value, key) {
        (Value::List(list), Value::Number(number)) => {
            count_copy(list, list.items.len(), meter)?;
            let list = Arc::make_mut(list);
            let index = index(*number, list.items.len())?;
            if let Some(item) = list.items.get_mut(index) {
                let old = item.size();
                change(item, path, meter, edit)?;
                resize(&mut list.size, old, item.size(), meter)?;
            }
        }
        (Value::Object(object), Value::Text(name)) => {
            count_copy(object, object.members.len(), meter)?;
            let object = Arc::make_mut(object);
            let member = object.member(name);
            let old = member.size();
            change(member, path, meter, edit)?;
            let new = member.size();
            resize(&mut object.size, old, new, meter)?;
        }
        (value, key) => return Err(key_error(value, key)),
    }
    Ok(())
}

/// Appends a value to a list.
pub(super) fn push(list: &mut Value, value: Value, meter: &mut Meter) -> Result<(), Error> {
    let Value::List(list) = list else {
        let kind = list.kind();
        return Err(Error::new(format!("PUSH needs a list, and this is {kind}"))
            .help("a list begins as `items = []`"));
    };
    meter.fits(list.size.with(value.size()))?;
    count_copy(list, list.items.len(), meter)?;
    Arc::make_mut(list).push(value);
    Ok(())
}

/// Counts the copy that precedes a change of a shared value.
fn count_copy<T>(shared: &Arc<T>, length: usize, meter: &mut Meter) -> Result<(), Error> {
    match Arc::strong_count(shared) {
        1 => Ok(()),
        _ => meter.count(length),
    }
}

fn resize(size: &mut Size, old: Size, new: Size, meter: &Meter) -> Result<(), Error> {
    *size = size.without(old).with(new);
    meter.fits(*size)
}

fn index(number: Decimal, length: usize) -> Result<usize, Error> {
    let index = number.is_integer().then(|| number.to_usize()).flatten();
    index.filter(|index| *index < length).ok_or_else(|| {
        let range = match length {
            0 => "the list is empty".to_owned(),
            _ => format!("the list goes from [0] to [{}]", length - 1),
        };
        Error::new(format!("there is no [{}]: {range}", number.normalize()))
    })
}

fn key_error(value: &Value, key: &Value) -> Error {
    match value {
        Value::List(_) => Error::new(format!("a list has numbers as keys, not {}", key.kind())),
        Value::Object(_) => Error::new(format!("an object has texts as keys, not {}", key.kind())),
        _ => Error::new(format!("{} has no elements", value.kind()))
            .help("only lists and objects have elements"),
    }
}
