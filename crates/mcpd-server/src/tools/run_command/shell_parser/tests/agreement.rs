//! Agreement of the two readers of shell syntax. `mcpd-scriptspec` fills placeholders in shell code
//! so that every value stays one word; the parser of commands must find that word in the result.
//! They share here-documents alone, so that each would notice a mistake of the other.

use mcpd_scriptspec::Severity;
use mcpd_scriptspec::dialect::{Body, Dialect};

use super::super::*;

/// Number of generated scriptlets.
const CASES: u64 = 8_000;

/// Value of the only input.
const VALUE: &str = "A B";

const FRAGMENTS: [&str; 58] = [
    "echo ", "{{a}}", "{{a}}", " ", "\n", "'", "'", "\"", "\"", "\\", "\\\n", "$", "$$", "$(", ")",
    "(", "`", "`", "${y:-", "${y", "}", "$((", "))", "((", "<<E", "<<-E", "<<'E'", "<<\\E", "E\n",
    "\nE\n", "\tE\n", "#", " #", ";", "|", "&", "&&", ">", "<", "<<<", "2>", "case ", " in ",
    "x) ", ";;", "esac", "if ", "then ", "fi", "x", "x=", "[", "]", "[[ ", " ]]", "{ ", "; }",
    "$'",
];

/// Generator of shell code, the same in every run.
struct Generator(u64);

impl Generator {
    /// Returns a number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        // Xorshift, whose higher bits are better.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % bound
    }

    fn choose(&mut self, texts: &[&str]) -> String {
        texts[self.below(texts.len())].to_owned()
    }

    /// Returns one to three parts in sequence.
    fn repeat(&mut self, part: impl Fn(&mut Self) -> String) -> String {
        let count = 1 + self.below(3);
        (0..count).map(|_| part(self)).collect()
    }

    /// Returns fragments in any order.
    fn fragments(&mut self) -> String {
        let count = 2 + self.below(22);
        (0..count).map(|_| self.choose(&FRAGMENTS)).collect()
    }

    /// Returns commands that are mostly valid.
    fn commands(&mut self, depth: usize) -> String {
        self.repeat(|generator| {
            let words = generator.repeat(|generator| " ".to_owned() + &generator.word(depth));
            match generator.below(8) {
                0 => generator.document(&words),
                1 => format!("echo{words} # it's {{{{a}}}}\n"),
                _ => format!("echo{words}") + &generator.choose(&["\n", "\n", ";", " | ", " && "]),
            }
        })
    }

    /// Returns a command with a here-document, and one after it.
    fn document(&mut self, words: &str) -> String {
        let start = self.choose(&["<<E", "<<-E", "<<'E'", "<<\\E", "<< \"E\"", "<<\\\nE"]);
        let body = self.repeat(|generator| {
            let text = ["x", "\"", "'", "E", "\tE", "E ", "x\\\\", "$y", ""];
            let end = ["", "", "{{a}}", "x\\", "\\"];
            generator.choose(&text) + &generator.choose(&end) + "\n"
        });
        format!("echo{words} {start}\n{body}E\necho {}\n", self.word(0))
    }

    fn word(&mut self, depth: usize) -> String {
        self.repeat(|generator| match generator.below(8 + 7 * depth.min(1)) {
            0..3 => "{{a}}".to_owned(),
            3 => generator.choose(&["x", "#", "$", "$$", "=", "\\\"", "\\'", "\\\\", "\\\n", "~"]),
            4 => {
                let text = ["x", " ", "\\", "\"", "$", "#", "\n"];
                format!(
                    "'{}'",
                    generator.repeat(|generator| generator.choose(&text))
                )
            }
            5..8 => format!(
                "\"{}\"",
                generator.repeat(|generator| generator.quoted(depth))
            ),
            8 => format!("$({})", generator.commands(depth - 1)),
            9 => format!("`{}`", generator.commands(depth - 1)),
            10 => {
                let backslashes = generator.choose(&["", "\\", "\\\\", "\\\\\\"]);
                format!("`echo \"{backslashes}$(echo {{{{a}}}})\"`")
            }
            11 => format!("${{y:-{}}}", generator.word(depth - 1)),
            12 => format!("$(({}))", generator.choose(&["1+2", "(1)*2", "1<<2", "$y"])),
            13 => format!(">{}", generator.word(depth - 1)),
            _ => "$y".to_owned(),
        })
    }

    /// Returns a part of a text in double quotes.
    fn quoted(&mut self, depth: usize) -> String {
        match self.below(5 + 3 * depth.min(1)) {
            0..2 => "{{a}}".to_owned(),
            2 => self.choose(&[
                "x", " ", "'", "\\\"", "\\\\", "\\$", "\n", "\\\n", "$", "\\x",
            ]),
            3 => self.choose(&["$y", "$$", "$[", "$$("]),
            4 => "it's".to_owned(),
            5 => format!("$({})", self.commands(depth - 1)),
            6 => format!("${{y:-{}}}", self.choose(&["x", "'", "\"z\""])),
            _ => format!("$(({}))", self.choose(&["1+2", "(1)*2", "1<<2"])),
        }
    }
}

/// Fills the placeholders of shell code; `None` if one of them has a fault.
fn fill(code: &str, language: &str) -> Option<String> {
    let file = "x.scriptlets.md";
    let text = format!("## X\n\nX.\n\n```{language}\n{code}\n```\n");
    let mut tools = Dialect::of(file, text.as_bytes())?.read(file, text.as_bytes());
    let tool = tools.pop()?;
    let mut faults = tool.parsed.diagnostics.iter();
    if faults.any(|fault| fault.severity == Severity::Error) {
        return None;
    }
    match tool.body {
        Body::Code { mut variants, .. } => Some(variants.pop()?.text),
        _ => None,
    }
}

/// Checks the words with the value. Returns their number.
#[track_caller]
fn check_words(code: &str, language: &str) -> usize {
    let Some(text) = fill(code, language) else {
        return 0;
    };
    let Ok(parsed) = parse(&text.replace("${MCPD_OPT_a}", VALUE)) else {
        return 0;
    };
    let words = parsed.commands.iter().flatten().map(Word::text);
    for word in words.clone() {
        let is_whole = !word.replace(VALUE, "").contains(['A', 'B']);
        assert!(
            is_whole,
            "{code}\nis filled as\n{text}\nwith the word {word}"
        );
    }
    words.filter(|word| word.contains(VALUE)).count()
}

#[test]
fn filled_value_is_a_part_of_one_word() {
    let mut generator = Generator(0x2545_f491_4f6c_dd1d);
    let mut words = 0;
    for case in 0..CASES {
        let code = match case % 2 {
            0 => generator.fragments(),
            _ => generator.commands(case as usize % 3),
        };
        for language in ["sh", "bash"] {
            words += check_words(&code, language);
        }
    }
    assert!(words > 1000, "{words}");
}
