//! `mcpd check --fix`, `--diff`, `--select`, `--ignore`, `--watch`, and comments that ignore.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use insta::assert_snapshot;
use mcpd_tests::Sandbox;
use rustix::process::{Pid, Signal, kill_process};

use crate::HELLO;

/// Time limit of a line that is expected.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A sidecar with faults, most of which need no decision.
const FAULTY: &str = "# Notes\r\ntitel = 'Greeting' # 😀\r\ndescription = \"Greets\"\r\noutput = 'JSON'\r\n\r\n[options.name]\r\ndescription = 'Who'\r\nrequired = true\r\nvalue_type = \"str\"\r\n";

fn with_sidecar(text: &str) -> Sandbox {
    let sandbox = Sandbox::new().with_script("greet", "#!/bin/sh\necho hello\n");
    fs::write(sandbox.path().join("scripts/greet.mcpd.toml"), text).unwrap();
    sandbox
}

fn sidecar(sandbox: &Sandbox) -> String {
    fs::read_to_string(sandbox.path().join("scripts/greet.mcpd.toml")).unwrap()
}

#[test]
fn fixes_are_made_and_shown() {
    let sandbox = with_sidecar(FAULTY);
    assert_snapshot!(sandbox.run(&["check", "scripts", "--diff"]).replace('\r', ""), @r#"
    exit code: 1
    ----- stdout -----
    --- scripts/greet.mcpd.toml
    +++ scripts/greet.mcpd.toml
    @@ -1,9 +1,9 @@
     # Notes
    -titel = 'Greeting' # 😀
    +title = 'Greeting' # 😀
     description = "Greets"
    -output = 'JSON'
    +output = 'json'
     
     [options.name]
     description = 'Who'
     required = true
    -value_type = "str"
    +value_type = "string"
    "#);
    assert_eq!(sidecar(&sandbox), FAULTY);
    assert_snapshot!(sandbox.run(&["check", "scripts", "--fix"]), @r#"
    exit code: 0
    ----- stdout -----
    no faults in 1 script
    ----- stderr -----
    fixed scripts/greet.mcpd.toml: 2:1 unknown-field: unknown field `titel`
    fixed scripts/greet.mcpd.toml: 4:10 unknown-choice: `output` is the string "JSON"
    fixed scripts/greet.mcpd.toml: 9:14 unknown-value-type: unknown value type `str`
    fixed 3 faults
    "#);
    let fixed = FAULTY.replace("titel", "title").replace("JSON", "json");
    let fixed = fixed.replace("\"str\"", "\"string\"");
    assert_eq!(sidecar(&sandbox), fixed);
    assert_snapshot!(sandbox.run(&["check", "scripts", "--fix"]), @"
    exit code: 0
    ----- stdout -----
    no faults in 1 script
    ");
    assert_eq!(sidecar(&sandbox), fixed);
    assert_snapshot!(sandbox.run(&["check", "scripts", "--diff"]), @"exit code: 0");
}

#[test]
fn other_faults_stay_with_their_hint() {
    let sandbox = with_sidecar("titel = 'Greeting'\ncolour = 'red'\ndescription = 'Greets'\n");
    let shown = sandbox.run(&["check", "scripts"]);
    assert!(
        shown.ends_with("\n1 of them can be fixed with `--fix`\n"),
        "{shown}"
    );
    assert_snapshot!(sandbox.run(&["check", "scripts", "--fix", "--format", "short"]), @"
    exit code: 0
    ----- stdout -----
    scripts/greet.mcpd.toml:2:1: warning[unknown-field]: unknown field `colour`
    ----- stderr -----
    fixed scripts/greet.mcpd.toml: 1:1 unknown-field: unknown field `titel`
    fixed 1 fault
    ");
}

#[test]
fn scripts_are_fixed_and_then_checked() {
    let sandbox = Sandbox::new().with_script("crlf", &HELLO.replace('\n', "\r\n"));
    let scripts = sandbox.path().join("scripts");
    let closed = scripts.join("closed");
    fs::write(
        &closed,
        "#!/bin/sh\n#/// mcpd\n# titel = 'x'\n# description = 'Does'\n# ///\n",
    )
    .unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("closed", scripts.join("link")).unwrap();
    let first = sandbox.run(&["check", "scripts", "--fix"]);
    assert!(
        first.starts_with("exit code: 0\n") && first.contains("\nfixed 4 faults\n"),
        "{first}"
    );
    assert_eq!(fs::read_to_string(scripts.join("crlf")).unwrap(), HELLO);
    assert_eq!(
        closed.metadata().unwrap().permissions().mode() & 0o777,
        0o750
    );
    let text = fs::read_to_string(&closed).unwrap();
    assert!(text.contains("# /// mcpd\n# title = 'x'\n"), "{text}");
    assert!(scripts.join("link").is_symlink());
    let second = sandbox.run(&["check", "scripts", "--fix"]);
    assert!(
        second.starts_with("exit code: 0\n") && !second.contains("fixed"),
        "{second}"
    );
}

#[test]
fn output_of_help_is_never_fixed() {
    let script = HELLO.replace("description", "descripton");
    let sandbox = Sandbox::new().with_script("hello", &script);
    assert_snapshot!(sandbox.run(&["check", "scripts", "--fix", "--format", "short"]), @"
    exit code: 0
    ----- stdout -----
    scripts/hello --help (stdout):1:1: warning[missing-description]: the script has no description
    scripts/hello --help (stdout):1:2: warning[unknown-field]: unknown field `descripton`
    ");
    let text = fs::read_to_string(sandbox.path().join("scripts/hello")).unwrap();
    assert_eq!(text, script);
}

#[test]
fn rules_are_selected_by_flag_and_file() {
    let sandbox = with_sidecar("titel = 'Greeting'\n");
    let check =
        |flags: &[&str]| sandbox.run(&[&["check", "scripts", "--format", "short"], flags].concat());
    assert_snapshot!(check(&["--select", "missing"]), @"
    exit code: 0
    ----- stdout -----
    scripts/greet.mcpd.toml:1:1: warning[missing-description]: the script has no description
    ");
    assert_snapshot!(check(&["--ignore", "unknown-field,missing-description"]), @"exit code: 0");
    assert_snapshot!(check(&["--ignore", "unknown-feild"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to select the rules: no rule has the code `unknown-feild`; did you mean `unknown-field`?
    ");
    let config = sandbox.path().join("mcpd.toml");
    fs::write(&config, "[check]\nignore = ['unknown', 'missing']\n").unwrap();
    assert_snapshot!(check(&[]), @"exit code: 0");
    assert_snapshot!(check(&["--ignore", "unknown"]), @"
    exit code: 0
    ----- stdout -----
    scripts/greet.mcpd.toml:1:1: warning[missing-description]: the script has no description
    ");
    // What is not selected is not fixed.
    assert_snapshot!(check(&["--fix"]), @"exit code: 0");
    assert_eq!(sidecar(&sandbox), "titel = 'Greeting'\n");
}

#[test]
fn comments_ignore_faults_of_their_file() {
    let sandbox = with_sidecar(
        "# mcpd: ignore[missing-description]\ntitel = 'x' # mcpd: ignore[unknown-field]\n",
    );
    let help = HELLO.replace("description", "descripton");
    let comment = "#!/bin/sh\n# mcpd: ignore[unknown-field, missing-description, null-field]";
    let hello = sandbox.path().join("scripts/hello");
    fs::write(&hello, help.replacen("#!/bin/sh", comment, 1)).unwrap();
    fs::set_permissions(&hello, fs::Permissions::from_mode(0o755)).unwrap();
    assert_snapshot!(sandbox.run(&["check", "scripts", "--deny", "warnings"]), @"
    exit code: 1
    ----- stdout -----
    warning[unused-ignore]: the file has no fault `null-field` to ignore
     --> scripts/hello:2:52
      |
    2 | # mcpd: ignore[unknown-field, missing-description, null-field]
      |                                                    ^^^^^^^^^^
      |
      = help: remove it

    1 warning in 2 scripts
    ----- stderr -----
    1 of them can be fixed with `--fix`
    ");
    // A fault may only show when the script runs.
    assert_snapshot!(sandbox.run(&["check", "scripts", "--static"]), @"
    exit code: 0
    ----- stdout -----
    no faults in 1 script
    ----- stderr -----
    1 file is not checked, because only `--help` shows what they are; run without `--static` to check them
    ");
    assert_snapshot!(sandbox.run(&["check", "scripts", "--fix"]), @"
    exit code: 0
    ----- stdout -----
    no faults in 2 scripts
    ----- stderr -----
    fixed scripts/hello: 2:52 unused-ignore: the file has no fault `null-field` to ignore
    fixed 1 fault
    ");
    let text = fs::read_to_string(&hello).unwrap();
    assert!(
        text.contains("# mcpd: ignore[unknown-field, missing-description]\n"),
        "{text}"
    );
}

#[test]
fn watch_checks_after_each_change() {
    let sandbox = with_sidecar("description = 'Greets'\n");
    let mut command = sandbox.command(&["check", "scripts", "--watch", "--format", "short"]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (sender, lines) = mpsc::channel();
    let stdout: Box<dyn std::io::Read + Send> = Box::new(child.stdout.take().unwrap());
    let stderr: Box<dyn std::io::Read + Send> = Box::new(child.stderr.take().unwrap());
    let readers = [stdout, stderr].map(|stream| {
        let sender = sender.clone();
        thread::spawn(move || {
            let lines = BufReader::new(stream).lines();
            lines
                .map_while(Result::ok)
                .for_each(|line| sender.send(line).unwrap_or_default());
        })
    });
    // Both streams are read at the same time, so that their lines come in any order.
    let wait_for_all = |mut expected: Vec<&str>| {
        while let Some(words) = expected.first().copied() {
            let line = lines.recv_timeout(TIMEOUT).expect(words);
            expected.retain(|words| !line.contains(words));
        }
    };
    wait_for_all(vec!["waiting for changes"]);
    fs::write(
        sandbox.path().join("scripts/greet.mcpd.toml"),
        "titel = 'x'\n",
    )
    .unwrap();
    wait_for_all(vec!["warning[unknown-field]", "waiting for changes"]);
    fs::write(
        sandbox.path().join("scripts/greet.mcpd.toml"),
        "titl = 'x'\ndescription = 'x'\n",
    )
    .unwrap();
    wait_for_all(vec!["unknown field `titl`", "waiting for changes"]);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert!(child.wait().unwrap().success());
    for reader in readers {
        reader.join().unwrap();
    }
}
