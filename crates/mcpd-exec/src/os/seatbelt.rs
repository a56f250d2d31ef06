//! Seatbelt profiles for macOS: the rules of a process, in the language of `sandbox-exec`, which
//! starts it confined.
//!
//! They are compiled for macOS with care but not tested there. Their text is tested everywhere.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
#[cfg(target_os = "macos")]
use std::{process, sync::OnceLock};

#[cfg(target_os = "macos")]
use crate::command::Command;
#[cfg(target_os = "macos")]
use crate::error::{StartError, diagnosis};
use crate::sandbox::homes::{is_kept_by_program, is_system, moved_directories};
use crate::sandbox::{Network, Sandbox};

/// Level `guarded` is refused without it.
#[cfg(target_os = "macos")]
pub(crate) const IS_NEEDED: bool = true;

/// Program that confines itself and then executes the given program.
#[cfg(target_os = "macos")]
const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// Basic rules. The last rule for an operation counts. Reading is allowed, and so is everything
/// among the processes of the sandbox. Without its own session, a process must not use the host's
/// terminal, nor let other processes act for it.
const RULES: &str = r#"(version 1)
(allow default)
(deny signal)
(allow signal (target same-sandbox))
(deny process-info*)
(allow process-info* (target same-sandbox))
(deny appleevent-send)
(deny job-creation)
(deny lsopen)
(deny file-write*)
(allow file-write-data
  (literal "/dev/null")
  (literal "/dev/zero")
  (literal "/dev/random")
  (literal "/dev/urandom")
  (literal "/dev/dtracehelper")
  (literal "/dev/ptmx")
  (subpath "/dev/fd"))
