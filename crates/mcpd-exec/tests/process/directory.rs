//! Starting directory that another process replaces at any time: a run starts in the directory
//! that was opened and writes there, or it does not start.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use mcpd_exec::{Level, Sandbox};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tokio::runtime::Handle;

use crate::support::{World, levels, within};

/// Runs of each race.
const ROUNDS: usize = 150;

/// Notes in the starting directory how that is called, and prints it.
const BODY: &str = "read name <name; echo x 2>/dev/null >written-$name-$$; echo $name";

/// Exchanges two paths.
fn exchange([one, other]: [&Path; 2]) {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}

fn directory(path: PathBuf) -> PathBuf {
    fs::create_dir_all(&path).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    fs::write(path.join("name"), format!("{name}\n")).unwrap();
    path
}

/// Names of the files that runs have left in a directory.
fn written(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("written-")).collect()
}

/// End of a race.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Starts runs at `level` in the directory while two paths are exchanged. Returns what each run
/// printed, and the number of those that were refused.
fn race(
    world: &World,
    level: Level,
    directory: &Path,
    exchanged: [&Path; 2],
) -> (Vec<String>, usize) {
    let script = world.file(format!("#!/bin/sh\n{BODY}\n"), 0o755);
    let (mut said, mut refused) = (Vec::new(), 0);
    let runs = async {
        for _ in 0..ROUNDS {
            let sandbox = Sandbox::at(level).write(directory);
            let command = world.command(&script).current_dir(directory);
            let command = command.fixed_directory().sandbox(sandbox);
            match within(world.executor.run(command)).await {
                Ok(outcome) => said.push(outcome.stdout.to_text_lossy().trim_end().to_owned()),
                Err(error) => {
                    let error = format!("{error:?}");
                    assert!(error.contains("was replaced"), "at {level}: {error}");
                    refused += 1;
                }
            }
        }
    };
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        // A failed run ends the race, too.
        let _end = SetOnDrop(&is_over);
        scope.spawn(|| {
            for round in 0_u64.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                exchange(exchanged);
                // Pauses in odd steps.
                thread::sleep(Duration::from_micros(round * 137 % 1009));
            }
        });
        tokio::task::block_in_place(|| Handle::current().block_on(runs));
    });
    (said, refused)
}

/// Link to another directory in place of the allowed one, or of the one above it.
async fn check_link(is_above: bool) {
    for level in levels().await {
        let world = World::new();
        let root = world.directory().canonicalize().unwrap();
        let own = directory(root.join("above/own"));
        let elsewhere = directory(root.join("elsewhere/own"));
        fs::write(elsewhere.join("name"), "elsewhere\n").unwrap();
        let (moved, target) = match is_above {
            true => (own.parent().unwrap(), elsewhere.parent().unwrap()),
            false => (&*own, &*elsewhere),
        };
        let link = root.join("link");
        symlink(target, &link).unwrap();
        let (said, refused) = race(&world, level, &own, [moved, &link]);
        assert!(
            said.iter().all(|name| name == "own"),
            "at {level}: {said:?}"
        );
        assert_eq!(written(&elsewhere), [""; 0], "at {level}");
        assert!(!said.is_empty() && refused > 0, "at {level}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn link_in_place_of_the_directory_leads_nowhere() {
    check_link(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn link_in_place_of_the_directory_above_leads_nowhere() {
    check_link(true).await;
}

/// Each of two directories may be the one that is opened; a run writes nowhere else.
#[tokio::test(flavor = "multi_thread")]
async fn run_writes_only_the_directory_that_it_starts_in() {
    for level in levels().await {
        let world = World::new();
        let root = world.directory().canonicalize().unwrap();
        let [one, other] = ["one", "other"].map(|name| directory(root.join(name)));
        let (said, _) = race(&world, level, &one, [&one, &other]);
        let mut left = 0;
        for place in [&one, &other] {
            let name = fs::read_to_string(place.join("name")).unwrap();
            let prefix = format!("written-{}-", name.trim_end());
            let files = written(place);
            left += files.len();
            assert!(
                files.iter().all(|file| file.starts_with(&prefix)),
                "at {level}: {files:?} in {name}"
            );
        }
        assert!(left > 0 && left <= said.len(), "at {level}: {left}");
    }
}
