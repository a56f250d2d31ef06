//! Scripts that are saved while they are served, often, slowly, and in the manner of several
//! editors. A half-written script is not run.

use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mcpd_tests::{Daemon, Sandbox, eventually};
use serde_json::{Value, json};

use super::Server as _;

/// Saves further apart than this may be probed one by one.
const MAX_GAP: Duration = Duration::from_millis(550);

/// Returns a script that appends a line to `probes` on each probe and is identified by its
/// description.
fn counting_script(description: &str) -> String {
    let answer = json!({ "description": description });
    format!("#!/bin/sh\necho \"${{0##*/}}\" >>\"${{0%/*}}/../probes\"\necho '{answer}'\n")
}

/// Serves scripts that may count their probes.
fn serve(sandbox: &Sandbox) -> Daemon {
    let configuration = sandbox.path().join("mcpd.toml");
    fs::write(configuration, "[probe]\nsandbox = \"none\"\n").unwrap();
    Daemon::start(sandbox, &["--sandbox", "none"])
}

fn probes(sandbox: &Sandbox, script: &str) -> usize {
    let probes = fs::read_to_string(sandbox.path().join("probes")).unwrap_or_default();
    probes.lines().filter(|line| *line == script).count()
}

/// Returns the tool names, each with its description.
fn list_tools(daemon: &mut Daemon) -> Vec<(String, String)> {
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let answer = daemon.exchange(&list);
    let tools = answer["result"]["tools"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    tools
        .map(|tool| (text(&tool["name"]), text(&tool["description"])))
        .collect()
}

#[track_caller]
fn wait_for(daemon: &mut Daemon, name: &str, description: &str) {
    let tool = (name.to_owned(), description.to_owned());
    eventually(&format!("`{name}`: {description}"), || {
        list_tools(daemon).contains(&tool).then_some(())
    });
}

#[test]
fn debounce_turns_five_saves_into_one_probe() {
    let sandbox = Sandbox::new().with_script("saved", &counting_script("Version 0"));
    let mut daemon = serve(&sandbox);
    wait_for(&mut daemon, "saved", "Version 0");
    // On a busy machine the saves may be too far apart.
    let in_time = (0..10).any(|round| {
        let before = probes(&sandbox, "saved");
        let mut longest = Duration::ZERO;
        for save in 1..=5 {
            let begun = Instant::now();
            sandbox.write_script(
                "saved",
                &counting_script(&format!("Version {round}.{save}")),
            );
            if save < 5 {
                thread::sleep(Duration::from_millis(400));
                longest = longest.max(begun.elapsed());
            }
        }
        wait_for(&mut daemon, "saved", &format!("Version {round}.5"));
        let made = probes(&sandbox, "saved") - before;
        assert!(made == 1 || longest > MAX_GAP, "{made} probes");
        made == 1
    });
    assert!(in_time);
}

#[test]
fn file_saved_continuously_delays_no_other() {
    let sandbox = Sandbox::new().with_script("busy", &counting_script("Busy"));
    let mut daemon = serve(&sandbox);
    wait_for(&mut daemon, "busy", "Busy");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let saves = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !is_over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                sandbox.write_script("busy", &counting_script("Busier"));
                thread::sleep(Duration::from_millis(50));
                longest = longest.max(begun.elapsed());
            }
            longest
        });
        sandbox.write_script("other", &counting_script("Other"));
        wait_for(&mut daemon, "other", "Other");
        let made = probes(&sandbox, "busy");
        is_over.store(true, Ordering::Relaxed);
        let longest = saves.join().unwrap();
        assert!(made == 1 || longest > MAX_GAP, "{made} probes");
    });
    wait_for(&mut daemon, "busy", "Busier");
}

#[test]
fn file_that_is_open_for_writing_is_not_probed() {
    let sandbox = Sandbox::new();
    let mut daemon = serve(&sandbox);
    let path = sandbox.path().join("scripts/slow");
    let mut writer = File::create(&path).unwrap();
    writer
        .write_all(counting_script("Slow").as_bytes())
        .unwrap();
    writer
        .set_permissions(Permissions::from_mode(0o755))
        .unwrap();
    for witness in ["first", "second", "third"] {
        sandbox.write_script(witness, &counting_script("Witness"));
        wait_for(&mut daemon, witness, "Witness");
    }
    assert_eq!(probes(&sandbox, "slow"), 0);
    drop(writer);
    wait_for(&mut daemon, "slow", "Slow");
    assert_eq!(probes(&sandbox, "slow"), 1);
}