(deny file-read* file-write* (literal "/dev/tty") (regex #"^/dev/ttys"))
(allow file-read* file-write*
  (require-all (regex #"^/dev/ttys") (extension "com.apple.sandbox.pty")))
"#;

/// Rules without network: no sockets, and no services that look up names or download for a
/// process.
const NO_NETWORK: &str = r#"(deny network*)
(deny mach-lookup
  (global-name "com.apple.dnssd.service")
  (global-name "com.apple.nsurlsessiond"))
"#;

/// Rules for one sandbox. Paths are parameters, so that none of their characters has a meaning.
#[derive(Debug)]
pub(crate) struct Profile {
    rules: String,
    paths: Vec<PathBuf>,
}

impl Profile {
    /// Makes the rules of a sandbox whose process needs to read `needed`, with its temporary
    /// files in `temporary`.
    pub(crate) fn new(sandbox: &Sandbox, needed: &[PathBuf], temporary: &Path) -> Self {
        let write = writable(sandbox).map(PathBuf::as_path);
        let write = resolve_all(write.chain([temporary]));
        let hidden = resolve_all(sandbox.hidden.iter().map(PathBuf::as_path));
        let kept = kept_entries(sandbox);
        let shown = sandbox.readable_in_homes();
        let needed = needed.iter().filter(|path| sandbox.keeps(path));
        let shown = readable(shown.iter().chain(needed), &write);
        let read = readable(sandbox.read.iter(), &write);
        let mut profile = Self {
            rules: RULES.to_owned(),
            paths: Vec::new(),
        };
        // The most specific entry counts. Of equally specific ones the order is: kept, shown,
        // hidden, declared. The last rule wins, so they are written in this order.
        let entries = [
            (&kept, "deny file*"),
            (&shown, "allow file-read*"),
            (&hidden, "deny file*"),
            (&read, "allow file-read*"),
            (&write, "allow file*"),
        ];
        let entries = entries.iter();
        let entries = entries.flat_map(|(paths, rule)| paths.iter().map(move |path| (path, *rule)));
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by_key(|(path, _)| path.components().count());
        for (path, rule) in entries {
            let path = profile.parameter(path);
            profile.rule(format_args!("({rule} (subpath {path}))"));
            let verdict = rule.split(' ').next().unwrap_or(rule);
            profile.rule(format_args!(
                "({verdict} network-outbound (remote unix-socket (subpath {path})))"
            ));
        }
        // Under another name it would not be hidden any more.
        let covered = hidden.union(&kept).cloned().collect();
        for path in on_the_way(&covered, &write) {
            let path = profile.parameter(path);
            profile.rule(format_args!("(deny file-write-unlink (literal {path}))"));
        }
        if sandbox.network == Network::Off {
            profile.rules.push_str(NO_NETWORK);
        }
        profile
    }

    fn rule(&mut self, rule: std::fmt::Arguments<'_>) {
        // Writing to a string can't fail.
        writeln!(self.rules, "{rule}").ok();
    }

    /// Adds a path as a parameter, and returns its name in the rules.
    fn parameter(&mut self, path: &Path) -> String {
        let name = format!("(param \"PATH_{}\")", self.paths.len());
        self.paths.push(path.to_owned());
        name
    }

    /// Returns the arguments of `sandbox-exec` before the program.
    pub(crate) fn arguments(self) -> Vec<OsString> {
        let mut arguments = vec!["-p".into(), self.rules.into()];
        for (index, path) in self.paths.into_iter().enumerate() {
            let mut parameter = OsString::from(format!("PATH_{index}="));
            parameter.push(path);
            arguments.extend(["-D".into(), parameter]);
        }
        arguments
    }
}

/// Returns the writable paths that are followed. Not followed are a link that appeared after the
/// path was resolved, and one that a process may have made, as far as names tell. A path inside
/// another entry, and in nothing hidden there, is allowed by that entry.
fn writable(sandbox: &Sandbox) -> impl Iterator<Item = &PathBuf> {
    let is_in = |path: &Path, other: &Path| path != other && path.starts_with(other);
    let is_allowed_with = move |path: &PathBuf, other: &PathBuf| {
        let is_between = |hidden: &PathBuf| path.starts_with(hidden) && hidden.starts_with(other);
        is_in(path, other) && !sandbox.hidden.iter().any(is_between)
    };
    let entries = sandbox.write.iter();
    entries.filter(move |path| {
        let is_as_it_was = !sandbox.resolved || resolve(path) == **path;
        is_as_it_was
            && !sandbox
                .write
                .iter()
                .any(|other| is_allowed_with(path, other))
    })
}

/// Lists the entries of homes that programs keep for themselves.
fn kept_entries(sandbox: &Sandbox) -> BTreeSet<PathBuf> {
    let mut kept = BTreeSet::new();
    for home in resolve_all(sandbox.homes.iter().map(PathBuf::as_path)) {
        let entries = fs::read_dir(&home).into_iter().flatten().flatten();
        let entries = entries.filter(|entry| is_kept_by_program(&entry.file_name()));
        // A link may lead to a place of the system, or to the root.
        let places = entries.map(|entry| resolve(&entry.path()));
        kept.extend(places.filter(|place| !is_system(place) && !home.starts_with(place)));
    }
    kept.extend(resolve_all(moved_directories().map(PathBuf::as_path)));
    kept
}

/// Resolves paths that can be read although they, or a directory above them, are hidden. Paths
/// through a link in a written place are left out, as a process may have made it.
fn readable<'a>(
    paths: impl Iterator<Item = &'a PathBuf>,
    write: &BTreeSet<PathBuf>,
) -> BTreeSet<PathBuf> {
    let is_written = |path: &Path| write.iter().any(|entry| path.starts_with(entry));
    let is_planted = |path: &&PathBuf| {
        let mut above = path.ancestors();
        above.any(|above| is_written(above) && above.is_symlink())
    };
    resolve_all(paths.filter(|path| !is_planted(path)).map(PathBuf::as_path))
}

/// Resolves each path once, as the kernel knows it: absolute and without links, as far as it
/// exists.
fn resolve_all<'a>(paths: impl Iterator<Item = &'a Path>) -> BTreeSet<PathBuf> {
    paths.map(resolve).collect()
}

fn resolve(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let known = path.ancestors().find_map(|ancestor| {
        let rest = path.strip_prefix(ancestor).ok()?;
        Some(ancestor.canonicalize().ok()?.join(rest))
    });
    // Without the slash that an empty rest leaves at the end.
    known.unwrap_or(path).components().collect()
}

/// Returns the directories on the way to hidden paths that could be moved, with the hidden paths
/// in them.
fn on_the_way<'a>(hidden: &'a BTreeSet<PathBuf>, write: &BTreeSet<PathBuf>) -> BTreeSet<&'a Path> {
    let ancestors = hidden.iter().flat_map(|path| path.ancestors().skip(1));
    let is_writable = |path: &&Path| write.iter().any(|entry| path.starts_with(entry));
    ancestors.filter(is_writable).collect()
}

/// Returns the command that starts `program` in a sandbox, with its temporary files in
/// `temporary`.
///
/// # Errors
///
/// The program can't be started: `sandbox-exec` would report that only on its own standard error.
#[cfg(target_os = "macos")]
pub(crate) fn starter(
    command: &Command,
    program: &Path,
    temporary: &Path,
) -> Result<process::Command, StartError> {
    diagnosis::inspect(command, program)?;
    let needed = command.needed_paths(program).unwrap_or_default();
    Ok(sandbox_exec(
        &command.parts.sandbox,
        &needed,
        program,
        temporary,
    ))
}

#[cfg(target_os = "macos")]
#[expect(
    clippy::disallowed_methods,
    reason = "where confined processes are started on macOS"
)]
fn sandbox_exec(
    sandbox: &Sandbox,
    needed: &[PathBuf],
    program: &Path,
    temporary: &Path,
) -> process::Command {
    let mut command = process::Command::new(PROGRAM);
    command.args(Profile::new(sandbox, needed, temporary).arguments());
    command.arg(program);
    command
}

