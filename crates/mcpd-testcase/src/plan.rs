//! Plan of a test run: the scripts of a catalog, each with the cases beside it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use mcpd_server::Catalog;
use mcpd_server::catalog::scan::{PassOverKind, ScannedScript};

use crate::SUFFIX;
use crate::case::{Case, TestFile};
use crate::fault::{Fault, suggestion};
use crate::subject::Subject;

/// Maximum size of a file with cases, in bytes.
const MAX_CASES: u64 = 16 << 20;

/// Everything that is tested.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Plan {
    /// Scripts in the order of their paths.
    pub suites: Vec<Suite>,
    /// Files with cases that have no script.
    pub faults: Vec<Fault>,
}

/// One script file: its tools, prompts and resources, and their cases.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Suite {
    /// Root of the script, which is its working directory.
    pub root: PathBuf,
    /// File of the script.
    pub script: PathBuf,
    /// Cases; a file without a path is one that does not exist.
    pub cases: TestFile,
    /// Text of the file with cases.
    pub(crate) text: String,
    /// Faults of the file with cases.
    pub faults: Vec<Fault>,
    /// Its tools, prompts and resources, by their paths.
    pub subjects: BTreeMap<String, Subject>,
}

impl Plan {
    /// Plans the tests of the scripts in a catalog. Reads their files with cases.
    #[must_use]
    pub fn of(catalog: &Catalog) -> Self {
        let scan = catalog.scan();
        let mut scripts: BTreeMap<&Path, Vec<&ScannedScript>> = BTreeMap::new();
        for script in &scan.scripts {
            scripts.entry(&script.file).or_default().push(script);
        }
        let passed_over = scan.passed_over.iter();
        let orphans = passed_over
            .filter(|file| file.kind == PassOverKind::TestCases)
            .filter_map(|file| {
                let script = tested_file(&file.file)?;
                let is_known = scripts.contains_key(&*script);
                (!is_known).then(|| orphan(&file.file, &script, scripts.keys().copied()))
            });
        Self {
            faults: orphans.collect(),
            suites: scripts
                .iter()
                .map(|(file, scripts)| Suite::of(file, scripts, catalog))
                .collect(),
        }
    }
}

impl Suite {
    fn of(file: &Path, scripts: &[&ScannedScript], catalog: &Catalog) -> Self {
        let subjects = scripts.iter().filter_map(|script| {
            let subject = Subject::of(script, catalog)?;
            Some((script.path.to_string(), subject))
        });
        let mut suite = Self {
            root: scripts
                .first()
                .map(|one| one.root.clone())
                .unwrap_or_default(),
            script: file.to_owned(),
            cases: TestFile::default(),
            text: String::new(),
            faults: Vec::new(),
            subjects: subjects.collect(),
        };
        suite.read_cases();
        suite.find_faults();
        suite
    }

    fn read_cases(&mut self) {
        let mut path = self.script.as_os_str().to_owned();
        path.push(SUFFIX);
        let path = PathBuf::from(path);
        match read_bounded(&path) {
            Ok(text) => {
                (self.cases, self.faults) = TestFile::read(&path, &text);
                self.text = text;
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                self.faults
                    .push(Fault::of_file(&path, format!("not readable: {error}")));
                self.cases.path = path;
            }
        }
    }

    /// Finds cases of nothing that is served.
    fn find_faults(&mut self) {
        if !self.has_cases() {
            return;
        }
        let path = &self.cases.path;
        if self.subjects.is_empty() {
            let script = self.script.display();
            let message = format!("`{script}` is not served; run `mcpd check` for the reason");
            self.faults.push(Fault::of_file(path, message));
            return;
        }
        for case in &self.cases.cases {
            if let Err(message) = self.tool_of(case) {
                let mut fault = Fault::of_file(path, message);
                fault.line = case.line;
                self.faults.push(fault);
            }
        }
    }

    /// Returns whether there is a file with cases.
    #[must_use]
    pub fn has_cases(&self) -> bool {
        !self.cases.path.as_os_str().is_empty()
    }

    /// Finds the path of the tool, prompt or resource of a case.
    ///
    /// # Errors
    ///
    /// The case names none where there are several, or one that is not there.
    pub(crate) fn tool_of(&self, case: &Case) -> Result<&str, String> {
        let mut names = self.subjects.keys().map(String::as_str);
        match &case.tool {
            Some(wanted) => names.clone().find(|name| name == wanted).ok_or_else(|| {
                let hint = suggestion(wanted, names);
                let script = self.script.display();
                format!("`{script}` has no `{wanted}`{hint}")
            }),
            None => match (names.next(), names.next()) {
                (Some(only), None) => Ok(only),
                _ => Err(format!(
                    "the case `{}` needs a `tool`: the file has several",
                    case.name
                )),
            },
        }
    }
}

/// File whose cases are in the file at `path`.
fn tested_file(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?.strip_suffix(SUFFIX)?;
    Some(path.with_file_name(name))
}

/// Fault of a file with cases without its script, with the name that was probably meant.
fn orphan<'a>(path: &Path, script: &Path, scripts: impl Iterator<Item = &'a Path>) -> Fault {
    let mut meant = scripts.filter(|known| {
        known.parent() == script.parent() && known.file_stem() == script.file_name()
    });
    let hint = match meant.next().and_then(Path::file_name) {
        Some(name) => format!("; did you mean the name `{}{SUFFIX}`?", name.display()),
        None => "; `mcpd check` tells why a file is no script".to_owned(),
    };
    let message = format!("`{}` is no script{hint}", script.display());
    Fault::of_file(path, message)
}
/// Reads a text that may be anything: a FIFO would block, and a device never end.
fn read_bounded(path: &Path) -> io::Result<String> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    if metadata.len() > MAX_CASES {
        return Err(io::Error::other(format!(
            "it is larger than {MAX_CASES} bytes"
        )));
    }
    let mut text = String::new();
    let file = fs::File::open(path)?;
    file.take(MAX_CASES).read_to_string(&mut text)?;
    Ok(text)
}
