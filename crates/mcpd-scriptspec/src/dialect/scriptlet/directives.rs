//! Directives in a comment that change how a block runs: `cwd`, `prepend` and `append`.
//!
//! `cwd` becomes the first statement of the program, `prepend` and `append` words around a
//! command. All three are text of the author. Other directives, such as `shortcut`, concern the
//! desktop and have no effect here.

use super::{
    language::Language,
    section::{Block, Text},
};
use crate::json::Span;

/// Directives for the block of one section.
#[derive(Debug, Default)]
pub(super) struct Directives {
    cwd: Option<Text>,
    prepend: Option<Text>,
    append: Option<Text>,
}

/// A directive that is invalid for the block below it.
pub(super) struct MisplacedDirective {
    pub(super) span: Span,
    pub(super) message: &'static str,
    pub(super) help: &'static str,
}

impl Directives {
    /// Reads a line at byte `start` of the source, and returns whether it is a directive.
    pub(super) fn take(&mut self, line: &str, start: usize) -> bool {
        let Some((key, value)) = line.split_once(':') else {
            return false;
        };
        let field = match key.trim() {
            "cwd" => &mut self.cwd,
            "prepend" => &mut self.prepend,
            "append" => &mut self.append,
            _ => return false,
        };
        let value_start = start + line.len() - value.trim_start().len();
        let text = value.trim().to_owned();
        let span = value_start..value_start + text.len();
        *field = Some(Text { text, span }).filter(|value| !value.text.is_empty());
        true
    }

    /// Returns the statement that changes to the directory of `cwd`.
    pub(super) fn change_directory(
        &self,
        language: Language,
    ) -> Result<Option<Block>, MisplacedDirective> {
        let Some(cwd) = &self.cwd else {
            return Ok(None);
        };
        match language.change_directory(&cwd.text) {
            Some(code) => Ok(Some(Block::new_at(code, cwd.span.clone()))),
            None => Err(MisplacedDirective {
                span: cwd.span.clone(),
                message: "the directory of this block cannot be changed",
                help: "change the directory in the code itself",
            }),
        }
    }

    /// Returns the block with the words of `prepend` and `append` around it.
    pub(super) fn wrap(
        &self,
        block: &Block,
        language: Language,
    ) -> Result<Block, MisplacedDirective> {
        let words = [&self.prepend, &self.append].into_iter().flatten();
        if let Some(words) = words.last().filter(|_| !language.is_shell()) {
            return Err(MisplacedDirective {
                span: words.span.clone(),
                message: "only commands of a shell have words before and after them",
                help: "write it in the code itself",
            });
        }
        let mut wrapped = block.with_parts(&[]);
        if let Some(prepend) = &self.prepend {
            let code = format!("{} ", prepend.text);
            wrapped.append(&Block::new_at(code, prepend.span.clone()));
        }
        match &self.append {
            Some(append) => {
                let code = 0..block.code.trim_end().len();
                wrapped.append(&block.with_parts(&[code]));
                let code = format!(" {}\n", append.text);
                wrapped.append(&Block::new_at(code, append.span.clone()));
            }
            None => wrapped.append(block),
        }
        Ok(wrapped)
    }
}
