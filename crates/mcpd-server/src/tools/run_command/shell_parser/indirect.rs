//! Indirect commands: those that programs run in turn, as far as their words tell, such as those
//! behind `env`, `timeout` or `find -exec`, and the texts passed to shells. Only rules that deny
//! consider them: a list of allowed commands judges the words of the command itself.

use super::{PREFIXES, Parser, Word, is_assignment};

/// Program that runs a command after its own options and operands.
struct Wrapper {
    names: &'static [&'static str],
    /// Short options without a value.
    flags: &'static str,
    /// Short options with a value, in the same word or the next.
    valued: &'static str,
    /// Short options whose value is run by a shell, or split into words.
    texts: &'static str,
    /// Long options whose value may be the next word.
    long_valued: &'static [&'static str],
    /// Number of operands before the command.
    operands: usize,
    /// Tells whether further words come from its input.
    reads_words: bool,
}

const PLAIN: Wrapper = Wrapper {
    names: &["builtin", "busybox", "command", "nohup", "toybox"],
    flags: "pvV",
    valued: "",
    texts: "",
    long_valued: &[],
    operands: 0,
    reads_words: false,
};

const WRAPPERS: [Wrapper; 15] = [
    PLAIN,
    Wrapper {
        names: &["exec"],
        flags: "cl",
        valued: "a",
        ..PLAIN
    },
    Wrapper {
        names: &["time"],
        flags: "apqvV",
        valued: "fo",
        long_valued: &["format", "output"],
        ..PLAIN
    },
    Wrapper {
        names: &["env"],
        flags: "i0v",
        valued: "aCPu",
        texts: "S",
        long_valued: &["argv0", "chdir", "unset"],
        ..PLAIN
    },
    Wrapper {
        names: &["nice"],
        flags: "",
        valued: "n",
        long_valued: &["adjustment"],
        ..PLAIN
    },
    Wrapper {
        names: &["setsid"],
        flags: "cfw",
        ..PLAIN
    },
    Wrapper {
        names: &["timeout"],
        flags: "fpv",
        valued: "ks",
        long_valued: &["kill-after", "signal"],
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        names: &["xargs"],
        flags: "0oprtx",
        valued: "adEILnPsS",
        long_valued: &[
            "arg-file",
            "delimiter",
            "max-args",
            "max-chars",
            "max-procs",
        ],
        reads_words: true,
        ..PLAIN
    },
    Wrapper {
        names: &["sudo"],
        flags: "ABbEeHiKklNnPSsv",
        valued: "CDghpRrTtUu",
        long_valued: &[
            "chdir",
            "chroot",
            "close-from",
            "command-timeout",
            "group",
            "host",
            "other-user",
            "prompt",
            "role",
            "type",
            "user",
        ],
        ..PLAIN
    },
    Wrapper {
        names: &["doas", "pkexec"],
        flags: "Lns",
        valued: "Cu",
        long_valued: &["user"],
        ..PLAIN
    },
    Wrapper {
        names: &["su", "runuser"],
        flags: "flmpPT",
        valued: "gGsuw",
        texts: "c",
        long_valued: &[
            "group",
            "shell",
            "supp-group",
            "user",
            "whitelist-environment",
        ],
        ..PLAIN
    },
    Wrapper {
        names: &["stdbuf", "ionice"],
        flags: "t",
        valued: "cneio",
        long_valued: &["class", "classdata", "error", "input", "output"],
        ..PLAIN
    },
    Wrapper {
        names: &["chroot", "flock", "taskset", "chrt"],
        flags: "abeFfinorsux",
        valued: "wE",
        texts: "c",
        long_valued: &["timeout", "conflict-exit-code", "wait"],
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        names: &["strace", "ltrace"],
        flags: "cCdfhikqrtTvvwxyzZ",
        valued: "abeEIoOpPsSuUX",
        ..PLAIN
    },
    Wrapper {
        names: &["watch"],
        flags: "bcCdegprtwx",
        valued: "nq",
        long_valued: &["interval", "equexit"],
        ..PLAIN
    },
];

