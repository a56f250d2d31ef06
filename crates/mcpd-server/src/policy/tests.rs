//! Selection and merging of rules.

use std::num::NonZeroUsize;
use std::time::Duration;

use mcpd_exec::{Level, Missing, Network, RunAs};
use mcpd_scriptspec::TaskSupport;

use super::*;

fn effective_policy(policy: &Policy, path: &str) -> EffectivePolicy {
    let path = path.parse().unwrap();
    policy.effective_policy(&path, Path::new("/nowhere"), Some(&ScriptSpec::default()))
}

#[track_caller]
fn check_pattern(pattern: &str, path: &str, matches: bool) {
    let rule = ToolPolicy::new(pattern).unwrap();
    assert_eq!(
        rule.covers(&path.parse().unwrap()),
        matches,
        "{pattern} {path}"
    );
}

#[test]
fn pattern_matches_whole_paths() {
    check_pattern("reports/*", "reports/sales", true);
    check_pattern("reports/*", "reports/2026/sales", false);
    check_pattern("reports/**", "reports/2026/sales", true);
    check_pattern("**", "sales", true);
    check_pattern("*", "reports/sales", false);
    check_pattern("sal[ae]s", "sales", true);
    check_pattern("sale", "sales", false);
    check_pattern("{add,sub}", "sub", true);
}

#[test]
fn invalid_pattern_is_rejected() {
    let error = ToolPolicy::new("reports/[").unwrap_err().to_string();
    assert!(
        error.starts_with("parse the pattern `reports/[`: "),
        "{error}"
    );
}

#[test]
fn later_rule_overrides_earlier_one_and_variables_add_up() {
    let all = ToolPolicy::new("**")
        .unwrap()
        .timeout(Duration::from_secs(1))
        .sandbox(SandboxProfile::new(Sandbox::guarded()))
        .variable("A", "first")
        .variable("B", "second");
    let one = ToolPolicy::new("one")
        .unwrap()
        .timeout(Duration::from_secs(2))
        .variable("A", "other");
    let policy = Policy::default().tool(all).tool(one);
    let one = effective_policy(&policy, "one");
    assert_eq!(one.limits().wall, Duration::from_secs(2));
    assert_eq!(one.sandbox().level, Level::Guarded);
    assert_eq!(one.variables().collect::<Vec<_>>(), ["B", "A"]);
    let two = effective_policy(&policy, "two");
    assert_eq!(two.limits().wall, Duration::from_secs(1));
}

#[test]
fn scripts_with_the_same_settings_share_a_sandbox() {
    let strict = SandboxProfile::new(Sandbox::strict());
    let strict = ToolPolicy::new("strict*").unwrap().sandbox(strict);
    let quick = ToolPolicy::new("quick").unwrap();
    let guarded = SandboxProfile::new(Sandbox::guarded());
    let policy = Policy::default().floor(guarded).tool(strict);
    let policy = policy.tool(quick.timeout(Duration::from_secs(1)));
    let sandbox =
        |policy: &Policy, path| Arc::clone(effective_policy(policy, path).shared_sandbox());
    let [one, quick] = ["one", "quick"].map(|path| sandbox(&policy, path));
    assert!(Arc::ptr_eq(&one, &quick));
    let [first, second] = ["strict1", "strict2"].map(|path| sandbox(&policy, path));
    assert!(Arc::ptr_eq(&first, &second) && first.level == Level::Strict);

    let hiding = policy.clone().hide("/srv/secret");
    let hidden = sandbox(&hiding, "one");
    assert!(hidden.hidden.contains(&PathBuf::from("/srv/secret")));
    assert!(
        !sandbox(&policy, "one")
            .hidden
            .contains(&PathBuf::from("/srv/secret"))
    );
    let free = policy.clone().floor(SandboxProfile::default());
    assert_eq!(sandbox(&free, "one").level, Level::None);
}

#[test]
fn floor_is_loosened_by_no_rule() {
    let mut floor = SandboxProfile::new(Sandbox::guarded().write("/a").network(Network::Off));
    floor.limits.memory = Some(64);
    floor.limits.cpu = Some(Duration::from_secs(9));
    let mut loose = SandboxProfile::new(Sandbox::none().run_as(RunAs::new(1, 2)));
    loose.limits.memory = Some(128);
    let mut strict = SandboxProfile::new(Sandbox::strict().write("/b").network(Network::Host));
    strict.limits.memory = Some(32);
    let policy = Policy::default()
        .floor(floor)
        .tool(ToolPolicy::new("loose").unwrap().sandbox(loose))
        .tool(ToolPolicy::new("strict").unwrap().sandbox(strict));

    let loose = effective_policy(&policy, "loose");
    assert_eq!(loose.sandbox().level, Level::Guarded);
    assert_eq!(loose.sandbox().network, Network::Off);
    assert_eq!(loose.sandbox().run_as, Some(RunAs::new(1, 2)));
    assert_eq!(loose.limits().memory, Some(64));
    assert_eq!(loose.limits().cpu, Some(Duration::from_secs(9)));

    let strict = effective_policy(&policy, "strict");
    assert_eq!(strict.sandbox().level, Level::Strict);
    assert_eq!(strict.sandbox().missing, Missing::Refuse);
    assert_eq!(strict.sandbox().network, Network::Off);
    assert_eq!(strict.sandbox().write, [Path::new("/a"), Path::new("/b")]);
    assert_eq!(strict.limits().memory, Some(32));
}

