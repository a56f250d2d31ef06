//! `mcpd completions` and `mcpd man`: what a shell gets when it asks.

use std::fs;

use mcpd_tests::{Sandbox, output};

use crate::sandbox;

/// Candidates for the last of `words`, as Bash asks for them.
fn candidates(sandbox: &Sandbox, words: &[&str]) -> Vec<String> {
    let mut command = sandbox.command(&[&["--", "mcpd"], words].concat());
    command
        .env("MCPD_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .env("_CLAP_COMPLETE_COMP_TYPE", "9")
        .env("_CLAP_COMPLETE_SPACE", "false")
        .env("_CLAP_IFS", "\n");
    let printed = output(command, b"");
    let text = String::from_utf8(printed.stdout).unwrap();
    text.split('\n')
        .map(str::to_owned)
        .filter(|one| !one.starts_with("--"))
        .collect()
}

#[test]
fn names_of_tools_and_arguments_are_completed() {
    let sandbox = sandbox();
    assert_eq!(candidates(&sandbox, &["inst"]), ["install"]);
    assert_eq!(
        candidates(&sandbox, &["call", "scripts", "math/"]),
        ["math/calc"]
    );
    let tools = candidates(&sandbox, &["call", "scripts", ""]);
    assert!(
        ["count", "exit", "hello"]
            .iter()
            .all(|name| tools.contains(&(*name).to_owned())),
        "{tools:?}"
    );
    assert_eq!(
        candidates(&sandbox, &["call", "scripts", "exit", ""]),
        ["code="]
    );
    let choices = candidates(&sandbox, &["call", "scripts", "math/calc", "operation="]);
    assert!(choices.contains(&"operation=add".to_owned()), "{choices:?}");
    // A place that does not exist has no names, and no error disturbs the line.
    assert_eq!(candidates(&sandbox, &["call", "nowhere", "x"]), [""]);
}

#[test]
fn every_shell_gets_a_script() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish", "nushell"] {
        let script = sandbox.stdout(&["completions", shell]);
        let script = String::from_utf8(script).unwrap();
        assert!(script.contains("mcpd"), "{shell}: {script}");
    }
    let script = sandbox.stdout(&["completions", "bash"]);
    let mut bash = sandbox.program("bash");
    bash.args(["--norc", "-n"]);
    assert!(output(bash, &script).status.success());
}

#[test]
fn every_command_gets_a_manual_page() {
    let sandbox = Sandbox::new();
    sandbox.run(&["man", "pages"]);
    let page = |name: &str| fs::read_to_string(sandbox.path().join("pages").join(name)).unwrap();
    assert!(page("mcpd.1").contains(".TH mcpd 1"));
    assert!(page("mcpd-call.1").contains("NAME=VALUE"));
    assert!(page("mcpd-token-new.1").contains("mcpd\\-token\\-new"));
}

/// A line typed into Bash at a terminal, with tabs. Returns what the terminal showed.
#[cfg(target_os = "linux")]
fn type_into_bash(sandbox: &Sandbox, line: &str) -> String {
    let mut script = sandbox.program("script");
    let directory = mcpd_tests::binary().parent().unwrap().to_owned();
    let path = std::env::join_paths([directory, "/usr/bin".into(), "/bin".into()]).unwrap();
    script
        .env("PATH", path)
        .env("TERM", "dumb")
        .env("INPUTRC", "/dev/null");
    script.args(["-qec", "bash --norc --noprofile -i", "/dev/null"]);
    let typed = format!(". <(mcpd completions bash)\n{line}\nexit\n");
    let shown = output(script, typed.as_bytes());
    String::from_utf8_lossy(&shown.stdout).into_owned()
}

/// Bash splits words at `=` and `:`, so that a value is completed only if the words are joined.
#[cfg(target_os = "linux")]
#[test]
fn bash_completes_values_behind_an_equals_sign() {
    if !std::path::Path::new("/usr/bin/script").exists() {
        mcpd_tests::skip("COMPLETION TEST SKIPPED: `script` of util-linux is not installed");
        return;
    }
    let sandbox = sandbox();
    let shown = type_into_bash(&sandbox, "mcpd call scripts math/calc a=6 oper\tsub\t");
    // The command runs with the completed words; what the terminal shows has control characters.
    assert!(
        shown.contains(r#"{"operation":"subtract","a":6"#),
        "{shown}"
    );
}
