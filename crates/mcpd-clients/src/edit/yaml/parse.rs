//! Tree of a YAML document from the events of its parser.

use super::{
    EditError, Event, Format, Kind, Member, Node, Parser, Position, ScalarStyle, Span, Value,
};

pub(super) fn parse(text: &str) -> Result<Option<Node>, EditError> {
    let mut events = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| EditError::Syntax {
            format: Format::Yaml,
            position: Position {
                line: error.marker().line(),
                column: error.marker().col() + 1,
            },
            message: error.info().to_owned(),
        })?;
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
            event => events.push((event, span)),
        }
    }
    let offsets: Vec<usize> = text
        .char_indices()
        .map(|(offset, _)| offset)
        .chain([text.len()])
        .collect();
    let mut tree = Tree {
        text,
        events: events.into_iter(),
        offsets,
    };
    let Some((Event::DocumentStart(_), _)) = tree.events.next() else {
        return Ok(None);
    };
    let root = tree.node()?;
    match tree.events.next() {
        None => Ok(Some(root)),
        Some((_, span)) => Err(EditError::Unsupported {
            position: Position::of(text, tree.offset(span.start.index())),
            reason: "the file has a second document; edit the file by hand".to_owned(),
        }),
    }
}

struct Tree<'a> {
    text: &'a str,
    events: std::vec::IntoIter<(Event<'a>, Span)>,
    /// Byte offset of each character.
    offsets: Vec<usize>,
}

impl Tree<'_> {
    fn offset(&self, character: usize) -> usize {
        self.offsets
            .get(character)
            .copied()
            .unwrap_or(self.text.len())
    }

    fn node(&mut self) -> Result<Node, EditError> {
        let Some((event, span)) = self.events.next() else {
            return Err(self.unexpected_end());
        };
        let start = self.offset(span.start.index());
        let mut end = self.offset(span.end.index());
        let (kind, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => (Kind::Scalar(scalar(&text, style)), anchor),
            Event::Alias(anchor) => (Kind::Scalar(Value::from("*")), anchor),
            Event::SequenceStart(anchor, _) => {
                let mut items = Vec::new();
                while !self.next_is(&Event::SequenceEnd) {
                    items.push(self.node()?);
                }
                end = self.end_of_container(start, items.last().map(|item| item.range.end));
                (Kind::List(items), anchor)
            }
            Event::MappingStart(anchor, _) => {
                let mut members = Vec::new();
                while !self.next_is(&Event::MappingEnd) {
                    members.push(self.member()?);
                }
                end = self
                    .end_of_container(start, members.last().map(|member| member.node.range.end));
                (Kind::Map(members), anchor)
            }
            _ => return Err(self.unexpected_end()),
        };
        Ok(Node {
            range: start..end,
            kind,
            is_shared: anchor != 0,
        })
    }

    fn member(&mut self) -> Result<Member, EditError> {
        let key = self.node()?;
        let mut node = self.node()?;
        // The place of an empty value may be that of what comes next.
        if node.is_null() && node.range.is_empty() {
            let colon = self.text[key.range.end..].find(':');
            let end = colon.map_or(key.range.end, |length| key.range.end + length + 1);
            node.range = end..end;
        }
        let text = match &key.kind {
            Kind::Scalar(Value::String(text)) => text.clone(),
            _ => self.text[key.range.clone()].to_owned(),
        };
        Ok(Member {
            key: text,
            key_range: key.range,
            node,
        })
    }

    /// Consumes the end of a container; its end is that of its last item, or of its brace. The
    /// place of the event is of no use: it may be behind comments.
    fn end_of_container(&mut self, start: usize, last: Option<usize>) -> usize {
        let end = self
            .events
            .next()
            .map_or(start, |(_, span)| self.offset(span.end.index()));
        let close = match self.text[start..].chars().next() {
            Some('{') => '}',
            Some('[') => ']',
            _ => return last.unwrap_or(end),
        };
        let inside = last.unwrap_or(start + 1);
        self.text[inside..]
            .find(close)
            .map_or(end, |length| inside + length + 1)
    }

    fn next_is(&self, event: &Event<'_>) -> bool {
        self.events
            .as_slice()
            .first()
            .is_none_or(|(next, _)| next == event)
    }

    fn unexpected_end(&self) -> EditError {
        EditError::Syntax {
            format: Format::Yaml,
            position: Position::of(self.text, self.text.len()),
            message: "unexpected end of the file".to_owned(),
        }
    }
}

/// Value of a scalar by the core schema, as far as settings of servers need it.
fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::from(text);
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) => Value::from(number),
            (Err(_), Ok(number)) if text.starts_with(|first: char| !first.is_alphabetic()) => {
                Value::from(number)
            }
            _ => Value::from(text),
        },
    }
}
