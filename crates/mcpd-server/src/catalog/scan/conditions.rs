//! Conditions of a probe result beside the script itself: its interpreter, the packages installed
//! for that, and the policy of the probe. A result of an earlier start is valid as long as they
//! are equal.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use memchr::memmem;
use sha2::{Digest as _, Sha256};

use crate::catalog::walk::Candidate;
use crate::policy::Policy;
use crate::script::fingerprint::Fingerprint;
use crate::support::random_id;
use crate::support::sync::lock;

/// Cached conditions, by their inputs: reading a directory for each script would take too long.
#[derive(Debug, Default)]
pub(super) struct Conditions(Mutex<BTreeMap<String, Arc<str>>>);

impl Conditions {
    /// Returns the conditions for a script whose first line is `shebang`, if that names an
    /// interpreter.
    pub(super) fn of(
        &self,
        candidate: &Candidate,
        shebang: Option<&str>,
        policy: &Policy,
    ) -> Arc<str> {
        let probing = policy.probing_of(&candidate.path, candidate.directory());
        let extension = candidate
            .file
            .extension()
            .unwrap_or_default()
            .to_string_lossy();
        let runs = shebang.map_or_else(|| format!(".{extension}"), str::to_owned);
        let packages = packages_beside(candidate, &runs);
        let key = format!("{runs}\n{probing:?}\n{packages:?}");
        let mut known = lock(&self.0);
        if let Some(known) = known.get(&key) {
            return Arc::clone(known);
        }
        let mut text = format!("{key}\n{}\n", policy.probe_settings_text());
        for program in programs(shebang, &extension) {
            describe_program(&mut text, &program);
        }
        let conditions: Arc<str> = random_id::hex(&Sha256::digest(text)[..16]).into();
        known.insert(key, Arc::clone(&conditions));
        conditions
    }
}

/// Returns the fingerprints of the packages that JavaScript finds beside a script.
fn packages_beside(candidate: &Candidate, runs: &str) -> Vec<Option<Fingerprint>> {
    const RUNTIMES: [&str; 8] = ["node", "bun", "deno", "tsx", ".js", ".mjs", ".cjs", ".ts"];
    let has = |name: &&str| memmem::find(runs.as_bytes(), name.as_bytes()).is_some();
    if !RUNTIMES.iter().any(has) {
        return Vec::new();
    }
    let above = candidate.directory().ancestors();
    let above = above.take_while(|directory| directory.starts_with(&candidate.root));
    above
        .map(|directory| fingerprint(&directory.join("node_modules")))
        .collect()
}

/// Returns the programs that a first line names: the interpreter, and the program that `env`
/// searches for. Without such a line, returns the usual interpreters of the extension.
fn programs(shebang: Option<&str>, extension: &str) -> Vec<PathBuf> {
    let Some(line) = shebang else {
        let name = match extension {
            "py" => "python3",
            "js" | "mjs" | "cjs" | "ts" | "tsx" => "node",
            "rb" => "ruby",
            "pl" => "perl",
            other => other,
        };
        return which::which(name).into_iter().collect();
    };
    let mut words = line.trim_start_matches("#!").split_whitespace();
    let Some(interpreter) = words.next().map(PathBuf::from) else {
        return Vec::new();
    };
    let is_env = interpreter.ends_with("env");
    let mut programs = vec![interpreter];
    if is_env {
        let is_name = |word: &&str| !word.starts_with('-') && !word.contains('=');
        // A missing program may be installed later.
        programs.extend(
            words
                .find(is_name)
                .map(|name| which::which(name).unwrap_or_else(|_| PathBuf::from(name))),
        );
    }
    programs
}

/// Adds the state of a program, and of the packages installed for it.
fn describe_program(text: &mut String, program: &Path) {
    let real = program.canonicalize();
    let real = real.as_deref().unwrap_or(program);
    add(text, real);
    // A virtual environment has its packages beside the link to its interpreter.
    for program in [program, real] {
        let Some(prefix) = program.parent().and_then(Path::parent) else {
            continue;
        };
        add(text, &prefix.join("pyvenv.cfg"));
        add(text, &prefix.join("lib/node_modules"));
        if program_is_python(program) {
            add_python_packages(text, &prefix.join("lib"));
        }
    }
    if program_is_python(program)
        && let Some(home) = std::env::home_dir()
    {
        add_python_packages(text, &home.join(".local/lib"));
        add_python_packages(text, Path::new("/usr/local/lib"));
    }
}

fn program_is_python(program: &Path) -> bool {
    let name = program.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b"python")
}

/// Adds the directories below `library` in which Python packages are installed.
fn add_python_packages(text: &mut String, library: &Path) {
    let versions = library.read_dir().into_iter().flatten().flatten();
    let versions = versions.map(|entry| entry.path());
    let mut versions: Vec<_> = versions.filter(|path| program_is_python(path)).collect();
    versions.sort();
    for version in versions {
        for packages in ["site-packages", "dist-packages"] {
            add(text, &version.join(packages));
        }
    }
}

fn add(text: &mut String, path: &Path) {
    if let Some(fingerprint) = fingerprint(path) {
        writeln!(text, "{} {fingerprint:?}", path.display()).expect("a string takes everything");
    }
}

fn fingerprint(path: &Path) -> Option<Fingerprint> {
    Some(Fingerprint::of(&path.metadata().ok()?))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::catalog::walk::walk;
    use crate::policy::Probing;

    fn conditions(root: &Path, shebang: &str, policy: &Policy) -> Arc<str> {
        let walked = walk(root, None);
        let candidate = walked.scripts.values().next().unwrap();
        Conditions::default().of(candidate, Some(shebang), policy)
    }

    #[test]
    fn conditions_change_with_the_interpreter_its_packages_and_the_probe() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        let (root, venv) = (path.join("root"), path.join("venv"));
        let packages = venv.join("lib/python3.11/site-packages");
        for directory in [&root, &venv.join("bin"), &packages] {
            fs::create_dir_all(directory).unwrap();
        }
        let script = root.join("script");
        fs::write(&script, "").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let python = venv.join("bin/python3");
        symlink("/bin/sh", &python).unwrap();
        let shebang = format!("#!{}", python.display());
        let policy = Policy::default();

        let first = conditions(&root, &shebang, &policy);
        assert_eq!(first, conditions(&root, &shebang, &policy));
        let asked_otherwise = policy.clone().probing(Probing::default().require(true));
        assert_ne!(first, conditions(&root, &shebang, &asked_otherwise));
        fs::write(packages.join("requests.py"), "").unwrap();
        let with_package = conditions(&root, &shebang, &policy);
        assert_ne!(first, with_package);
        fs::remove_file(&python).unwrap();
        symlink("/bin/cat", &python).unwrap();
        assert_ne!(with_package, conditions(&root, &shebang, &policy));
        let by_name = conditions(&root, "#!/usr/bin/env -S sh -e", &policy);
        assert_ne!(
            by_name,
            conditions(&root, "#!/usr/bin/env no-such", &policy)
        );
    }
}
