//! Rules for commands: patterns over the words of a command. They guard models against mistakes.
//! The words of a command do not reveal all that it does, so only a sandbox is a security
//! boundary.

use globset::{Glob, GlobMatcher};
use mcpd_scriptspec::excerpt;

use super::shell_parser::{self, Word};
use crate::policy::pattern::PatternError;

/// Maximum number of characters of a command that a message quotes.
const MAX_QUOTED_CHARS: usize = 200;

/// Allowed commands, if not all are, and denied ones.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CommandRules {
    allow: Vec<CommandPattern>,
    deny: Vec<CommandPattern>,
}

/// Words of a command: a name and arguments. The last may match any number of them.
#[derive(Debug, Clone)]
struct CommandPattern {
    text: String,
    words: Vec<GlobMatcher>,
    is_open: bool,
}

impl PartialEq for CommandPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl CommandRules {
    pub(super) fn allow(&mut self, pattern: &str) -> Result<(), PatternError> {
        self.allow.push(CommandPattern::new(pattern)?);
        Ok(())
    }

    pub(super) fn deny(&mut self, pattern: &str) -> Result<(), PatternError> {
        let program = pattern.split_whitespace().next();
        if program.is_some_and(|program| program.contains('/')) {
            let reason = "a program is denied by its name alone, under whatever path";
            return Err(PatternError::new(pattern, reason));
        }
        self.deny.push(CommandPattern::new(pattern)?);
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }

    /// Decides whether a command may run.
    ///
    /// # Errors
    ///
    /// Returns the reason for a rejection, as a sentence for the author of the command.
    pub(super) fn judge(&self, command: &str) -> Result<(), String> {
        if self.is_empty() {
            return Ok(());
        }
        let parsed = shell_parser::parse(command).map_err(|fault| {
            format!("The command was not run, because it cannot be parsed: {fault}.")
        })?;
        for command in parsed.commands.iter().chain(&parsed.indirect_commands) {
            if let Some(pattern) = self.deny.iter().find(|pattern| pattern.may_match(command)) {
                return Err(format!(
                    "The command was not run: `{}` is denied by the rule `{}`.",
                    quote_command(command),
                    pattern.text
                ));
            }
        }
        if let Some(what) = parsed.unreadable.filter(|_| !self.deny.is_empty()) {
            return Err(format!(
                "The command was not run: it contains {what}, and the commands that this runs cannot be checked against the denied ones."
            ));
        }
        if self.allow.is_empty() {
            return Ok(());
        }
        if let Some(doubt) = parsed.doubt {
            return Err(format!(
                "The command was not run: it contains {doubt}, whose effect cannot be determined beforehand. {}",
                self.allowed_patterns()
            ));
        }
        let is_allowed = |command: &&Vec<Word>| {
            self.allow
                .iter()
                .any(|pattern| pattern.matches_certainly(command))
        };
        match parsed.commands.iter().find(|command| !is_allowed(command)) {
            Some(command) => Err(format!(
                "The command was not run: `{}` is not allowed. {}",
                quote_command(command),
                self.allowed_patterns()
            )),
            None => Ok(()),
        }
    }

    fn allowed_patterns(&self) -> String {
        let patterns: Vec<_> = self
            .allow
            .iter()
            .map(|pattern| format!("`{}`", pattern.text))
            .collect();
        format!("Allowed commands: {}.", patterns.join(", "))
    }
}

impl CommandPattern {
    fn new(text: &str) -> Result<Self, PatternError> {
        let wrong = |reason: &str| PatternError::new(text, reason);
        let mut patterns: Vec<_> = text.split_whitespace().collect();
        let is_open = patterns.len() > 1 && patterns.last() == Some(&"*");
        if is_open {
            patterns.pop();
        }
        if patterns.is_empty() {
            return Err(wrong("it contains no command"));
        }
        let matcher = |pattern: &&str| {
            let glob = Glob::new(pattern).map_err(|error| wrong(&error.kind().to_string()))?;
            Ok(glob.compile_matcher())
        };
        Ok(Self {
            text: text.to_owned(),
            words: patterns.iter().map(matcher).collect::<Result<_, _>>()?,
            is_open,
        })
    }

    /// Returns whether a command certainly matches.
    fn matches_certainly(&self, command: &[Word]) -> bool {
        self.matches(command, |pattern, word| match word {
            Word::Known(word) => pattern.is_match(word),
            Word::Unknown(_) => false,
        })
    }

    /// Returns whether a command may match: a program under any path, and any word known only to
    /// the shell.
    fn may_match(&self, command: &[Word]) -> bool {
        let Some((Word::Known(program), arguments)) = command.split_first() else {
            return true;
        };
        let name = program.rsplit('/').next().unwrap_or(program);
        let command = [&[Word::Known(name.to_owned())], arguments].concat();
        let has_unknown = arguments
            .iter()
            .any(|word| matches!(word, Word::Unknown(_)));
        let may_match = |pattern: &GlobMatcher, word: &Word| match word {
            Word::Known(word) => pattern.is_match(word),
            Word::Unknown(_) => true,
        };
        // An unknown word may expand to any number of words.
        match has_unknown {
            true => self
                .words
                .iter()
                .zip(&command)
                .all(|(pattern, word)| may_match(pattern, word)),
            false => self.matches(&command, may_match),
        }
    }

