//! Full-text index of tools, ranked with BM25. Names weigh as much as titles and tags, and those
//! more than descriptions; the verbs that a question stands for count in names only.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use bm25::{Embedder, EmbedderBuilder, Embedding, Scorer, TokenEmbedder as _, TokenEmbedding};
use serde_json::Value;

use super::question::{Cues, Verbs};
use super::words::Words;
use crate::catalog::tool::Tool;
use crate::catalog::tool::definition::tags;

/// Number of times that the name of a tool counts.
const NAME_WEIGHT: usize = 2;
/// Number of times that its title and its tags count.
const TITLE_WEIGHT: usize = 2;
/// Weight of the verb of a name.
const VERB_WEIGHT: f32 = 1.2;
/// Weight of a word in texts that may be the verb of a question.
const AMBIGUOUS_WEIGHT: f32 = 0.6;
/// Maximum number of characters of a text that are indexed, such as a manual in a description.
const MAX_TEXT_CHARS: usize = 4000;
/// Maximum depth of nested objects in arguments whose names are indexed.
const MAX_DEPTH: usize = 4;

/// Index of tools by their place in the catalog.
pub(super) struct ToolIndex {
    texts: TextIndex,
    /// Verbs of names.
    names: TextIndex,
    words: Words,
    cues: Cues,
}

impl ToolIndex {
    /// Indexes `tools`, except those that belong to the search itself.
    pub(super) fn new(tools: &[Arc<Tool>]) -> Self {
        let tools = tools.iter().enumerate();
        let tools = tools.filter(|(_, tool)| !tool.is_part_of_search());
        let texts = tools
            .clone()
            .map(|(place, tool)| (place, searchable_text(tool)));
        let words = Words::default();
        let cues = Cues::new(&words);
        let names = tools.map(|(place, tool)| (place, verb(tool.path().as_str(), &words, &cues)));
        Self {
            texts: TextIndex::new(texts.collect()),
            names: TextIndex::new(names.collect()),
            cues,
            words,
        }
    }

    /// Returns the places of the tools that match, best first.
    pub(super) fn search(&self, query: &str) -> Vec<usize> {
        let question = self.cues.read(query, &self.words);
        let cued = self.verb_scores(&question.verbs);
        let mut scores = self.texts.scores(&question.objects);
        for (place, score) in self.texts.scores(&question.ambiguous) {
            *scores.entry(place).or_default() += AMBIGUOUS_WEIGHT * score;
        }
        if scores.is_empty() {
            scores.clone_from(&cued);
        }
        let usual = self.verb_scores(&question.usual);
        for (place, score) in &mut scores {
            let verbs = [&cued, &usual].map(|verbs| verbs.get(place).copied().unwrap_or_default());
            *score += VERB_WEIGHT * verbs[0].max(verbs[1]);
        }
        let mut ranked: Vec<_> = scores.into_iter().collect();
        // Equal scores come in the order of the catalog.
        ranked.sort_by(|(place, score), (other, its)| {
            its.partial_cmp(score)
                .unwrap_or(Ordering::Equal)
                .then(place.cmp(other))
        });
        ranked.into_iter().map(|(place, _)| place).collect()
    }

    /// Returns the score of every tool whose name has one of these verbs, by its place.
    fn verb_scores(&self, verbs: &[Verbs<'_>]) -> BTreeMap<usize, f32> {
        let mut scores: BTreeMap<_, f32> = BTreeMap::new();
        for (stems, strength) in verbs {
            for (place, score) in self.names.scores(stems) {
                let best = scores.entry(place).or_default();
                *best = best.max(strength * score);
            }
        }
        scores
    }
}

/// Ranking of texts by the words that they hold. Hashes of words are wide enough that no two words
/// of a catalog are taken for one.
struct TextIndex {
    scorer: Scorer<usize, u64>,
}

impl TextIndex {
    fn new(texts: Vec<(usize, String)>) -> Self {
        let corpus: Vec<_> = texts.iter().map(|(_, text)| text.as_str()).collect();
        let words = Words::default();
        let embedder: Embedder<u64, Words> =
            EmbedderBuilder::with_tokenizer_and_fit_to_corpus(words, &corpus).build();
        let mut scorer = Scorer::new();
        for (place, text) in &texts {
            scorer.upsert(place, embedder.embed(text));
        }
        Self { scorer }
    }

    /// Returns the score of every text with one of the words, by its place.
    fn scores(&self, stems: &[String]) -> BTreeMap<usize, f32> {
        let stems: BTreeSet<_> = stems.iter().map(String::as_str).collect();
        let tokens = stems.into_iter().map(|stem| TokenEmbedding {
            index: u64::embed(stem),
            value: 1.0,
        });
        let matches = self.scorer.matches(&Embedding(tokens.collect()));
        matches
            .into_iter()
            .map(|found| (found.id, found.score))
            .collect()
    }
}

impl fmt::Debug for ToolIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolIndex").finish_non_exhaustive()
    }
}

/// Returns the word of a name that is its verb: the first one without folders, if that is a known
/// verb, and else the last one.
fn verb(path: &str, words: &Words, cues: &Cues) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    let all = words.split(name);
    let first = all.first().filter(|word| cues.is_verb(&word.stem));
    let verb = first.or(all.last());
    verb.map(|word| word.text.clone()).unwrap_or_default()
}

/// Returns all words about a tool, each as often as it counts.
fn searchable_text(tool: &Tool) -> String {
    let definition = tool.definition();
    let path = tool.path().as_str();
    let mut parts = vec![path.to_owned(); NAME_WEIGHT];
    // The path is the title of many tools.
    let title = definition.title.iter().filter(|title| *title != path);
    for emphasized in title.map(String::as_str).chain(tags(definition)) {
        parts.extend(vec![first_chars(emphasized); TITLE_WEIGHT]);
    }
    parts.extend(definition.description.as_deref().map(first_chars));
    let schema = serde_json::from_str(definition.input_schema.get()).unwrap_or_default();
    add_arguments(&schema, 0, &mut parts);
    parts.join(" ")
}

/// Adds names, descriptions and permitted values of arguments.
fn add_arguments(schema: &Value, depth: usize, parts: &mut Vec<String>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        parts.push(name.clone());
        let description = property.get("description").and_then(Value::as_str);
        parts.extend(description.map(first_chars));
        let values = property.get("enum").and_then(Value::as_array);
        let values = values.into_iter().flatten().filter_map(Value::as_str);
        parts.extend(values.map(first_chars));
        if depth < MAX_DEPTH {
            add_arguments(property, depth + 1, parts);
        }
    }
}

fn first_chars(text: &str) -> String {
    text.chars().take(MAX_TEXT_CHARS).collect()
}
