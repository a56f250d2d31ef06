//! File access: a confined process writes only where it may, by any name, and reads no secret.
//! Each attempt is also made unconfined, where it succeeds.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use mcpd_exec::{Command, Level, Outcome, Sandbox};
use nix::mount::{MsFlags, mount, umount};

use crate::host::{again_as_stranger, again_beside, again_with_mounts, is_again};
use crate::support::{World, eventually, is_root, landlock_is_older_than, levels, skip, within};

/// Makes a world with two directories beside the scripts: `outside` is read-only, `inside` is
/// writable.
fn world() -> World {
    let world = World::new();
    let at = |path: &str| world.directory().join(path);
    fs::create_dir_all(at("outside/directory")).unwrap();
    fs::write(at("outside/file"), "kept\n").unwrap();
    fs::create_dir(at("inside")).unwrap();
    fs::write(at("inside/file"), "old\n").unwrap();
    symlink(at("outside/file"), at("inside/link")).unwrap();
    world
}

async fn run(world: &World, level: Level, body: &str) -> Outcome {
    let sandbox = Sandbox::at(level).write(world.directory().join("inside"));
    world.run_in(sandbox, world.sh(body)).await
}

/// Runs one script again, which finds what was cached for its first run.
async fn run_again(world: &World, script: &Command) -> Outcome {
    within(world.executor.run(script.clone())).await.unwrap()
}

/// Lists everything at a path and below, without the contents of files.
fn state(path: &Path) -> Vec<String> {
    let data = fs::symlink_metadata(path).unwrap();
    let (name, mode, owner, size) = (path.display(), data.mode(), data.uid(), data.size());
    let changed = (data.ctime(), data.ctime_nsec());
    let mut state = vec![format!("{name} {mode:o} {owner} {size} {changed:?}")];
    if data.is_dir() {
        let entries = fs::read_dir(path).unwrap();
        state.extend(entries.flat_map(|entry| self::state(&entry.unwrap().path())));
    }
    state
}

/// Checks that a script can't change anything in `outside`.
async fn check(body: &str) {
    for level in levels().await {
        let world = world();
        let outside = world.directory().join("outside");
        let before = state(&outside);
        let outcome = run(&world, level, body).await;
        let done = (outcome.success(), state(&outside) != before);
        let expected = level == Level::None;
        let said = outcome.stderr.to_text_lossy();
        assert_eq!(done, (expected, expected), "at {level}: {body}: {said}");
    }
}

#[tokio::test]
async fn outside_paths_are_not_writable() {
    check("echo x > outside/new").await;
    check("echo x > outside/file").await;
    check("echo x >> outside/file").await;
    if !landlock_is_older_than(3, "files elsewhere that are truncated").await {
        check("perl -e 'truncate $ARGV[0], 0 or die $!' outside/file").await;
    }
    check("mkdir outside/new").await;
    check("mkfifo outside/new").await;
    check("ln -s x outside/new").await;
    check("perl -MSocket -e 'socket S, AF_UNIX, SOCK_STREAM, 0; bind S, sockaddr_un(q(outside/new)) or die'").await;
}

#[tokio::test]
async fn outside_files_are_not_removed_or_moved() {
    check("rm outside/file").await;
    check("rmdir outside/directory").await;
    check("mv outside/file outside/new").await;
    check("mv inside/file outside/new").await;
    check("perl -e 'rename qw(outside/file inside/new) or die $!'").await;
    check("perl -e 'rename qw(inside/file outside/file) or die $!'").await;
    check("mv outside/directory inside/new").await;
}

#[tokio::test]
async fn other_names_do_not_lead_outside() {
    check("echo x > inside/link").await;
    check("echo x > inside/../outside/file").await;
    check("cd inside && echo x > ../outside/file").await;
    check("cd outside && echo x > /proc/self/cwd/file").await;
    check("echo x > /proc/self/root$PWD/outside/file").await;
    check("ln outside/file inside/new && echo x > inside/new").await;
    check("ln -s ../outside inside/new && echo x > inside/new/file").await;
    check("exec 7< outside/file; echo x > /proc/self/fd/7").await;
}

