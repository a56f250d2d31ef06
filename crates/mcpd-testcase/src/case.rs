//! Cases as data: what a file with cases says, without its text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use regex::Regex;
use serde_json::{Map, Value};

use crate::fault::Fault;
use crate::reader::Reader;

/// File with the cases of one script.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TestFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Cases in their order.
    pub cases: Vec<Case>,
    /// Rules for generated calls.
    pub generation: Generation,
}

/// One call and what is expected of it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Case {
    /// Name, unique within its file.
    pub name: String,
    /// Line of its header, from 1.
    pub line: usize,
    /// Tool, prompt or resource that it calls, where a file has several.
    pub tool: Option<String>,
    /// Arguments of the call.
    pub arguments: Map<String, Value>,
    /// Answers to questions of the script, by the name of the question.
    pub answers: Map<String, Value>,
    /// Variables of the script.
    pub environment: BTreeMap<String, String>,
    /// Time limit of the call, all rounds of questions included.
    pub timeout: Option<Duration>,
    /// Expected result.
    pub expected: Expected,
}

/// Expected result of a call. Absent parts are not compared, except the ending.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Expected {
    /// Exit code; 0 if it is absent.
    pub exit: Option<i32>,
    /// The call is refused before the script runs.
    pub refused: bool,
    /// The script succeeds, and its result is an error.
    pub error: bool,
    /// All text of the result.
    pub text: Option<String>,
    /// Parts of the text.
    pub contains: Vec<String>,
    /// Pattern that matches somewhere in the text.
    pub matches: Option<Regex>,
    /// Value whose objects may have further members in the result.
    pub json: Option<Value>,
    /// Messages of a prompt: each with its role, and its text or its content.
    pub messages: Option<Value>,
    /// MIME type of an image in the result.
    pub image: Option<String>,
    /// Content of files that the script writes, by their paths below the root.
    pub files: BTreeMap<String, String>,
}

/// Rules for generated calls of a script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Generation {
    /// No call is generated.
    pub skip: bool,
    /// Exit codes that are no fault although they tell of an internal error.
    pub exits: BTreeSet<i32>,
}

impl TestFile {
    /// Reads a file with cases. Returns what is usable, and every fault.
    #[must_use]
    pub fn read(path: &Path, text: &str) -> (Self, Vec<Fault>) {
        Reader::read(path, text)
    }
}

impl Expected {
    /// Returns whether a part of the output is compared.
    pub(crate) fn says_output(&self) -> bool {
        self.text.is_some()
            || !self.contains.is_empty()
            || self.matches.is_some()
            || self.json.is_some()
            || self.messages.is_some()
            || self.image.is_some()
    }

    /// Returns whether nothing is expected but success.
    pub(crate) fn is_empty(&self) -> bool {
        let says_ending = self.exit.is_some() || self.refused || self.error;
        !says_ending && !self.says_output() && self.files.is_empty()
    }

    /// Expected exit code.
    pub(crate) fn exit_code(&self) -> i32 {
        self.exit.unwrap_or_default()
    }
}
