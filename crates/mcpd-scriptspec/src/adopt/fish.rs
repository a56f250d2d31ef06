//! Reader of completions for the fish shell: `complete -c jq -s c -l compact-output -d 'Text'`.

use super::{CommandLine, Flag, FlagValue, Position, Unread, ValueKind, hints};

/// Reads the completions of a program. Those of its sub-commands are not read.
pub(super) fn read(text: &str) -> CommandLine {
    let mut read = CommandLine::default();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let span = start..start + line.trim_end().len();
        start += line.len();
        if !line.trim_start().starts_with("complete ") {
            continue;
        }
        let unread = |message: &str| Unread {
            span: span.clone(),
            message: message.to_owned(),
        };
        let Some(words) = shlex::split(line) else {
            read.unread
                .push(unread("the quotes of this line are not closed"));
            continue;
        };
        match flag(&words, &span) {
            Some(_)
                if words
                    .iter()
                    .any(|word| word == "-n" || word == "--condition") =>
            {
                let message = "this flag depends on a condition, such as a sub-command";
                read.unread.push(unread(message));
            }
            Some(flag) => read.add(flag),
            None => {}
        }
    }
    read
}

fn flag(words: &[String], span: &std::ops::Range<usize>) -> Option<Flag> {
    let mut flag = Flag {
        spellings: Vec::new(),
        negation: None,
        value: None,
        description: String::new(),
        default: None,
        required: false,
        repeats: false,
        span: span.clone(),
    };
    let mut choices = "";
    let mut words = words.iter().skip(1).map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "-s" | "--short-option" => flag.spellings.push(format!("-{}", words.next()?)),
            "-l" | "--long-option" => flag.spellings.push(format!("--{}", words.next()?)),
            "-o" | "--old-option" => flag.spellings.push(format!("-{}", words.next()?)),
            "-d" | "--description" => words.next()?.clone_into(&mut flag.description),
            "-a" | "--arguments" => choices = words.next()?,
            "-c" | "--command" | "-n" | "--condition" => drop(words.next()?),
            // `-x` is short for `-r -f`, and stands in one word with others.
            "-r" | "-x" | "-xr" | "-rf" | "-fr" | "--require-parameter" | "--exclusive" => {
                flag.value = Some(FlagValue::unnamed(ValueKind::Text));
            }
            _ if word.starts_with("-x") || word.starts_with("-r") => {
                flag.value = Some(FlagValue::unnamed(ValueKind::Text));
                if word.ends_with('a') {
                    choices = words.next()?;
                }
            }
            _ => {}
        }
    }
    let is_long = flag
        .spellings
        .iter()
        .any(|spelling| spelling.starts_with("--"));
    if let Some(value) = &mut flag.value {
        if is_long {
            value.position = Position::Joined;
        }
        value.kind = hints::kind_of_name(&choices.split_whitespace().collect::<Vec<_>>().join("|"));
    }
    (!flag.spellings.is_empty()).then_some(flag)
}