/// Only root may do this unconfined.
#[tokio::test]
async fn mounts_and_devices_are_refused() {
    if !is_root() {
        return skip("mounts and devices, by an ordinary user");
    }
    check("mknod outside/null c 1 3").await;
    check("mount --bind inside outside && umount outside && touch outside/new").await;
    check("chown 1 outside/file").await;
}

/// Landlock does not cover these. At `guarded` only another user prevents them: see
/// `Sandbox::run_as`.
#[tokio::test]
async fn modes_and_times_outside_can_be_changed_at_guarded() {
    for body in ["chmod 600 outside/file", "touch -d @1 outside/file"] {
        for level in levels().await {
            let outcome = run(&world(), level, body).await;
            assert_eq!(outcome.success(), level < Level::Strict, "{level}: {body}");
        }
    }
}

/// A user who starts such a file later would get the rights of its owner.
#[tokio::test]
async fn set_id_bits_are_refused() {
    for body in [
        "chmod u+s inside/file",
        "chmod g+s inside/file",
        "install -m 4755 inside/file inside/new",
        "perl -MFcntl -e 'umask 0; sysopen F, q(inside/new), O_CREAT | O_RDWR, 04755 or die'",
        "perl -e 'open F, q(<), q(inside/file) or die; chmod 02755, *F or die'",
    ] {
        for level in levels().await {
            let world = world();
            run(&world, level, body).await;
            let inside = fs::read_dir(world.directory().join("inside")).unwrap();
            let modes = inside.map(|entry| entry.unwrap().metadata().unwrap().mode());
            let has_any = modes.into_iter().any(|mode| mode & 0o6000 != 0);
            assert_eq!(has_any, level == Level::None, "at {level}: {body}");
        }
    }
    check_allowed(
        "chmod 1750 inside/file && touch inside/new && (set -C; umask 0; echo > inside/newer)",
    )
    .await;
}

#[tokio::test]
async fn readable_files_can_be_locked() {
    for level in levels().await {
        let world = world();
        let file = fs::File::open(world.directory().join("outside/file")).unwrap();
        file.lock().unwrap();
        let body = "flock -n outside/file true || flock -n inside/file echo other";
        let outcome = run(&world, level, body).await;
        assert_eq!(outcome.stdout.to_text_lossy(), "other\n", "{level}");
    }
}

/// Checks that a script may act in its writable places.
async fn check_allowed(body: &str) {
    for level in levels().await {
        let world = world();
        let outcome = run(&world, level, body).await;
        let said = outcome.stderr.to_text_lossy();
        assert!(outcome.success(), "at {level}: {body}: {said}");
    }
}

#[tokio::test]
async fn inside_paths_are_writable() {
    check_allowed(
        "cd inside && echo x > file && echo x > new && rm new && mkdir -p a/b && mv file a/b",
    )
    .await;
    check_allowed(
        "cd inside && mkdir a b && echo x > a/x && ln a/x b/y && mv a/x b/x && chmod 700 b",
    )
    .await;
    check_allowed("touch \"${TMPDIR:-/tmp}/mcpd-$$\" && rm \"${TMPDIR:-/tmp}/mcpd-$$\"").await;
    check_allowed("echo x > \"$(mktemp)\"; echo x > /dev/null; echo x > /dev/stderr").await;
}

#[tokio::test]
async fn written_files_stay() {
    for level in levels().await {
        let world = world();
        let outcome = run(&world, level, "cat inside/file; echo new > inside/file").await;
        assert_eq!(outcome.stdout.to_text_lossy(), "old\n");
        let file = world.directory().join("inside/file");
        assert_eq!(fs::read_to_string(file).unwrap(), "new\n", "at {level}");
    }
}

