//! Reader of completions for bash: words of `compgen -W` and of `opts`, and the arms of `case
//! $prev`. Nothing is run, so words that a command computes are not found.

use std::{iter, ops::Range, sync::LazyLock};

use regex::{Captures, Regex};

use super::{Command, CommandLine, Flag, FlagValue, Position, Unread, ValueKind};

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is valid")
}

static CASE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*case\s+(.+?)\s+in\b"));
static ARM: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*\(?((?:!\(-\*\)|[^()])+)\)(.*)$"));
static WORDS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?:\bopts=|-W\s+)(?:'([^']*)'|"((?:[^"\\]|\\.)*)")"#));
static LETTERS: LazyLock<Regex> = LazyLock::new(|| pattern(r"^-!\(-\*\)(?:\[(\w+)\]|(\w))$"));

/// Subject of the `case` around a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// The word before: each arm has flags that take a value.
    Previous,
    /// The sub-command: the first arm is that of the program itself.
    Command,
    Other,
}

/// A `case`, and the arm of it that a line stands in.
struct Case {
    subject: Subject,
    /// Flags of the arm.
    flags: Vec<String>,
    /// Number of arms so far.
    arms: usize,
}

/// Reads the completions of a program.
pub(super) fn read(text: &str) -> CommandLine {
    let mut read = CommandLine::default();
    let mut cases: Vec<Case> = Vec::new();
    let mut lists = WORDS.captures_iter(text).peekable();
    let mut start = 0;
    for whole in text.split_inclusive('\n') {
        let line = whole.trim_end();
        let span = start..start + line.len();
        start += whole.len();
        // A list may go on over several lines; it belongs to its first.
        let begins_here =
            |list: &Captures<'_>| list.get(0).is_some_and(|list| list.start() < start);
        let found: Vec<_> = iter::from_fn(|| lists.next_if(begins_here)).collect();
        if line.trim_start().starts_with('#') {
            continue;
        }
        if let Some(found) = CASE.captures(line) {
            cases.push(Case {
                subject: subject(&found[1]),
                flags: Vec::new(),
                arms: 0,
            });
            continue;
        }
        if line.trim_start().starts_with("esac") {
            cases.pop();
            continue;
        }
        if let Some(case) = cases.last_mut() {
            enter(case, line);
        }
        let is_subcommand = |case: &Case| case.subject == Subject::Command && case.arms > 1;
        if cases.iter().any(is_subcommand) {
            continue;
        }
        if let Some(case) = cases.last()
            && case.subject == Subject::Previous
            && ARM.is_match(line)
        {
            add_with_values(&case.flags, &span, &mut read);
        }
        for list in &found {
            words(list, cases.last(), &span, &mut read);
        }
    }
    drop_letters_about_program(&mut read);
    if read.is_empty() {
        read.unread.push(Unread {
            span: 0..0,
            message: "no flag is written out here; they may come from the help of the program"
                .to_owned(),
        });
    }
    read
}

fn subject(word: &str) -> Subject {
    let is = |name: &str| word.contains(name);
    match word {
        _ if is("prev") => Subject::Previous,
        // `cmd,i` finds the sub-command, and `cmd` has its words.
        _ if is("cmd") && !word.contains(',') => Subject::Command,
        _ => Subject::Other,
    }
}

/// Enters the arm that begins on this line, if one does.
fn enter(case: &mut Case, line: &str) {
    if let Some(found) = ARM.captures(line) {
        case.arms += 1;
        case.flags = found[1].split('|').flat_map(labels).collect();
    }
}

/// Adds the flags of an arm, which take a value. A word and a letter alone are one flag.
fn add_with_values(spellings: &[String], span: &Range<usize>, read: &mut CommandLine) {
    let is_long = |spelling: &String| spelling.starts_with("--");
    if let [one, other] = spellings
        && is_long(one) != is_long(other)
    {
        let mut both = flag(one, Some(value("--", ValueKind::Text)), span);
        both.spellings.push(other.clone());
        return read.add(both);
    }
    for spelling in spellings {
        let value = Some(value(spelling, ValueKind::Text));
        read.add(flag(spelling, value, span));
    }
}