#[test]
fn list_names_files_still_being_written() {
    let sandbox = Sandbox::new().with_script("slow", &counting_script("Slow"));
    let path = sandbox.path().join("scripts/slow");
    let _writer = File::options().append(true).open(path).unwrap();
    let told = sandbox.run(&["check", "scripts"]);
    assert!(
        told.contains("a process has the file open for writing"),
        "{told}"
    );
    assert!(!sandbox.path().join("probes").exists());
}

/// Ways in which editors save a file.
#[derive(Debug, Clone, Copy)]
enum Editor {
    /// VS Code and nano: truncate the file, then write.
    InPlace,
    /// `sed -i` and many others: rename another file to its place.
    Rename,
    /// Vim: a file that probes for write access, a backup, the new file, and a swap file all the
    /// while.
    Vim,
    /// Emacs: a link as a lock, an auto-save file, and the former file as a backup.
    Emacs,
}

impl Editor {
    fn save(self, path: &Path, text: &str) {
        let beside = |name: &str| path.with_file_name(name);
        let name = path.file_name().unwrap().to_str().unwrap();
        match self {
            Self::InPlace => write_slowly(File::create(path).unwrap(), text),
            Self::Rename => {
                let new = beside(&format!("{name}.tmp.4711"));
                write_slowly(executable(&new), text);
                fs::rename(new, path).unwrap();
            }
            Self::Vim => {
                let (swap, probe) = (beside(&format!(".{name}.swp")), beside("4913"));
                fs::write(&swap, "b0VIM 9.1").unwrap();
                drop(executable(&probe));
                fs::remove_file(probe).unwrap();
                let backup = beside(&format!("{name}~"));
                fs::rename(path, &backup).unwrap();
                write_slowly(executable(path), text);
                fs::remove_file(backup).unwrap();
                fs::remove_file(swap).unwrap();
            }
            Self::Emacs => {
                let lock = beside(&format!(".#{name}"));
                symlink("author@host.4711:1700000000", &lock).unwrap();
                let typed = beside(&format!("#{name}#"));
                write_slowly(executable(&typed), text);
                fs::rename(path, beside(&format!("{name}~"))).unwrap();
                write_slowly(executable(path), text);
                fs::remove_file(typed).unwrap();
                fs::remove_file(lock).unwrap();
            }
        }
    }
}

fn executable(path: &Path) -> File {
    let file = File::create(path).unwrap();
    file.set_permissions(Permissions::from_mode(0o755)).unwrap();
    file
}

/// Writes a text in two parts. The first part alone is a valid script that would be listed.
fn write_slowly(mut file: File, text: &str) {
    let (first, rest) = text.split_at(text.rfind("echo").unwrap());
    file.write_all(first.as_bytes()).unwrap();
    thread::sleep(Duration::from_millis(30));
    file.write_all(rest.as_bytes()).unwrap();
}

#[test]
fn editors_leave_no_extra_tool_or_fault() {
    let editors = [Editor::InPlace, Editor::Rename, Editor::Vim, Editor::Emacs];
    let sandbox = Sandbox::new();
    let name = |editor: Editor| format!("{editor:?}").to_lowercase();
    let path = |editor| -> PathBuf { sandbox.path().join("scripts").join(name(editor)) };
    for editor in editors {
        sandbox.write_script(&name(editor), &counting_script("Old"));
    }
    let mut daemon = serve(&sandbox);
    for round in ["New", "Newer"] {
        for editor in editors {
            editor.save(&path(editor), &counting_script(round));
        }
        for editor in editors {
            wait_for(&mut daemon, &name(editor), round);
        }
        let names: Vec<_> = list_tools(&mut daemon)
            .into_iter()
            .map(|tool| tool.0)
            .collect();
        assert_eq!(names, ["emacs", "inplace", "rename", "vim"]);
    }
    for editor in editors {
        assert_eq!(probes(&sandbox, &name(editor)), 3, "{editor:?}");
    }
    let probed = fs::read_to_string(sandbox.path().join("probes")).unwrap();
    assert_eq!(probed.lines().count(), 3 * editors.len(), "{probed}");
    daemon.signal(rustix::process::Signal::TERM);
    let (_, log) = daemon.wait();
    assert!(
        !log.contains("not served") && !log.contains("ERROR"),
        "{log}"
    );
}
