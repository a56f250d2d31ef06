//! Frontmatter of a `SKILL.md`: the YAML between two lines `---` at its beginning, as JSON.

use mcpd_protocol::JsonObject;
use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Number, Value};

/// Maximum depth of a value.
const MAX_DEPTH: usize = 16;

/// Reads the frontmatter of a text.
///
/// # Errors
///
/// Returns what is wrong, as a sentence fragment.
pub(super) fn read(text: &str) -> Result<JsonObject, String> {
    let missing = || "`SKILL.md` must begin with YAML between two lines `---`".to_owned();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let is_mark = |line: &str| line.trim_end() == "---";
    if !lines.next().is_some_and(is_mark) {
        return Err(missing());
    }
    let mut yaml = String::new();
    let mut is_closed = false;
    for line in lines {
        is_closed = is_mark(line);
        if is_closed {
            break;
        }
        yaml.push_str(line);
    }
    if !is_closed {
        return Err(missing());
    }
    let mut reader = Reader(Parser::new_from_str(&yaml));
    match reader.document()? {
        Value::Object(members) => Ok(members.into_iter().collect()),
        _ => Err("the frontmatter must be a mapping".to_owned()),
    }
}

struct Reader<'a, T: saphyr_parser::Input>(Parser<'a, T>);

impl<'a, T: saphyr_parser::Input> Reader<'a, T> {
    fn document(&mut self) -> Result<Value, String> {
        loop {
            match self.next()?.0 {
                Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => {}
                Event::StreamEnd | Event::DocumentEnd => return Ok(Value::Null),
                event => return self.value(event, 0),
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), String> {
        let fault = |line: usize, what: &str| format!("line {}: {what}", line + 1);
        match self.0.next() {
            Some(Ok((Event::Alias(_), span))) => {
                Err(fault(span.start.line(), "aliases are not supported here"))
            }
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(fault(error.marker().line(), error.info())),
            None => Err("the frontmatter ends too early".to_owned()),
        }
    }

    fn value(&mut self, event: Event<'a>, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err("the frontmatter is nested too deeply".to_owned());
        }
        match event {
            Event::Scalar(text, style, _, None) => Ok(scalar(&text, style)),
            Event::SequenceStart(_, None) => {
                let mut items = Vec::new();
                loop {
                    match self.next()?.0 {
                        Event::SequenceEnd => return Ok(Value::Array(items)),
                        event => items.push(self.value(event, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(_, None) => self.mapping(depth),
            _ => Err("tags are not supported in the frontmatter".to_owned()),
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Value, String> {
        let mut members = serde_json::Map::new();
        loop {
            let name = match self.next()?.0 {
                Event::MappingEnd => return Ok(Value::Object(members)),
                Event::Scalar(text, ..) => text.into_owned(),
                _ => return Err("a key of the frontmatter is no text".to_owned()),
            };
            let event = self.next()?.0;
            let value = self.value(event, depth + 1)?;
            if members.contains_key(&name) {
                return Err(format!("`{name}` occurs twice in the frontmatter"));
            }
            members.insert(name, value);
        }
    }
}

/// Value of a scalar by the core schema of YAML 1.2.
fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::from(text);
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let digits = text.trim_start_matches(['+', '-']);
    let is_number = digits.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    let number = text.parse::<i64>().map(Number::from).ok();
    let number = number.or_else(|| Number::from_f64(text.parse().ok()?));
    match number.filter(|_| is_number) {
        Some(number) => Value::Number(number),
        None => Value::from(text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn frontmatter_is_read_as_json() {
        let text = "---\nname: pdf\ndescription: >-\n  Extracts\n  text: of PDF.\nlicense: 'MIT'\n\
                    metadata:\n  version: \"1.0\"\n  rank: 3\n  tags: [a, true, 1.5, ~]\n---\n# Title\n---\n";
        let expected = json!({
            "name": "pdf", "description": "Extracts text: of PDF.", "license": "MIT",
            "metadata": {"version": "1.0", "rank": 3, "tags": ["a", true, 1.5, null]},
        });
        assert_eq!(serde_json::to_value(read(text).unwrap()).unwrap(), expected);
    }

    #[test]
    fn faulty_frontmatter_says_what_is_wrong() {
        for (text, fault) in [
            ("# Title", "must begin with YAML"),
            ("---\nname: a\n", "must begin with YAML"),
            ("---\n- a\n---\n", "must be a mapping"),
            ("---\n---\n", "must be a mapping"),
            ("---\na: [\n---\n", "line"),
            ("---\na: &x 1\nb: *x\n---\n", "aliases"),
            ("---\na: !!binary x\n---\n", "tags"),
            ("---\na: 1\na: 2\n---\n", "`a` occurs twice"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(fault), "{text}: {error}");
        }
        let deep = format!("---\na: {}\n---\n", "[".repeat(1000));
        assert!(read(&deep).is_err());
    }
}
