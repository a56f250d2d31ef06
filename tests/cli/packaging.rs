//! Files in `packaging`: they name only flags, paths and commands that exist, as far as this is
//! visible without systemd and containers.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use mcpd_tests::{Sandbox, binary, output, repository, skip};

fn read_packaged(path: &str) -> String {
    fs::read_to_string(repository().join("packaging").join(path)).unwrap()
}

/// Returns the help of `mcpd serve`.
fn help() -> String {
    Sandbox::new().run(&["serve", "--help"])
}

#[test]
fn container_file_names_existing_files() {
    let file = read_packaged("container/Containerfile");
    for source in file
        .split_whitespace()
        .filter(|word| word.starts_with("packaging/"))
    {
        assert!(repository().join(source).exists(), "there is no {source}");
    }
    let manifest = fs::read_to_string(repository().join("Cargo.toml")).unwrap();
    let version = manifest.split("rust-version = \"").nth(1).unwrap();
    let version = version.split('"').next().unwrap();
    assert!(
        file.contains(&format!("rust:{version}-")),
        "not of Rust {version}"
    );
    assert!(repository().join("crates/mcpd-cli/Cargo.toml").exists());
    let images = file.matches("\nFROM ").count() - 1;
    assert_eq!(
        file.matches("\nUSER 10001").count(),
        images,
        "an image runs as root"
    );
    assert!(file.contains("--package mcpd-cli"));
}

#[test]
fn container_configuration_is_valid() {
    let sandbox = Sandbox::new();
    let text = read_packaged("container/mcpd.toml").replace("\"/scripts\"", "\"scripts\"");
    fs::write(sandbox.path().join("container.toml"), text).unwrap();
    let checked = sandbox.run(&["config", "check", "container.toml"]);
    assert!(checked.starts_with("exit code: 0\n"), "{checked}");
}

#[test]
fn unit_uses_existing_flags() {
    let unit = read_packaged("systemd/mcpd.service");
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
fn units_pass_systemd_analyze() {
    let sandbox = Sandbox::new();
    for name in ["mcpd.service", "mcpd.socket"] {
        let unit = read_packaged(&format!("systemd/{name}"));
        // `systemd-analyze` requires that the program exists.
        let unit = unit.replace("/usr/local/bin/mcpd", "/bin/true");
        fs::write(sandbox.path().join(name), unit).unwrap();
        let mut command = sandbox.program("systemd-analyze");
        command
            .args(["verify", "--man=no"])
            .arg(sandbox.path().join(name));
        let Ok(output) = command.output() else {
            skip(&format!("there is no systemd-analyze to check {name} with"));
            continue;
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !said.contains(name), "{said}");
    }
}

/// `DynamicUser=` makes such users.
#[test]
fn user_without_a_home_keeps_state_in_the_state_directory() {
    let sandbox = Sandbox::new();
    let place = sandbox.path();
    fs::set_permissions(place, Permissions::from_mode(0o777)).unwrap();
    let as_user = |program: &str, arguments: &[&str]| {
        let mut command = sandbox.program("setpriv");
        command.args(["--reuid=63628", "--regid=63628", "--clear-groups", program]);
        command.args(arguments).env_remove("HOME");
        output(command, b"")
    };
    let program = binary().to_str().unwrap();
    if !as_user("test", &["-x", program]).status.success() {
        return skip(&format!("a user without a home, who can't run `{program}`"));
    }
    let rotated = as_user(program, &["token", "rotate"]);
    assert!(rotated.status.success(), "{}", sandbox.transcript(&rotated));
    assert!(place.join("state/mcpd/agent-token").exists());
}
