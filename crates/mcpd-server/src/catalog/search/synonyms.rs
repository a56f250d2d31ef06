//! Synonyms of the verbs that names of tools begin with: a question may say `throw away` where the
//! tool is called `delete`. English only, as the stems are.

use std::collections::{BTreeMap, BTreeSet};

/// Verbs that look and change nothing. A question without a verb asks for one of these.
const READING: &str = "list show get read view display print fetch retrieve find search query";

/// Verbs of one meaning in each line, with other words that stand for them in questions.
const GROUPS: &[&str] = &[
    READING,
    "list enumerate all which",
    "get read detail info describe status inspect",
    "find search look seek query locate filter",
    "create add new make insert register build generate",
    "delete remove erase drop destroy discard rid throw purge unset",
    "update edit change modify adjust set alter patch correct fix",
    "rename move relocate",
    "copy duplicate clone replicate",
    "compare diff differ difference versus",
    "count number many total sum statistics",
    "check validate verify test lint inspect examine",
    "send deliver post publish notify email mail",
    "export download save dump write",
    "import upload load ingest",
    "archive store keep away",
    "restore recover undo revert rollback back undelete",
    "share invite grant access permit allow",
    "approve accept confirm",
    "reject refuse deny decline",
    "assign owner responsible delegate",
    "tag label mark categorize",
    "schedule plan postpone",
    "start run launch execute begin trigger invoke",
    "stop end kill terminate cancel abort halt",
    "restart reboot reload refresh",
    "convert transform translate format render",
    "merge combine join",
    "split divide separate",
    "compress zip pack",
    "extract unzip unpack",
    "connect attach link mount",
    "disconnect detach unlink unmount",
    "enable activate on",
    "disable deactivate off",
    "lock encrypt protect",
    "unlock decrypt",
    "install deploy setup",
    "uninstall",
    "calculate compute evaluate",
];

/// Synonyms by the stem of a word.
pub(super) struct Synonyms {
    by_stem: BTreeMap<String, BTreeSet<String>>,
    reading: BTreeSet<String>,
}

impl Synonyms {
    pub(super) fn new(stem: impl Fn(&str) -> Vec<String>) -> Self {
        let mut by_stem: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for group in GROUPS {
            let stems: BTreeSet<_> = stem(group).into_iter().collect();
            for word in &stems {
                let others = stems.iter().filter(|other| *other != word).cloned();
                by_stem.entry(word.clone()).or_default().extend(others);
            }
        }
        Self {
            by_stem,
            reading: stem(READING).into_iter().collect(),
        }
    }

    /// Returns whether one of `stems` is a verb with synonyms.
    pub(super) fn has_verb(&self, stems: &[String]) -> bool {
        stems.iter().any(|stem| self.by_stem.contains_key(stem))
    }

    /// Returns other words for the verbs among `stems`.
    pub(super) fn expand(&self, stems: &[String]) -> BTreeSet<&str> {
        let known: Vec<_> = stems
            .iter()
            .filter_map(|word| self.by_stem.get(word))
            .collect();
        let others = match known.is_empty() {
            true => self.reading.iter().collect(),
            false => known.into_iter().flatten().collect::<BTreeSet<_>>(),
        };
        let is_new = |word: &&str| stems.iter().all(|stem| stem != word);
        others
            .into_iter()
            .map(String::as_str)
            .filter(is_new)
            .collect()
    }
}