#[tokio::test]
async fn single_file_is_written_and_not_its_neighbour() {
    for level in levels().await {
        let world = world();
        let sandbox = Sandbox::at(level).write(world.directory().join("inside/file"));
        let script = world.sh("echo new > inside/file && echo mine && echo x > inside/other");
        let outcome = world.run_in(sandbox, script).await;
        assert_eq!(
            outcome.stdout.to_text_lossy(),
            "mine\n",
            "{}",
            outcome.stderr.to_text_lossy()
        );
        assert_eq!(outcome.success(), level == Level::None, "at {level}");
    }
}

/// A missing path is no lack of the system, so it is never a reason to refuse the run.
#[tokio::test]
async fn missing_writable_path_is_reported() {
    for level in levels().await.filter(|level| *level > Level::None) {
        let world = World::new();
        let sandbox = Sandbox::at(level).write(world.directory().join("missing"));
        let outcome = world.run_in(sandbox, world.sh("true")).await;
        let mut missing = outcome.enforced.missing.iter();
        let told = missing.find(|missing| missing.mechanism == "write");
        assert!(
            told.is_some_and(|told| told.reason.contains("/missing` does not exist")),
            "at {level}: {outcome:?}"
        );
    }
}

/// Checks that a script can't read `outside/file`, which is hidden with all of `outside`.
async fn check_unreadable(body: &str) {
    for level in levels().await {
        let world = world();
        let sandbox = Sandbox::at(level)
            .write(world.directory().join("inside"))
            .hide(world.directory().join("outside"));
        let outcome = world.run_in(sandbox, world.sh(body)).await;
        let found = outcome.stdout.to_text_lossy().contains("kept");
        assert_eq!(found, level == Level::None, "at {level}: {body}");
    }
}

#[tokio::test]
async fn hidden_paths_are_not_read() {
    check_unreadable("cat outside/file").await;
    check_unreadable("cat inside/link").await;
    check_unreadable("cd outside && cat file").await;
    check_unreadable("cat inside/../outside/file").await;
    check_unreadable("cat /proc/self/root$PWD/outside/file").await;
    check_unreadable("ln outside/file inside/new; cat inside/new").await;
    check_unreadable("mv outside inside/new; cat inside/new/file").await;
    check_unreadable("mv outside/file inside/new; cat inside/new").await;
    check_unreadable("chmod 777 outside outside/file; cat outside/file").await;
}

/// Otherwise the next run would find nothing to hide there.
#[tokio::test]
async fn hidden_paths_can_not_be_moved() {
    for level in levels().await {
        let world = world();
        let key = world.directory().join("inside/deep/er/key");
        fs::create_dir_all(key.parent().unwrap()).unwrap();
        fs::write(&key, "kept\n").unwrap();
        let sandbox = || {
            let sandbox = Sandbox::at(level).write(world.directory().join("inside"));
            sandbox.hide(&key)
        };
        for body in [
            "mv inside/deep/er inside/deep/new",
            "mv inside/deep inside/new",
        ] {
            let moved = world.run_in(sandbox(), world.sh(body)).await;
            assert_eq!(moved.success(), level == Level::None, "at {level}: {body}");
        }
        let outcome = world
            .run_in(sandbox(), world.sh("cat $(find inside -name key)"))
            .await;
        let found = outcome.stdout.to_text_lossy().contains("kept");
        assert_eq!(found, level == Level::None, "at {level}: {outcome:?}");
        let beside = "cd inside/deep && echo x > new && mv new newer && cat newer && rm newer";
        let outcome = world.run_in(sandbox(), world.sh(beside)).await;
        let written = outcome.stdout.to_text_lossy() == "x\n";
        assert_eq!(written, level == Level::Strict, "at {level}: {outcome:?}");
    }
}

