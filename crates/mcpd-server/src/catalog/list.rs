//! Paged lists, each encoded once per snapshot, revision and naming, and spliced into every
//! result.

use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use mcpd_protocol::{ProtocolVersion, ResultObject, Stamp};

use super::cursor;
use crate::message::reply::MethodResult;
use crate::message::tool_names::ToolNames;

/// Entry of a list.
pub(super) trait ListEntry: Sized {
    /// Form of an entry in a list.
    type Listed;
    /// Result that holds a page of entries.
    type Page: ResultObject;

    /// Marks the cursors of this list.
    const KIND: u8;

    /// Sort key of the list, unique in it.
    fn key(&self) -> &str;

    /// Returns the entry as lists show it, in a form.
    fn to_listed(&self, form: ListForm) -> Self::Listed;

    fn page(listed: Vec<Self::Listed>, next_cursor: Option<String>) -> Self::Page;

    /// Returns whether lists show both entries alike.
    fn is_listed_like(&self, other: &Self) -> bool;
}

/// Form of the entries of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListForm {
    /// Revision, which defines the fields.
    pub(crate) version: ProtocolVersion,
    /// Spelling of tool names.
    pub(crate) names: ToolNames,
    /// Tools name their apps.
    pub(crate) has_apps: bool,
}

/// Page that is requested, and its form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageRequest<'a> {
    pub(crate) cursor: Option<&'a str>,
    pub(crate) form: ListForm,
    pub(crate) stamp: &'a Stamp,
}

/// Pages of one list in one form, as far as they have been requested.
type Pages = Box<[OnceLock<Bytes>]>;

/// Sorted entries with their encoded pages.
#[derive(Debug)]
pub(super) struct List<T> {
    entries: Vec<Arc<T>>,
    page_size: NonZeroUsize,
    /// By naming with and without apps, then by revision.
    pages: [[Pages; ProtocolVersion::ALL.len()]; 4],
}

impl<T: ListEntry> List<T> {
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

    /// Returns the list of the entries that satisfy `keep`.
    pub(super) fn filter(&self, mut keep: impl FnMut(&T) -> bool) -> Self {
        let entries = self.entries.iter().filter(|entry| keep(entry));
        Self::new(entries.cloned().collect(), self.page_size)
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

    /// Returns whether clients see no difference between the two lists.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.entries.len() == other.entries.len()
            && self
                .entries
                .iter()
                .zip(&other.entries)
                .all(|(ours, theirs)| ours.is_listed_like(theirs))
    }

    /// Returns the encoded result that holds the requested page.
    pub(super) fn page(&self, request: PageRequest<'_>) -> MethodResult {
        let start = match request.cursor {
            None => 0,
            Some(cursor) => {
                let last = cursor::decode(T::KIND, cursor)?;
                self.entries.partition_point(|entry| *entry.key() <= *last)
            }
        };
        let size = self.page_size.get();
        let number = start / size;
        let encode = || self.encode(start, self.entries.len().min((number + 1) * size), request);
        // A cursor from before a change may point into the middle of a page: it gets the rest of
        // that page, and continues from page to page afterwards.
        let page = self
            .pages(request)
            .get(number)
            .filter(|_| start.is_multiple_of(size));
        Ok(match page {
            Some(page) => page.get_or_init(encode).clone(),
            None => encode(),
        })
    }

    fn pages(&self, request: PageRequest<'_>) -> &[OnceLock<Bytes>] {
        let ListForm { version, names, .. } = request.form;
        let naming = match names {
            ToolNames::Portable => 0,
            ToolNames::Path => 1,
        };
        let naming = naming + 2 * usize::from(request.form.has_apps);
        let version = ProtocolVersion::ALL
            .iter()
            .position(|known| *known == version)
            .expect("ALL holds every revision");
        &self.pages[naming][version]
    }

