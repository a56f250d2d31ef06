//! Files in `packaging`: they name only flags, paths and commands that exist, as far as this is
//! visible without systemd and containers.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use mcpd_tests::{Sandbox, binary, output, repository, skip};
use saphyr_parser::{Event, Parser};

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
    for name in ["mcpd.service", "mcpd-worker.service", "mcpd.socket"] {
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

/// Returns the values below a path of keys in a YAML stream, such as the strings of `args`.
fn strings_of(text: &str, key: &str) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    let mut events = Parser::new_from_str(text).map(|event| event.unwrap().0);
    while let Some(event) = events.next() {
        if !matches!(&event, Event::Scalar(text, ..) if text == key) {
            continue;
        }
        let strings = events.by_ref().skip(1);
        let strings = strings.map_while(|event| match event {
            Event::Scalar(text, ..) => Some(text.into_owned()),
            _ => None,
        });
        all.push(strings.collect());
    }
    all
}

/// Checks that the parser of mcpd takes a command line: its next complaint is about a
/// configuration that is not there.
#[track_caller]
fn check_command_line(place: &str, line: &[String]) {
    let sandbox = Sandbox::new();
    let mut line: Vec<_> = line.iter().map(String::as_str).collect();
    line.extend(["--config", "missing.toml"]);
    let said = sandbox.run(&line);
    assert!(
        said.contains("missing.toml") && !said.contains("Usage:"),
        "{place}: {said}"
    );
}

#[test]
fn command_lines_of_a_cluster_are_accepted() {
    let compose = read_packaged("cluster/compose.yaml");
    let commands = strings_of(&compose, "command");
    let is_nats = |line: &&Vec<String>| line[0] == "-c";
    let ours: Vec<_> = commands.iter().filter(|line| !is_nats(line)).collect();
    assert_eq!((commands.len(), ours.len()), (3, 2));
    for line in ours {
        check_command_line("compose.yaml", line);
    }
    for (name, role) in [("front", "serve"), ("worker", "worker")] {
        let path = format!("cluster/kubernetes/{name}.yaml");
        let lines = strings_of(&read_packaged(&path), "args");
        assert_eq!(lines.len(), 1, "{path}");
        assert_eq!(lines[0][0], role, "{path}");
        // Kubernetes replaces it by the name of the pod.
        let line = lines[0].iter().map(|word| word.replace("$(NODE)", "node"));
        check_command_line(&path, &line.collect::<Vec<_>>());
    }
    let unit = read_packaged("systemd/mcpd-worker.service");
    let start = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/mcpd "));
    let line = start.unwrap().split(' ').map(str::to_owned);
    check_command_line("mcpd-worker.service", &line.collect::<Vec<_>>());
}

#[test]
fn kustomization_names_files_of_one_cluster() {
    let base = read_packaged("cluster/kubernetes/kustomization.yaml");
    let resources = strings_of(&base, "resources");
    assert_eq!(resources, [["namespace.yaml", "front.yaml", "worker.yaml"]]);
    for name in ["front.yaml", "worker.yaml", "keda.yaml"] {
        let text = read_packaged(&format!("cluster/kubernetes/{name}"));
        let events = Parser::new_from_str(&text);
        let documents =
            events.filter(|event| matches!(event.as_ref().unwrap().0, Event::DocumentStart(_)));
        assert!(documents.count() > 0, "{name}");
        // A worker that stops needs its time for draining, and a moment more.
        if name != "keda.yaml" {
            assert!(text.contains("terminationGracePeriodSeconds: 70"), "{name}");
        }
    }
    let keda = read_packaged("cluster/kubernetes/keda.yaml");
    for metric in ["running", "waiting"] {
        let metrics = repository().join("crates/mcpd-cluster/src/front/metrics.rs");
        let metrics = fs::read_to_string(metrics).unwrap();
        assert!(metrics.contains(&format!("\"{metric}\"")), "{metric}");
        assert!(keda.contains(&format!("mcpd_cluster_{metric}")), "{metric}");
    }
}

#[test]
fn kustomization_renders_into_its_namespace() {
    let sandbox = Sandbox::new();
    let kubectl = |arguments: &[&str]| {
        let mut command = sandbox.program("kubectl");
        let output = command.args(arguments).output().ok()?;
        assert!(output.status.success(), "{}", sandbox.transcript(&output));
        Some(String::from_utf8(output.stdout).unwrap())
    };
    let base = repository().join("packaging/cluster/kubernetes");
    let Some(rendered) = kubectl(&["kustomize", base.to_str().unwrap()]) else {
        return skip("there is no kubectl to render the base for Kustomize with");
    };
    let namespace = "kind: Namespace\nmetadata:\n  name: mcpd\n";
    let (namespaces, others): (Vec<_>, Vec<_>) = rendered
        .split("---\n")
        .partition(|resource| resource.contains(namespace));
    assert_eq!((namespaces.len(), others.len()), (1, 3), "{rendered}");
    for resource in others {
        assert!(resource.contains("\n  namespace: mcpd\n"), "{resource}");
    }
    for image in ["mcpd", "mcpd-scripts"] {
        let image = format!("image: registry.example/{image}:1\n");
        assert_eq!(rendered.matches(&image).count(), 1, "{image}");
    }

    // The command in the comment makes the secret that fronts mount, in the same namespace.
    let front = read_packaged("cluster/kubernetes/front.yaml");
    let command = front.lines().find_map(|line| line.split_once("# kubectl "));
    let (_, words) = command.unwrap();
    for name in ["token", "state.key"] {
        fs::write(sandbox.path().join(name), name).unwrap();
    }
    let words: Vec<_> = words.split(' ').collect();
    let dry = [&words[..], &["--dry-run=client", "--output=yaml"]].concat();
    let secret = kubectl(&dry).unwrap();
    assert!(
        secret.contains("\n  name: mcpd-front\n  namespace: mcpd\n"),
        "{secret}"
    );
    for name in ["token", "state.key"] {
        assert!(secret.contains(&format!("\n  {name}: ")), "{secret}");
        assert!(front.contains(&format!("/secrets/{name}\"")), "{name}");
    }
}
