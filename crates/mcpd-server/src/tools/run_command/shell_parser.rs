//! Static parser of POSIX shell commands: the words of every simple command, wherever it stands,
//! and the parts that only the shell can interpret. Expands nothing and runs nothing.

mod grammar;
mod indirect;
mod text;
mod word;

use mcpd_scriptspec::shell::HereDocument;

use grammar::{
    CONSTRUCTS, PREFIXES, REDIRECTIONS, SUFFIXES, is_assignment, is_construct, is_operator_of_list,
    without_options,
};
use text::Text;
pub(super) use word::Word;
use word::WordDraft;

/// Maximum nesting depth of commands.
const MAX_DEPTH: usize = 32;

/// Faults of unterminated text.
const NOT_CLOSED: &str = "something in it is unclosed";
const QUOTE_NOT_CLOSED: &str = "unclosed quote";
/// Shells differ on a here-document whose body is elsewhere than after the line with its
/// operator.
const STRAY_DOCUMENT: &str = "a here-document does not follow the line that announces it";

/// Commands in a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parsed {
    /// Simple commands, in the order of their ends.
    pub(super) commands: Vec<Vec<Word>>,
    /// Commands that the shell or other programs run for these, such as the one behind `time` or
    /// `env`.
    pub(super) indirect_commands: Vec<Vec<Word>>,
    /// First construct that may run commands beyond these.
    pub(super) unreadable: Option<&'static str>,
    /// First construct other than simple commands, pipelines and lists.
    pub(super) doubt: Option<&'static str>,
}

/// Parses the text of a command.
///
/// # Errors
///
/// Returns a fragment if the text is invalid, too complex, or means different commands to
/// different shells.
pub(super) fn parse(text: &str) -> Result<Parsed, &'static str> {
    let mut parser = Parser::new(text);
    parser.parse_list(false)?;
    Ok(parser.parsed)
}

struct Parser {
    rest: Text,
    parsed: Parsed,
    /// Here-documents whose bodies begin after the next newline.
    documents: Vec<HereDocument>,
    depth: usize,
}

impl Parser {
    fn new(text: &str) -> Self {
        Self {
            rest: text.into(),
            parsed: Parsed::default(),
            documents: Vec::new(),
            depth: 0,
        }
    }