    fn encode(&self, start: usize, end: usize, request: PageRequest<'_>) -> Bytes {
        let entries = &self.entries[start..end];
        let next_cursor = entries
            .last()
            .filter(|_| end < self.entries.len())
            .map(|last| cursor::encode(T::KIND, last.key()));
        let listed = entries
            .iter()
            .map(|entry| entry.to_listed(request.form))
            .collect();
        request
            .stamp
            .encode(T::page(listed, next_cursor))
            .expect("lists have string keys only")
            .into()
    }
}

#[cfg(test)]
mod tests {
    use mcpd_protocol::method::{ListResourcesResult, Resource};
    use serde_json::Value;

    use super::*;

    struct Letter(char);

    impl ListEntry for Letter {
        type Listed = Resource;
        type Page = ListResourcesResult;

        const KIND: u8 = b'l';

        fn key(&self) -> &str {
            let place = "abcdefgh".find(self.0).unwrap();
            &"abcdefgh"[place..=place]
        }

        fn to_listed(&self, _: ListForm) -> Resource {
            Resource::new(self.key(), self.key())
        }

        fn page(listed: Vec<Resource>, next_cursor: Option<String>) -> ListResourcesResult {
            let mut page = ListResourcesResult::new(listed);
            page.next_cursor = next_cursor;
            page
        }

        fn is_listed_like(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }

    fn list(letters: &str, page_size: usize) -> List<Letter> {
        let entries = letters.chars().map(|letter| Arc::new(Letter(letter)));
        List::new(entries.collect(), NonZeroUsize::new(page_size).unwrap())
    }

    fn page(list: &List<Letter>, cursor: Option<&str>) -> Bytes {
        let request = PageRequest {
            cursor,
            form: ListForm {
                version: ProtocolVersion::LATEST_STATEFUL,
                names: ToolNames::Path,
                has_apps: false,
            },
            stamp: &Stamp::Stateful,
        };
        list.page(request).unwrap()
    }

    /// Returns the letters on a page, and the cursor of the next.
    fn read(page: &[u8]) -> (String, Option<String>) {
        let page: Value = serde_json::from_slice(page).unwrap();
        let names = page["resources"].as_array().unwrap().iter();
        (
            names.map(|entry| entry["name"].as_str().unwrap()).collect(),
            page["nextCursor"].as_str().map(str::to_owned),
        )
    }

    /// Compares all pages of a list that becomes `later` after the first page.
    #[track_caller]
    fn check(first: &str, later: &str, page_size: usize, expected: &[&str]) {
        let (mut letters, mut cursor) = read(&page(&list(first, page_size), None));
        let mut pages = vec![letters];
        let later = list(later, page_size);
        while let Some(after) = cursor {
            (letters, cursor) = read(&page(&later, Some(&after)));
            pages.push(letters);
        }
        assert_eq!(pages, expected);
    }

    #[test]
    fn list_pages_hold_every_entry_once_and_in_order() {
        check("", "", 2, &[""]);
        check("dcba", "dcba", 2, &["ab", "cd"]);
        check("abcde", "abcde", 2, &["ab", "cd", "e"]);
        check("abc", "abc", 3, &["abc"]);
        check("abc", "abc", 1000, &["abc"]);
    }

    #[test]
    fn list_pages_skip_and_repeat_nothing_after_changes() {
        check("bcde", "abcde", 2, &["bc", "d", "e"]);
        check("bcdfg", "bcdefg", 2, &["bc", "de", "fg"]);
        check("abcd", "acd", 2, &["ab", "c", "d"]);
        check("abcd", "ab", 2, &["ab", ""]);
        check("abcd", "", 2, &["ab", ""]);
    }

    #[test]
    fn list_page_is_encoded_once() {
        let list = list("abcd", 2);
        let (_, cursor) = read(&page(&list, None));
        for cursor in [None, cursor.as_deref()] {
            assert_eq!(page(&list, cursor).as_ptr(), page(&list, cursor).as_ptr());
        }
    }
}