/// At `strict` a link can be moved, and then no later run hides its target: nothing can be
/// mounted on a link.
#[tokio::test]
async fn link_to_a_hidden_path_can_not_be_moved_at_guarded() {
    for level in levels().await {
        for hidden in ["inside/link", "inside/chain", "inside/way/file"] {
            let world = world();
            symlink("link", world.directory().join("inside/chain")).unwrap();
            symlink("../outside", world.directory().join("inside/way")).unwrap();
            let sandbox = || {
                let sandbox = Sandbox::at(level).write(world.directory().join("inside"));
                sandbox.hide(world.directory().join(hidden))
            };
            for body in [
                "mv inside/link inside/new",
                "rm inside/way",
                "mv inside/chain inside/x",
            ] {
                let moved = world.run_in(sandbox(), world.sh(body)).await;
                assert_eq!(
                    moved.success(),
                    level != Level::Guarded,
                    "at {level}: {body}"
                );
            }
            let outcome = world.run_in(sandbox(), world.sh("cat outside/file")).await;
            let found = outcome.stdout.to_text_lossy().contains("kept");
            assert_eq!(found, level != Level::Guarded, "at {level}: {hidden}");
            let outcome = world.run_in(sandbox(), world.sh("echo x > inside/file"));
            assert!(outcome.await.success(), "at {level}: {hidden}");
        }
    }
}

/// Its owner could open it. Root enters it anyway.
#[tokio::test]
async fn hidden_path_in_a_closed_directory_is_not_read() {
    if is_root() && !is_again() {
        return again_as_stranger("files::hidden_path_in_a_closed_directory_is_not_read");
    }
    for level in levels().await {
        let world = world();
        let closed = world.directory().join("inside/closed");
        fs::create_dir_all(closed.join("deep")).unwrap();
        fs::write(closed.join("deep/key"), "kept\n").unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        let sandbox = Sandbox::at(level)
            .write(world.directory().join("inside"))
            .hide(closed.join("deep/key"));
        let body = "chmod 700 inside/closed; cat inside/closed/deep/key; chmod 700 inside/closed";
        let outcome = world.run_in(sandbox, world.sh(body)).await;
        let found = outcome.stdout.to_text_lossy().contains("kept");
        assert_eq!(found, level == Level::None, "at {level}");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    }
}

#[tokio::test]
async fn hidden_file_is_not_read_though_its_neighbour_is() {
    for level in levels().await {
        let world = world();
        let sandbox = Sandbox::at(level).hide(world.directory().join("outside/file"));
        fs::write(world.directory().join("outside/other"), "open\n").unwrap();
        let script = world.sh("cat outside/other outside/file");
        let outcome = world.run_in(sandbox, script).await;
        let expected = match level {
            Level::None => "open\nkept\n",
            _ => "open\n",
        };
        assert_eq!(outcome.stdout.to_text_lossy(), expected, "at {level}");
    }
}

/// Cached plans serve the next runs too.
#[tokio::test]
async fn path_that_appears_between_runs_is_hidden_from_the_next() {
    for level in levels().await {
        let world = world();
        let at = |path: &str| world.directory().join(path);
        let sandbox = Sandbox::at(level).hide(at("outside/file"));
        let sandbox = Arc::new(sandbox.hide(at("outside/new")));
        let script = world.sh("cat outside/file outside/new");
        let script = script.current_dir(world.directory()).sandbox(sandbox);
        let read = async || run_again(&world, &script).await.stdout.to_text_lossy();
        let seen = |text: &str| match level {
            Level::None => text.to_owned(),
            _ => String::new(),
        };
        assert_eq!(read().await, seen("kept\n"), "at {level}");
        fs::write(at("outside/new"), "new\n").unwrap();
        assert_eq!(read().await, seen("kept\nnew\n"), "at {level}");
        fs::write(at("other"), "other\n").unwrap();
        fs::rename(at("other"), at("outside/file")).unwrap();
        assert_eq!(read().await, seen("other\nnew\n"), "at {level}");
    }
}

