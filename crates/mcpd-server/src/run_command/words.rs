//! What a command of a POSIX shell runs, as far as its text tells: the words of every simple command, wherever it
//! stands, and what of it nobody but the shell can judge. Nothing is expanded, and nothing is run.

use std::iter::Peekable;
use std::str::Chars;

/// How deep one command may stand in another.
const MAX_DEPTH: usize = 32;

/// Words after which another command begins.
const PREFIXES: [&str; 9] = [
    "if", "then", "elif", "else", "while", "until", "do", "{", "!",
];
/// Words that end a construct.
const SUFFIXES: [&str; 4] = ["fi", "done", "esac", "}"];
/// Words that begin a construct with other words in it than commands.
const CONSTRUCTS: [&str; 4] = ["for", "case", "select", "function"];
/// Commands that run what other commands have made.
const EVALUATORS: [&str; 2] = ["eval", "trap"];

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// What the shell makes of it.
    Known(String),
    /// As it is written: only the shell knows what it makes of it.
    Unknown(String),
}

/// What a text runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parsed {
    /// The simple commands, in the order of their ends.
    pub(super) commands: Vec<Vec<Word>>,
    /// The first thing there is in it besides simple commands, pipelines and lists.
    pub(super) doubt: Option<&'static str>,
}

/// Reads the text of a command.
///
/// # Errors
///
/// It is none, or too intricate; said as a fragment.
pub(super) fn parse(text: &str) -> Result<Parsed, &'static str> {
    // A backslash before a newline joins two lines, whatever else stands there.
    let text = text.replace("\\\n", "");
    let mut parser = Parser {
        rest: text.chars().peekable(),
        parsed: Parsed::default(),
        documents: Vec::new(),
        depth: 0,
    };
    parser.list(None)?;
    Ok(parser.parsed)
}

struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
    parsed: Parsed,
    /// The last lines of the here-documents that begin after the next newline.
    documents: Vec<String>,
    depth: usize,
}

/// A word while it is read.
#[derive(Default)]
struct Draft {
    /// What the shell makes of it, if it is known.
    value: String,
    /// As it is written, roughly.
    written: String,
    is_unknown: bool,
    is_quoted: bool,
}

impl Draft {
    fn push(&mut self, char: char) {
        self.value.push(char);
        self.written.push(char);
    }

    fn unknown(&mut self, written: &str) {
        self.written.push_str(written);
        self.is_unknown = true;
    }
}