    fn matches(&self, command: &[Word], matches: impl Fn(&GlobMatcher, &Word) -> bool) -> bool {
        let is_long_enough = match self.is_open {
            true => command.len() >= self.words.len(),
            false => command.len() == self.words.len(),
        };
        is_long_enough
            && self
                .words
                .iter()
                .zip(command)
                .all(|(pattern, word)| matches(pattern, word))
    }
}

fn quote_command(command: &[Word]) -> String {
    let words: Vec<_> = command.iter().map(Word::text).collect();
    excerpt(&words.join(" "), MAX_QUOTED_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[&str], deny: &[&str]) -> CommandRules {
        let mut rules = CommandRules::default();
        for pattern in allow {
            rules.allow(pattern).unwrap();
        }
        for pattern in deny {
            rules.deny(pattern).unwrap();
        }
        rules
    }

    #[track_caller]
    fn check(rules: &CommandRules, command: &str, is_run: bool) {
        assert_eq!(rules.judge(command).is_ok(), is_run, "{command}");
    }

    #[test]
    fn command_rules_allow_everything_by_default() {
        check(&rules(&[], &[]), "rm -rf / 'x", true);
    }

    #[test]
    fn allow_rule_admits_matching_commands_only() {
        let rules = rules(&["git *", "ls", "cargo test", "make [a-z]*"], &[]);
        for command in [
            "git",
            "git log -3",
            "ls",
            "git log | git diff; ls",
            "cargo test",
            "make all",
        ] {
            check(&rules, command, true);
        }
        for command in [
            "rm x",
            "ls -l",
            "git log; rm x",
            "git log | sh",
            "cargo test -q",
            "cargo",
            "make X",
            "make",
        ] {
            check(&rules, command, false);
        }
        check(&rules, "/tmp/git log", false);
        check(&rules, "time git log", false);
        check(&rules, "g''it log > x", true);
    }

    #[test]
    fn allow_rule_rejects_unjudgeable_commands() {
        let rules = rules(&["git *", "echo *", "eval *", "cat"], &[]);
        check(&rules, "git log $X", true);
        for command in [
            "git $(rm x)",
            "echo `rm x`",
            "eval ls",
            "$X log",
            "X=1 git log",
            "for x in y; do git; done",
        ] {
            check(&rules, command, false);
        }
        for command in [
            "cat <<E\nE",
            "git 'x",
            "git() { rm x; }; git",
            "gi? log",
            "./git log",
            "echo ${x:=y}",
        ] {
            check(&rules, command, false);
        }
    }

    #[test]
    fn deny_rule_applies_to_every_command_of_a_text() {
        let rules = rules(&[], &["rm *", "git push *"]);
        for command in [
            "ls",
            "git log",
            "echo 'rm x'",
            "echo rm",
            "cat <<E\nrm x\nE",
            "echo $(date)",
        ] {
            check(&rules, command, true);
        }
        for command in [
            "rm x",
            "/bin/rm x",
            "\\rm x",
            "ls; rm x",
            "ls && (rm x)",
            "echo $(rm x)",
            "A=1 rm x",
            "if ls; then rm x; fi",
        ] {
            check(&rules, command, false);
        }
        // Behind keywords of the shell, and in texts that it evaluates.
        for command in [
            "time rm x",
            "time -p { rm x; }",
            "exec command A=1 rm x",
            "builtin eval 'ls; rm' x",
            "trap -- 'rm x' EXIT",
            "eval \"$X\"",
            "coproc rm x",
            "alias x=rm\nx y",
        ] {
            check(&rules, command, false);
        }
        for command in [
            "time ls",
            "command -v rm",
            "eval ls",
            "exec >x",
            "trap - INT",
        ] {
            check(&rules, command, true);
        }
        // This may match.
        for command in ["git $X", "$X y", "git push", "git 'push"] {
            check(&rules, command, false);
        }
        check(&rules, "git log $X", true);
    }

    #[test]
    fn deny_rule_applies_to_indirect_commands() {
        let rules = rules(&[], &["rm *", "git push *"]);
        for command in [
            "env rm x",
            "env -i -u A B=1 /bin/rm x",
            "/usr/bin/env --unset=A -- rm x",
            "env -C / rm x",
            "env -S 'rm x'",
            "env -S'rm x'",
            "env --unheard-of y rm x",
            "nice rm x",
            "nice -n 5 rm x",
            "nice -5 nohup setsid -f rm x",
            "timeout 5 rm x",
            "timeout -k 1 -s KILL 5 rm x",
            "timeout $T rm x",
            "ls | xargs rm",
            "ls | xargs -0 -n 1 -I F rm F",
            "ls | xargs git",
            "sudo rm x",
            "sudo -u root -E A=1 rm x",
            "sudo -s 'rm x'",
            "doas -u you rm x",
            "su -c 'rm x'",
            "exec -a name rm x",
            "stdbuf -oL rm x",
            "flock /tmp/l rm x",
            "flock /tmp/l -c 'rm x'",
            "busybox rm x",
            "find . -name y -exec rm {} +",
            r"find . -exec ls {} \; -execdir env rm {} \;",
            "env $X",
        ] {
            check(&rules, command, false);
        }
        for command in [
            "env",
            "env A=1 ls",
            "nice -n 5 ls rm x",
            "timeout 5 git log",
            "ls | xargs -n 1 ls",
            "sudo -u rm ls",
            "find . -name rm -exec ls {} +",
            "find . -delete",
            "exec -a rm ls",
            "sudo git log",
        ] {
            check(&rules, command, true);
        }
    }

    #[test]
    fn deny_rule_reads_the_texts_of_shells() {
        let rules = rules(&[], &["rm *"]);
        for command in [
            "sh -c 'rm x'",
            "bash -lc 'ls; env rm x'",
            "bash -o pipefail -ec 'ls && (rm x)'",
            "sh -c \"sh -c 'rm x'\"",
            "sh -c \"$X\"",
            "sh -c 'if'\\''",
            "fish -c 'rm x'",
            "ls | sh",
            "echo 'rm x' | bash -s",
            "sh < file",
            "sh -",
            "sh /dev/stdin",
            "sh $X",
            "bash <(ls)",
            ". /dev/stdin",
            "source <(ls)",
            "sh -c 'ls | sh'",
        ] {
            check(&rules, command, false);
        }
        for command in [
            "sh -c 'ls'",
            "bash -o pipefail -c 'ls | cat'",
            "sh script.sh rm x",
            ". ./settings",
            "bash --version",
        ] {
            check(&rules, command, true);
        }
    }

    #[test]
    fn deny_rule_refuses_words_that_evaluate_text() {
        let denying = rules(&[], &["rm *"]);
        for command in [
            "let 'a[$(rm x)]=1'",
            "declare -i a='b[$(rm x)]'",
            "printf -v 'a[$(rm x)]' y",
            "test -v 'a[$(rm x)]'",
            "[[ 'a[$(rm x)]' -eq 0 ]]",
            "mapfile -C 'rm x' a",
            "compgen -C 'rm x'",
            "hash -p /bin/rm ls",
            "unset 'a[$(rm x)]'",
            "PS4='$(rm x)' sh -x file",
            "export BASH_ENV=file",
            "a='b[$(rm x)]'; echo $((a))",
        ] {
            check(&denying, command, false);
        }
        for command in [
            "printf '%s' a",
            "test -f a",
            "[[ $a -eq 1 ]]",
            "export A=1",
            "a=1 ls",
            "read a",
        ] {
            check(&denying, command, true);
        }
        // A list of allowed commands judges the words of the command alone.
        check(
            &rules(&["printf *", "sh *"], &[]),
            "printf -v a b; sh -c ls",
            true,
        );
        let error = denying.judge("ls | sh").unwrap_err();
        assert_eq!(
            error,
            "The command was not run: it contains a shell that takes its commands from its input, \
             and the commands that this runs cannot be checked against the denied ones."
        );
    }

    #[test]
    fn deny_rule_takes_precedence_over_allow_rule() {
        let rules = rules(&["git *"], &["git push *"]);
        check(&rules, "git log", true);
        check(&rules, "git push origin", false);
    }

    #[test]
    fn rejection_states_its_reason() {
        let rules = rules(&["git *", "ls"], &["git push *"]);
        assert_eq!(
            rules.judge("rm x").unwrap_err(),
            "The command was not run: `rm x` is not allowed. Allowed commands: `git *`, `ls`."
        );
        assert_eq!(
            rules.judge("git push").unwrap_err(),
            "The command was not run: `git push` is denied by the rule `git push *`."
        );
        assert_eq!(
            rules.judge("ls $(x)").unwrap_err(),
            "The command was not run: it contains a substitution, whose effect cannot be determined beforehand. Allowed commands: `git *`, `ls`."
        );
    }

    #[test]
    fn deny_rule_rejects_a_program_path() {
        let mut rules = CommandRules::default();
        let error = rules.deny("/bin/rm *").unwrap_err().to_string();
        assert!(error.contains("by its name alone"), "{error}");
        assert!(rules.deny("rm /tmp/*").is_ok());
        assert!(rules.allow("/bin/rm *").is_ok());
    }

    #[test]
    fn question_mark_matches_one_ascii_character() {
        let rules = rules(&["a ?", "b [äö]", "c {ä,ö}", "d *"], &[]);
        for command in ["a x", "c ö", "d ä"] {
            check(&rules, command, true);
        }
        // The letter has two bytes, and a pattern matches single bytes.
        for command in ["a ä", "b ä"] {
            check(&rules, command, false);
        }
    }

    #[test]
    fn empty_pattern_is_rejected() {
        assert!(CommandPattern::new(" ").is_err());
        assert!(CommandPattern::new("[").is_err());
        assert!(CommandPattern::new("*").is_ok());
    }
}