#[test]
fn floor_keeps_its_user_and_hidden_paths() {
    let floor = Sandbox::guarded()
        .run_as(RunAs::new(1, 1))
        .write("/srv")
        .write("/home/known/.ssh")
        .hide("/home/known")
        .hide("/vault");
    let own = Sandbox::guarded()
        .run_as(RunAs::new(2, 2))
        .write("/vault")
        .write("/vault/below")
        .write("/vaults")
        .hide("/home/known")
        .hide("/srv/a");
    let secretive = Sandbox::guarded().hide("/srv");
    let policy = Policy::default()
        .floor(SandboxProfile::new(floor))
        .tool(
            ToolPolicy::new("own")
                .unwrap()
                .sandbox(SandboxProfile::new(own)),
        )
        .tool(
            ToolPolicy::new("secretive")
                .unwrap()
                .sandbox(SandboxProfile::new(secretive)),
        );
    let own = effective_policy(&policy, "own");
    assert_eq!(own.sandbox().run_as, Some(RunAs::new(1, 1)));
    let written = ["/home/known/.ssh", "/srv", "/vaults"].map(Path::new);
    assert_eq!(own.sandbox().write, written);
    let hidden = |path: &str| own.sandbox().hidden.iter().any(|hidden| hidden == path);
    assert!(hidden("/vault") && hidden("/srv/a"));
    let secretive = effective_policy(&policy, "secretive");
    assert_eq!(secretive.sandbox().write, [Path::new("/home/known/.ssh")]);
}

#[test]
#[cfg(unix)]
fn floor_hides_paths_behind_links() {
    let directory = tempfile::tempdir().unwrap();
    let (vault, link) = (
        directory.path().join("vault"),
        directory.path().join("link"),
    );
    std::fs::create_dir(&vault).unwrap();
    std::os::unix::fs::symlink(&vault, &link).unwrap();
    let own = SandboxProfile::new(Sandbox::guarded().write(&link).write(link.join("below")));
    let policy = Policy::default()
        .floor(SandboxProfile::new(Sandbox::guarded().hide(&vault)))
        .tool(ToolPolicy::new("own").unwrap().sandbox(own));
    assert!(effective_policy(&policy, "own").sandbox().write.is_empty());
}

#[test]
fn policy_equality_covers_every_setting_and_no_cache() {
    fn policy(rule: ToolPolicy) -> Policy {
        let environment = Environment::of_this_process().pass("A").set("B", "b");
        let policy = Policy::default().environment(environment).hide("/hidden");
        policy.tool(rule)
    }
    let rule = || ToolPolicy::new("one").unwrap().variable("KEY", "secret");
    let used = policy(rule());
    effective_policy(&used, "one");
    assert!(used == policy(rule()));
    let strict = || SandboxProfile::new(Sandbox::strict());
    let mut limits = Limits::default();
    limits.keep = 0;
    let others = [
        policy(ToolPolicy::new("two").unwrap().variable("KEY", "secret")),
        policy(ToolPolicy::new("one").unwrap().variable("KEY", "another")),
        policy(ToolPolicy::new("one").unwrap().variable("OTHER", "secret")),
        policy(rule().sandbox(strict())),
        policy(rule().timeout(Duration::ZERO)),
        policy(rule().concurrency(NonZeroUsize::MIN)),
        policy(rule().redact(true)),
        policy(rule().task(TaskSupport::Required)),
        policy(rule()).tool(rule()),
        policy(rule()).floor(strict()),
        policy(rule()).limits(limits),
        policy(rule()).hide("/other"),
        policy(rule().caller_variables([])),
        policy(rule().header_variable("OWN", "X-Key")),
        policy(rule()).caller_variable("alice", "OWN", "secret"),
    ];
    for (place, other) in others.iter().enumerate() {
        assert!(used != *other, "{place}");
    }
}

#[test]
fn secrets_are_hidden_in_debug() {
    let rule = ToolPolicy::new("**").unwrap().variable("KEY", "s3cret-key");
    let policy = Policy::default().tool(rule);
    for shown in [
        format!("{policy:?}"),
        format!("{:?}", effective_policy(&policy, "x")),
    ] {
        assert!(
            shown.contains("KEY") && !shown.contains("s3cret-key"),
            "{shown}"
        );
    }
}

#[test]
fn variables_of_a_caller_override_those_of_rules_where_they_are_accepted() {
    let policy = Policy::default()
        .tool(ToolPolicy::new("*").unwrap().variable("KEY", "of the rule"))
        .tool(
            ToolPolicy::new("picky")
                .unwrap()
                .caller_variables(["OWN_*".to_owned()]),
        )
        .caller_variable("alice", "KEY", "of alice")
        .caller_variable("alice", "OWN_ID", "alice");
    #[track_caller]
    fn check(policy: &Policy, path: &str, caller: &str, expected: &[(&str, &str)]) {
        let policy = effective_policy(policy, path);
        let policy = policy.for_caller(caller).unwrap_or(policy);
        let variables = policy.variables();
        let variables: Vec<_> = variables
            .map(|name| (name, policy.variable(name).unwrap()))
            .collect();
        let variables: Vec<_> = variables
            .iter()
            .map(|(name, value)| (*name, &**value))
            .collect();
        assert_eq!(variables, expected, "{path} {caller}");
    }
    let of_rule = ("KEY", "of the rule");
    check(&policy, "any", "bob", &[of_rule]);
    check(
        &policy,
        "any",
        "alice",
        &[("KEY", "of alice"), ("OWN_ID", "alice")],
    );
    check(&policy, "picky", "alice", &[of_rule, ("OWN_ID", "alice")]);
    assert!(!format!("{policy:?}").contains("of alice"));
}
