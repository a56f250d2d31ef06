//! Mount plans for a few directories, as text.

use std::ffi::CStr;
use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::{MAX_TREES, MountPlan, Step, flags};
use crate::linux::view::{HIDDEN, PRIVATE, Proc, View};
use crate::sandbox::{Network, RunAs, Sandbox};

/// Directories below `/tmp`, which is covered.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir_in("/tmp").unwrap());
        fs::create_dir_all(place.at("work/secret/open")).unwrap();
        fs::write(place.at("work/script"), "").unwrap();
        symlink(place.at("work"), place.at("link")).unwrap();
        place
    }

    fn at(&self, path: &str) -> std::path::PathBuf {
        self.0.path().join(path)
    }

    /// Returns the steps that concern this place, one per line.
    fn steps(&self, sandbox: &Sandbox, visible: &[&str]) -> Vec<String> {
        let visible: Vec<_> = visible.iter().map(|path| self.at(path)).collect();
        let visible: Vec<_> = visible.iter().map(|path| path.as_path()).collect();
        let view = View {
            sandbox,
            visible: &visible,
        };
        let here = self.0.path().to_str().unwrap();
        let plan = MountPlan::new(&view, Proc::Own).unwrap();
        let all = plan.steps.iter().map(describe).collect::<Vec<_>>();
        let mentioned = all.iter().filter(|step| step.contains(here));
        mentioned.map(|step| step.replace(here, "@")).collect()
    }
}

/// Returns a strict sandbox that hides nothing but what the level does.
fn strict() -> Sandbox {
    let mut sandbox = Sandbox::strict();
    sandbox.hidden.clear();
    sandbox
}

fn describe(step: &Step) -> String {
    let t = |text: &CStr| text.to_str().unwrap().to_owned();
    match step {
        Step::Write { path, text } => format!("write {} {}", t(path), t(text)),
        Step::Mount {
            source,
            target,
            kind,
            flags,
            ..
        } => {
            let read_only = if flags & libc::MS_RDONLY == 0 {
                ""
            } else {
                " ro"
            };
            format!(
                "mount {} {}{read_only}",
                t(if kind.is_empty() { source } else { kind }),
                t(target)
            )
        }
        Step::Take { path, .. } => format!("take {}", t(path)),
        Step::Directory { path } => format!("directory {}", t(path)),
        Step::File { path } => format!("file {}", t(path)),
        Step::Link { path, target } => format!("link {} {}", t(path), t(target)),
        Step::Attach { path, .. } => format!("attach {}", t(path)),
        Step::Attributes { path, .. } => format!("protect {}", t(path)),
    }
}

#[track_caller]
fn check(sandbox: impl FnOnce(&Place) -> Sandbox, visible: &[&str], expected: &[&str]) {
    let place = Place::new();
    assert_eq!(place.steps(&sandbox(&place), visible), expected);
}

fn all(sandbox: &Sandbox, proc: Proc) -> Vec<String> {
    let view = View {
        sandbox,
        visible: &[],
    };
    let plan = MountPlan::new(&view, proc).unwrap();
    plan.steps.iter().map(describe).collect()
}

#[track_caller]
fn position(steps: &[String], step: &str) -> usize {
    let found = steps.iter().position(|other| other == step);
    found.unwrap_or_else(|| panic!("no `{step}` in {steps:#?}"))
}

#[test]
fn user_namespace_is_used_without_run_as_only() {
    let somebody = RunAs::new(1000, 1000);
    assert_ne!(flags(None) & libc::CLONE_NEWUSER, 0);
    assert_eq!(flags(Some(somebody)) & libc::CLONE_NEWUSER, 0);
    assert_eq!(flags(None) & libc::CLONE_NEWNET, 0);
    assert_eq!(
        all(&strict(), Proc::Own)[0],
        "write /proc/self/setgroups deny"
    );
    assert_eq!(
        all(&strict().run_as(somebody), Proc::Own)[0],
        "mount none /"
    );
}

#[test]
fn writable_trees_are_copied_before_the_system_is_protected() {
    let steps = all(&Sandbox::strict(), Proc::Own);
    let [private, devices, protected, mounted] = [
        "mount none /",
        "take /dev/null",
        "protect /",
        "attach /dev/null",
    ]
    .map(|step| position(&steps, step));
    assert!(private < devices && devices < protected && protected < mounted);
    for path in PRIVATE {
        assert!(position(&steps, &format!("mount tmpfs {path}")) > protected);
    }
    for path in HIDDEN.iter().filter(|path| fs::exists(path).unwrap()) {
        position(&steps, &format!("mount tmpfs {path} ro"));
    }
    position(&steps, "mount proc /proc ro");
}

