//! Words of names and texts for the index: split at `_`, `/` and capitals, without words that say
//! nothing, and reduced to their English stems, irregular verbs too.

use bm25::Tokenizer;
use rust_stemmers::{Algorithm, Stemmer};

/// Words that nearly every question or description has.
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "already", "also", "am", "an", "and", "any", "are", "as", "at", "be",
    "because", "been", "before", "between", "but", "by", "can", "could", "did", "do", "does",
    "during", "even", "ever", "for", "from", "had", "has", "have", "he", "her", "here", "his",
    "how", "i", "if", "in", "into", "is", "it", "its", "just", "let", "may", "me", "might", "my",
    "need", "never", "no", "not", "of", "off", "on", "one", "only", "or", "our", "out", "over",
    "please", "s", "she", "should", "so", "some", "soon", "still", "t", "than", "that", "the",
    "their", "them", "then", "there", "these", "they", "this", "those", "through", "to", "too",
    "tool", "two", "under", "until", "up", "us", "use", "using", "very", "want", "was", "we",
    "were", "what", "when", "where", "while", "who", "why", "will", "with", "without", "would",
    "yet", "you", "your",
];

/// Irregular forms of English verbs, each with the form that names of tools have.
const IRREGULAR_FORMS: &[(&str, &str)] = &[
    ("began", "begin"),
    ("begun", "begin"),
    ("bought", "buy"),
    ("broke", "break"),
    ("broken", "break"),
    ("brought", "bring"),
    ("built", "build"),
    ("came", "come"),
    ("caught", "catch"),
    ("chose", "choose"),
    ("chosen", "choose"),
    ("drawn", "draw"),
    ("drew", "draw"),
    ("fallen", "fall"),
    ("fell", "fall"),
    ("felt", "feel"),
    ("forgot", "forget"),
    ("forgotten", "forget"),
    ("found", "find"),
    ("froze", "freeze"),
    ("frozen", "freeze"),
    ("gave", "give"),
    ("given", "give"),
    ("gone", "go"),
    ("got", "get"),
    ("gotten", "get"),
    ("heard", "hear"),
    ("held", "hold"),
    ("hid", "hide"),
    ("hidden", "hide"),
    ("kept", "keep"),
    ("knew", "know"),
    ("known", "know"),
    ("left", "leave"),
    ("lost", "lose"),
    ("made", "make"),
    ("meant", "mean"),
    ("met", "meet"),
    ("paid", "pay"),
    ("ran", "run"),
    ("said", "say"),
    ("sat", "sit"),
    ("saw", "see"),
    ("seen", "see"),
    ("sent", "send"),
    ("shown", "show"),
    ("sold", "sell"),
    ("spent", "spend"),
    ("spoke", "speak"),
    ("spoken", "speak"),
    ("stole", "steal"),
    ("stolen", "steal"),
    ("stood", "stand"),
    ("taken", "take"),
    ("taught", "teach"),
    ("thought", "think"),
    ("threw", "throw"),
    ("thrown", "throw"),
    ("told", "tell"),
    ("took", "take"),
    ("understood", "understand"),
    ("undid", "undo"),
    ("undone", "undo"),
    ("went", "go"),
    ("won", "win"),
    ("wore", "wear"),
    ("worn", "wear"),
    ("written", "write"),
    ("wrote", "write"),
];

/// Splits texts into words.
pub(super) struct Words {
    stemmer: Stemmer,
}

impl Default for Words {
    fn default() -> Self {
        Self {
            stemmer: Stemmer::create(Algorithm::English),
        }
    }
}

/// Word of a text, in lower case.
pub(super) struct Word {
    pub(super) text: String,
    pub(super) stem: String,
}

impl Word {
    /// Returns whether nearly every question or description has the word.
    pub(super) fn is_stop_word(&self) -> bool {
        STOP_WORDS.binary_search(&self.text.as_str()).is_ok()
    }
}

impl Words {
    /// Returns all words of a text.
    pub(super) fn split(&self, text: &str) -> Vec<Word> {
        let words = split(text).into_iter();
        let with_stem = |text: String| Word {
            stem: self.stemmer.stem(base_form(&text)).into_owned(),
            text,
        };
        words.map(with_stem).collect()
    }

    /// Returns the stems of all words of a text.
    pub(super) fn stems(&self, text: &str) -> Vec<String> {
        let words = self.split(text).into_iter();
        words.map(|word| word.stem).collect()
    }
}

impl Tokenizer for Words {
    fn tokenize(&self, text: &str) -> Vec<String> {
        let words = self.split(text).into_iter();
        let words = words.filter(|word| !word.is_stop_word());
        words.map(|word| word.stem).collect()
    }
}

/// Returns the base form of an irregular verb, or the word itself.
fn base_form(word: &str) -> &str {
    match IRREGULAR_FORMS.binary_search_by_key(&word, |(form, _)| form) {
        Ok(place) => IRREGULAR_FORMS[place].1,
        Err(_) => word,
    }
}

/// Splits a text into words in lower case. Characters of scripts without spaces are words of
/// their own.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut chars = text.chars().peekable();
    let mut previous = None;
    while let Some(char) = chars.next() {
        let next = chars.peek().copied();
        if !char.is_alphanumeric() || has_no_spaces(char) || begins_word(previous, char, next) {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        }
        if has_no_spaces(char) {
            words.push(char.to_string());
        } else if char.is_alphanumeric() {
            word.extend(char.to_lowercase());
        }
        previous = Some(char);
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// Returns whether a capital begins a word within a name: `createInvoice`, `HTTPServer`.
fn begins_word(previous: Option<char>, char: char, next: Option<char>) -> bool {
    let Some(previous) = previous.filter(|_| char.is_uppercase()) else {
        return false;
    };
    previous.is_lowercase() || previous.is_uppercase() && next.is_some_and(char::is_lowercase)
}

/// Returns whether the script of a letter writes words without spaces: Chinese, Japanese, Thai.
fn has_no_spaces(char: char) -> bool {
    matches!(char, '\u{0e00}'..='\u{0e7f}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3134f}')
        && char.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(Words::default().tokenize(text), expected, "{text}");
    }

    #[test]
    fn names_are_split_at_separators_and_capitals() {
        check("billing/create_invoice", &["bill", "creat", "invoic"]);
        check("createInvoice", &["creat", "invoic"]);
        check(
            "HTTPServer.restart-now",
            &["http", "server", "restart", "now"],
        );
        check("sha256", &["sha256"]);
    }

    #[test]
    fn words_are_reduced_to_stems() {
        check("Creating invoices", &["creat", "invoic"]);
        check("How do I delete the users?", &["delet", "user"]);
        check("hidden and sent", &["hide", "send"]);
    }

    #[test]
    fn words_of_other_languages_are_kept() {
        check("Rechnung löschen", &["rechnung", "löschen"]);
        check("削除 file", &["削", "除", "file"]);
    }

    #[test]
    fn tables_are_sorted() {
        assert!(STOP_WORDS.is_sorted());
        assert!(IRREGULAR_FORMS.is_sorted());
    }
}