/// At `strict` the writable directory is mounted over the hidden one that was planned before it.
#[tokio::test]
async fn path_moved_between_runs_and_linked_to_is_hidden_from_the_next() {
    for level in levels().await {
        let world = world();
        let at = |path: &str| world.directory().join(path);
        fs::create_dir(at("hidden")).unwrap();
        fs::write(at("hidden/key"), "key\n").unwrap();
        let sandbox = Sandbox::at(level).hide(at("hidden"));
        let sandbox = Arc::new(sandbox.write(at("inside")));
        let script = world.sh("cat hidden/key");
        let script = script.current_dir(world.directory()).sandbox(sandbox);
        let read = async || run_again(&world, &script).await.stdout.to_text_lossy();
        let seen = match level {
            Level::None => "key\n",
            _ => "",
        };
        assert_eq!(read().await, seen, "at {level}");
        fs::rename(at("hidden"), at("inside/moved")).unwrap();
        symlink("inside/moved", at("hidden")).unwrap();
        assert_eq!(read().await, seen, "at {level}, by a link");
    }
}

/// The directory is closed to this user when the first run is planned, and open for the second.
#[tokio::test]
async fn directory_opened_between_runs_is_hidden_from_the_next() {
    /// Opens the file on request.
    const ROOT: &str = "umask 022
place=$(mktemp -d) && export place && chmod 755 $place && mkdir -m 777 $place/told || exit
echo key >$place/key && chmod 600 $place/key || exit
{ until [ -e $place/told/now ]; do sleep 0.05; done; chmod 644 $place/key; } &
\"$@\"
result=$?
kill $! 2>/dev/null
rm -r $place
exit $result";
    if !is_again() {
        let itself = "files::directory_opened_between_runs_is_hidden_from_the_next";
        return match is_root() {
            true => again_beside(ROOT, itself),
            false => skip("a file that root opens to others"),
        };
    }
    let place = PathBuf::from(std::env::var_os("place").unwrap());
    let world = world();
    let read = async |level| {
        let sandbox = Sandbox::at(level).hide(place.join("key"));
        let script = world.sh("cat \"$place/key\"").env("place", &place);
        let outcome = within(world.executor.run(script.sandbox(sandbox)))
            .await
            .unwrap();
        outcome.stdout.to_text_lossy()
    };
    for level in levels().await {
        assert_eq!(read(level).await, "", "at {level}");
    }
    fs::write(place.join("told/now"), "").unwrap();
    let is_open = || fs::read(place.join("key")).is_ok();
    eventually("the file is open", is_open);
    for level in levels().await {
        let seen = match level {
            Level::None => "key\n",
            _ => "",
        };
        assert_eq!(read(level).await, seen, "at {level}");
    }
}

/// A process plants a link where the next one would be let in.
#[tokio::test]
async fn planted_link_makes_no_place_writable() {
    for level in levels().await {
        let world = world();
        let at = |path: &str| world.directory().join(path);
        let sandbox = Sandbox::at(level).write(at("inside"));
        let sandbox = Arc::new(sandbox.write(at("inside/later")));
        let run = async |body: &str| {
            let script = world.sh(body).current_dir(world.directory());
            run_again(&world, &script.sandbox(Arc::clone(&sandbox))).await
        };
        assert!(run("ln -s ../outside inside/later").await.success());
        let outcome = run("echo x >inside/later/new").await;
        assert_eq!(fs::exists(at("outside/new")).unwrap(), level == Level::None);
        if level != Level::None {
            let mut missing = outcome.enforced.missing.iter();
            let is_told =
                missing.any(|missing| missing.reason.contains("name the target of the link"));
            assert!(is_told, "at {level}: {:?}", outcome.enforced);
            assert!(run("echo x >inside/new").await.success(), "at {level}");
        }
    }
}

/// Every user may write there.
#[tokio::test]
async fn link_planted_in_shared_memory_is_not_followed() {
    for level in levels().await.filter(|level| *level != Level::Strict) {
        let world = world();
        let outside = world.directory().join("outside");
        let place = tempfile::tempdir_in("/dev/shm").unwrap();
        let link = place.path().join("link");
        symlink(&outside, &link).unwrap();
        let sandbox = Sandbox::at(level).write(&link);
        let script = world.sh(&format!("echo x >{}/new", link.display()));
        let outcome = world.run_in(sandbox, script).await;
        assert_eq!(outcome.success(), level == Level::None, "at {level}");
        assert_eq!(
            fs::exists(outside.join("new")).unwrap(),
            level == Level::None
        );
    }
}

