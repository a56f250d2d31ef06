//! Faults that a scan finds beyond those in the text of a script's help.

#![cfg(unix)]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcpd_exec::{Config, Executor, Level, Sandbox};
use mcpd_scriptspec::Stream;
use mcpd_server::catalog::scan::{PassOverKind, Scan, Scanner};
use mcpd_server::policy::Probing;
use mcpd_server::{Catalog, Interpreters, Policy, SandboxProfile};

#[tokio::test]
async fn schema_with_a_remote_reference_is_a_fault() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts-output");
    let scan = scan(scripts).await;

    let faulty: Vec<_> = scan.faulty().collect();
    let [script] = &faulty[..] else {
        panic!("{faulty:?}");
    };
    let [fault] = &script.diagnostics[..] else {
        panic!("{:?}", script.diagnostics);
    };
    assert_eq!(script.path.as_str(), "faraway");
    assert_eq!(fault.code.as_str(), "invalid-schema");
    assert!(
        fault.message.starts_with("`input_schema`: "),
        "{}",
        fault.message
    );
    assert!(
        fault.message.contains("https://example.com/a.json"),
        "{}",
        fault.message
    );
    let schema = &script.help.stdout[fault.location.span.clone()];
    assert!(schema.starts_with(br#"{"type": "object""#) && schema.ends_with(br#".json"}}}"#));
}

#[tokio::test]
async fn schema_fault_in_a_sidecar_has_its_location() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("a.sh"), "echo").unwrap();
    let sidecar = "description = 'far away'\n\n[input_schema]\ntype = 'object'\n\n[input_schema.properties.a]\n'$ref' = 'https://example.com/a.json'\n";
    std::fs::write(root.path().join("a.sh.mcpd.toml"), sidecar).unwrap();
    let scan = scan(root.path().to_owned()).await;
    let script = scan.faulty().next().unwrap();
    let fault = &script.diagnostics[0];
    assert_eq!(fault.code.as_str(), "invalid-schema");
    assert_eq!(fault.location.stream, Stream::Source);
    let schema = &script.help.source[fault.location.span.clone()];
    assert_eq!(String::from_utf8_lossy(schema), "[input_schema]");
}

#[tokio::test]
async fn described_script_without_interpreter_is_a_fault_without_a_probe() {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("carriage-return", "#!/bin/sh\r\necho\n"),
        (
            "no-interpreter",
            "#!/usr/bin/env no-such-interpreter\necho\n",
        ),
        ("no-first-line", "echo\n"),
        ("good", "#!/usr/bin/env sh\necho\n"),
    ] {
        let file = root.path().join(name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
        let sidecar = root.path().join(format!("{name}.mcpd.toml"));
        std::fs::write(sidecar, "description = 'never asked'\n").unwrap();
    }
    let scan = scan(root.path().to_owned()).await;
    let faulty = scan.faulty().map(|script| {
        assert_eq!(script.diagnostics[0].code.as_str(), "help-not-started");
        script.path.as_str()
    });
    let faulty: Vec<_> = faulty.collect();
    assert_eq!(
        faulty,
        ["carriage-return", "no-first-line", "no-interpreter"]
    );
}

