//! Forms of questions: `where is the invoice` asks to look, `every monday` to schedule, and
//! `do not delete it` not to delete. English only, as the stems are.

use super::synonyms::READING;

/// First words of questions about what there is.
const INTERROGATIVES: &[&str] = &["who", "what", "which", "where", "when", "whose"];
/// First words of questions whether something is right.
const AUXILIARIES: &[&str] = &[
    "is", "are", "was", "were", "do", "does", "did", "has", "have", "can",
];
/// Words before something that is to be made: `I need a coupon`.
const WISHES: &[&str] = &["want", "need", "like"];
const ARTICLES: &[&str] = &["a", "an", "another", "new"];
/// Words that exclude the next one.
const NEGATIONS: &[&str] = &["not", "never", "without"];
/// Points in time. `may` is mostly no month.
const TIMES: &[&str] = &[
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "january",
    "february",
    "march",
    "april",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "tomorrow",
    "tonight",
    "weekend",
    "midnight",
    "noon",
];
/// Periods after `next`, and parts of the day after a number.
const PERIODS: &[&str] = &["week", "month", "year"];
const HALVES: &[&str] = &["am", "pm"];

/// Question, read for its form.
#[derive(Debug, PartialEq)]
pub(super) struct Question {
    /// Words that count.
    pub(super) text: String,
    /// Verbs that the form stands for.
    pub(super) verbs: Vec<&'static str>,
}

impl Question {
    pub(super) fn read(query: &str) -> Self {
        let words: Vec<_> = query.split_whitespace().map(bare_word).collect();
        let mut verbs = Vec::new();
        let begins_with = |list: &[&str]| words.first().is_some_and(|word| is_in(list, word));
        if begins_with(INTERROGATIVES) {
            verbs.push(READING);
        }
        if begins_with(AUXILIARIES) {
            verbs.push("check validate verify");
        }
        if names_time(&words) {
            verbs.push("schedule plan");
        }
        if wishes_new(&words) {
            verbs.push("create add new");
        }
        let texts = query.split_whitespace().enumerate();
        let is_meant = |place: usize| place == 0 || !is_negation(&words[place - 1]);
        let meant = texts.filter(|(place, _)| is_meant(*place));
        let meant: Vec<_> = meant.map(|(_, text)| text).collect();
        Self {
            text: meant.join(" "),
            verbs,
        }
    }
}

/// Returns a word in lower case, without the characters around it.
fn bare_word(text: &str) -> String {
    text.trim_matches(|char: char| !char.is_alphanumeric())
        .to_lowercase()
}

fn is_in(list: &[&str], word: &str) -> bool {
    list.contains(&word)
}

fn is_negation(word: &str) -> bool {
    is_in(NEGATIONS, word) || word.ends_with("n't") || word.ends_with("n\u{2019}t")
}

fn names_time(words: &[String]) -> bool {
    let starts_with_digit = |word: &str| word.starts_with(|char: char| char.is_ascii_digit());
    words.iter().any(|word| is_in(TIMES, word))
        || words.windows(2).any(|pair| {
            let [first, second] = [&pair[0], &pair[1]];
            (first == "next" && is_in(PERIODS, second))
                || (starts_with_digit(first) && is_in(HALVES, second))
                || (first == "at" && starts_with_digit(second))
        })
}

fn wishes_new(words: &[String]) -> bool {
    let mut pairs = words.windows(2);
    pairs.any(|pair| is_in(WISHES, &pair[0]) && is_in(ARTICLES, &pair[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, text: &str, verbs: &[&str]) {
        let read = Question::read(query);
        assert_eq!((&*read.text, &*read.verbs), (text, verbs), "{query}");
    }

    #[test]
    fn form_of_a_question_stands_for_verbs() {
        check(
            "invoices of March?",
            "invoices of March?",
            &["schedule plan"],
        );
        check("Where is it", "Where is it", &[READING]);
        check("Is it right?", "Is it right?", &["check validate verify"]);
        check("I need a coupon", "I need a coupon", &["create add new"]);
        for time in ["next week", "at 10:30", "at ten or 10 pm", "on Friday,"] {
            assert_eq!(Question::read(time).verbs, ["schedule plan"], "{time}");
        }
        for plain in [
            "",
            "may I",
            "next to it",
            "look at it",
            "list 10 files",
            "?",
        ] {
            assert_eq!(Question::read(plain).verbs, [""; 0], "{plain}");
        }
    }

    #[test]
    fn excluded_words_do_not_count() {
        check("hide it, do not delete it", "hide it, do not it", &[]);
        check("don't delete", "don't", &[]);
        check("not", "not", &[]);
    }
}