/// The maker of the link does not matter: there was none when the path was resolved.
#[tokio::test]
async fn later_link_is_not_followed_where_links_were_resolved() {
    for level in levels().await {
        let world = world();
        let at = |path: &str| world.directory().join(path);
        fs::create_dir(at("place")).unwrap();
        let mut sandbox = Sandbox::at(level).write(at("place").canonicalize().unwrap());
        sandbox.resolved = true;
        let script = world.sh("echo x >place/new");
        let script = script.current_dir(world.directory()).sandbox(sandbox);
        let write = async || run_again(&world, &script).await.success();
        assert!(write().await, "at {level}");
        fs::rename(at("place"), at("moved")).unwrap();
        symlink(at("outside"), at("place")).unwrap();
        assert_eq!(write().await, level == Level::None, "at {level}");
    }
}

/// Beside a hidden path each directory is allowed by a rule of its own.
#[tokio::test]
async fn mount_between_runs_is_read_by_the_next() {
    if !is_again() {
        let itself = "files::mount_between_runs_is_read_by_the_next";
        return again_with_mounts("exec \"$@\"", itself);
    }
    for level in levels().await {
        let world = world();
        let at = |path: &str| world.directory().join(path);
        let sandbox = Arc::new(Sandbox::at(level).hide(at("outside/file")));
        let script = world.sh("cat outside/directory/new");
        let script = script.current_dir(world.directory()).sandbox(sandbox);
        let read = async || run_again(&world, &script).await.stdout.to_text_lossy();
        // After the first run the directory has just changed, so it is inspected again anyway.
        for _ in 0..2 {
            assert_eq!(read().await, "", "at {level}");
            thread::sleep(Duration::from_millis(30));
        }
        let place = at("outside/directory");
        let (none, flags) = (None::<&str>, MsFlags::empty());
        mount(none, &place, Some("tmpfs"), flags, none).unwrap();
        fs::write(place.join("new"), "new\n").unwrap();
        let seen = read().await;
        umount(&place).unwrap();
        assert_eq!(seen, "new\n", "at {level}");
    }
}

#[tokio::test]
async fn script_in_a_hidden_directory_is_refused_with_the_cause() {
    for level in levels().await.filter(|level| *level == Level::Guarded) {
        let world = world();
        let script = world.sh("echo unseen");
        let sandbox = Sandbox::at(level).hide(world.directory());
        let error = world.executor.run(script.sandbox(sandbox)).await;
        let told = error.unwrap_err().to_string();
        assert!(told.contains("hidden from sandboxed processes"), "{told}");
    }
}

/// At `strict` it is all that is visible of the directory. At `guarded` the rest can't be read
/// either.
#[tokio::test]
async fn script_in_a_hidden_directory_runs() {
    for level in levels().await.filter(|level| *level != Level::Guarded) {
        let world = world();
        let outside = world.directory().join("outside");
        let script = outside.join("script");
        fs::rename(
            world.file("#!/bin/sh\ncd outside && echo *", 0o755),
            &script,
        )
        .unwrap();
        let sandbox = Sandbox::at(level).hide(outside);
        let outcome = world.run_in(sandbox, world.command(script)).await;
        let seen = match level {
            Level::None => "directory file script\n",
            _ => "script\n",
        };
        assert_eq!(
            outcome.stdout.to_text_lossy(),
            seen,
            "at {level}: {outcome:?}"
        );
    }
}

/// Hidden by default: what the system and users keep to themselves.
#[tokio::test]
async fn secrets_are_not_read() {
    if !is_root() {
        return skip("/etc/shadow, which only root can read unconfined");
    }
    for level in levels().await {
        let world = world();
        let outcome = run(&world, level, "cat /etc/shadow").await;
        let found = outcome.stdout.to_text_lossy().contains("root:");
        assert_eq!(found, level == Level::None, "at {level}");
    }
}