/// Flags of one label of an arm: `--user`, or `-!(-*)[uU]` for letters that end a word.
fn labels(label: &str) -> Vec<String> {
    let label = label.trim().trim_matches(['"', '\'']);
    if let Some(found) = LETTERS.captures(label) {
        let letters = found.get(1).or(found.get(2));
        let letters = letters.map_or("", |letters| letters.as_str());
        return letters.chars().map(|letter| format!("-{letter}")).collect();
    }
    let is_flag = is_flag(label);
    is_flag.then(|| label.to_owned()).into_iter().collect()
}

fn is_flag(word: &str) -> bool {
    let name = word.trim_start_matches(['-', '+']);
    let is_known = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
    name.len() < word.len() && !name.is_empty() && name.chars().all(is_known)
}

/// Reads a list of completed words: flags, choices of the flags of its arm, or sub-commands.
fn words(found: &Captures<'_>, case: Option<&Case>, span: &Range<usize>, read: &mut CommandLine) {
    let list = found.get(1).or(found.get(2));
    let list = list.map_or("", |list| list.as_str());
    let of_flags = case.filter(|case| case.subject == Subject::Previous && !case.flags.is_empty());
    if let Some(case) = of_flags {
        let choices: Vec<_> = list.split_whitespace().map(str::to_owned).collect();
        // Braces and variables are for bash to expand.
        if choices.iter().all(|word| is_plain(word)) {
            restrict(read, &case.flags, &choices);
        }
        return;
    }
    for word in list.split_whitespace() {
        let (spelling, has_value) = match word.strip_suffix('=') {
            Some(spelling) => (spelling, true),
            None => (word, false),
        };
        if is_flag(spelling) {
            let value = has_value.then(|| value("--", ValueKind::Text));
            read.add(flag(spelling, value, span));
        } else if found[0].starts_with("opts=") && is_plain(word) {
            read.commands.push(Command {
                name: word.to_owned(),
                description: String::new(),
                span: span.clone(),
            });
        }
    }
}

/// Drops `-h` and `-V`, which stand beside `--help` and `--version` without a tie to them.
fn drop_letters_about_program(read: &mut CommandLine) {
    let spellings: Vec<_> = read
        .flags
        .iter()
        .flat_map(|flag| flag.spellings.clone())
        .collect();
    let has = |long: &str| spellings.iter().any(|spelling| spelling == long);
    for (letter, long) in [("-h", "--help"), ("-V", "--version")] {
        if has(long) {
            read.flags.retain(|flag| flag.spellings != [letter]);
        }
    }
}

/// Returns whether a word is one that bash would not change, and no placeholder such as `<FILE>`
/// or `[ARGS]...`.
fn is_plain(word: &str) -> bool {
    word.chars()
        .all(|char| char.is_ascii_alphanumeric() || "-_:.".contains(char))
}

/// Makes the values of these flags a choice.
fn restrict(read: &mut CommandLine, spellings: &[String], choices: &[String]) {
    let is_one = |flag: &&mut Flag| {
        let mut known = flag.spellings.iter();
        known.any(|spelling| spellings.contains(spelling))
    };
    for flag in read.flags.iter_mut().filter(is_one) {
        if let Some(value) = &mut flag.value
            && !choices.is_empty()
        {
            value.kind = ValueKind::Choice(choices.to_vec());
        }
    }
}

fn value(spelling: &str, kind: ValueKind) -> FlagValue {
    let mut value = FlagValue::unnamed(kind);
    if spelling.starts_with("--") {
        value.position = Position::Joined;
    }
    value
}

fn flag(spelling: &str, value: Option<FlagValue>, span: &Range<usize>) -> Flag {
    Flag {
        spellings: vec![spelling.to_owned()],
        negation: None,
        value,
        description: String::new(),
        default: None,
        required: false,
        repeats: false,
        span: span.clone(),
    }
}
