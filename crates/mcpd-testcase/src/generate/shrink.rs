//! Smaller arguments: every one is simpler than the given ones by one step, the greatest steps
//! first, so that repeated steps end at a smallest failing call.

use serde_json::{Map, Value, json};

/// Maximum number of elements and members that shrink one by one.
const MAX_INNER: usize = 8;

/// Arguments that are smaller by one step.
pub(crate) fn smaller_arguments(arguments: &Map<String, Value>) -> Vec<Map<String, Value>> {
    smaller_objects(arguments)
}

fn smaller_objects(object: &Map<String, Value>) -> Vec<Map<String, Value>> {
    let mut smaller = Vec::new();
    for name in object.keys() {
        let mut without = object.clone();
        without.shift_remove(name);
        smaller.push(without);
    }
    for (name, value) in object {
        for value in smaller_values(value) {
            let mut changed = object.clone();
            changed.insert(name.clone(), value);
            smaller.push(changed);
        }
    }
    smaller
}

fn smaller_values(value: &Value) -> Vec<Value> {
    match value {
        Value::String(text) => smaller_texts(text),
        Value::Array(list) => smaller_lists(list),
        Value::Object(object) => {
            let smaller = smaller_objects(object);
            smaller.into_iter().map(Value::Object).collect()
        }
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => steps_to_zero(number).map(Value::from).collect(),
            (None, Some(number)) => vec![json!(number.trunc() as i64)],
            _ => Vec::new(),
        },
        Value::Bool(true) => vec![json!(false)],
        _ => Vec::new(),
    }
}

/// Numbers between 0 and `number`: 0, the half, three quarters, and so on to the next one.
fn steps_to_zero(number: i64) -> impl Iterator<Item = i64> {
    let distances = std::iter::successors(Some(number), |distance| Some(distance / 2));
    distances
        .take_while(|distance| *distance != 0)
        .map(move |distance| number - distance)
}

/// Lengths below `length`, as [`steps_to_zero`].
fn smaller_lengths(length: usize) -> impl Iterator<Item = usize> {
    let distances = std::iter::successors(Some(length), |distance| Some(distance / 2));
    distances
        .take_while(|distance| *distance != 0)
        .map(move |distance| length - distance)
}

fn smaller_texts(text: &str) -> Vec<Value> {
    let chars: Vec<_> = text.chars().collect();
    let mut texts = Vec::new();
    for length in smaller_lengths(chars.len()) {
        texts.push(chars[..length].iter().collect::<String>());
        texts.push(chars[chars.len() - length..].iter().collect());
    }
    let plain: String = chars.iter().map(|_| 'a').collect();
    if plain != text {
        texts.push(plain);
    }
    texts.into_iter().map(Value::from).collect()
}

fn smaller_lists(list: &[Value]) -> Vec<Value> {
    let mut lists = Vec::new();
    for length in smaller_lengths(list.len()) {
        lists.push(list[..length].to_vec());
        lists.push(list[list.len() - length..].to_vec());
    }
    let Some((first, rest)) = list.split_first() else {
        return Vec::new();
    };
    if rest.iter().all(|element| element == first) {
        let smaller = smaller_values(first).into_iter();
        lists.extend(smaller.map(|element| vec![element; list.len()]));
    } else {
        // Equal elements make a long list readable.
        lists.push(vec![first.clone(); list.len()]);
        for (index, element) in list.iter().enumerate().take(MAX_INNER) {
            for element in smaller_values(element) {
                let mut changed = list.to_vec();
                changed[index] = element;
                lists.push(changed);
            }
        }
    }
    lists.into_iter().map(Value::Array).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shrinks `arguments` as long as they fail.
    #[track_caller]
    fn check(arguments: Value, fails: impl Fn(&Value) -> bool, smallest: Value) {
        let Value::Object(mut arguments) = arguments else {
            panic!("arguments are an object");
        };
        let mut steps = 0;
        while let Some(smaller) = smaller_arguments(&arguments)
            .into_iter()
            .find(|smaller| fails(&Value::Object(smaller.clone())))
        {
            arguments = smaller;
            steps += 1;
            assert!(steps < 200, "{arguments:?}");
        }
        assert_eq!(Value::Object(arguments), smallest);
    }

    #[test]
    fn smallest_failing_arguments_are_found() {
        check(
            json!({"a": "x", "list": vec![1; 1000], "n": 5}),
            |value| {
                value["list"]
                    .as_array()
                    .is_some_and(|list| list.len() > 100)
            },
            json!({"list": vec![0; 101]}),
        );
        check(
            json!({"n": 1000, "text": "some 🙂 text"}),
            |value| value["n"].as_i64().is_some_and(|n| n >= 37),
            json!({"n": 37}),
        );
        check(
            json!({"text": "some 🙂 text"}),
            |value| {
                value["text"]
                    .as_str()
                    .is_some_and(|text| text.contains('🙂'))
            },
            json!({"text": "🙂"}),
        );
        check(
            json!({"n": -9, "b": true}),
            |value| value["n"].as_i64().is_some_and(|n| n < -3) && value["b"].is_boolean(),
            json!({"n": -4, "b": false}),
        );
    }
}
