//! Questions, read for what they ask to do: which [verbs](super::verbs) they stand for, and which
//! words are left to name what it is done with. English only, as the stems are.

use super::verbs::{MEANINGS, READING, WRITING};
use super::words::{Word, Words};

/// Maximum number of words that `*` in a cue stands for.
const MAX_GAP: usize = 6;
/// Strength of the verbs that are usual in names, beside those that the question has cues for.
const USUAL_STRENGTH: f32 = 0.2;
/// Words before the verb of a request.
const POLITE: &[&str] = &[
    "can", "could", "d", "have", "i", "let", "like", "me", "must", "need", "please", "should",
    "to", "us", "want", "we", "will", "would", "you",
];
/// Words that exclude the next one.
const NEGATIONS: &[&str] = &["never", "not", "without"];
/// Words after the verb of a request that ends a sentence: `here is a bill, send it`.
const PRONOUNS: &[&str] = &["it", "them", "him", "her", "that", "this", "these", "those"];
const NUMBERS: &[&str] = &[
    "eight", "eleven", "five", "four", "nine", "one", "seven", "six", "ten", "three", "twelve",
    "two",
];

/// Meanings of verbs, ready to be looked for in questions.
pub(super) struct Cues {
    meanings: Vec<(Vec<String>, Vec<Cue>)>,
    reading: Vec<String>,
    writing: Vec<String>,
}

/// Words that stand for a verb.
struct Cue {
    begins: bool,
    parts: Vec<Part>,
}

/// Word of a cue, after a gap if there may be one.
struct Part {
    has_gap: bool,
    /// Stem, or none for a number.
    stem: Option<String>,
}

/// Question, taken apart.
pub(super) struct Question<'a> {
    /// Verbs that it has cues for.
    pub(super) verbs: Vec<Verbs<'a>>,
    /// Verbs that it may mean all the same.
    pub(super) usual: Vec<Verbs<'a>>,
    /// Stems of the words that name what it is about.
    pub(super) objects: Vec<String>,
    /// Stems of words that are cues, and may name an object as well: `plan`, `report`.
    pub(super) ambiguous: Vec<String>,
}

/// Stems of verbs of one meaning, with their strength up to 1.
pub(super) type Verbs<'a> = (&'a [String], f32);

/// Use of a word within a question.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Object,
    Ambiguous,
    Verb,
    /// Word after a negation: `do not delete it`.
    Excluded,
}

impl Cues {
    pub(super) fn new(words: &Words) -> Self {
        let meanings = MEANINGS.iter().map(|meaning| {
            let verbs = words.stems(meaning.verbs);
            let phrases = meaning.verbs.split(' ').chain(meaning.cues.iter().copied());
            let cues = phrases.map(|phrase| Cue::parse(phrase, words));
            (verbs, cues.collect())
        });
        Self {
            meanings: meanings.collect(),
            reading: words.stems(READING),
            writing: words.stems(WRITING),
        }
    }

    /// Returns whether a word with this stem is a verb of names.
    pub(super) fn is_verb(&self, stem: &str) -> bool {
        let mut verbs = self.meanings.iter().flat_map(|(verbs, _)| verbs);
        verbs.any(|verb| verb == stem)
    }

    /// Reads a question.
    pub(super) fn read(&self, query: &str, words: &Words) -> Question<'_> {
        let said = words.split(query);
        let places = 0..said.len();
        let mut uses: Vec<_> = places.map(|place| initial_use(&said, place)).collect();
        let verbs = self.find(&said, &mut uses);
        let reading = verbs.is_empty().then_some((self.reading.as_slice(), 1.0));
        let writing = [(self.writing.as_slice(), USUAL_STRENGTH)];
        let mut objects = stems(&said, &uses, Use::Object);
        let ambiguous = stems(&said, &uses, Use::Ambiguous);
        if objects.is_empty() && ambiguous.is_empty() {
            objects = stems(&said, &uses, Use::Verb);
        }
        // `time sheet` may be called `timesheet`.
        let joined = said
            .windows(2)
            .map(|pair| [&*pair[0].text, &pair[1].text].concat());
        objects.extend(joined.flat_map(|joined| words.stems(&joined)));
        Question {
            verbs,
            usual: reading.into_iter().chain(writing).collect(),
            objects,
            ambiguous,
        }
    }

    /// Finds the verbs that a question has cues for, and notes the uses of its words.
    fn find(&self, said: &[Word], uses: &mut [Use]) -> Vec<Verbs<'_>> {
        let mut verbs = Vec::new();
        for (stems, cues) in &self.meanings {
            let strengths = cues.iter().filter_map(|cue| cue.apply(said, uses));
            verbs.extend(strengths.max().map(|strength| (stems.as_slice(), strength)));
        }
        let most = verbs.iter().map(|(_, strength)| *strength).max();
        let share = |strength: u8| f32::from(strength) / f32::from(most.unwrap_or(1));
        let verbs = verbs.into_iter();
        verbs
            .map(|(stems, strength)| (stems, share(strength)))
            .collect()
    }
}