    /// Parses one level deeper.
    fn parse_nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, &'static str>,
    ) -> Result<T, &'static str> {
        if self.depth == MAX_DEPTH {
            return Err("nested too deeply");
        }
        self.depth += 1;
        let read = read(self)?;
        self.depth -= 1;
        Ok(read)
    }

    /// Parses another text in place of the rest of this one.
    fn parse_text<T>(
        &mut self,
        text: &str,
        read: impl FnOnce(&mut Self) -> Result<T, &'static str>,
    ) -> Result<T, &'static str> {
        let rest = std::mem::replace(&mut self.rest, text.into());
        let read = self.parse_nested(read)?;
        self.rest = rest;
        Ok(read)
    }

    /// Parses commands up to the end of the text, or up to the `)` that closes a `group`.
    fn parse_list(&mut self, is_group: bool) -> Result<(), &'static str> {
        let announced = self.documents.len();
        let mut command = Vec::new();
        loop {
            match self.rest.peek() {
                None if is_group => return Err(NOT_CLOSED),
                None => break,
                Some(')') if is_group => {
                    self.rest.next();
                    break;
                }
                Some(' ' | '\t') => {
                    self.rest.next();
                }
                Some('#') => self.rest.skip_line(),
                Some('\n') if announced > 0 => return Err(STRAY_DOCUMENT),
                Some('\n') => {
                    self.rest.next();
                    self.record_command(&mut command)?;
                    self.skip_documents()?;
                }
                Some(';' | '&' | '|') => {
                    self.rest.next();
                    self.record_command(&mut command)?;
                }
                // Ends a pattern of `case`, which is no command. If it is a mistake, the shell
                // runs nothing.
                Some(')') => {
                    self.rest.next();
                    command.clear();
                }
                Some('(') => {
                    self.rest.next();
                    if !command.is_empty() {
                        self.note_doubt("the definition of a function");
                    }
                    self.record_command(&mut command)?;
                    self.parse_group()?;
                }
                Some('<' | '>') => self.parse_redirection()?,
                Some(_) => self.parse_command_word(&mut command, is_group)?,
            }
        }
        self.record_command(&mut command)?;
        match self.documents.len() > announced {
            true => Err(STRAY_DOCUMENT),
            false => Ok(()),
        }
    }

    /// Parses commands in parentheses, after the opening one.
    fn parse_group(&mut self) -> Result<(), &'static str> {
        if self.rest.peek() == Some('(') {
            return Err("`((` is arithmetic to one shell and two groups to another");
        }
        self.parse_nested(|parser| parser.parse_list(true))
    }

    /// Parses a word, and adds it to a command unless it belongs to the grammar.
    fn parse_command_word(
        &mut self,
        command: &mut Vec<Word>,
        is_in_group: bool,
    ) -> Result<(), &'static str> {
        let draft = self.parse_word()?;
        if draft.is_number() && matches!(self.rest.peek(), Some('<' | '>')) {
            return Ok(());
        }
        let word = Word::from(draft);
        let begins =
            |words: &[&str]| matches!(&word, Word::Known(text) if words.contains(&&**text));
        if is_construct(command) && begins(&PREFIXES) {
            command.clear();
        } else if !command.is_empty() {
            command.push(word);
        } else if is_in_group && begins(&["case"]) {
            return Err("`case` is in parentheses, and has some of its own");
        } else if begins(&CONSTRUCTS) {
            self.note_doubt("`for`, `case` or the like");
            command.push(word);
        } else if is_assignment(&word) {
            self.note_doubt("an assignment");
            self.record_assignment(&word);
        } else if !begins(&PREFIXES) && !begins(&SUFFIXES) {
            command.push(word);
        }
        Ok(())
    }

    /// Records a complete command, and the commands that it has the shell run.
    fn record_command(&mut self, command: &mut Vec<Word>) -> Result<(), &'static str> {
        let command = std::mem::take(command);
        if !command.is_empty() && !is_construct(&command) {
            self.record_builtin(&command)?;
            self.parsed.commands.push(command);
        }
        Ok(())
    }

    /// Records the commands that a builtin of the shell runs.
    fn record_builtin(&mut self, command: &[Word]) -> Result<(), &'static str> {
        let Some((Word::Known(name), arguments)) = command.split_first() else {
            return Ok(());
        };
        match name.as_str() {
            "alias" => Err("`alias` gives names to commands in one shell that are none in another"),
            "coproc" => {
                Err("`coproc` is a word of the language to one shell and a program to another")
            }
            "eval" => self.parse_evaluated(without_options(arguments)),
            "trap" => {
                let action = without_options(arguments).first();
                self.parse_evaluated(action.map_or(&[], std::slice::from_ref))
            }
            _ => self.record_indirect(command),
        }
    }

    /// Parses the words that `eval` or `trap` joins to commands.
    fn parse_evaluated(&mut self, words: &[Word]) -> Result<(), &'static str> {
        self.note_doubt("`eval` or `trap`");
        let is_known = |word: &Word| matches!(word, Word::Known(_));
        let texts = words.iter().map(Word::text).collect::<Vec<_>>().join(" ");
        if words.iter().all(is_known) {
            return self.parse_text(&texts, |parser| parser.parse_list(false));
        }
        self.parsed.commands.push(vec![Word::Unknown(texts)]);
        Ok(())
    }

    fn note_doubt(&mut self, what: &'static str) {
        self.parsed.doubt.get_or_insert(what);
    }

    /// Parses `> file`, `2>&1`, `<< END` and the like.
    fn parse_redirection(&mut self) -> Result<(), &'static str> {
        let mut operator = String::new();
        let is_operator = |text: &str| REDIRECTIONS.iter().any(|known| known.starts_with(text));
        while let Some(char) = self
            .rest
            .next_if(|char| is_operator(&format!("{operator}{char}")))
        {
            operator.push(char);
        }
        if self.rest.take('(') {
            self.note_doubt("a substitution");
            return self.parse_group();
        }
        while self.rest.next_if(|char| " \t".contains(char)).is_some() {}
        // An operator at this place is a mistake that the shell reports.
        if self.rest.peek().is_none_or(is_operator_of_list) {
            return Ok(());
        }
        let target = self.parse_word()?;
        if operator.ends_with('&') && target.value.len() > 1 && target.value.starts_with('-') {
            return Err("what follows `&-` is a word of its own to some shells");
        }
        if operator == "<<" || operator == "<<-" {
            self.note_doubt("a here-document");
            if target.is_unknown {
                return Err("the end of a here-document is no plain word");
            }
            let is_indented = operator == "<<-";
            let document = HereDocument::new(target.value, target.is_quoted, is_indented);
            self.documents.push(document);
        }
        Ok(())
    }

    /// Skips the here-documents of the line that has just ended, except for their substitutions.
    fn skip_documents(&mut self) -> Result<(), &'static str> {
        for document in std::mem::take(&mut self.documents) {
            let (body, length) = document.read(self.rest.written());
            self.rest.skip(length);
            if !document.is_quoted {
                self.parse_text(&body, Self::parse_document)?;
            }
        }
        Ok(())
    }

    /// Parses the substitutions in a here-document.
    fn parse_document(&mut self) -> Result<(), &'static str> {
        let mut text = WordDraft::default();
        while let Some(char) = self.rest.next() {
            match char {
                '\\' => {
                    self.rest.next_written();
                }
                '$' => self.parse_expansion(&mut text, true)?,
                '`' => self.parse_backquoted(&mut text, true)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Parses one word.
    fn parse_word(&mut self) -> Result<WordDraft, &'static str> {
        let mut word = WordDraft::default();
        while let Some(char) = self
            .rest
            .next_if(|char| !" \t".contains(char) && !is_operator_of_list(char))
        {
            match char {
                '\\' => {
                    word.is_quoted = true;
                    word.push(self.rest.next_written().unwrap_or('\\'));
                }
                '\'' => self.parse_single_quoted(&mut word)?,
                '"' => self.parse_double_quoted(&mut word)?,
                '$' => self.parse_expansion(&mut word, false)?,
                '`' => self.parse_backquoted(&mut word, false)?,
                '*' | '?' | '[' | '{' | '~' => {
                    word.push(char);
                    word.is_unknown = true;
                }
                char => word.push(char),
            }
        }
        Ok(word)
    }

    fn parse_single_quoted(&mut self, word: &mut WordDraft) -> Result<(), &'static str> {
        word.is_quoted = true;
        loop {
            match self.rest.next_written() {
                Some('\'') => return Ok(()),
                Some(char) => word.push(char),
                None => return Err(QUOTE_NOT_CLOSED),
            }
        }
    }

    fn parse_double_quoted(&mut self, word: &mut WordDraft) -> Result<(), &'static str> {
        word.is_quoted = true;
        loop {
            match self.rest.next() {
                Some('"') => return Ok(()),
                Some('\\') => match self.rest.next_written() {
                    Some(char @ ('$' | '`' | '"' | '\\')) => word.push(char),
                    Some(char) => {
                        word.push('\\');
                        word.push(char);
                    }
                    None => return Err(QUOTE_NOT_CLOSED),
                },
                Some('$') => self.parse_expansion(word, true)?,
                Some('`') => self.parse_backquoted(word, true)?,
                Some(char) => word.push(char),
                None => return Err(QUOTE_NOT_CLOSED),
            }
        }
    }

    /// Parses an expansion after a dollar sign.
    fn parse_expansion(
        &mut self,
        word: &mut WordDraft,
        is_quoted: bool,
    ) -> Result<(), &'static str> {
        match self.rest.peek() {
            Some('(') => {
                self.rest.next();
                self.note_doubt("a substitution");
                word.push_unknown("$(…)");
                if self.rest.take('(') {
                    self.parse_nested(|parser| parser.parse_arithmetic(word))?;
                } else {
                    self.parse_nested(|parser| parser.parse_list(true))?;
                }
            }
            Some('{') => {
                self.rest.next();
                word.push_unknown("${");
                self.parse_nested(|parser| parser.parse_braced(word, is_quoted))?;
            }
            Some('[') => {
                return Err("`$[` is arithmetic to one shell and a pattern to another");
            }
            Some('\'' | '"') if !is_quoted => self.parse_dollar_quote(word)?,
            Some('$') => {
                self.rest.next();
                word.push_unknown("$");
                match self.rest.peek() {
                    Some('(' | '[' | '{') => {
                        return Err("a bracket after `$$` is text to one shell only");
                    }
                    Some('\'' | '"') if !is_quoted => self.parse_dollar_quote(word)?,
                    _ => word.push_unknown("$"),
                }
            }
            Some(char) if char.is_ascii_alphanumeric() || "_@*#?-!".contains(char) => {
                word.push_unknown("$");
            }
            _ => word.push('$'),
        }
        Ok(())
    }

    /// Parses `$'…'`, and the beginning of `$"…"`, which some shells treat as ordinary quotes.
    fn parse_dollar_quote(&mut self, word: &mut WordDraft) -> Result<(), &'static str> {
        self.note_doubt("`$` before a quote");
        word.push_unknown("$");
        if self.rest.take('\'') {
            self.parse_single_quoted(word)?;
            if word.written.ends_with('\\') {
                return Err("a quote after `$` is closed for one shell and open for another");
            }
        }
        Ok(())
    }

    /// Parses the rest of `$((…))`.
    fn parse_arithmetic(&mut self, word: &mut WordDraft) -> Result<(), &'static str> {
        let mut open = 2;
        while open > 0 {
            match self.rest.next() {
                Some('(') => open += 1,
                Some(')') if open == 2 && self.rest.peek() != Some(')') => {
                    return Err("`$((` begins something that is no arithmetic");
                }
                Some(')') => open -= 1,
                Some('$') => self.parse_expansion(word, true)?,
                Some('`') => self.parse_backquoted(word, true)?,
                Some('\'' | '"' | '\\') => return Err("a quote is in arithmetic"),
                Some(_) => {}
                None => return Err(NOT_CLOSED),
            }
        }
        Ok(())
    }

    /// Parses the rest of `${…}`. Only a plain name is safe; other forms can run commands or set
    /// variables.
    fn parse_braced(&mut self, word: &mut WordDraft, is_quoted: bool) -> Result<(), &'static str> {
        loop {
            match self.rest.next() {
                Some('}') => {
                    word.written.push('}');
                    return Ok(());
                }
                Some('$') => {
                    self.note_doubt("an expansion in an expansion");
                    self.parse_expansion(word, is_quoted)?;
                }
                Some('`') => self.parse_backquoted(word, is_quoted)?,
                Some('\'' | '"') if is_quoted => {
                    return Err("a quote is in an expansion that is quoted itself");
                }
                Some('\'') => self.parse_single_quoted(word)?,
                Some('"') => self.parse_double_quoted(word)?,
                Some(char) => {
                    if !char.is_ascii_alphanumeric() && char != '_' {
                        self.note_doubt("an expansion that is more than a name");
                    }
                    word.written.push(char);
                    if char == '\\' {
                        word.written.extend(self.rest.next_written());
                    }
                }
                None => return Err("an expansion is not closed"),
            }
        }
    }

    /// Parses the rest of a substitution in backquotes, where backslashes are processed first.
    fn parse_backquoted(
        &mut self,
        word: &mut WordDraft,
        is_quoted: bool,
    ) -> Result<(), &'static str> {
        self.note_doubt("a substitution");
        word.push_unknown("`…`");
        let mut command = String::new();
        loop {
            match self.rest.next_written() {
                Some('`') => return self.parse_text(&command, |parser| parser.parse_list(false)),
                Some('\\') => match self.rest.next_written() {
                    Some(char @ ('$' | '`' | '\\')) => command.push(char),
                    Some('"') if is_quoted => command.push('"'),
                    char => {
                        command.push('\\');
                        command.extend(char);
                    }
                },
                Some(char) => command.push(char),
                None => return Err(NOT_CLOSED),
            }
        }
    }
}

#[cfg(test)]
mod tests;
