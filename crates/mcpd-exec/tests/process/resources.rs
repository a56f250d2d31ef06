//! Resource limits: a process gets no more than its limits, and the system tells it so. Each act
//! is also done without the limit, where it succeeds.

use std::fs;

use mcpd_exec::{Ending, Level, Limits, Outcome, Sandbox, StartError};

use crate::host::again_as_stranger;
use crate::support::{
    World, eventually_async, is_root, levels, limits, ms, sandbox_counted_alone, signal, skip,
    timed_out, within,
};

async fn run(world: &World, level: Level, limits: Limits, body: &str) -> Outcome {
    let sandbox = Sandbox::at(level).write(world.directory());
    world.run_in(sandbox, world.sh(body).limits(limits)).await
}

/// Checks a script that succeeds without the limit, and fails with it.
async fn check(limit: impl Fn(&mut Limits), body: &str) {
    for level in levels().await {
        let world = World::new();
        let free = run(&world, level, Limits::default(), body).await;
        assert!(free.success(), "at {level}: {body}: {free:?}");
        let held = run(&world, level, limits(&limit), body).await;
        assert!(
            !held.success() && !timed_out(&held),
            "at {level}: {body}: {held:?}"
        );
    }
}

#[tokio::test]
async fn endless_computation_is_ended_by_the_processor_limit() {
    for level in levels().await {
        let world = World::new();
        let limits = limits(|limits| limits.cpu = Some(ms(1000)));
        let outcome = run(&world, level, limits.clone(), "while :; do :; done").await;
        assert_eq!(
            signal(&outcome),
            Some(24),
            "SIGXCPU at {level}: {outcome:?}"
        );
        let deaf = "trap '' XCPU; while :; do :; done";
        let outcome = run(&world, level, limits, deaf).await;
        assert_eq!(signal(&outcome), Some(9), "at {level}: {outcome:?}");
        assert!(outcome.usage.user + outcome.usage.system >= ms(1000));
    }
}

/// The kernel counts in the memory of the parent, which is this process.
#[tokio::test]
async fn peak_memory_is_reported_above_that_of_the_host() {
    let ours = vec![1_u8; 100 << 20];
    for level in levels().await {
        let world = World::new();
        let small = run(&world, level, Limits::default(), "true").await;
        assert_eq!(small.usage.peak_memory, None, "at {level}");
        let body = r#"perl -e '$text = "x" x (300 << 20)'"#;
        let large = run(&world, level, Limits::default(), body).await;
        let peak = large.usage.peak_memory;
        assert!(peak >= Some(300 << 20), "at {level}: {large:?}");
    }
    drop(ours);
}

#[tokio::test]
async fn file_size_limit_holds() {
    let megabyte = |limits: &mut Limits| limits.file_size = Some(1 << 20);
    check(megabyte, "head -c 2M /dev/zero > file").await;
    check(megabyte, "rm -f file; truncate -s 2M file").await;
    for level in levels().await {
        let world = World::new();
        let outcome = run(
            &world,
            level,
            limits(megabyte),
            "exec head -c 2M /dev/zero > file",
        )
        .await;
        assert_eq!(
            signal(&outcome),
            Some(25),
            "SIGXFSZ at {level}: {outcome:?}"
        );
        let written = fs::metadata(world.directory().join("file")).unwrap().len();
        assert_eq!(written, 1 << 20, "at {level}");
    }
}

#[tokio::test]
async fn descriptors_and_memory_run_out_within_the_process() {
    let open = "perl -e 'for (1 .. 50) { open $f[$_], q(<), q(/dev/null) or die $! }'";
    check(|limits| limits.open_files = Some(20), open).await;
    let memory = "perl -e 'my $x = q(x) x 300_000_000'";
    check(|limits| limits.address_space = Some(200 << 20), memory).await;
}

