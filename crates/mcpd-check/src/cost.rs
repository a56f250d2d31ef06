//! Estimate of what a list of tools costs a model, in tokens of its context.
//!
//! Every model has a tokenizer of its own, and one alone has a table of several megabytes. So the
//! tokens are estimated from the text as those tokenizers split it: at spaces, capitals and
//! punctuation. Measured with `o200k_base` and `cl100k_base` of OpenAI, English descriptions and
//! schemas are within a tenth; names are up to a fifth too high, and other languages coarser.

use mcpd_server::Catalog;
use serde::Serialize;
use serde_json::value::RawValue;

/// Tokens around each tool, such as the keys of its fields.
const TOKENS_PER_TOOL: usize = 8;

/// Estimated cost of one tool in a list, in tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolCost {
    /// Path of the tool.
    pub path: String,
    /// Tokens of the whole tool.
    pub total: usize,
    /// Tokens of its name.
    pub name: usize,
    /// Tokens of its description.
    pub description: usize,
    /// Tokens of the schema of its arguments.
    pub schema: usize,
}

/// Estimated cost of a list of tools, in tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ListCost {
    /// Tokens of all tools.
    pub total: usize,
    /// Cost of every tool, the dearest first.
    pub tools: Vec<ToolCost>,
}

impl ListCost {
    /// Estimates the cost of the tools of `catalog`, as clients pass them on to a model: name,
    /// description and schema of the arguments.
    #[must_use]
    pub fn of(catalog: &Catalog) -> Self {
        let tools = catalog.tools().iter();
        let mut tools: Vec<_> = tools
            .map(|tool| {
                let definition = tool.definition();
                let schema = tool.portable_input_schema();
                ToolCost::new(
                    tool.path().to_string(),
                    tool.portable_name(),
                    definition.description.as_deref().unwrap_or_default(),
                    schema.unwrap_or(&definition.input_schema),
                )
            })
            .collect();
        tools.sort_by(|a, b| b.total.cmp(&a.total).then_with(|| a.path.cmp(&b.path)));
        Self {
            total: tools.iter().map(|tool| tool.total).sum(),
            tools,
        }
    }
}

impl ToolCost {
    fn new(path: String, name: &str, description: &str, schema: &RawValue) -> Self {
        let name = estimate_tokens(name);
        let description = estimate_tokens(description);
        let schema = estimate_tokens(schema.get());
        Self {
            path,
            total: name + description + schema + TOKENS_PER_TOOL,
            name,
            description,
            schema,
        }
    }
}

/// Kind of a character, as tokenizers tell pieces of text apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    Digit,
    Latin,
    /// A letter of Chinese, Japanese or Korean: four have three tokens.
    Ideograph,
    OtherLetter,
    Punctuation,
}

impl Kind {
    fn of(char: char) -> Self {
        match char {
            char if char.is_whitespace() => Self::Space,
            char if char.is_numeric() => Self::Digit,
            char if char.is_ascii_alphabetic() => Self::Latin,
            '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' => {
                Self::Ideograph
            }
            char if char.is_alphabetic() => Self::OtherLetter,
            _ => Self::Punctuation,
        }
    }

    /// Estimated tokens of `length` characters of this kind.
    fn tokens(self, length: usize) -> usize {
        match self {
            // One space belongs to the word after it.
            Self::Space => usize::from(length > 1),
            Self::Digit => length.div_ceil(3),
            Self::Latin => length.div_ceil(LATIN_CHARS),
            Self::Ideograph => (length * 3).div_ceil(4),
            Self::OtherLetter => length.div_ceil(3),
            Self::Punctuation => length.div_ceil(PUNCTUATION_CHARS),
        }
    }
}

/// Characters of a word in one token, and of punctuation such as `":{"`.
const LATIN_CHARS: usize = 9;
const PUNCTUATION_CHARS: usize = 4;

/// Estimates the tokens of a text.
#[must_use]
pub fn estimate_tokens(text: &str) -> usize {
    let mut tokens = 0;
    let mut run: Option<(Kind, usize)> = None;
    let mut was_lower = false;
    for char in text.chars() {
        let kind = Kind::of(char);
        let is_new_word = was_lower && char.is_uppercase();
        was_lower = char.is_lowercase();
        match &mut run {
            Some((current, length)) if *current == kind && !is_new_word => *length += 1,
            _ => {
                tokens += run.map_or(0, |(kind, length)| kind.tokens(length));
                run = Some((kind, 1));
            }
        }
    }
    tokens + run.map_or(0, |(kind, length)| kind.tokens(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the estimate with the tokens of `o200k_base`.
    #[track_caller]
    fn check(text: &str, tokens: usize, percent: usize) {
        let difference = estimate_tokens(text).abs_diff(tokens);
        assert!(difference * 100 <= tokens * percent, "{text}: {difference}");
    }

    #[test]
    fn english_is_within_a_tenth() {
        check(
            "Searches the tools of this server, most of which are not listed. Returns name, description and inputSchema of the best matches; call one with call_tool.",
            33,
            10,
        );
        check(
            r#"{"type":"object","properties":{"query":{"type":"string","minLength":1,"maxLength":1000,"description":"What the tool should do, in a few words"},"limit":{"type":"integer","minimum":1,"maximum":20,"default":5,"description":"How many tools to return"}},"required":["query"],"additionalProperties":false}"#,
            75,
            10,
        );
    }

    #[test]
    fn other_languages_are_within_two_fifths() {
        check(
            "Löscht eine Rechnung endgültig; das lässt sich nicht rückgängig machen.",
            16,
            40,
        );
        check("在所有合同中搜索特定的词语并返回最佳结果。", 15, 40);
    }

    #[test]
    fn empty_text_costs_nothing() {
        assert_eq!(estimate_tokens(""), 0);
    }
}
