//! Tasks of a project: scripts of `package.json`, recipes of a justfile, tasks of a Taskfile and
//! targets of a Makefile. Nothing is expanded or run, so computed names are not found.

use std::{ops::Range, sync::LazyLock};

use regex::Regex;

use super::{CommandLine, Flag, FlagValue, Operand, Position, Unread, ValueKind};

/// File with tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskFile {
    /// `package.json`, whose scripts npm runs.
    Package,
    /// `justfile`, whose recipes just runs.
    Just,
    /// `Taskfile.yml`, whose tasks task runs.
    Task,
    /// `Makefile`, whose targets make builds.
    Make,
}

/// A task with its command line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Task {
    /// Name of the task.
    pub name: String,
    /// Arguments that the task takes.
    pub command_line: CommandLine,
    /// Place in the text, in bytes.
    pub span: Range<usize>,
}

/// Names of the files.
const NAMES: &[(&str, TaskFile)] = &[
    ("package.json", TaskFile::Package),
    ("justfile", TaskFile::Just),
    ("taskfile.yml", TaskFile::Task),
    ("taskfile.yaml", TaskFile::Task),
    ("makefile", TaskFile::Make),
    ("gnumakefile", TaskFile::Make),
];

impl TaskFile {
    /// The kind of the file with this name; none if it has no tasks.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        let name = name.trim_start_matches('.').to_lowercase();
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, file)| *file)
    }

    /// Words of the command line that run a task, before its name.
    #[must_use]
    pub fn runner(self) -> &'static [&'static str] {
        match self {
            Self::Package => &["npm", "run", "--silent"],
            Self::Just => &["just"],
            Self::Task => &["task"],
            Self::Make => &["make"],
        }
    }

    /// Reads the tasks, in the order of the text, and what has no meaning for the reader.
    #[must_use]
    pub fn read(self, text: &str) -> (Vec<Task>, Vec<Unread>) {
        match self {
            Self::Package => package(text),
            Self::Just => (just(text), Vec::new()),
            Self::Task => (task(text), Vec::new()),
            Self::Make => (make(text), Vec::new()),
        }
    }
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is valid")
}

fn task_of(name: &str, description: &str, operands: Vec<Operand>, span: Range<usize>) -> Task {
    let description = Some(description.trim().to_owned()).filter(|text| !text.is_empty());
    Task {
        name: name.to_owned(),
        command_line: CommandLine {
            description,
            operands,
            ..CommandLine::default()
        },
        span,
    }
}

fn operand(name: &str, required: bool, repeats: bool, span: Range<usize>) -> Operand {
    Operand {
        name: name.to_owned(),
        description: String::new(),
        required,
        repeats,
        choices: Vec::new(),
        span,
    }
}

fn package(text: &str) -> (Vec<Task>, Vec<Unread>) {
    let document = match crate::json::read(text, 0) {
        Ok(document) => document,
        Err(error) => {
            let unread = Unread {
                span: error.span,
                message: error.message,
            };
            return (Vec::new(), vec![unread]);
        }
    };
    let mut tasks = Vec::new();
    let scripts = document
        .root
        .members()
        .filter(|member| member.key == "scripts");
    for script in scripts.flat_map(|scripts| scripts.value.members()) {
        let span = script.key_span.clone();
        let description = script.value.string().unwrap_or_default();
        let description = format!("Runs {description}");
        let arguments = operand("arguments", false, true, span.clone());
        tasks.push(task_of(&script.key, &description, vec![arguments], span));
    }
    (tasks, Vec::new())
}

/// Lines with their places, and the comment directly above each.
fn commented_lines(text: &str) -> impl Iterator<Item = (Range<usize>, &str, String)> {
    let mut start = 0;
    let mut comment = String::new();
    text.split_inclusive('\n').map(move |whole| {
        let line = whole.trim_end();
        let span = start..start + line.len();
        start += whole.len();
        let above = comment.clone();
        match line.strip_prefix('#').filter(|text| !text.starts_with('!')) {
            Some(text) => {
                let text = text.trim_start_matches('#').trim();
                comment = format!("{comment} {text}").trim().to_owned();
            }
            // An attribute of just stands between a comment and its recipe.
            None if line.starts_with('[') => {}
            None => comment.clear(),
        }
        (span, line, above)
    })
}