/// Levels with default limits apply them unasked.
#[tokio::test]
async fn default_limits_hold_for_confined_processes() {
    for level in levels().await {
        let world = World::new();
        let outcome = run(&world, level, Limits::default(), "truncate -s 2G file").await;
        assert_eq!(
            outcome.success(),
            level == Level::None,
            "at {level}: {outcome:?}"
        );
        if level > Level::None {
            let outcome = run(&world, level, Limits::default(), "ulimit -c; ulimit -n").await;
            let text = outcome.stdout.to_text_lossy();
            let (core, files) = text.trim_end().split_once('\n').unwrap();
            assert!(
                core == "0" && files.parse::<u32>().unwrap() <= 1024,
                "{text}"
            );
        }
    }
}

/// Returns the number of processes that a run can start at once.
async fn processes(level: Level, limit: Option<u64>, attempts: u32) -> u32 {
    let code = format!("for (1 .. {attempts}) {{ my $p = fork; defined $p or last; $p or exec qw(sleep 300); push @p, $p }}
        print scalar @p; kill KILL => @p");
    count_processes(level, limit, &["perl", "-e", &code]).await
}

/// Returns the number of processes that a program reports to have started.
async fn count_processes(level: Level, limit: Option<u64>, words: &[&str]) -> u32 {
    let world = World::new();
    let limits = limits(|limits| limits.processes = limit);
    let command = world.command(words[0]).args(&words[1..]).current_dir("/");
    let command = command.limits(limits).sandbox(sandbox_counted_alone(level));
    let outcome = within(world.executor.run(command)).await.unwrap();
    assert_eq!(outcome.ending, Ending::Exited(0), "at {level}: {outcome:?}");
    outcome.stdout.to_text_lossy().parse().unwrap()
}

#[tokio::test]
async fn process_limit_holds() {
    if !is_root() {
        return skip("limits of processes, which count those of an ordinary user elsewhere too");
    }
    for level in levels().await {
        assert_eq!(processes(level, None, 40).await, 40, "at {level}");
        let held = processes(level, Some(20), 40).await;
        assert!((10..20).contains(&held), "{held} at {level}");
    }
}

#[tokio::test]
async fn threads_count_as_processes() {
    const THREADS: &str = "import threading
stop, made = threading.Event(), 0
try:
    while made < 40:
        threading.Thread(target=stop.wait).start()
        made += 1
except RuntimeError:
    pass
print(made, end='')
stop.set()";
    if !is_root() {
        return skip("limits of threads, which count those of an ordinary user elsewhere too");
    }
    let python = ["/usr/bin/python3", "-c", THREADS];
    if !fs::exists(python[0]).unwrap() {
        return skip("threads, without `/usr/bin/python3`");
    }
    for level in levels().await {
        assert_eq!(
            count_processes(level, None, &python).await,
            40,
            "at {level}"
        );
        let held = count_processes(level, Some(20), &python).await;
        assert!((10..20).contains(&held), "{held} at {level}");
    }
}

#[tokio::test]
async fn process_limit_that_counts_others_is_reported() {
    if is_root() {
        again_as_stranger("resources::process_limit_that_counts_others_is_reported");
    }
    for level in levels().await {
        let is_told = async |limit| {
            let limits = limits(|limits| limits.processes = limit);
            let outcome = run(&World::new(), level, limits, "true").await;
            let mut missing = outcome.enforced.missing.iter();
            missing.any(|missing| missing.mechanism == "process limit")
        };
        let is_strict = level == Level::Strict;
        assert_eq!(
            is_told(Some(10_000)).await,
            !is_strict || is_root(),
            "at {level}"
        );
        assert_eq!(is_told(None).await, is_strict && is_root(), "at {level}");
    }
}

/// At `strict` the first process of the namespace counts too.
#[tokio::test]
async fn script_that_may_not_fork_runs() {
    if !is_root() {
        return skip("limits of processes, which count those of an ordinary user elsewhere too");
    }
    for level in levels().await {
        let world = World::new();
        let limits = limits(|limits| limits.processes = Some(1));
        let body = "echo alone; (echo together)";
        let command = world
            .sh(body)
            .limits(limits)
            .sandbox(sandbox_counted_alone(level));
        let outcome = within(world.executor.run(command)).await.unwrap();
        assert_eq!(
            outcome.stdout.to_text_lossy(),
            "alone\n",
            "at {level}: {outcome:?}"
        );
    }
}

#[tokio::test]
async fn strict_run_has_a_default_process_limit() {
    for level in levels().await {
        let made = processes(level, None, 300).await;
        let expected = match level {
            Level::Strict => 200..256,
            _ => 300..301,
        };
        assert!(expected.contains(&made), "{made} at {level}");
    }
}

#[tokio::test]
async fn process_limit_already_reached_is_a_start_error() {
    if !is_root() {
        return skip("processes of a user who has too many of them already");
    }
    for level in levels().await {
        let world = World::new();
        let sandbox = sandbox_counted_alone(level);
        let user = sandbox.run_as.unwrap();
        let crowd = world
            .command("sh")
            .args(["-c", "sleep 300 & sleep 300 & wait"]);
        let crowd = crowd.current_dir("/").sandbox(Sandbox::none().run_as(user));
        let limits = limits(|limits| limits.processes = Some(2));
        let command = world.command("true").limits(limits).current_dir("/");
        let refused = async {
            eventually_async(|| world.processes() == 3).await;
            world.executor.run(command.sandbox(sandbox)).await
        };
        let error = tokio::select! {
            outcome = world.executor.run(crowd) => panic!("{outcome:?}"),
            refused = within(refused) => refused.unwrap_err(),
        };
        assert!(
            error.to_string().contains("the limit of 2"),
            "at {level}: {error}"
        );
        world.end_all();
    }
}

/// The classic fork bomb, with two seconds of time.
#[tokio::test]
async fn fork_bomb_is_contained() {
    for level in levels().await.filter(|level| *level > Level::None) {
        if level == Level::Guarded && !is_root() {
            skip("a fork bomb at guarded, by a user with processes elsewhere");
            continue;
        }
        let world = World::new();
        let limits = limits(|limits| {
            (limits.processes, limits.wall, limits.grace) = (Some(40), ms(2000), ms(100));
            limits.drain = ms(10_000);
        });
        let command = world
            .command("bash")
            .args(["-c", ":(){ :|:& };: ; sleep 300"]);
        let command = command
            .current_dir("/")
            .limits(limits)
            .sandbox(sandbox_counted_alone(level));
        within(world.executor.run(command)).await.unwrap();
        world.nothing_left();
    }
}

#[tokio::test]
async fn directories_in_memory_are_small_at_strict() {
    if levels().await.all(|level| level < Level::Strict) {
        return;
    }
    let world = World::new();
    for body in [
        "head -c 70000000 /dev/zero > /tmp/file",
        "head -c 70000000 /dev/zero > /var/tmp/file",
        "head -c 70000000 /dev/zero > /dev/shm/file",
        "perl -e 'for (1 .. 40_000) { open F, q(>), qq(/tmp/$_) or die $! }'",
    ] {
        let outcome = run(&world, Level::Strict, Limits::default(), body).await;
        let said = outcome.stderr.to_text_lossy();
        assert!(said.contains("No space left"), "{body}: {outcome:?}");
    }
}

/// Limits that can't be enforced are reported, or refused. `groups.rs` checks those of control
/// groups.
#[tokio::test]
async fn memory_limit_without_a_control_group_is_reported() {
    for level in levels().await.filter(|level| *level > Level::None) {
        let world = World::new();
        let limits = limits(|limits| limits.memory = Some(100 << 20));
        let command = world.command("true").limits(limits).current_dir("/");
        match within(world.executor.run(command.sandbox(Sandbox::at(level)))).await {
            Ok(outcome) => {
                let missing = outcome.enforced.missing.iter();
                let mut mechanisms = missing.map(|missing| &*missing.mechanism);
                assert!(level == Level::Guarded && mechanisms.any(|name| name == "cgroup"));
            }
            Err(StartError::Unenforceable { .. }) => assert_eq!(level, Level::Strict),
            Err(other) => panic!("at {level}: {other}"),
        }
    }
}