impl Parser<'_> {
    /// Reads commands up to `end`, which is the end of the text if there is none.
    fn list(&mut self, end: Option<char>) -> Result<(), &'static str> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("it is nested too deeply");
        }
        let mut command = Vec::new();
        loop {
            match self.rest.peek().copied() {
                None if end.is_none() => break,
                None => return Err("something in it is not closed"),
                Some(char) if Some(char) == end => {
                    self.rest.next();
                    break;
                }
                Some(' ' | '\t') => {
                    self.rest.next();
                }
                Some('#') => while self.rest.next_if(|char| *char != '\n').is_some() {},
                Some('\n') => {
                    self.rest.next();
                    self.finish(&mut command);
                    self.skip_documents();
                }
                Some(';' | '&' | '|' | ')') => {
                    self.rest.next();
                    self.finish(&mut command);
                }
                Some('(') => {
                    self.rest.next();
                    if !command.is_empty() {
                        self.doubt("the definition of a function");
                    }
                    self.finish(&mut command);
                    self.list(Some(')'))?;
                }
                Some('<' | '>') => self.redirection(end)?,
                Some(_) => {
                    let word = self.word(end)?;
                    // The number of a descriptor belongs to what follows it.
                    let is_number = matches!(&word, Word::Known(word) if word.bytes().all(|byte| byte.is_ascii_digit()));
                    if !(is_number && matches!(self.rest.peek(), Some('<' | '>'))) {
                        self.add(&mut command, word);
                    }
                }
            }
        }
        self.finish(&mut command);
        self.depth -= 1;
        Ok(())
    }

    /// Adds a word to a command, unless it belongs to the grammar.
    fn add(&mut self, command: &mut Vec<Word>, word: Word) {
        if !command.is_empty() {
            command.push(word);
            return;
        }
        match &word {
            Word::Known(text) if PREFIXES.contains(&&**text) || SUFFIXES.contains(&&**text) => {}
            Word::Known(text) if CONSTRUCTS.contains(&&**text) => {
                self.doubt("`for`, `case` or the like");
                command.push(word);
            }
            Word::Known(text) | Word::Unknown(text) if is_assignment(text) => {
                self.doubt("an assignment");
            }
            Word::Known(text) if EVALUATORS.contains(&&**text) => {
                self.doubt("`eval` or `trap`");
                command.push(word);
            }
            _ => command.push(word),
        }
    }

    /// Takes a command down that is complete.
    fn finish(&mut self, command: &mut Vec<Word>) {
        let command = std::mem::take(command);
        let is_construct =
            matches!(command.first(), Some(Word::Known(word)) if CONSTRUCTS.contains(&&**word));
        if !command.is_empty() && !is_construct {
            self.parsed.commands.push(command);
        }
    }

    fn doubt(&mut self, what: &'static str) {
        self.parsed.doubt.get_or_insert(what);
    }

    /// `> file`, `2>&1`, `<< END` and their like.
    fn redirection(&mut self, end: Option<char>) -> Result<(), &'static str> {
        let mut operator = String::new();
        while let Some(char) = self.rest.next_if(|char| "<>&|-".contains(*char)) {
            operator.push(char);
        }
        if self.rest.next_if_eq(&'(').is_some() {
            self.doubt("a substitution");
            return self.list(Some(')'));
        }
        while self.rest.next_if(|char| " \t".contains(*char)).is_some() {}
        // An operator after it is a mistake, for the shell to tell.
        if self
            .rest
            .peek()
            .is_none_or(|char| "\n;&|()<>".contains(*char))
        {
            return Ok(());
        }
        let (Word::Known(target) | Word::Unknown(target)) = self.word(end)?;
        if operator.starts_with("<<") && !operator.starts_with("<<<") {
            self.doubt("a here-document");
            self.documents.push(target);
        }
        Ok(())
    }

    /// Passes over the here-documents whose operators were on the line that has just ended.
    fn skip_documents(&mut self) {
        for end in std::mem::take(&mut self.documents) {
            while self.rest.peek().is_some() {
                let mut line = String::new();
                while let Some(char) = self.rest.next_if(|char| *char != '\n') {
                    line.push(char);
                }
                self.rest.next();
                if line.trim_start_matches('\t') == end {
                    break;
                }
            }
        }
    }

    /// Reads one word, which `end` ends as well.
    fn word(&mut self, end: Option<char>) -> Result<Word, &'static str> {
        let mut word = Draft::default();
        while let Some(&char) = self.rest.peek() {
            if " \t\n;&|()<>".contains(char) || Some(char) == end {
                break;
            }
            self.rest.next();
            match char {
                '\\' => {
                    word.is_quoted = true;
                    match self.rest.next() {
                        Some(char) => word.push(char),
                        None => word.push('\\'),
                    }
                }
                '\'' => self.single_quoted(&mut word)?,
                '"' => self.double_quoted(&mut word)?,
                '$' => self.dollar(&mut word)?,
                '`' => self.backquoted(&mut word)?,
                '*' | '?' | '[' | '{' | '~' => {
                    word.push(char);
                    word.is_unknown = true;
                }
                char => word.push(char),
            }
        }
        // These stand for themselves if they stand alone.
        let is_plain = !word.is_quoted && ["[", "[[", "{", "{}"].contains(&&*word.written);
        Ok(match word.is_unknown && !is_plain {
            true => Word::Unknown(word.written),
            // A quoted word is none of the grammar.
            false if word.is_quoted && is_grammar(&word.value) => Word::Unknown(word.written),
            false => Word::Known(word.value),
        })
    }

    fn single_quoted(&mut self, word: &mut Draft) -> Result<(), &'static str> {
        word.is_quoted = true;
        loop {
            match self.rest.next() {
                Some('\'') => return Ok(()),
                Some(char) => word.push(char),
                None => return Err("a quote is not closed"),
            }
        }
    }

    fn double_quoted(&mut self, word: &mut Draft) -> Result<(), &'static str> {
        word.is_quoted = true;
        loop {
            match self.rest.next() {
                Some('"') => return Ok(()),
                Some('\\') => match self.rest.next() {
                    Some(char @ ('$' | '`' | '"' | '\\')) => word.push(char),
                    Some(char) => {
                        word.push('\\');
                        word.push(char);
                    }
                    None => return Err("a quote is not closed"),
                },
                Some('$') => self.dollar(word)?,
                Some('`') => self.backquoted(word)?,
                Some(char) => word.push(char),
                None => return Err("a quote is not closed"),
            }
        }
    }

    /// What follows a dollar sign.
    fn dollar(&mut self, word: &mut Draft) -> Result<(), &'static str> {
        match self.rest.peek().copied() {
            Some('(') => {
                self.rest.next();
                self.doubt("a substitution");
                word.unknown("$(…)");
                self.list(Some(')'))?;
            }
            Some('{') => {
                self.rest.next();
                word.unknown("${");
                self.braced(word)?;
            }
            Some(char @ ('\'' | '"')) => {
                // Not every shell takes it for a quote of its own.
                self.doubt("`$` before a quote");
                word.unknown(if char == '"' { "$\"" } else { "$'" });
            }
            Some(char) if char.is_ascii_alphanumeric() || "_@*#?-$!".contains(char) => {
                word.unknown("$");
            }
            _ => word.push('$'),
        }
        Ok(())
    }

    /// The rest of `${…}`. Only a name in it is plain; the shell can be made to run and to set things in others.
    fn braced(&mut self, word: &mut Draft) -> Result<(), &'static str> {
        loop {
            match self.rest.next() {
                Some('}') => {
                    word.written.push('}');
                    return Ok(());
                }
                Some('$') => {
                    self.doubt("an expansion in an expansion");
                    self.dollar(word)?;
                }
                Some('`') => self.backquoted(word)?,
                Some('\'') => self.single_quoted(word)?,
                Some('"') => self.double_quoted(word)?,
                Some(char) => {
                    if !char.is_ascii_alphanumeric() && char != '_' {
                        self.doubt("an expansion that is more than a name");
                    }
                    word.written.push(char);
                }
                None => return Err("an expansion is not closed"),
            }
        }
    }

    fn backquoted(&mut self, word: &mut Draft) -> Result<(), &'static str> {
        self.doubt("a substitution");
        word.unknown("`…`");
        self.list(Some('`'))
    }
}

