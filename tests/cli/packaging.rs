//! What is in `packaging`: that it names only what there is, as far as that can be seen without systemd and containers.

use std::fs;

use mcpd_tests::{Sandbox, repository};

fn packaged(path: &str) -> String {
    fs::read_to_string(repository().join("packaging").join(path)).unwrap()
}

/// The words of a text that begin so.
fn words<'a>(text: &'a str, beginning: &str) -> Vec<&'a str> {
    let words = text.split(|char: char| !(char.is_alphanumeric() || "_-".contains(char)));
    words.filter(|word| word.starts_with(beginning)).collect()
}

/// What `mcpd serve` says of itself.
fn help() -> String {
    Sandbox::new().run(&["serve", "--help"])
}

#[test]
fn the_container_file_names_what_there_is() {
    let file = packaged("container/Containerfile");
    let help = help();
    let variables = words(&file, "MCPD_");
    assert!(variables.len() >= 3, "{variables:?}");
    for variable in variables {
        assert!(help.contains(variable), "mcpd serve knows no {variable}");
    }
    let manifest = fs::read_to_string(repository().join("Cargo.toml")).unwrap();
    let version = manifest.split("rust-version = \"").nth(1).unwrap();
    let version = version.split('"').next().unwrap();
    assert!(
        file.contains(&format!("rust:{version}-")),
        "not of Rust {version}"
    );
    assert!(repository().join("crates/mcpd-cli/Cargo.toml").exists());
    assert!(file.contains("--package mcpd-cli") && file.contains("\nUSER 10001"));
}

#[test]
fn the_unit_calls_mcpd_as_it_wants_to_be_called() {
    let unit = packaged("systemd/mcpd.service");
    let start = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    let help = help();
    for flag in start
        .unwrap()
        .split(' ')
        .filter(|word| word.starts_with("--"))
    {
        assert!(help.contains(flag), "mcpd serve knows no {flag}");
    }
}

#[test]
fn systemd_finds_no_fault_with_the_units() {
    let sandbox = Sandbox::new();
    for name in ["mcpd.service", "mcpd.socket"] {
        let unit = packaged(&format!("systemd/{name}"));
        // It looks for the program.
        let unit = unit.replace("/usr/local/bin/mcpd", "/bin/true");
        fs::write(sandbox.path().join(name), unit).unwrap();
        let mut command = sandbox.program("systemd-analyze");
        command
            .args(["verify", "--man=no"])
            .arg(sandbox.path().join(name));
        let Ok(output) = command.output() else {
            eprintln!("SKIPPED: there is no systemd-analyze, so nobody has checked {name}");
            continue;
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !said.contains(name), "{said}");
    }
}
