//! Tree of a JSON or YAML document with the byte range of every node: what the edits of both
//! formats look things up in.

use std::ops::Range;

use serde_json::{Map, Value};

use super::{EditError, Position, Table, show_keys};

/// A value and where it is.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
    /// Has an anchor, or is an alias of another node.
    pub(super) is_shared: bool,
}

/// Content of a node.
#[derive(Debug)]
pub(super) enum Kind {
    Scalar(Value),
    Map(Vec<Member>),
    List(Vec<Node>),
}

/// A key of a mapping with its value.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) key_range: Range<usize>,
    pub(super) node: Node,
}

/// Deepest container on the way to a table.
pub(super) struct Descent<'a> {
    /// The table itself if `depth` is the number of keys; else its nearest ancestor.
    pub(super) node: &'a Node,
    /// Number of keys that exist.
    pub(super) depth: usize,
}

impl Node {
    pub(super) fn value(&self) -> Value {
        match &self.kind {
            Kind::Scalar(value) => value.clone(),
            Kind::List(items) => items.iter().map(Self::value).collect(),
            Kind::Map(members) => {
                let pairs = members
                    .iter()
                    .map(|member| (member.key.clone(), member.node.value()));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Scalar(Value::Null))
    }

    pub(super) fn is_empty(&self) -> bool {
        match &self.kind {
            Kind::Scalar(value) => value.is_null(),
            Kind::Map(members) => members.is_empty(),
            Kind::List(items) => items.is_empty(),
        }
    }

    pub(super) fn members(&self) -> &[Member] {
        match &self.kind {
            Kind::Map(members) => members,
            Kind::Scalar(_) | Kind::List(_) => &[],
        }
    }

    /// Range of each item, with its key in a mapping.
    pub(super) fn items(&self) -> Vec<Range<usize>> {
        match &self.kind {
            Kind::Scalar(_) => Vec::new(),
            Kind::List(items) => items.iter().map(|item| item.range.clone()).collect(),
            Kind::Map(members) => members
                .iter()
                .map(|member| {
                    member.key_range.start..member.node.range.end.max(member.key_range.end)
                })
                .collect(),
        }
    }

    /// Member of that key.
    ///
    /// # Errors
    ///
    /// There are two: which of them a client takes is not known.
    pub(super) fn member<'a>(
        &'a self,
        key: &str,
        text: &str,
    ) -> Result<Option<&'a Member>, EditError> {
        let mut found = self.members().iter().filter(|member| member.key == key);
        let first = found.next();
        match found.next() {
            None => Ok(first),
            Some(second) => Err(EditError::DuplicateKey {
                key: key.to_owned(),
                position: Position::of(text, second.key_range.start),
            }),
        }
    }

    fn name_of_type(&self) -> &'static str {
        match &self.kind {
            Kind::Map(_) => "a mapping",
            Kind::List(_) => "a list",
            Kind::Scalar(Value::Null) => "null",
            Kind::Scalar(Value::Bool(_)) => "a boolean",
            Kind::Scalar(Value::Number(_)) => "a number",
            Kind::Scalar(_) => "a string",
        }
    }

    /// Walks from the root along the keys of a table as far as they exist.
    pub(super) fn descend<'a>(
        &'a self,
        table: &Table,
        text: &str,
    ) -> Result<Descent<'a>, EditError> {
        let mut node = self;
        for (depth, key) in table.keys().iter().enumerate() {
            node.require_map(&table.keys()[..depth], text)?;
            match node.member(key, text)? {
                Some(member) => node = &member.node,
                None => return Ok(Descent { node, depth }),
            }
        }
        match (&node.kind, table.item_key()) {
            (Kind::List(_), Some(_)) => {}
            (_, Some(_)) if node.is_null() => {}
            (_, Some(_)) => return Err(node.wrong_type(table.keys(), "a list", text)),
            (_, None) if node.is_null() => {}
            (_, None) => node.require_map(table.keys(), text)?,
        }
        Ok(Descent {
            node,
            depth: table.keys().len(),
        })
    }

    fn require_map(&self, keys: &[String], text: &str) -> Result<(), EditError> {
        match self.kind {
            Kind::Map(_) => Ok(()),
            Kind::Scalar(_) | Kind::List(_) => Err(self.wrong_type(keys, "a mapping", text)),
        }
    }

    fn wrong_type(&self, keys: &[String], expected: &'static str, text: &str) -> EditError {
        EditError::WrongType {
            what: show_keys(keys),
            expected,
            found: self.name_of_type(),
            position: Position::of(text, self.range.start),
        }
    }

    /// Fails if what should be the table is something else, or has two entries of one name.
    pub(super) fn require_unique(&self, table: &Table, text: &str) -> Result<(), EditError> {
        let descent = self.descend(table, text)?;
        if descent.depth < table.keys().len() {
            return Ok(());
        }
        for (index, item) in descent.node.items().into_iter().enumerate() {
            let name = match (&descent.node.kind, table.item_key()) {
                (Kind::Map(members), _) => Some(members[index].key.as_str()),
                (Kind::List(items), Some(item_key)) => items[index].text_at(item_key),
                _ => None,
            };
            let Some(name) = name else { continue };
            if descent.node.index_of(table, name, text)? != Some(index) {
                let position = Position::of(text, item.start);
                return Err(EditError::DuplicateKey {
                    key: name.to_owned(),
                    position,
                });
            }
        }
        Ok(())
    }

    /// String at a key.
    fn text_at(&self, key: &str) -> Option<&str> {
        let member = self.members().iter().find(|member| member.key == key)?;
        match &member.node.kind {
            Kind::Scalar(Value::String(text)) => Some(text),
            Kind::Scalar(_) | Kind::Map(_) | Kind::List(_) => None,
        }
    }

    /// Index of the entry of that name in a table.
    pub(super) fn index_of(
        &self,
        table: &Table,
        name: &str,
        text: &str,
    ) -> Result<Option<usize>, EditError> {
        let Some(item_key) = table.item_key() else {
            self.member(name, text)?;
            return Ok(self.members().iter().position(|member| member.key == name));
        };
        let Kind::List(items) = &self.kind else {
            return Ok(None);
        };
        let mut found =
            (0..items.len()).filter(|&index| items[index].text_at(item_key) == Some(name));
        let first = found.next();
        match found.next() {
            None => Ok(first),
            Some(second) => Err(EditError::DuplicateKey {
                key: name.to_owned(),
                position: Position::of(text, items[second].range.start),
            }),
        }
    }

    /// Node of the item of that index.
    pub(super) fn item(&self, index: usize) -> Option<&Self> {
        match &self.kind {
            Kind::Scalar(_) => None,
            Kind::List(items) => items.get(index),
            Kind::Map(members) => members.get(index).map(|member| &member.node),
        }
    }
}
