//! Synonyms of the verbs that names of tools begin with: a question may say `throw away` where the
//! tool is called `delete`. English only, as the stems are.

use std::collections::{BTreeMap, BTreeSet};

/// Verbs that look and change nothing. A question without a verb asks for one of these.
pub(super) const READING: &str =
    "list show get read view display print fetch retrieve find search query";

/// Verbs of one meaning in each line, with other words that stand for them in questions.
const GROUPS: &[&str] = &[
    READING,
    "list enumerate all which every overview",
    "get read detail info describe status inspect open",
    "find search look seek query locate filter lookup",
    "create add new make insert register build generate record enter establish draft introduce start begin",
    "delete remove erase drop destroy discard rid throw purge unset wipe clear eliminate",
    "update edit change modify adjust set alter patch correct fix revise amend rewrite improve replace increase decrease raise lower",
    "rename move relocate",
    "copy duplicate clone replicate another same reuse",
    "compare diff differ difference versus contrast side against",
    "count number many total sum statistics amount",
    "check validate verify test lint inspect examine wrong correct complete valid error mistake problem okay confirm review",
    "send deliver post publish notify email mail forward pass message",
    "export download save dump write spreadsheet pdf csv",
    "import upload load ingest bring transfer",
    "archive store keep away hide shelve retire old",
    "restore recover undo revert rollback back undelete bring return reinstate resurrect",
    "share invite grant access permit allow let together see collaborate",
    "approve accept confirm agree sign authorize allow okay permit",
    "reject refuse deny decline",
    "assign owner responsible delegate charge handle hand own task",
    "tag label mark categorize classify flag sort",
    "schedule plan postpone later delay date book defer tomorrow",
    "start run launch execute begin trigger invoke",
    "stop end kill terminate cancel abort halt",
    "restart reboot reload refresh",
    "convert transform translate format render",
    "merge combine join unite",
    "split divide separate",
    "compress zip pack",
    "extract unzip unpack",
    "connect attach link mount",
    "disconnect detach unlink unmount",
    "enable activate",
    "disable deactivate",
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

    /// Returns other words for the verbs among `stems`, and the stems of `verbs`, which the form of
    /// the question stands for.
    pub(super) fn expand<'a>(
        &'a self,
        stems: &[String],
        verbs: &'a BTreeSet<String>,
    ) -> BTreeSet<&'a str> {
        let known = stems.iter().filter_map(|word| self.by_stem.get(word));
        let mut others: BTreeSet<_> = known.flatten().chain(verbs).collect();
        if others.is_empty() {
            others.extend(&self.reading);
        }
        let is_new = |word: &&str| stems.iter().all(|stem| stem != word);
        others
            .into_iter()
            .map(String::as_str)
            .filter(is_new)
            .collect()
    }
}