/// Checks that this system accepts such rules, until it has once.
///
/// # Errors
///
/// It does not, with the reason.
#[cfg(target_os = "macos")]
pub(crate) fn check() -> Result<(), String> {
    static TAKES: OnceLock<()> = OnceLock::new();
    if TAKES.get().is_some() {
        return Ok(());
    }
    // One rule of each kind.
    let sandbox = Sandbox::none().hide("/nowhere").network(Network::Off);
    let tried = sandbox_exec(&sandbox, &[], Path::new("/usr/bin/true"), Path::new("/"))
        .env_clear()
        .stdin(process::Stdio::null())
        .output()
        .map_err(|error| format!("`{PROGRAM}` cannot be started ({error})"))?;
    if !tried.status.success() {
        let said = String::from_utf8_lossy(&tried.stderr);
        return Err(format!(
            "`{PROGRAM}` refuses, as it does if this process is itself confined: {}",
            said.trim()
        ));
    }
    TAKES.set(()).ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Returns the rules for files and sockets, with the paths in place of their parameters.
    fn rules(profile: &Profile) -> String {
        let mut rules = profile.rules.replacen(RULES, "", 1).replace(NO_NETWORK, "");
        for (index, path) in profile.paths.iter().enumerate().rev() {
            let parameter = format!("(param \"PATH_{index}\")");
            rules = rules.replace(&parameter, &path.display().to_string());
        }
        rules
    }

    #[track_caller]
    fn check(sandbox: &Sandbox, expected: &[&str]) {
        let rules = rules(&Profile::new(sandbox, &[], Path::new("/t/run")));
        let files = rules.lines().filter(|rule| rule.contains(" file"));
        assert_eq!(files.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn writing_is_denied_except_in_writable_paths() {
        check(&Sandbox::none(), &["(allow file* (subpath /t/run))"]);
        check(
            &Sandbox::none().write("/t/data"),
            &[
                "(allow file* (subpath /t/data))",
                "(allow file* (subpath /t/run))",
            ],
        );
        assert!(RULES.contains("(deny file-write*)\n"));
    }

    #[test]
    fn more_specific_entry_comes_last_and_so_counts() {
        let sandbox = Sandbox::none()
            .hide("/h/alice/.ssh")
            .write("/h/alice")
            .write("/h/alice/.ssh/known")
            .hide("/t/run");
        check(
            &sandbox,
            &[
                "(deny file* (subpath /t/run))",
                "(allow file* (subpath /h/alice))",
                "(allow file* (subpath /t/run))",
                "(deny file* (subpath /h/alice/.ssh))",
                "(allow file* (subpath /h/alice/.ssh/known))",
                "(deny file-write-unlink (literal /h/alice))",
            ],
        );
    }

    #[test]
    fn home_shows_tool_chains_and_what_is_declared() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap();
        for entry in [".cargo", ".foo", ".bar", "notes"] {
            fs::create_dir(home.join(entry)).unwrap();
        }
        let mut sandbox = Sandbox::none().read(home.join(".bar"));
        sandbox.level = crate::Level::Guarded;
        sandbox.homes.push(home.clone());
        let rules = rules(&Profile::new(&sandbox, &[], Path::new("/t/run")));
        let rules = rules.replace(home.to_str().unwrap(), "~");
        let place = |rule: &str| rules.lines().position(|line| line == rule);
        assert!(place("(deny file* (subpath ~/.foo))").is_some(), "{rules}");
        assert!(!rules.contains("~/notes"), "{rules}");
        for entry in [".cargo", ".bar"] {
            let denied = place(&format!("(deny file* (subpath ~/{entry}))"));
            let allowed = format!("(allow file-read* (subpath ~/{entry}))");
            assert!(denied.is_some() && denied < place(&allowed), "{rules}");
        }
    }

    #[test]
    fn planted_links_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().canonicalize().unwrap();
        symlink("/etc", path.join("link")).unwrap();
        let entries = |sandbox: &Sandbox| writable(sandbox).cloned().collect::<Vec<_>>();
        let link = Sandbox::none().write(path.join("link"));
        assert_eq!(entries(&link), link.write);
        assert_eq!(entries(&link.clone().write(&path)), [path]);
        let mut resolved = link;
        resolved.resolved = true;
        assert!(entries(&resolved).is_empty());
    }

    #[test]
    fn directories_above_hidden_paths_can_not_be_moved() {
        check(
            &Sandbox::none().hide("/h/alice/keys/mine").write("/h/alice"),
            &[
                "(allow file* (subpath /h/alice))",
                "(allow file* (subpath /t/run))",
                "(deny file* (subpath /h/alice/keys/mine))",
                "(deny file-write-unlink (literal /h/alice))",
                "(deny file-write-unlink (literal /h/alice/keys))",
            ],
        );
    }

    #[test]
    fn sockets_are_hidden_like_files() {
        let profile = Profile::new(&Sandbox::none().hide("/s/agent"), &[], Path::new("/t/run"));
        let rule = "(deny network-outbound (remote unix-socket (subpath /s/agent)))\n";
        assert!(rules(&profile).contains(rule));
    }

    #[test]
    fn network_off_overrides_allowed_sockets() {
        let off = Sandbox::none().write("/t/data").network(Network::Off);
        assert!(
            Profile::new(&off, &[], Path::new("/t/run"))
                .rules
                .ends_with(NO_NETWORK)
        );
        let on = off.network(Network::Host);
        let profile = Profile::new(&on, &[], Path::new("/t/run"));
        assert!(!profile.rules.contains("network*"));
    }

    #[test]
    fn file_names_are_parameters_of_the_rules() {
        let plain = Profile::new(&Sandbox::none().hide("/h/keys"), &[], Path::new("/t/run"));
        let odd = "/h/a\"))(allow default)\\\n;=";
        let hidden = Profile::new(&Sandbox::none().hide(odd), &[], Path::new("/t/run"));
        assert_eq!(hidden.rules, plain.rules);
        let arguments = hidden.arguments();
        assert_eq!(arguments[..2], ["-p", &plain.rules]);
        assert_eq!(arguments[2..4], ["-D", &format!("PATH_0={odd}")]);
    }

    #[test]
    fn rules_have_balanced_parentheses() {
        let sandbox = Sandbox::guarded().write("/h").network(Network::Off);
        let rules = Profile::new(&sandbox, &[], Path::new("/t/run")).rules;
        let count = |wanted| rules.chars().filter(|char| *char == wanted).count();
        assert_eq!(count('('), count(')'));
        assert_eq!(count('"') % 2, 0);
    }

    #[test]
    fn paths_are_resolved_as_far_as_they_exist() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().canonicalize().unwrap().join("real");
        fs::create_dir(&real).unwrap();
        let link = directory.path().join("link");
        symlink(&real, &link).unwrap();
        assert_eq!(resolve(&link).as_os_str(), real.as_os_str());
        let missing = resolve(&link.join("not/there"));
        assert_eq!(missing, real.join("not/there"));
        assert_eq!(resolve(Path::new("/")).as_os_str(), "/");
    }
}
