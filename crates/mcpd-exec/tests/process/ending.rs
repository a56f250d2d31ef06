//! Endings are reported as they were: an exit code or a signal, never one as the other.

use mcpd_exec::{Ending, Sandbox};

use crate::support::{World, levels};

#[tokio::test]
async fn exit_codes_are_exact() {
    let world = World::new();
    let script = world.sh("exit $1");
    for level in levels().await {
        for code in 0..=255 {
            let script = script.clone().arg(code.to_string());
            let outcome = world.run_in(Sandbox::at(level), script).await;
            assert_eq!(outcome.ending, Ending::Exited(code), "at {level}");
            assert_eq!(outcome.success(), code == 0);
        }
    }
    world.nothing_left();
}

#[tokio::test]
async fn deadly_signals_are_exact() {
    let world = World::new();
    let script = world.sh("ulimit -c 0; kill -$1 $$");
    for level in levels().await {
        for number in [1, 2, 3, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 31] {
            let script = script.clone().arg(number.to_string());
            let outcome = world.run_in(Sandbox::at(level), script).await;
            let Ending::Signaled {
                signal,
                core_dumped,
                ..
            } = outcome.ending
            else {
                panic!("signal {number} at {level}: {:?}", outcome.ending);
            };
            assert_eq!((signal, core_dumped), (number, false));
        }
    }
    world.nothing_left();
}

#[tokio::test]
async fn exit_code_over_128_is_no_signal() {
    let outcome = World::new().run("exit 137").await;
    assert_eq!(outcome.ending, Ending::Exited(137));
}

#[tokio::test]
async fn process_ignores_and_blocks_no_signal() {
    // Rust ignores SIGPIPE. A script that inherited that would never end in `yes | head`.
    let outcome = World::new()
        .run("exec grep -E '^Sig(Ign|Blk)' /proc/self/status")
        .await;
    let text = outcome.stdout.to_text_lossy();
    for line in text.lines() {
        let mask = line.split_whitespace().last().unwrap();
        // Above 31 are the real-time signals, two of which belong to the C library.
        let standard = u64::from_str_radix(mask, 16).unwrap() & 0x7fff_ffff;
        assert_eq!(standard, 0, "{text}");
    }
    assert_eq!(text.lines().count(), 2);
}

#[tokio::test]
async fn process_leads_its_own_group() {
    let world = World::new();
    let outcome = world
        .run("set -- $(cat /proc/$$/stat); test $5 = $$ && echo leader")
        .await;
    assert_eq!(outcome.stdout.head, "leader\n");
}

/// Descriptors without the close-on-exec flag are not inherited either.
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
#[tokio::test]
async fn descriptors_of_the_host_are_not_inherited() {
    let world = World::new();
    let ours = std::fs::File::open("/dev/zero").unwrap();
    rustix::io::fcntl_setfd(&ours, rustix::io::FdFlags::empty()).unwrap();
    for level in levels().await {
        let script = world.sh("ls /proc/self/fd; ls -l /proc/self/fd");
        let outcome = world.run_in(Sandbox::at(level), script).await;
        let listing = outcome.stdout.to_text_lossy();
        // The last one belongs to the listing itself.
        assert!(
            listing.starts_with("0\n1\n2\n3\ntotal"),
            "at {level}: {listing}"
        );
        assert!(!listing.contains("/dev/zero"), "at {level}: {listing}");
    }
}