/// Long options whose value is a text that is run.
const LONG_TEXTS: [&str; 3] = ["command", "session-command", "split-string"];

/// Shells whose syntax the parser knows, and shells with another syntax.
const POSIX_SHELLS: [&str; 9] = [
    "ash", "bash", "dash", "ksh", "ksh93", "mksh", "rbash", "sh", "zsh",
];
const OTHER_SHELLS: [&str; 7] = ["csh", "elvish", "fish", "nu", "pwsh", "tcsh", "xonsh"];

/// Builtins that evaluate text: subscripts with substitutions, and names of functions.
const EVALUATORS: [&str; 9] = [
    "bind", "compgen", "complete", "declare", "enable", "fc", "let", "local", "typeset",
];
/// Variables whose values shells and loaders run.
const RUN_VARIABLES: [&str; 7] = [
    "BASH_ENV",
    "ENV",
    "LD_AUDIT",
    "LD_PRELOAD",
    "PROMPT_COMMAND",
    "PS4",
    "ZDOTDIR",
];

/// Reasons for which a command cannot be checked against denied patterns, as fragments.
const FROM_INPUT: &str = "a shell that takes its commands from its input";
const UNREADABLE_TEXT: &str = "a text for a shell that only that shell can read";
const EVALUATED: &str = "a word of the shell that evaluates text";
const RUN_VALUE: &str = "a variable whose value is run";
const SUBSTITUTION_IN_VALUE: &str = "a value that is a substitution where it is evaluated";

