//! Portable implementation: missing confinement is reported, and a run that insists on it is
//! refused.

use mcpd_exec::{Command, Containment, Limits, Missing, Network, RunAs, Sandbox, StartError};

use crate::support::{World, eventually, limits, within};

/// Returns the missing mechanisms for which a run is refused, joined.
async fn missing_required(command: Command) -> String {
    let world = World::new();
    let error = within(world.executor.run(command)).await.unwrap_err();
    world.nothing_left();
    match error {
        StartError::Unenforceable { missing, .. } => {
            let missing: Vec<_> = missing.iter().map(|missing| &*missing.mechanism).collect();
            missing.join(" ")
        }
        other => panic!("{other:?}"),
    }
}

/// Returns the mechanisms that a run at `sandbox` reports as missing, joined.
async fn missing_reported(sandbox: Sandbox, limits: Limits) -> String {
    let world = World::new();
    let command = Command::new("true").limits(limits);
    let outcome = world.run_in(sandbox, command).await;
    assert!(outcome.success());
    assert_eq!(outcome.enforced.containment, Containment::Group);
    let missing = outcome.enforced.missing.iter();
    missing.map(|missing| format!("{missing}\n")).collect()
}

#[tokio::test]
async fn guarded_run_reports_missing_mechanisms() {
    let missing = missing_reported(Sandbox::guarded(), Limits::default()).await;
    for mechanism in ["sandbox", "reaper", "watchdog", "limits"] {
        assert!(missing.contains(&format!("{mechanism}: ")), "{missing}");
    }
}

#[tokio::test]
async fn unconfined_run_reports_only_missing_limits() {
    assert_eq!(
        missing_reported(Sandbox::none(), Limits::default()).await,
        ""
    );
    let wanted = limits(|limits| limits.memory = Some(1 << 30));
    let missing = "limits: not enforced on this system: memory\n";
    assert_eq!(missing_reported(Sandbox::none(), wanted).await, missing);
}

#[tokio::test]
async fn required_confinement_is_refused() {
    let command = || Command::new("true");
    let strict = Sandbox::strict().missing(Missing::Report);
    assert_eq!(
        missing_required(command().sandbox(strict)).await,
        "namespaces"
    );
    let alone = Sandbox::guarded().network(Network::Off);
    assert_eq!(missing_required(command().sandbox(alone)).await, "sandbox");
    let somebody = Sandbox::none().run_as(RunAs::new(1, 1));
    assert_eq!(missing_required(command().sandbox(somebody)).await, "user");
    let whole = Sandbox::guarded().missing(Missing::Refuse);
    assert_eq!(
        missing_required(command().sandbox(whole)).await,
        "reaper watchdog sandbox limits"
    );
}

#[tokio::test]
async fn guarded_run_has_a_temporary_directory_of_its_own() {
    let world = World::new();
    let script = "echo $TMPDIR; echo x > $TMPDIR/file; ls -ld $TMPDIR";
    let outcome = world.run_in(Sandbox::guarded(), world.sh(script)).await;
    let text = outcome.stdout.to_text_lossy();
    let (directory, listed) = text.split_once('\n').unwrap();
    assert!(listed.starts_with("drwx------"), "{listed}");
    eventually("the directory is gone", || {
        !std::path::Path::new(directory).exists()
    });
}