fn is_grammar(word: &str) -> bool {
    PREFIXES.contains(&word) || SUFFIXES.contains(&word) || CONSTRUCTS.contains(&word)
}

/// `NAME=VALUE`, or `NAME+=VALUE`.
fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else {
        return false;
    };
    let name = name.strip_suffix('+').unwrap_or(name);
    let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
    !name.is_empty()
        && name.chars().all(is_name)
        && !name.starts_with(|char: char| char.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands in brackets, what is unknown after a question mark.
    fn shown(parsed: &Parsed) -> String {
        let word = |word: &Word| match word {
            Word::Known(word) => word.clone(),
            Word::Unknown(word) => format!("?{word}"),
        };
        let command = |command: &Vec<Word>| {
            let words: Vec<_> = command.iter().map(word).collect();
            format!("[{}]", words.join("|"))
        };
        parsed.commands.iter().map(command).collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let parsed = parse(text).unwrap();
        assert_eq!(shown(&parsed), expected, "{text}");
        assert_eq!(parsed.doubt, None, "{text}");
    }

    #[track_caller]
    fn check_doubt(text: &str, expected: &str, doubt: &str) {
        let parsed = parse(text).unwrap();
        assert_eq!(shown(&parsed), expected, "{text}");
        assert_eq!(parsed.doubt, Some(doubt), "{text}");
    }

    #[test]
    fn every_command_of_pipelines_and_lists_counts() {
        check("git log", "[git|log]");
        check("a|b||c&&d;e&f\ng", "[a][b][c][d][e][f][g]");
        check("(a; b) && { c; }", "[a][b][c]");
        check(
            "if a; then b; elif c; then d; else e; fi",
            "[a][b][c][d][e]",
        );
        check("! a; while b; do c; done", "[a][b][c]");
        check("a # b; c\nd#e", "[a][d#e]");
        check("a \\\n b", "[a|b]");
        check("", "");
    }

    #[test]
    fn words_are_what_the_shell_makes_of_them() {
        check(r#"'r'm "a b" c\ d \"e"#, r#"[rm|a b|c d|"e]"#);
        check(r#"echo "a\b \$x" '$x `y`' a$"#, r"[echo|a\b $x|$x `y`|a$]");
        check(
            "echo $x \"$x\" ${x} *.txt ~",
            "[echo|?$x|?$x|?${x}|?*.txt|?~]",
        );
        check(
            "find . -exec a {} ';' | [ b ]",
            "[find|.|-exec|a|{}|;][[|b|]]",
        );
        check("$x a", "[?$x|a]");
        check("'if' a", "[?if|a]");
    }

    #[test]
    fn redirections_are_no_words() {
        check("a 2>&1 >b c < d 3>e>>f", "[a|c]");
        check("a &>b", "[a]");
    }

    #[test]
    fn what_only_a_shell_can_judge_is_said() {
        check_doubt("a $(b; c) d", "[b][c][a|?$(…)|d]", "a substitution");
        check_doubt("a \"x`b c`y\"", "[b|c][a|?x`…`y]", "a substitution");
        check_doubt("a <(b)", "[b][a]", "a substitution");
        check_doubt("a > $(b)", "[b][a]", "a substitution");
        check_doubt(
            "a ${x:-$(b)}",
            "[b][a|?${x:-$(…)}]",
            "an expansion that is more than a name",
        );
        check_doubt("eval a", "[eval|a]", "`eval` or `trap`");
        check_doubt("X=1 a", "[a]", "an assignment");
        check_doubt("X=$(b)", "[b]", "a substitution");
        check_doubt(
            "for x in a b; do c; done",
            "[c]",
            "`for`, `case` or the like",
        );
        check_doubt("case x in a) b;; esac", "[b]", "`for`, `case` or the like");
        check_doubt("f() { a; }; f", "[f][a][f]", "the definition of a function");
        check_doubt("a $'b'", "[a|?$'b]", "`$` before a quote");
        check_doubt("a <<E; b\nrm c\nE\nd", "[a][b][d]", "a here-document");
    }

    #[test]
    fn what_is_no_command_is_refused() {
        for text in ["a 'b", "a \"b", "a $(b", "a `b", "(a", "a ${b"] {
            assert!(parse(text).is_err(), "{text}");
        }
        let deep = "$(".repeat(100_000);
        assert_eq!(parse(&deep), Err("it is nested too deeply"));
        let deep = "(".repeat(100_000);
        assert_eq!(parse(&deep), Err("it is nested too deeply"));
    }
}
