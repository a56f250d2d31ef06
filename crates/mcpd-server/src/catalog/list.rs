//! Lists in pages, each encoded once per snapshot, revision and naming, and spliced into every answer.

use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use mcpd_protocol::{ProtocolVersion, ResultObject, Stamp};

use super::{ToolNames, cursor};
use crate::dispatch::MethodResult;

/// What a list consists of.
pub(super) trait Entry: Sized {
    /// What is shown of one.
    type Listed;
    /// The result that holds a page of them.
    type Page: ResultObject;

    /// Marks the cursors of this list.
    const KIND: u8;

    /// What the list is ordered by; no other entry of it has the same.
    fn key(&self) -> &str;

    /// What is shown of it, without what `version` has no words for.
    fn listed(&self, version: ProtocolVersion, names: ToolNames) -> Self::Listed;

    fn page(listed: Vec<Self::Listed>, next_cursor: Option<String>) -> Self::Page;

    /// Whether lists show the same of both.
    fn is_listed_like(&self, other: &Self) -> bool;
}

/// Which page is wanted, and in which form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) cursor: Option<&'a str>,
    pub(crate) version: ProtocolVersion,
    pub(crate) names: ToolNames,
    pub(crate) stamp: &'a Stamp,
}

/// The pages of one list in one naming and one revision, as far as they have been asked for.
type Pages = Box<[OnceLock<Bytes>]>;

/// Entries in order.
#[derive(Debug)]
pub(super) struct List<T> {
    entries: Vec<Arc<T>>,
    page_size: NonZeroUsize,
    /// For each naming, for each revision.
    pages: [[Pages; ProtocolVersion::ALL.len()]; 2],
}

impl<T: Entry> List<T> {
    pub(super) fn new(mut entries: Vec<Arc<T>>, page_size: NonZeroUsize) -> Self {
        entries.sort_by(|a, b| a.key().cmp(b.key()));
        // An empty list is one empty page.
        let count = entries.len().div_ceil(page_size.get()).max(1);
        let pages = || (0..count).map(|_| OnceLock::new()).collect();
        Self {
            entries,
            page_size,
            pages: std::array::from_fn(|_| std::array::from_fn(|_| pages())),
        }
    }

    pub(super) fn entries(&self) -> &[Arc<T>] {
        &self.entries
    }

    pub(super) fn find(&self, key: &str) -> Option<&Arc<T>> {
        self.entries
            .binary_search_by(|entry| entry.key().cmp(key))
            .ok()
            .map(|place| &self.entries[place])
    }

    /// Whether a client that knows one of the lists knows the other.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.entries.len() == other.entries.len()
            && self
                .entries
                .iter()
                .zip(&other.entries)
                .all(|(ours, theirs)| ours.is_listed_like(theirs))
    }

    /// The encoded result that holds the wanted page.
    pub(super) fn page(&self, wanted: Wanted<'_>) -> MethodResult {
        let start = match wanted.cursor {
            None => 0,
            Some(cursor) => {
                let last = cursor::decode(T::KIND, cursor)?;
                self.entries.partition_point(|entry| *entry.key() <= *last)
            }
        };
        let size = self.page_size.get();
        let number = start / size;
        let encode = || self.encode(start, self.entries.len().min((number + 1) * size), wanted);
        // A cursor from before a change may point between two pages: it gets the rest of the one it is
        // in, and from there on goes from page to page again.
        let page = self
            .pages(wanted)
            .get(number)
            .filter(|_| start.is_multiple_of(size));
        Ok(match page {
            Some(page) => page.get_or_init(encode).clone(),
            None => encode(),
        })
    }

    fn pages(&self, wanted: Wanted<'_>) -> &[OnceLock<Bytes>] {
        let naming = match wanted.names {
            ToolNames::Portable => 0,
            ToolNames::Path => 1,
        };
        let version = ProtocolVersion::ALL
            .iter()
            .position(|known| *known == wanted.version)
            .expect("ALL holds every revision");
        &self.pages[naming][version]
    }

    fn encode(&self, start: usize, end: usize, wanted: Wanted<'_>) -> Bytes {
        let entries = &self.entries[start..end];
        let next_cursor = entries
            .last()
            .filter(|_| end < self.entries.len())
            .map(|last| cursor::encode(T::KIND, last.key()));
        let listed = entries
            .iter()
            .map(|entry| entry.listed(wanted.version, wanted.names))
            .collect();
        wanted
            .stamp
            .encode(T::page(listed, next_cursor))
            .expect("lists have string keys only")
            .into()
    }
}