impl Parser {
    /// Records the commands that a program runs.
    pub(super) fn record_indirect(&mut self, command: &[Word]) -> Result<(), &'static str> {
        let Some((Word::Known(program), arguments)) = command.split_first() else {
            return Ok(());
        };
        let name = program.rsplit('/').next().unwrap_or(program);
        if POSIX_SHELLS.contains(&name) || OTHER_SHELLS.contains(&name) {
            return self.record_shell(name, arguments);
        }
        match name {
            "command" if only_reports(arguments) => Ok(()),
            "." | "source" => {
                let file = arguments.iter().find(|word| !word.is_option());
                if file.is_none_or(|file| !is_file(file)) {
                    self.mark_unreadable(FROM_INPUT);
                }
                Ok(())
            }
            "find" | "fd" | "fdfind" => self.record_find_actions(arguments),
            _ if runs_text(program, arguments) => {
                self.mark_unreadable(EVALUATED);
                Ok(())
            }
            _ => match WRAPPERS
                .iter()
                .find(|wrapper| wrapper.names.contains(&name))
            {
                Some(wrapper) => self.record_wrapped(wrapper, arguments),
                None => Ok(()),
            },
        }
    }

    /// Records the assignment of a value to a variable.
    pub(super) fn record_assignment(&mut self, word: &Word) {
        let (name, value) = word.text().split_once('=').unwrap_or_default();
        if RUN_VARIABLES.contains(&name.trim_end_matches('+')) {
            self.mark_unreadable(RUN_VALUE);
        } else if matches!(word, Word::Known(_)) && (value.contains("$(") || value.contains('`')) {
            self.mark_unreadable(SUBSTITUTION_IN_VALUE);
        }
    }

    fn record_wrapped(
        &mut self,
        wrapper: &Wrapper,
        arguments: &[Word],
    ) -> Result<(), &'static str> {
        // `flock` and `su` accept them behind their operands as well.
        for (place, word) in arguments.iter().enumerate() {
            if let Word::Known(option) = word
                && let OptionValue::Text(text) = wrapper.value_of(option)
            {
                let text = Word::Known(text.to_owned());
                let is_next = text.text().is_empty();
                self.record_text(if is_next {
                    arguments.get(place + 1)
                } else {
                    Some(&text)
                });
            }
        }
        for start in self.command_starts(wrapper, arguments) {
            let mut command = arguments.get(start..).unwrap_or_default().to_vec();
            if command.is_empty() {
                continue;
            }
            if wrapper.reads_words {
                command.push(Word::Unknown("…".to_owned()));
            }
            self.record_started(command)?;
        }
        Ok(())
    }

    /// Returns where the command of a wrapper may begin among its arguments: one index, or
    /// several if an unknown option may have a value.
    fn command_starts(&mut self, wrapper: &Wrapper, arguments: &[Word]) -> Vec<usize> {
        let mut starts = Vec::new();
        let mut next = 0;
        while let Some(Word::Known(option)) = arguments.get(next)
            && option.starts_with('-')
        {
            next += 1;
            if option == "--" {
                break;
            }
            match wrapper.value_of(option) {
                OptionValue::None => {}
                OptionValue::Next => next += 1,
                OptionValue::Unclear => starts.push(next + 1),
                OptionValue::Text(text) => next += usize::from(text.is_empty()),
            }
        }
        while let Some(word) = arguments.get(next)
            && (is_assignment(word) || is_prefix(word))
        {
            self.record_assignment(word);
            next += 1;
        }
        let operands = arguments.iter().skip(next).take(wrapper.operands);
        match operands
            .clone()
            .any(|word| matches!(word, Word::Unknown(_)))
        {
            // It may expand to no word or several.
            true => starts.push(next),
            false => starts.push(next + wrapper.operands),
        }
        starts
    }

    /// Records an indirect command, and the commands that it runs in turn.
    fn record_started(&mut self, command: Vec<Word>) -> Result<(), &'static str> {
        if let Some(Word::Known(text)) = command.first()
            && text.contains(char::is_whitespace)
        {
            // `sudo -s` and `watch` pass it to a shell.
            self.record_text(command.first());
        }
        self.parse_nested(|parser| parser.record_builtin(&command))?;
        self.parsed.indirect_commands.push(command);
        Ok(())
    }

    fn record_shell(&mut self, name: &str, arguments: &[Word]) -> Result<(), &'static str> {
        let (mut next, mut is_text) = (0, false);
        while let Some(Word::Known(option)) = arguments.get(next)
            && option.len() > 1
            && option.starts_with(['-', '+'])
        {
            next += 1;
            match option.strip_prefix("--") {
                Some("") => break,
                Some("help" | "version") => return Ok(()),
                Some("init-file" | "rcfile") => next += 1,
                Some(_) => {}
                None => {
                    is_text |= option.starts_with('-') && option.contains('c');
                    next += usize::from(option.ends_with(['o', 'O']));
                }
            }
        }
        match arguments.get(next) {
            Some(Word::Known(_)) if is_text && OTHER_SHELLS.contains(&name) => {
                self.mark_unreadable(UNREADABLE_TEXT);
            }
            text if is_text => self.record_text(text),
            Some(file) if is_file(file) => {}
            _ => self.mark_unreadable(FROM_INPUT),
        }
        Ok(())
    }

    /// Records the commands in a text for a shell.
    fn record_text(&mut self, text: Option<&Word>) {
        let text = match text {
            Some(Word::Known(text)) => text,
            Some(Word::Unknown(_)) => return self.mark_unreadable(UNREADABLE_TEXT),
            None => return,
        };
        let mut parser = Self {
            depth: self.depth + 1,
            ..Self::new(text)
        };
        if parser.parse_list(false).is_err() {
            return self.mark_unreadable(UNREADABLE_TEXT);
        }
        let read = parser.parsed;
        self.parsed.indirect_commands.extend(read.commands);
        self.parsed.indirect_commands.extend(read.indirect_commands);
        if let Some(unreadable) = read.unreadable {
            self.mark_unreadable(unreadable);
        }
    }

    /// Records the commands of `-exec` and similar actions.
    fn record_find_actions(&mut self, arguments: &[Word]) -> Result<(), &'static str> {
        const ACTIONS: [&str; 8] = [
            "-exec",
            "-execdir",
            "-ok",
            "-okdir",
            "-x",
            "-X",
            "--exec",
            "--exec-batch",
        ];
        let is_one_of = |word: &Word, words: &[&str]| words.contains(&word.text());
        let mut rest = arguments;
        while let Some(action) = rest.iter().position(|word| is_one_of(word, &ACTIONS)) {
            rest = &rest[action + 1..];
            let end = rest.iter().position(|word| is_one_of(word, &[";", "+"]));
            let (command, others) = rest.split_at(end.unwrap_or(rest.len()));
            rest = others;
            let found = |word: &Word| match word.text().contains('{') {
                true => Word::Unknown(word.text().to_owned()),
                false => word.clone(),
            };
            self.record_started(command.iter().map(found).collect())?;
        }
        Ok(())
    }

    fn mark_unreadable(&mut self, what: &'static str) {
        self.parsed.unreadable.get_or_insert(what);
    }
}

