//! Full-text index of tools, ranked with BM25. Names weigh more than titles and tags, and those
//! more than descriptions; a synonym of a verb counts in names only, and less than the word itself.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use bm25::{
    Embedder, EmbedderBuilder, Embedding, Scorer, TokenEmbedder as _, TokenEmbedding,
    Tokenizer as _,
};
use serde_json::Value;

use super::question::Question;
use super::synonyms::Synonyms;
use super::words::Words;
use crate::catalog::tool::Tool;
use crate::catalog::tool::definition::tags;

/// Number of times that the name of a tool counts.
const NAME_WEIGHT: usize = 3;
/// Number of times that its title and its tags count.
const TITLE_WEIGHT: usize = 2;
/// Weight of a synonym in a name.
const SYNONYM_WEIGHT: f32 = 0.5;
/// Maximum number of characters of a text that are indexed, such as a manual in a description.
const MAX_TEXT_CHARS: usize = 4000;
/// Maximum depth of nested objects in arguments whose names are indexed.
const MAX_DEPTH: usize = 4;

/// Index of tools by their place in the catalog.
pub(super) struct ToolIndex {
    texts: TextIndex,
    /// Names alone, for synonyms.
    names: TextIndex,
    words: Words,
    synonyms: Synonyms,
}

impl ToolIndex {
    /// Indexes `tools`, except those that belong to the search itself.
    pub(super) fn new(tools: &[Arc<Tool>]) -> Self {
        let tools = tools.iter().enumerate();
        let tools = tools.filter(|(_, tool)| !tool.is_part_of_search());
        let texts = tools
            .clone()
            .map(|(place, tool)| (place, searchable_text(tool)));
        let names = tools.map(|(place, tool)| (place, tool.path().to_string()));
        let words = Words::default();
        Self {
            texts: TextIndex::new(texts.collect()),
            names: TextIndex::new(names.collect()),
            synonyms: Synonyms::new(|text| words.tokenize(text)),
            words,
        }
    }

    /// Returns the places of the tools that match best, at most `limit`.
    pub(super) fn search(&self, query: &str, limit: usize) -> Vec<usize> {
        let question = Question::read(query);
        let stems = self.words.tokenize(&question.text);
        let verbs = question.verbs.iter();
        let verbs: BTreeSet<_> = verbs.flat_map(|verb| self.words.tokenize(verb)).collect();
        let mut scores = self.texts.scores(stems.iter().map(String::as_str));
        let synonyms = self.names.scores(self.synonyms.expand(&stems, &verbs));
        if scores.is_empty() && self.synonyms.has_verb(&stems) {
            scores.clone_from(&synonyms);
        }
        for (place, score) in &mut scores {
            let bonus = synonyms.get(place).copied().unwrap_or_default();
            *score += SYNONYM_WEIGHT * bonus;
        }
        let mut ranked: Vec<_> = scores.into_iter().collect();
        // Equal scores come in the order of the catalog.
        ranked.sort_by(|(place, score), (other, its)| {
            its.partial_cmp(score)
                .unwrap_or(Ordering::Equal)
                .then(place.cmp(other))
        });
        ranked.truncate(limit);
        ranked.into_iter().map(|(place, _)| place).collect()
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
    fn scores<'a>(&self, stems: impl IntoIterator<Item = &'a str>) -> BTreeMap<usize, f32> {
        let stems: BTreeSet<_> = stems.into_iter().collect();
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
