//! Verbs that names of tools begin or end with, by meaning, and the cues for them in questions:
//! `throw away` for `delete`, `where is` for `search`, `next week` for `schedule`. English only, as
//! the stems are.

/// Verbs of one meaning.
pub(super) struct Meaning {
    /// Words in the names of tools, which are cues as well.
    pub(super) verbs: &'static str,
    /// Further cues: words, and phrases in which `^` is the beginning of a question, `*` up to six
    /// words, and `#` a number.
    pub(super) cues: &'static [&'static str],
}

const fn meaning(verbs: &'static str, cues: &'static [&'static str]) -> Meaning {
    Meaning { verbs, cues }
}

/// Verbs that look and change nothing. A question without a cue asks for one of these.
pub(super) const READING: &str =
    "list show get read view display print fetch retrieve find search query";

/// Verbs that change something, and that most tools have which do.
pub(super) const WRITING: &str = "create add new update edit change set delete remove";

#[rustfmt::skip]
pub(super) const MEANINGS: &[Meaning] = &[
    meaning(READING, &[
        "^who", "^what", "^which", "^where", "^when", "^whose", "^how", "see", "tell me", "look at",
    ]),
    meaning("list enumerate all overview", &[
        "which", "every", "what * do we have", "what * are there", "^what have", "show * all",
        "one by one",
    ]),
    meaning("get read detail info describe status inspect open", &[
        "everything about", "all about", "exactly", "^how is", "^how are", "^what is the",
        "tell me",
    ]),
    meaning("find search query locate filter lookup", &[
        "look for", "seek", "track down", "is there", "are there", "^where", "in which",
        "that mention", "that contain",
    ]),
    meaning("create add new make insert register build generate record", &[
        "enter", "establish", "draft", "introduce", "begin", "set up", "spin up", "put * in",
        "put * up", "put * out", "put * online", "write * down", "write a", "start a", "need new",
        "want a", "want an", "want another", "want new", "need a", "need an", "need another",
        "like a", "like an", "have a new", "get a new",
    ]),
    meaning("delete remove erase drop destroy purge unset clear", &[
        "discard", "scrap", "wipe", "eliminate", "cancel", "rid", "get rid of", "throw * away",
        "throw * out", "kick * out", "take * down", "take * off", "take * out", "close * down",
        "do away with", "for good", "no longer need", "should disappear", "must go",
    ]),
    meaning("update edit change modify adjust set alter patch amend replace increase decrease", &[
        "fix", "correct the", "revise", "rewrite", "improve", "extend", "raise", "lower", "swap",
        "typo", "turn * up", "turn * down", "turn * from", "turn * to", "go up", "go down",
        "from * to", "more", "less", "bigger", "smaller", "higher", "warmer", "colder", "faster",
        "longer", "shorter", "now", "instead of", "need a", "need another", "should be",
        "should have", "should say",
    ]),
    meaning("rename move relocate", &["new name", "another name"]),
    meaning("copy duplicate clone replicate", &[
        "another copy", "one more", "same * again", "same * for", "just like", "based on",
        "reuse", "twice", "second time", "a second",
    ]),
    meaning("compare diff difference", &[
        "differ", "different", "versus", "contrast", "against", "apart", "in common", "same as",
        "the same", "side by side", "next to each other", "next to one another",
        "changed between", "better", "two", "both",
    ]),
    meaning("count statistics total sum number", &[
        "tally", "how many", "how often", "how much", "number of", "amount of",
    ]),
    meaning("check validate verify test lint inspect examine", &[
        "^is", "^are", "^was", "^were", "^do", "^does", "^did", "^has", "^have", "^can",
        "make sure", "are * sure", "see if", "see whether", "make sense", "in order", "confirm",
        "review", "properly", "wrong", "correct", "right", "complete", "valid", "intact", "sound",
        "error", "mistake", "problem",
    ]),
    meaning("send deliver post publish notify email mail forward", &[
        "message", "inform", "pass * on", "pass * along", "pass * to", "let * know",
    ]),
    meaning("export download save dump backup", &[
        "excel", "spreadsheet", "pdf", "to a file", "into a file", "as a file", "in a file",
        "to a csv", "as csv", "as a csv", "write * to",
    ]),
    meaning("import upload load ingest", &[
        "csv", "json", "transfer", "from a file", "from the file", "from this file",
        "from my file", "in a file", "from csv", "from a csv", "from the csv", "from this csv",
        "from json", "from a json", "from the json", "from this json", "into the system",
        "read in", "read * in", "bring * in", "bring * into", "take * into", "put * into",
        "put * in", "here is a", "i have a file",
    ]),
    meaning("archive store shelve retire", &[
        "keep", "but keep", "hide", "away", "later", "put * away", "put * aside", "store * away",
        "file * away", "out of sight", "out of the way", "without losing", "done with", "is over",
        "no longer need", "not need * any more",
    ]),
    meaning("restore recover undo revert rollback undelete reinstate", &[
        "back", "return", "resurrect", "reverse", "lost", "again", "bring * back", "get * back",
        "put * back", "have * back", "want * back", "need * back", "by accident", "by mistake",
        "accidentally", "too early", "too soon", "is gone", "was deleted", "was removed",
    ]),
    meaning("share invite grant permit", &[
        "access", "give * access", "let * see", "let * look", "let * have a look", "let * read",
        "let * use", "let * view", "let * in", "allow * to", "able to see", "able to read",
        "able to use", "able to look", "able to view", "able to open", "can see", "may see",
        "should see", "need to see", "visible to", "available to", "collaborate",
        "together with", "for others",
    ]),
    meaning("approve accept confirm agree sign authorize allow", &[
        "okay", "ok", "permit", "sign off", "sign * off", "go ahead", "go out", "green light",
        "look good", "look fine", "is fine", "is good", "is ok", "is okay", "is right",
        "is correct", "all right", "happy with", "fine by me", "fine with me", "ok with me",
        "agree with", "i agree", "no objection", "can be", "may be",
    ]),
    meaning("reject refuse deny decline", &["turn * down", "do not agree", "not ok"]),
    meaning("assign", &[
        "owner", "own", "responsible", "delegate", "charge", "in charge", "task", "job of",
        "handle", "handled by", "hand * over", "hand * to", "take over", "take care of",
        "look after", "to deal with", "will deal with", "pass * to", "give * to", "belong to", "should do",
        "is for * to",
    ]),
    meaning("tag label mark categorize classify flag sort", &[
        "keyword", "category", "mark * as", "flag * as", "label * as",
    ]),
    meaning("schedule plan postpone delay defer book", &[
        "date", "later", "put off", "monday", "tuesday", "wednesday", "thursday", "friday",
        "saturday", "sunday", "january", "february", "march", "april", "june", "july", "august",
        "september", "october", "november", "december", "tomorrow", "tonight", "weekend",
        "midnight", "noon", "evening", "morning", "next week", "next month", "next year",
        "every day", "every week", "every evening", "every morning", "# am", "# pm", "at #",
        "on the first", "from now on",
    ]),
    meaning("start run launch execute begin trigger invoke", &["turn * on", "switch * on"]),
    meaning("stop end kill terminate cancel abort halt", &[
        "turn * off", "switch * off", "shut * down",
    ]),
    meaning("restart reboot reload refresh", &[]),
    meaning("convert transform translate format render", &["turn * into"]),
    meaning("merge combine join unite", &["put * together", "into one"]),
    meaning("split divide separate", &[]),
    meaning("compress zip pack", &[]),
    meaning("extract unzip unpack", &[]),
    meaning("connect attach link mount", &[]),
    meaning("disconnect detach unlink unmount", &[]),
    meaning("enable activate", &["turn * on", "switch * on"]),
    meaning("disable deactivate", &["turn * off", "switch * off"]),
    meaning("lock encrypt protect", &[]),
    meaning("unlock decrypt", &[]),
    meaning("install deploy setup", &["set up"]),
    meaning("uninstall", &[]),
    meaning("calculate compute evaluate", &["work out"]),
];