#[tokio::test]
async fn probed_script_without_interpreter_is_a_fault() {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("byte-order-mark.sh", "\u{feff}#!/bin/sh\necho '{}'\n"),
        ("carriage-return", "#!/usr/bin/env sh\r\necho '{}'\n"),
        ("no-command", "#!/usr/bin/env sh\nno-such-command\n"),
        (
            "no-interpreter",
            "#!/usr/bin/env no-such-interpreter\necho\n",
        ),
    ] {
        let file = root.path().join(name);
        std::fs::write(&file, format!("{text}# MCPD_OPT_a\n")).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
    }
    let scan = scan(root.path().to_owned()).await;
    let faulty: Vec<_> = scan
        .faulty()
        .map(|script| {
            (
                script.path.as_str(),
                script.diagnostics[0].code.as_str(),
                script.diagnostics[0].message.as_str(),
            )
        })
        .collect();
    let [mark, carriage_return, no_command, no_interpreter] = faulty[..] else {
        panic!("{faulty:?}");
    };
    assert_eq!(mark.1, "help-not-started");
    assert!(mark.2.contains("a byte order mark"));
    assert_eq!(carriage_return.1, "help-not-started");
    assert!(carriage_return.2.contains("carriage return after `sh`"));
    assert_eq!(no_command.1, "help-failed");
    assert_eq!(no_interpreter.1, "help-not-started");
    let file = root.path().join("no-interpreter");
    let expected = format!(
        "failed to start `{}`: its interpreter `no-such-interpreter` cannot be executed; install it or fix the `#!` line",
        file.display()
    );
    assert_eq!(no_interpreter.2, expected);
}

#[tokio::test]
async fn faulty_script_keeps_its_name() {
    let roots = [(); 2].map(|()| tempfile::tempdir().unwrap());
    for (root, text) in roots.iter().zip(["exit 1 # MCPD_OPT_a", "echo '{}'"]) {
        let file = root.path().join("t");
        std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(file, Permissions::from_mode(0o755)).unwrap();
    }
    for (file, name, value_type) in [("1.js", "A B", "nothing"), ("2.js", "a-b", "string")] {
        let text =
            format!("// Name: {name}\nschema = {{ input: {{ a: {{ type: '{value_type}' }} }} }}\n");
        std::fs::write(roots[0].path().join(file), text).unwrap();
    }
    let mut scanner = Scanner::new(
        Executor::new(Config::default()).unwrap(),
        Policy::default(),
        Interpreters::default().set("js", ["/bin/sh"]),
        roots.iter().map(|root| root.path().to_owned()).collect(),
    );
    let catalog = Catalog::from(scanner.scan().await);

    assert_eq!(catalog.scan().faulty().count(), 2);
    assert!(catalog.tools().is_empty(), "{:?}", catalog.tools());
    let conflicts = catalog.conflicts().iter();
    let conflicts: Vec<_> = conflicts.map(|conflict| conflict.path.as_str()).collect();
    assert_eq!(conflicts, ["scripts/a-b", "t"]);
}

async fn scan(root: PathBuf) -> Scan {
    let executor = Executor::new(Config::default()).expect("an executor");
    let (policy, interpreters) = (Policy::default(), Interpreters::default());
    let mut scanner = Scanner::new(executor, policy, interpreters, vec![root]);
    scanner.scan().await
}

#[test]
fn scan_needs_one_blocking_thread_only() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("a.sh"), "echo").unwrap();
    let sidecar = root.path().join("a.sh.mcpd.toml");
    std::fs::write(sidecar, "description = 'run by an interpreter'").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    let executor = Executor::new(Config::default()).unwrap();
    let mut scanner = Scanner::new(
        executor,
        Policy::default(),
        Interpreters::default(),
        vec![root.path().to_owned()],
    );
    let scan = async { tokio::time::timeout(Duration::from_secs(20), scanner.scan()).await };
    let scan = runtime.block_on(scan);
    // A blocked thread must not be waited for.
    runtime.shutdown_background();
    let scan = scan.expect("it ends");
    assert_eq!((scan.scripts.len(), scan.faulty().count()), (1, 0));
}

