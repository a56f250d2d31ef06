//! Language of comments and names: bounds per package for dialect, bare participles as names of
//! functions, and comment lines over 100 columns. CONTRIBUTING.md explains the rules.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use super::{root, rust_files};

/// Comment lines that begin with a bare clause, per 1,000 comment lines: fewer than this.
const BARE_CLAUSES_PER_THOUSAND: usize = 20;
/// Comment lines with a word such as `somebody`, per 1,000 comment lines: fewer than this.
const SOMEBODY_PER_THOUSAND: usize = 2;
/// Functions named by a bare participle, in percent of all functions: at most this.
const PARTICIPLES_PERCENT: usize = 3;
/// Width of a comment line, the same as in rustfmt.toml, which does not wrap comments.
const MAX_COLUMNS: usize = 100;

/// Participles that do not end in `-ed`. `read` is left out, as it is an imperative as well.
const IRREGULAR_PARTICIPLES: [&str; 48] = [
    "begun",
    "bound",
    "bought",
    "broken",
    "brought",
    "built",
    "caught",
    "chosen",
    "dealt",
    "done",
    "drawn",
    "driven",
    "fallen",
    "fed",
    "forgotten",
    "found",
    "frozen",
    "given",
    "gone",
    "grown",
    "heard",
    "held",
    "hidden",
    "kept",
    "known",
    "laid",
    "led",
    "left",
    "lost",
    "made",
    "meant",
    "met",
    "paid",
    "said",
    "seen",
    "sent",
    "shown",
    "sought",
    "spent",
    "spoken",
    "struck",
    "stuck",
    "taken",
    "thrown",
    "told",
    "torn",
    "understood",
    "written",
];

/// Words that end in `-ed` and are no participles.
const IMPERATIVES: [&str; 12] = [
    "embed", "exceed", "feed", "heed", "hundred", "need", "proceed", "seed", "shed", "shred",
    "speed", "succeed",
];

static BARE_CLAUSE: LazyLock<Regex> = LazyLock::new(|| {
    let words = "Who|What|Which|Whether|How|When|Where|Whose|The same|As above";
    Regex::new(&format!(r"^\s*//[/!]? ?(?:[-*] )?(?:{words})\b")).expect("a pattern")
});
static SOMEBODY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:somebody|nobody|anybody|everybody|whoever)\b").expect("a pattern")
});
static FUNCTION: LazyLock<Regex> = LazyLock::new(|| {
    let qualifiers = r#"(?:pub(?:\([^)]*\))?\s+|default\s+|const\s+|async\s+|unsafe\s+|extern\s+(?:"[^"]*"\s+)?)*"#;
    Regex::new(&format!(r"^\s*{qualifiers}fn\s+([a-z_0-9]+)")).expect("a pattern")
});

/// Faults of a package, each as `file:line: text`, and the totals that they are compared with.
#[derive(Debug, Default)]
struct Survey {
    comment_lines: usize,
    functions: usize,
    bare_clauses: Vec<String>,
    somebody: Vec<String>,
    participles: Vec<String>,
    long_lines: Vec<String>,
}

impl Survey {
    fn of_package(package: &str) -> Self {
        let mut survey = Self::default();
        for (file, text) in rust_files(&root().join(package)) {
            let file = file.strip_prefix(root()).unwrap_or(&file).to_owned();
            for (number, line) in (1..).zip(text.lines()) {
                survey.add_line(&file, number, line);
            }
        }
        survey
    }

    fn add_line(&mut self, file: &Path, number: usize, line: &str) {
        let place = || format!("{}:{number}: {}", file.display(), line.trim());
        if !line.trim_start().starts_with("//") {
            if let Some(function) = FUNCTION.captures(line) {
                self.functions += 1;
                if is_participle(&function[1]) {
                    self.participles.push(place());
                }
            }
            return;
        }
        self.comment_lines += 1;
        if BARE_CLAUSE.is_match(line) {
            self.bare_clauses.push(place());
        }
        if SOMEBODY.is_match(line) {
            self.somebody.push(place());
        }
        if line.chars().count() > MAX_COLUMNS {
            self.long_lines.push(place());
        }
    }