#[test]
fn refused_proc_is_empty() {
    let steps = all(&strict(), Proc::Empty);
    position(&steps, "mount tmpfs /proc ro");
    assert!(
        !steps.iter().any(|step| step.starts_with("mount proc")),
        "{steps:#?}"
    );
}

#[test]
fn unwanted_paths_are_absent() {
    check(|_| strict(), &[], &[]);
}

#[test]
fn visible_trees_are_copied_after_the_system_is_protected() {
    check(
        |_| strict(),
        &["work/script"],
        &[
            "take @/work/script",
            "directory @",
            "directory @/work",
            "file @/work/script",
            "attach @/work/script",
        ],
    );
}

#[test]
fn path_in_a_visible_directory_is_visible() {
    check(
        |_| strict(),
        &["work", "work/script", "work/missing"],
        &[
            "take @/work",
            "directory @",
            "directory @/work",
            "attach @/work",
        ],
    );
}

#[test]
fn writable_tree_in_a_visible_one_is_copied_first() {
    check(
        |place| {
            strict()
                .write(place.at("work/secret"))
                .write(place.at("work/secret/open"))
        },
        &["work"],
        &[
            "take @/work/secret",
            "take @/work",
            "directory @",
            "directory @/work",
            "attach @/work",
            "attach @/work/secret",
        ],
    );
}

#[test]
fn hidden_path_is_covered_except_writable_paths_in_it() {
    check(
        |place| {
            let sandbox = strict()
                .hide(place.at("work/secret"))
                .hide(place.at("work/script"));
            sandbox.write(place.at("work/secret/open"))
        },
        &["work"],
        &[
            "take @/work/secret/open",
            "take @/work",
            "directory @",
            "directory @/work",
            "attach @/work",
            "mount tmpfs @/work/secret",
            "directory @/work/secret/open",
            "attach @/work/secret/open",
            "mount /dev/null @/work/script",
            "protect @/work/secret",
        ],
    );
}

#[test]
fn hidden_path_in_a_writable_tree_can_not_be_moved() {
    check(
        |place| {
            fs::write(place.at("work/secret/open/other"), "").unwrap();
            let sandbox = strict().write(place.at(""));
            let sandbox = sandbox.hide(place.at("work/secret/open"));
            sandbox.hide(place.at("work/script"))
        },
        &[],
        &[
            "take @",
            "directory @",
            "attach @",
            "mount @/work @/work",
            "mount @/work/secret @/work/secret",
            "mount tmpfs @/work/secret/open ro",
            "mount /dev/null @/work/script",
        ],
    );
}

#[test]
fn writable_entry_wins_over_an_equal_hidden_one() {
    check(
        |place| strict().hide(place.at("work")).write(place.at("work")),
        &["work"],
        &[
            "take @/work",
            "directory @",
            "directory @/work",
            "attach @/work",
        ],
    );
}

#[test]
fn covered_paths_are_not_hidden_again() {
    check(|place| strict().hide(place.at("work")), &[], &[]);
    check(|place| strict().hide(place.at("work")), &["work"], &[]);
}

#[test]
fn link_stays_a_link() {
    check(
        |_| strict(),
        &["link"],
        &[
            "take @/work",
            "directory @",
            "link @/link @/work",
            "directory @",
            "directory @/work",
            "attach @/work",
        ],
    );
}

#[test]
fn resolver_is_visible_with_a_network_only() {
    let resolver = |network| {
        let steps = all(&strict().network(network), Proc::Own);
        steps.iter().any(|step| step.ends_with("resolv.conf"))
    };
    assert!(!resolver(Network::Off));
    let target = fs::canonicalize("/etc/resolv.conf").unwrap_or_default();
    assert_eq!(resolver(Network::Host), target.starts_with("/run"));
}

/// Checks the error for a sandbox that can't be planned.
#[track_caller]
fn refusal(sandbox: &Sandbox) -> String {
    let visible = &[];
    let view = View { sandbox, visible };
    MountPlan::new(&view, Proc::Own).unwrap_err().to_string()
}

#[test]
fn root_can_not_be_written_or_hidden() {
    for sandbox in [strict().write("/"), strict().hide("/")] {
        assert_eq!(
            refusal(&sandbox),
            "`/` can be neither writable nor hidden as a whole"
        );
    }
}

#[test]
fn number_of_trees_is_bounded() {
    let place = Place::new();
    let mut sandbox = strict();
    for number in 0..MAX_TREES {
        let path = place.at(&number.to_string());
        fs::create_dir(&path).unwrap();
        sandbox = sandbox.write(path);
    }
    assert_eq!(refusal(&sandbox), "more than 32 writable or visible paths");
}
