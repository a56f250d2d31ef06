//! Privileges: a confined process has none and gains none, not even root's. Each attempt is also
//! made unconfined, where it succeeds.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::PathBuf;

use mcpd_exec::{Command, Level, RunAs, Sandbox};
use rustix::fs::{StatVfsMountFlags, statvfs};

use crate::support::{World, is_root, levels, skip};

/// User number that presumably belongs to no account.
const STRANGER: u32 = 23_457;

/// Makes a world whose `place` belongs to the stranger, with a private file of that user in it.
fn world() -> World {
    let world = World::new();
    let (place, file) = (place(&world), place(&world).join("foreign"));
    fs::create_dir(&place).unwrap();
    fs::write(&file, "foreign\n").unwrap();
    for (path, mode) in [(world.directory(), 0o755), (&place, 0o755), (&file, 0o600)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    for path in [&place, &file] {
        chown(path, Some(STRANGER), Some(STRANGER)).unwrap();
    }
    world
}

fn place(world: &World) -> PathBuf {
    world.directory().join("place")
}

/// Checks that root can't do in a run what only root can do.
async fn check_denied(body: &str) {
    if !is_root() {
        return skip(&format!("what only root can do: {body}"));
    }
    for level in levels().await {
        let world = world();
        let sandbox = Sandbox::at(level).write(place(&world));
        let outcome = world.run_in(sandbox, world.sh(body)).await;
        let said = outcome.stderr.to_text_lossy();
        assert_eq!(
            outcome.success(),
            level == Level::None,
            "at {level}: {body}: {said}"
        );
    }
}

/// Checks the output of the stranger's command at each level; root starts it.
async fn check(command: impl Fn(&World) -> Command, expected: impl Fn(Level) -> String) {
    if !is_root() {
        return skip("another user, whom only root can become");
    }
    for level in levels().await {
        let world = world();
        let sandbox = Sandbox::at(level).write(place(&world));
        let sandbox = sandbox.run_as(RunAs::new(STRANGER, STRANGER));
        let outcome = world.run_in(sandbox, command(&world)).await;
        let text = outcome.stdout.to_text_lossy();
        assert_eq!(text.trim_end(), expected(level), "at {level}: {outcome:?}");
    }
}

#[tokio::test]
async fn root_has_no_privileges_in_a_run() {
    check_denied("cat place/foreign").await;
    check_denied("chown 0 place/foreign").await;
    check_denied("chmod 644 place/foreign").await;
    check_denied("perl -e 'setpriority(0, 0, -1) or die'").await;
    check_denied("perl -MPOSIX -e 'setuid(1); die if $< != 1'").await;
    check_denied("chroot / true").await;
}

#[tokio::test]
async fn capabilities_are_neither_held_nor_gained() {
    let body = "sed -n '/^CapPrm\\|^CapEff\\|^NoNewPrivs/s/.*:\\s*//p' /proc/self/status";
    // An ordinary user has no privileges to lose.
    let tells = |level: &Level| *level > Level::None || is_root();
    for level in levels().await.filter(tells) {
        let world = World::new();
        let outcome = world.run_in(Sandbox::at(level), world.sh(body)).await;
        let none = "0000000000000000\n0000000000000000\n1\n";
        let has_none = outcome.stdout.to_text_lossy() == none;
        assert_eq!(has_none, level > Level::None, "at {level}: {outcome:?}");
    }
}

/// The program prints its effective rights.
#[tokio::test]
async fn setuid_program_gives_no_rights() {
    let directory = statvfs(World::new().directory()).unwrap();
    if directory.f_flag.contains(StatVfsMountFlags::NOSUID) {
        return skip("setuid programs, which mean nothing in the directory for temporary files");
    }
    let program = |world: &World| {
        let copy = world.directory().join("id");
        fs::copy("/usr/bin/id", &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).unwrap();
        world.command(copy).arg("-u")
    };
    let owner = |level| if level == Level::None { 0 } else { STRANGER };
    check(program, |level| owner(level).to_string()).await;
}

/// Root has made the pipes.
#[tokio::test]
async fn another_user_opens_the_streams_by_name() {
    let body = "echo out >/dev/stdout; cat /dev/stdin; echo err >/dev/stderr || echo refused";
    let command = |world: &World| world.sh(body).stdin("in");
    check(command, |_| "out\nin".to_owned()).await;
}

#[tokio::test]
async fn run_as_user_has_no_other_identity() {
    let body = "id -u; id -G; cat /etc/shadow; echo x > new
        cat place/foreign; echo x > place/new && cat place/new; stat -c %u $(mktemp)";
    let expected = format!("{STRANGER}\n{STRANGER}\nforeign\nx\n{STRANGER}");
    check(|world| world.sh(body), |_| expected.clone()).await;
}

/// Without a terminal, no program can ask for a password or type for the user.
#[tokio::test]
async fn terminal_is_out_of_reach() {
    for level in levels().await {
        let world = World::new();
        let script = world.sh("(: < /dev/tty) 2>/dev/null || echo none");
        let outcome = world.run_in(Sandbox::at(level), script).await;
        assert_eq!(outcome.stdout.head, "none\n", "at {level}");
    }
}
