//! Fixes that need no decision of an author, applied to files: each is kept only if the file, read
//! again, has no new errors. All other bytes stay as they are.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use mcpd_files::{Access, NewFile};
use mcpd_scriptspec::{Code, Dialect, Edit, Severity, apply_edits};
use mcpd_server::catalog::scan::UnusableFile;
use similar::TextDiff;

use crate::finding::{Finding, Position};
use crate::rules;

/// Suffixes of the files that describe a script beside them.
const SIDECAR_SUFFIXES: [&str; 2] = [".mcpd.toml", ".mcpd.json"];

/// Option that asks a script for its description.
const HELP: &[u8] = b"--help";

/// Lines of context around each change in a diff.
const DIFF_CONTEXT: usize = 3;

/// Fix of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fix {
    /// Edits of the text of the file.
    Edits(Vec<Edit>),
    /// Permission to execute the file.
    Permission,
}

/// A file with its fixes, before it is written.
#[derive(Debug)]
#[non_exhaustive]
pub struct FixedFile {
    /// Location in the file system.
    pub file: PathBuf,
    /// The file behind all links.
    target: PathBuf,
    /// The text as it is.
    pub before: String,
    /// The text with the fixes.
    pub after: String,
    /// The file becomes executable.
    pub becomes_executable: bool,
    /// The fixes, in the order of the findings.
    pub changes: Vec<Change>,
}

/// One fix in a file.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// Code of the fixed fault.
    pub code: String,
    /// The fault, as a clause.
    pub message: String,
    /// Line and column in the text before, counted from 1; none for the file as a whole.
    pub position: Option<(usize, usize)>,
}

/// Returns the fix of a script that lacks the permission to execute it.
pub(crate) fn permission(file: &UnusableFile) -> Option<Fix> {
    let is_tool = || fs::read(&file.file).is_ok_and(|text| is_tool(&file.file, &text));
    (cfg!(unix) && file.lacks_permission && is_tool()).then_some(Fix::Permission)
}

/// Returns whether a script is meant to be a tool: it has a description, or answers `--help`.
///
/// A library that other scripts source may begin with `#!` as well, for the sake of editors. Were
/// it executable, mcpd would run it to ask for its description.
fn is_tool(path: &Path, text: &[u8]) -> bool {
    let sidecar = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        Path::new(&name).is_file()
    };
    text.starts_with(b"#!")
        && (Dialect::of(&path.to_string_lossy(), text).is_some()
            || SIDECAR_SUFFIXES.into_iter().any(sidecar)
            || text.windows(HELP.len()).any(|word| word == HELP))
}

/// Returns the fix of a script whose first line ends with a carriage return: of all lines, if all
/// end so, as an editor or a version control has written them.
pub(crate) fn line_ends(file: &Path) -> Option<Fix> {
    let text = fs::read_to_string(file).ok()?;
    line_end_edits(&text).map(Fix::Edits)
}

/// Edits that take carriage returns out of a script. Only those before a newline go: any other is
/// part of the text, and where some lines end without one, all but the first are as the author
/// wrote them.
fn line_end_edits(text: &str) -> Option<Vec<Edit>> {
    let first = text.lines().next()?.len();
    if !text.starts_with("#!") || !text[first..].starts_with("\r\n") {
        return None;
    }
    let lines = text.matches('\n').count();
    let returns = text.match_indices("\r\n").map(|(at, _)| at);
    let fixed = if returns.clone().count() == lines {
        lines
    } else {
        1
    };
    let edits = returns.take(fixed).map(|at| Edit {
        span: at..at + 1,
        replacement: String::new(),
    });
    Some(edits.collect())
}