/// Value of an option.
enum OptionValue<'a> {
    /// None, or in the same word.
    None,
    /// The next word.
    Next,
    /// Unknown, as is the option.
    Unclear,
    /// A text that is run; an empty one is the next word.
    Text(&'a str),
}

impl Wrapper {
    fn value_of<'a>(&self, option: &'a str) -> OptionValue<'a> {
        if !option.starts_with('-') {
            return OptionValue::None;
        }
        if let Some(long) = option.strip_prefix("--") {
            return match long.split_once('=') {
                Some((name, text)) if LONG_TEXTS.contains(&name) => OptionValue::Text(text),
                Some(_) => OptionValue::None,
                None if LONG_TEXTS.contains(&long) => OptionValue::Text(""),
                None if self.long_valued.contains(&long) => OptionValue::Next,
                None => OptionValue::Unclear,
            };
        }
        let letters = &option[1..];
        for (place, letter) in letters.char_indices() {
            let rest = &letters[place + letter.len_utf8()..];
            if self.texts.contains(letter) {
                return OptionValue::Text(rest);
            }
            if self.valued.contains(letter) {
                return match rest.is_empty() {
                    true => OptionValue::Next,
                    false => OptionValue::None,
                };
            }
            if !self.flags.contains(letter) && !letter.is_ascii_digit() {
                return OptionValue::Unclear;
            }
        }
        OptionValue::None
    }
}

/// Returns whether `command` only reports what it would run.
fn only_reports(arguments: &[Word]) -> bool {
    matches!(arguments.first(), Some(Word::Known(option)) if option == "-v" || option == "-V")
}

fn is_prefix(word: &Word) -> bool {
    matches!(word, Word::Known(word) if PREFIXES.contains(&&**word))
}

/// Returns whether a word is certainly the name of a file other than the standard input.
fn is_file(word: &Word) -> bool {
    let Word::Known(name) = word else {
        return false;
    };
    let is_input = name == "-"
        || name == "/dev/stdin"
        || name.starts_with("/dev/fd/")
        || (name.starts_with("/proc/") && name.contains("/fd/"));
    !is_input
}

/// Returns whether a builtin of the shell evaluates its arguments.
fn runs_text(name: &str, arguments: &[Word]) -> bool {
    let has_option = |wanted: char| {
        let mut options = arguments.iter().filter(|word| word.is_option());
        options.any(|option| option.text().contains(wanted))
    };
    let has_subscript = || arguments.iter().any(|word| word.text().contains('['));
    let assigns_run_variable = || {
        let names = arguments.iter().map(|word| word.text().split('=').next());
        names.flatten().any(|name| RUN_VARIABLES.contains(&name))
    };
    match name {
        "printf" => has_option('v'),
        "test" | "[" | "[[" => {
            has_option('v') || has_option('R') || {
                let compares =
                    |word: &Word| ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"].contains(&word.text());
                name == "[[" && arguments.iter().any(compares) && has_subscript()
            }
        }
        "mapfile" | "readarray" => has_option('C') || has_subscript(),
        "hash" => has_option('p'),
        "read" | "unset" => has_subscript(),
        "export" | "readonly" => has_subscript() || assigns_run_variable(),
        _ => EVALUATORS.contains(&name),
    }
}