    /// Compares the faults with the bounds. Returns a report on every bound that is exceeded.
    fn check(&self, package: &str) -> String {
        // The bounds on clauses and words are exclusive, hence the subtraction before the division.
        let below =
            |per_thousand: usize| (per_thousand * self.comment_lines).saturating_sub(1) / 1000;
        let bounds = [
            (
                "comment lines that begin with a bare clause",
                "begin with a noun phrase or a verb in the third person, and name the subject",
                &self.bare_clauses,
                below(BARE_CLAUSES_PER_THOUSAND),
            ),
            (
                "comment lines with `somebody`, `nobody` or `whoever`",
                "name the role: caller, client, operator, script, peer, author",
                &self.somebody,
                below(SOMEBODY_PER_THOUSAND),
            ),
            (
                "functions named by a bare participle",
                "use an imperative verb with an object, or a noun for a getter",
                &self.participles,
                PARTICIPLES_PERCENT * self.functions / 100,
            ),
            (
                "comment lines that are too wide",
                "wrap them at 100 columns by hand, as rustfmt does not",
                &self.long_lines,
                0,
            ),
        ];
        let mut report = String::new();
        for (what, advice, faults, bound) in bounds {
            let count = faults.len();
            if count > bound {
                let list = faults.join("\n  ");
                let _ = write!(
                    report,
                    "\n{package} has {count} {what}, but may have {bound}; {advice}:\n  {list}"
                );
            }
        }
        report
    }
}

/// Returns whether a name of a function is a single word that is a participle.
fn is_participle(name: &str) -> bool {
    let is_regular = name.len() > 3 && name.ends_with("ed") && !IMPERATIVES.contains(&name);
    !name.contains('_') && (is_regular || IRREGULAR_PARTICIPLES.contains(&name))
}

/// Returns the packages by their paths: every crate, the end-to-end tests and the tasks.
fn packages() -> Vec<String> {
    let crates = std::fs::read_dir(root().join("crates")).expect("a directory");
    let crates = crates.map(|entry| entry.expect("an entry").path());
    let mut packages: Vec<String> = crates
        .filter(|path: &PathBuf| path.join("Cargo.toml").exists())
        .map(|path| {
            let name = path.file_name().unwrap_or_default();
            format!("crates/{}", name.to_string_lossy())
        })
        .collect();
    packages.sort();
    packages.extend(["tests", "xtask"].map(str::to_owned));
    packages
}

#[test]
fn comments_and_names_follow_the_language_rules() {
    let packages = packages();
    let report = packages
        .iter()
        .map(|package| Survey::of_package(package).check(package))
        .collect::<String>();
    assert!(report.is_empty(), "{report}");
}

#[test]
fn language_rules_tell_dialect_from_english() {
    for line in [
        "/// What is left.",
        "    //! - How many there are.",
        "// The same for others.",
    ] {
        assert!(BARE_CLAUSE.is_match(line), "{line}");
    }
    for line in ["/// Whatever the path.", "/// Returns what is left."] {
        assert!(!BARE_CLAUSE.is_match(line), "{line}");
    }
    assert!(SOMEBODY.is_match("// Nobody listens."));
    for name in ["told", "asked", "written"] {
        assert!(is_participle(name), "{name}");
    }
    for name in ["read", "embed", "red", "is_asked", "ask"] {
        assert!(!is_participle(name), "{name}");
    }
    let name = |line| {
        FUNCTION
            .captures(line)
            .map(|captures| captures[1].to_owned())
    };
    assert_eq!(
        name("    pub(crate) async fn told(&self) {").as_deref(),
        Some("told")
    );
    assert_eq!(name("/// fn told()"), None);
}