static RECIPE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^@?([A-Za-z][A-Za-z0-9_-]*)((?:\s+[^:]*)?):(?:[^=]|$)"));
static PARAMETER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"([+*]?)\$?([A-Za-z_][A-Za-z0-9_-]*)(?:\s*=\s*('[^']*'|"[^"]*"|\S+))?"#)
});

fn just(text: &str) -> Vec<Task> {
    let mut tasks = Vec::new();
    let mut is_private = false;
    for (span, line, comment) in commented_lines(text) {
        is_private |= line.starts_with('[') && line.contains("private");
        let Some(found) = RECIPE.captures(line) else {
            continue;
        };
        let parameters = PARAMETER.captures_iter(&found[2]).map(|parameter| {
            let sign = &parameter[1];
            let is_optional = sign == "*" || parameter.get(3).is_some();
            operand(&parameter[2], !is_optional, !sign.is_empty(), span.clone())
        });
        let parameters = parameters.collect();
        if !std::mem::take(&mut is_private) && !matches!(&found[1], "set" | "alias" | "export") {
            tasks.push(task_of(&found[1], &comment, parameters, span));
        }
    }
    tasks
}

static TARGET: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^([A-Za-z0-9][A-Za-z0-9_./-]*)\s*:(?:[^=:][^#]*)?(?:##?\s*(.*))?$"));
static VARIABLE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^([A-Za-z][A-Za-z0-9_]*)\s*\?=\s*([^#]*)(?:#\s*(.*))?$"));

fn make(text: &str) -> Vec<Task> {
    let mut tasks: Vec<Task> = Vec::new();
    let mut variables = Vec::new();
    for (span, line, comment) in commented_lines(text) {
        if let Some(found) = VARIABLE.captures(line) {
            let own = found.get(3).map_or("", |own| own.as_str());
            let description = if own.is_empty() { &*comment } else { own };
            variables.push(variable(&found[1], &found[2], description, span));
        } else if let Some(found) = TARGET.captures(line) {
            let own = found.get(2).map_or("", |own| own.as_str());
            let description = if own.is_empty() { &*comment } else { own };
            let is_file = found[1].contains(['/', '.']);
            if !is_file && !tasks.iter().any(|task| task.name == found[1]) {
                tasks.push(task_of(&found[1], description, Vec::new(), span));
            }
        }
    }
    for task in &mut tasks {
        task.command_line.flags.clone_from(&variables);
    }
    tasks
}

/// A variable that a call of make may set, as `NAME=value`.
fn variable(name: &str, default: &str, description: &str, span: Range<usize>) -> Flag {
    Flag {
        spellings: vec![name.to_owned()],
        negation: None,
        value: Some(FlagValue {
            position: Position::Joined,
            ..FlagValue::unnamed(ValueKind::Text)
        }),
        description: description.to_owned(),
        default: Some(default.trim().to_owned()).filter(|text| !text.is_empty()),
        required: false,
        repeats: false,
        span,
    }
}

static YAML_KEY: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"^(\s*)["']?([A-Za-z0-9_:.-]*[A-Za-z0-9_.-])["']?\s*:\s*(.*)$"#));

/// The keys below `tasks:` of a Taskfile, by their indentation, each with its `desc`.
fn task(text: &str) -> Vec<Task> {
    let mut tasks: Vec<Task> = Vec::new();
    let (mut inside, mut depth) = (false, None);
    let mut internal = Vec::new();
    for (span, line, _) in commented_lines(text) {
        let Some(found) = YAML_KEY.captures(line) else {
            continue;
        };
        let (indent, key, value) = (found[1].len(), &found[2], found[3].trim());
        if indent == 0 {
            inside = key == "tasks";
            depth = None;
        } else if inside && indent == *depth.get_or_insert(indent) {
            tasks.push(task_of(key, "", Vec::new(), span));
        } else if let Some(last) = tasks.last_mut().filter(|_| inside) {
            match key {
                "desc" => {
                    let text = value.trim_matches(['"', '\'']).to_owned();
                    last.command_line.description = Some(text).filter(|text| !text.is_empty());
                }
                "internal" if value == "true" => internal.push(last.name.clone()),
                _ => {}
            }
        }
    }
    tasks.retain(|task| !internal.contains(&task.name));
    tasks
}