/// Returns the files that the fixes of findings change. A finding whose file has changed since,
/// or whose fix overlaps another, is left for the next check.
///
/// # Errors
///
/// A file can't be read.
pub fn plan(findings: &[Finding<'_>]) -> io::Result<Vec<FixedFile>> {
    let mut files: Vec<FixedFile> = Vec::new();
    for finding in findings {
        let (Some(path), Some(fix)) = (finding.file, &finding.fix) else {
            continue;
        };
        let target = path
            .canonicalize()
            .map_err(|error| with_path(path, &error))?;
        let known = files.iter().position(|fixed| fixed.target == target);
        let place = match known {
            // A file that a link leads to as well is changed once.
            Some(place) if files[place].file != path => continue,
            Some(place) => place,
            None => {
                files.push(FixedFile::read(path, target)?);
                files.len() - 1
            }
        };
        files[place].add(finding, fix);
    }
    files.retain(|fixed| !fixed.changes.is_empty());
    Ok(files)
}

/// Returns the text with the edits, if the file at `path` then has no new errors and, where a rule
/// of descriptions is broken, fewer faults of this `code`.
#[must_use]
pub fn apply(path: &Path, text: &str, code: &str, edits: &[Edit]) -> Option<String> {
    let edited = apply_edits(text, edits)?;
    let (before, after) = (
        Faults::of(path, text, code),
        Faults::of(path, &edited, code),
    );
    let is_better =
        after.errors <= before.errors && (before.of_code == 0 || after.of_code < before.of_code);
    is_better.then_some(edited)
}

/// Numbers of faults in a description.
struct Faults {
    errors: usize,
    of_code: usize,
}

impl Faults {
    fn of(path: &Path, text: &str, code: &str) -> Self {
        let path = path.to_string_lossy();
        let tools = Dialect::of(&path, text.as_bytes())
            .map(|dialect| dialect.read(&path, text.as_bytes()))
            .unwrap_or_default();
        let faults = || tools.iter().flat_map(|tool| &tool.parsed.diagnostics);
        Self {
            errors: faults()
                .filter(|fault| fault.severity == Severity::Error)
                .count(),
            of_code: faults().filter(|fault| fault.code.as_str() == code).count(),
        }
    }
}

impl FixedFile {
    /// Returns the fixes of a script that can't be started: of the carriage returns in its `#!`
    /// line, and of the permission to execute it; none if it has neither fault, is no text, or is
    /// behind a link that leads out of the `roots`.
    ///
    /// # Errors
    ///
    /// The file can't be read.
    pub fn of_script(path: &Path, roots: &[PathBuf]) -> io::Result<Option<Self>> {
        let target = path
            .canonicalize()
            .map_err(|error| with_path(path, &error))?;
        let is_below = |root: &PathBuf| {
            root.canonicalize()
                .is_ok_and(|root| target.starts_with(root))
        };
        if !target.is_file() || !roots.iter().any(is_below) {
            return Ok(None);
        }
        let mut fixed = Self::read(path, target)?;
        let edits = line_end_edits(&fixed.before);
        if let Some(text) = edits.and_then(|edits| apply_edits(&fixed.before, &edits)) {
            fixed.after = text;
            fixed.changes.push(Change {
                code: Code::HelpNotStarted.as_str().to_owned(),
                message: "a carriage return is part of its `#!` line".to_owned(),
                position: Some((1, 1)),
            });
        }
        if lacks_permission(&fixed.target) && is_tool(path, fixed.before.as_bytes()) {
            fixed.becomes_executable = true;
            fixed.changes.push(Change {
                code: rules::OVERLOOKED_FILE.to_owned(),
                message: "it begins with `#!` and is not executable".to_owned(),
                position: None,
            });
        }
        Ok((!fixed.changes.is_empty()).then_some(fixed))
    }

    fn read(file: &Path, target: PathBuf) -> io::Result<Self> {
        let before = match fs::read_to_string(file) {
            // Edits are those of texts; the permission needs none.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => String::new(),
            read => read.map_err(|error| with_path(file, &error))?,
        };
        Ok(Self {
            file: file.to_owned(),
            target,
            after: before.clone(),
            before,
            becomes_executable: false,
            changes: Vec::new(),
        })
    }

    fn add(&mut self, finding: &Finding<'_>, fix: &Fix) {
        let at = match fix {
            Fix::Permission if !self.becomes_executable => {
                self.becomes_executable = true;
                None
            }
            Fix::Edits(edits) if self.edit(finding, edits) => {
                let place = finding.place.as_ref().map(|place| place.span.start);
                place.or(edits.first().map(|edit| edit.span.start))
            }
            Fix::Permission | Fix::Edits(_) => return,
        };
        self.changes.push(Change {
            code: finding.code.to_owned(),
            message: finding.message.clone().into_owned(),
            position: at.map(|at| {
                let Position { line, column } = Position::of(self.before.as_bytes(), at);
                (line, column)
            }),
        });
    }

    /// Applies edits to the text so far, unless they touch edited parts of it.
    fn edit(&mut self, finding: &Finding<'_>, edits: &[Edit]) -> bool {
        let is_head = |text: &[u8]| self.before.as_bytes().starts_with(text);
        if self.before.is_empty()
            || finding
                .place
                .as_ref()
                .is_some_and(|place| !is_head(place.text))
        {
            return false;
        }
        let Some(moved) = edits
            .iter()
            .map(|edit| self.relocate(edit))
            .collect::<Option<Vec<_>>>()
        else {
            return false;
        };
        let edited = apply(&self.file, &self.after, finding.code, &moved);
        edited.map(|text| self.after = text).is_some()
    }

    /// The edit of the original text as one of the edited text: behind or before all differences.
    fn relocate(&self, edit: &Edit) -> Option<Edit> {
        let (before, after) = (self.before.as_bytes(), self.after.as_bytes());
        let same = before.iter().zip(after).take_while(|(a, b)| a == b).count();
        let rest = before.len().min(after.len()) - same;
        let (ends, other) = (before.iter().rev(), after.iter().rev());
        let same_end = ends
            .zip(other)
            .take(rest)
            .take_while(|(a, b)| a == b)
            .count();
        let span = &edit.span;
        if self.before == self.after || span.end < same {
            return Some(edit.clone());
        }
        let is_behind = span.start > before.len() - same_end;
        let shift = |at: usize| at + after.len() - before.len();
        is_behind.then(|| Edit {
            span: shift(span.start)..shift(span.end),
            replacement: edit.replacement.clone(),
        })
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    ///
    /// The file has changed since it was read, or can't be written.
    pub fn write(&self) -> io::Result<()> {
        self.replace()
            .map_err(|error| with_path(&self.file, &error))
    }

    fn replace(&self) -> io::Result<()> {
        // A link stays one, and leads where it led.
        let file = &self.target;
        if self.file.canonicalize()? != *file {
            return Err(changed());
        }
        let metadata = file.metadata()?;
        let mut permissions = metadata.permissions();
        if self.becomes_executable {
            make_executable(&mut permissions);
        }
        if self.before == self.after {
            return fs::set_permissions(file, permissions);
        }
        if fs::read(file)? != self.before.as_bytes() {
            return Err(changed());
        }
        let new = NewFile::with_content(file, self.after.as_bytes(), Access::Of(&metadata))?;
        fs::set_permissions(new.path(), permissions)?;
        new.replace()
    }

    /// Unified diff of the text, and of the permission as git shows it, with the file as `name`.
    #[must_use]
    pub fn diff(&self, name: &str) -> String {
        let mode = if self.becomes_executable {
            format!("--- {name}\n+++ {name}\nold mode 100644\nnew mode 100755\n")
        } else {
            String::new()
        };
        let diff = TextDiff::from_lines(&self.before, &self.after);
        let mut unified = diff.unified_diff();
        mode + &unified
            .context_radius(DIFF_CONTEXT)
            .header(name, name)
            .to_string()
    }
}

/// Adds the permission to execute for each user that has the one to read.
fn make_executable(permissions: &mut fs::Permissions) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = permissions.mode();
        permissions.set_mode(mode | (mode & 0o444) >> 2);
    }
    #[cfg(not(unix))]
    let _ = permissions;
}

/// Returns whether a file can be executed by no user.
#[cfg(unix)]
fn lacks_permission(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata()
        .is_ok_and(|metadata| metadata.permissions().mode() & 0o111 == 0)
}

/// This system has no execute permission.
#[cfg(not(unix))]
fn lacks_permission(_: &Path) -> bool {
    false
}

fn changed() -> io::Error {
    io::Error::other("the file has changed meanwhile; check it again")
}

fn with_path(file: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("`{}`: {error}", file.display()))
}

/// A line such as `2:1 unknown-field: unknown field `titel``.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.position {
            write!(f, "{line}:{column} ")?;
        }
        write!(f, "{}: {}", self.code, self.message)
    }
}

#[cfg(test)]
mod tests;