#[tokio::test]
async fn probe_that_times_out_is_repeated_a_few_times() {
    let root = tempfile::tempdir().unwrap();
    let add = |name: &str, patience: u8| {
        let script = root.path().join(name);
        let text = format!(
            "#!/bin/sh\n# MCPD_OPT_a\ncd '{}'\necho >>.{name}\n\
             [ $(wc -l <.{name}) -gt {patience} ] || exec sleep 600\necho '{{}}'\n",
            root.path().display()
        );
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(script, Permissions::from_mode(0o755)).unwrap();
    };
    add("late", 1);
    add("never", 200);
    // Confinement would keep them from counting.
    let policy = Policy::default().probing(Probing::default().level(Level::None));
    let mut scanner = Scanner::new(
        Executor::new(Config::default()).unwrap(),
        policy,
        Interpreters::default(),
        vec![root.path().to_owned()],
    );
    let mut faulty = Vec::new();
    for _ in 0..4 {
        faulty.push(scanner.scan().await.faulty().count());
    }
    assert_eq!(faulty, [2, 1, 1, 1]);
    let asked = std::fs::read_to_string(root.path().join(".never")).unwrap();
    assert_eq!(asked.lines().count(), 3);
}

/// Script that, on any run, does forbidden things to `place`.
const TRIPWIRE: &str = "#!/bin/sh\necho tripped >'PLACE/tripped'\n(sleep 1; echo late >'PLACE/late') &\n\
    cat 'PLACE/secret' >&2\necho '{\"description\": \"Trips\"}'\n";

#[tokio::test]
async fn probe_writes_nothing_at_any_level_of_calls() {
    for level in [Level::None, Level::Guarded] {
        let root = tempfile::tempdir().unwrap();
        let place = tempfile::tempdir().unwrap();
        let script = root.path().join("trip");
        let text = TRIPWIRE.replace("PLACE", place.path().to_str().unwrap());
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
        let called = SandboxProfile::new(Sandbox::at(level).write(place.path()));
        let policy = Policy::default().floor(called);
        let scanned = async |policy: Policy| {
            let executor = Executor::new(Config::default()).unwrap();
            let roots = vec![root.path().to_owned()];
            let mut scanner = Scanner::new(executor, policy, Interpreters::default(), roots);
            scanner.scan().await
        };
        scanned(policy.clone()).await;
        let left: Vec<_> = place.path().read_dir().unwrap().collect();
        assert!(left.is_empty(), "calls at {level}: {left:?}");
        // The check itself works: without confinement the script succeeds.
        scanned(policy.probing(Probing::default().level(Level::None))).await;
        assert!(place.path().join("tripped").exists(), "calls at {level}");
    }
}

#[tokio::test]
async fn ordinary_programs_are_passed_over() {
    let root = tempfile::tempdir().unwrap();
    let add = |name: &str, text: &[u8]| {
        let file = root.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
    };
    add("usage", b"#!/bin/sh\necho 'usage: usage FILE'\n");
    add("fails", b"#!/bin/sh\nexit 2\n");
    add("absent", b"#!/nonexistent/interpreter\n");
    add("README.md", b"# My tools\n");
    add("data.json", b"{}");
    add("venv/bin/pip", b"#!/bin/sh\necho '{}'\n");
    add("venv/pyvenv.cfg", b"");
    add("ours", b"#!/bin/sh\n: $MCPD_OPT_a\nexit 2\n");
    let scan = scan(root.path().to_owned()).await;
    let faulty: Vec<_> = scan.faulty().map(|script| script.path.as_str()).collect();
    assert_eq!(faulty, ["ours"]);
    assert_eq!(scan.scripts.len(), 1);
    let root = root.path().canonicalize().unwrap();
    let passed = scan.passed_over.iter().map(|passed| {
        let file = passed.file.strip_prefix(&root).unwrap();
        (file.to_str().unwrap(), passed.kind)
    });
    let passed: Vec<_> = passed.collect();
    let expected = [
        ("README.md", PassOverKind::NotAScript),
        ("absent", PassOverKind::NotATool),
        ("data.json", PassOverKind::NotAScript),
        ("fails", PassOverKind::NotATool),
        ("usage", PassOverKind::NotATool),
        ("venv", PassOverKind::NotAScript),
    ];
    assert_eq!(passed, expected);
}