/// Returns the stems of the words with this use, without stop words.
fn stems(said: &[Word], uses: &[Use], wanted: Use) -> Vec<String> {
    let words = said.iter().zip(uses);
    let words = words.filter(|(word, its)| **its == wanted && !word.is_stop_word());
    words.map(|(word, _)| word.stem.clone()).collect()
}

fn initial_use(said: &[Word], place: usize) -> Use {
    let is_excluded = place > 0 && is_negation(said, place - 1);
    if is_excluded {
        Use::Excluded
    } else {
        Use::Object
    }
}

/// Returns whether the word excludes the next one. `don't` is two words here.
fn is_negation(said: &[Word], place: usize) -> bool {
    let is_contracted = said[place].text == "t" && place > 0 && said[place - 1].text.ends_with('n');
    is_contracted || NEGATIONS.contains(&said[place].text.as_str())
}

impl Cue {
    fn parse(phrase: &str, words: &Words) -> Self {
        let mut parts = Vec::new();
        let mut has_gap = false;
        for word in phrase.trim_start_matches('^').split(' ') {
            if word == "*" {
                has_gap = true;
                continue;
            }
            let stem = words.stems(word).pop();
            parts.push(Part { has_gap, stem });
            has_gap = false;
        }
        Self {
            begins: phrase.starts_with('^'),
            parts,
        }
    }

    /// Looks for the cue, and notes the use of its words. Returns its strength: the number of its
    /// words, and one more for the verb that a request begins with.
    fn apply(&self, said: &[Word], uses: &mut [Use]) -> Option<u8> {
        let starts = if self.begins { 0..1 } else { 0..said.len() };
        let places = starts
            .into_iter()
            .find_map(|start| self.find(said, start))?;
        if places.iter().any(|place| uses[*place] == Use::Excluded) {
            return None;
        }
        let is_polite = |word: &Word| POLITE.contains(&word.text.as_str());
        let is_first = said[..places[0]].iter().all(is_polite) && !is_polite(&said[places[0]]);
        let is_pronoun = |word: &Word| PRONOUNS.contains(&word.text.as_str());
        let is_before_pronoun = said.get(places[0] + 1).is_some_and(is_pronoun);
        let is_imperative = (is_first || is_before_pronoun) && !self.begins && places.len() == 1;
        for place in &places {
            if places.len() > 1 || is_imperative {
                uses[*place] = Use::Verb;
            } else if uses[*place] == Use::Object {
                uses[*place] = Use::Ambiguous;
            }
        }
        u8::try_from(places.len() + usize::from(is_imperative)).ok()
    }

    /// Returns the places of its words in a question, the first at `start`.
    fn find(&self, said: &[Word], start: usize) -> Option<Vec<usize>> {
        let mut places = Vec::new();
        let mut next = start;
        for part in &self.parts {
            let gap = if part.has_gap { MAX_GAP } else { 0 };
            let mut candidates = said.get(next..)?.iter().take(gap + 1);
            let place = next + candidates.position(|word| part.is(word))?;
            places.push(place);
            next = place + 1;
        }
        Some(places)
    }
}

impl Part {
    fn is(&self, word: &Word) -> bool {
        let text = word.text.as_str();
        match &self.stem {
            Some(stem) => *stem == word.stem,
            None => text.starts_with(|char: char| char.is_ascii_digit()) || NUMBERS.contains(&text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the verbs with the most cues, each by the first of its meaning, and the objects.
    #[track_caller]
    fn check(query: &str, verbs: &[&str], objects: &[&str]) {
        let words = Words::default();
        let cues = Cues::new(&words);
        let question = cues.read(query, &words);
        let strongest = question
            .verbs
            .iter()
            .filter(|(_, strength)| *strength == 1.0);
        let strongest: Vec<_> = strongest.map(|(stems, _)| stems[0].as_str()).collect();
        assert_eq!(strongest, verbs, "{query}");
        let joined = question.objects.len() - words.split(query).len().saturating_sub(1);
        assert_eq!(question.objects[..joined], *objects, "{query}");
    }

    #[test]
    fn cue_stands_for_a_verb() {
        check("Throw the letter away", &["delet"], &["letter"]);
        check("Could you please erase my note?", &["delet"], &["note"]);
        check("Where is the invoice", &["list", "find"], &["invoic"]);
        check("Create a coupon", &["creat"], &["coupon"]);
        check("invoices of March", &["schedul"], &["invoic"]);
        check("the lamp at 10:30", &["schedul"], &["lamp", "30"]);
        check("here is the letter, send it", &["send"], &["letter"]);
        check("xylophone", &[], &["xylophon"]);
        check("", &[], &[]);
    }

    #[test]
    fn phrase_is_stronger_than_a_word() {
        check("let Ann have a look at it", &["share"], &["ann"]);
        check("bring the old report back", &["restor"], &["old", "report"]);
    }

    #[test]
    fn excluded_word_is_no_cue() {
        check("hide it, do not delete it", &["archiv"], &["hide"]);
        check("never delete the file", &[], &["file"]);
    }

    #[test]
    fn verb_alone_is_what_it_is_about() {
        check("erase", &["delet"], &["eras"]);
    }

    #[test]
    fn words_of_tables_are_sorted() {
        assert!(
            [POLITE, NEGATIONS, NUMBERS]
                .iter()
                .all(|words| words.is_sorted())
        );
    }
}
