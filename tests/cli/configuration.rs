//! `mcpd.toml` and the corresponding flags: search path, error messages, and the page that
//! documents it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use insta::assert_snapshot;
use mcpd_tests::{Daemon, Sandbox, binary, output, skip};
use rustix::process::Signal;

use crate::HELLO;

/// Script that prints two variables.
const PRINTER: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo "{\"description\": \"Knows ${SECRET:-nothing}\"}"
  exit 0
fi
echo "INFO it is $SECRET" >&2
printf '%s|%s' "$SECRET" "$PLAIN"
"#;

fn sandbox() -> Sandbox {
    Sandbox::new()
        .with_script("hello", HELLO)
        .with_script("printer", PRINTER)
}

/// Starts mcpd with an invalid configuration and returns its message.
#[track_caller]
fn mistake(configuration: &str) -> String {
    let sandbox = sandbox();
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    let transcript = sandbox.run(&["list", "scripts"]);
    let said = transcript.strip_prefix("exit code: 1\n----- stderr -----\nmcpd: error: failed to ");
    said.unwrap_or_else(|| panic!("{transcript}"))
        .trim_end()
        .to_owned()
}

/// Calls the printer under a configuration.
#[track_caller]
fn printer_output(configuration: &str, arguments: &[&str]) -> String {
    let sandbox = sandbox();
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    let arguments = [&["call", "scripts", "printer"], arguments].concat();
    let mut command = sandbox.command(&arguments);
    command.env("SECRET", "inherited-secret");
    sandbox.transcript(&output(command, b""))
}

#[test]
fn unknown_key_is_located_with_a_suggestion() {
    assert_snapshot!(mistake("[tools]\n"), @"apply the configuration: mcpd.toml:1:2: in [tools]: unknown key `tools`; did you mean `tool`?");
    assert_snapshot!(mistake("# first\n[sandbox.x]\n  levle = \"strict\"\n"), @"apply the configuration: mcpd.toml:3:3: in [sandbox.x]: unknown key `levle`; did you mean `level`?");
    assert_snapshot!(mistake("[[tool]]\nmatch = \"*\"\n[tool.env]\nA = { fil = \"x\" }\n"), @"apply the configuration: mcpd.toml:4:7: in [tool.env]: `A`: unknown key `fil`; did you mean `file`?");
    assert_snapshot!(mistake("[env]\nkeep = []\n"), @"apply the configuration: mcpd.toml:2:1: in [env]: unknown key `keep`; known: pass, drop, optional, set");
}

#[test]
fn value_of_the_wrong_kind_is_located() {
    assert_snapshot!(mistake("[sandbox.x]\nlevel = \"tight\"\n"), @"apply the configuration: mcpd.toml:2:9: in [sandbox.x]: `level`: unknown value `tight`; known: none, guarded, strict");
    assert_snapshot!(mistake("[sandbox.x]\nlevel = \"strikt\"\n"), @"apply the configuration: mcpd.toml:2:9: in [sandbox.x]: `level`: unknown value `strikt`; did you mean `strict`?");
    assert_snapshot!(mistake("[sandbox.x]\nmemory = \"64MB\"\n"), @r#"apply the configuration: mcpd.toml:2:10: in [sandbox.x]: `memory`: `64MB` is no number of bytes; write one such as "64 MiB" (KiB, MiB, GiB, TiB)"#);
    assert_snapshot!(mistake("[sandbox.x]\nmemory = -1\n"), @"apply the configuration: mcpd.toml:2:10: in [sandbox.x]: `memory`: a number of bytes is not negative");
    assert_snapshot!(mistake("timeout = \"5 s\"\n"), @"apply the configuration: mcpd.toml:1:11: `timeout`: invalid type: a string, expected a number");
    assert_snapshot!(mistake("[tool]\nmatch = \"*\"\n"), @"apply the configuration: mcpd.toml:1:1: in [tool]: expected an array of tables; write `[[tool]]`");
    assert_snapshot!(mistake("# first\n[tool.env]\nA = \"b\"\n"), @"apply the configuration: mcpd.toml:2:2: in [tool.env]: expected an array of tables; write `[[tool]]`");
    assert_snapshot!(mistake("[sandbox.x]\nwrite = \"here\"\n"), @"apply the configuration: mcpd.toml:2:9: in [sandbox.x]: `write`: invalid type: a string, expected an array");
    assert_snapshot!(mistake("[sandbox]\nlevel = \"strict\"\n"), @"apply the configuration: mcpd.toml:2:9: in [sandbox]: `level`: invalid type: a string, expected a table with a name, `[sandbox.NAME]`");
    assert_snapshot!(mistake("tool = [\"greet\"]\n"), @"apply the configuration: mcpd.toml:1:9: `tool`: invalid type: a string, expected tables `[[tool]]`");
    assert_snapshot!(mistake("[[tool]]\nmatch = \"*\"\ntimeout = 0\n"), @"apply the configuration: mcpd.toml:3:11: in [[tool]]: `timeout`: expected a number of seconds above 0");
    assert_snapshot!(mistake("[[tool]]\nmatch = \"*\"\nconcurrency = 0\n"), @"apply the configuration: mcpd.toml:3:15: in [[tool]]: `concurrency`: invalid value: integer `0`, expected a whole number above 0");
    assert_snapshot!(mistake("max_message = 0\n"), @"apply the configuration: mcpd.toml:1:15: `max_message`: expected a number of bytes above 0");
    assert_snapshot!(mistake("allow_hosts = [\"https://a\"]\n"), @"apply the configuration: mcpd.toml:1:15: `allow_hosts`: `https://a` is invalid: expected a name such as `tools.example`, without a scheme and a port; an IPv6 address is written in brackets");
    assert_snapshot!(mistake("[[tool]]\nredact = true\n"), @"apply the configuration: mcpd.toml:1:1: in [[tool]]: missing field `match`");
    assert_snapshot!(mistake("[sandbox.x\n"), @"apply the configuration: mcpd.toml:1:11: unclosed table, expected `]`");
}

#[test]
fn misplaced_text_is_not_repeated() {
    let misplaced =
        "[[upstream]]\nname = \"up\"\nurl = \"http://a\"\nheaders = \"Bearer \\\"s3cret\"\n";
    assert_snapshot!(mistake(misplaced), @"apply the configuration: mcpd.toml:4:11: in [[upstream]]: `headers`: invalid type: a string, expected a map");
}

#[test]
fn invalid_value_is_located() {
    assert_snapshot!(mistake("[sandbox.strict]\nwrite = [\"x\"]\n"), @"apply the configuration: mcpd.toml:1:10: in [sandbox.strict]: `strict` is built in; choose another name");
    assert_snapshot!(mistake("[sandbox.x]\nlevel = \"none\"\nnetwork = \"off\"\n"), @"apply the configuration: mcpd.toml:1:10: in [sandbox.x]: `write`, `read`, `hide`, `network`, `write_client_directory` and `missing` have no effect at the level `none`");
    assert_snapshot!(mistake("[sandbox.x]\nrun_as = \"no-such-user\"\n"), @"apply the configuration: mcpd.toml:2:10: in [sandbox.x]: `run_as`: unknown user `no-such-user`");
    assert_snapshot!(mistake("[sandbox.reports]\n[[tool]]\nmatch = \"*\"\nsandbox = \"report\"\n"), @r#"apply the configuration: mcpd.toml:4:11: in [[tool]]: `sandbox = "report"`: no such sandbox; did you mean `reports`?"#);
    let two = "floor = \"x\"\n[sandbox.x]\nrun_as = \"1:1\"\n[sandbox.y]\nrun_as = \"2:2\"\n[[tool]]\nmatch = \"*\"\nsandbox = \"y\"\n";
    assert_snapshot!(mistake(two), @r#"apply the configuration: mcpd.toml:8:11: in [[tool]]: `sandbox = "y"`: its `run_as` differs from that of the minimum sandbox"#);
    assert_snapshot!(mistake("[sandbox.x]\nlevel = \"guarded\"\nbackend = \"bwrap\"\n"), @"apply the configuration: mcpd.toml:3:11: in [sandbox.x]: `backend`: `bwrap` confines at the level `strict` alone; leave out `level`");
    assert_snapshot!(mistake("[sandbox.x]\nbackend = \"podman\"\nnetwork = [\"example.com:443\"]\n"), @"apply the configuration: mcpd.toml:2:11: in [sandbox.x]: `backend`: `podman` cannot limit the network to destinations; use the backend `bwrap`, or none");
    assert_snapshot!(mistake("[sandbox.x]\nbackend = \"gvisor\"\nrun_as = \"1:1\"\n"), @"apply the configuration: mcpd.toml:2:11: in [sandbox.x]: `backend`: `gvisor` cannot run a script as another user; use the backend `bwrap`, or none");
    let two = "floor = \"x\"\n[sandbox.x]\nbackend = \"bwrap\"\n[sandbox.y]\nbackend = \"podman\"\n[[tool]]\nmatch = \"*\"\nsandbox = \"y\"\n";
    assert_snapshot!(mistake(two), @r#"apply the configuration: mcpd.toml:8:11: in [[tool]]: `sandbox = "y"`: its backend `podman` differs from `bwrap`, that of the minimum sandbox"#);
    assert_snapshot!(mistake("[[tool]]\nmatch = \"a[\"\n"), @"apply the configuration: mcpd.toml:2:9: in [[tool]]: `match`: failed to parse the pattern `a[`: unclosed character class; missing ']'");
    assert_snapshot!(mistake("[env]\npass = [\"A-B\"]\n"), @"apply the configuration: mcpd.toml:2:9: in [env]: `A-B` is not a valid variable name");
    assert_snapshot!(mistake("[env.set]\nMCPD_TOOL = \"x\"\n"), @"apply the configuration: mcpd.toml:2:1: in [env.set]: `MCPD_TOOL`: names that begin with `MCPD_` are reserved for mcpd");
}

/// Returns a configuration with this value of a secret.
fn secret(value: &str) -> String {
    format!("[[tool]]\nmatch = \"*\"\n\n[tool.env]\nSECRET = {value}\n")
}

#[test]
fn missing_secret_is_located() {
    assert_snapshot!(mistake(&secret("{ pass = true }")), @"apply the configuration: mcpd.toml:5:10: in [tool.env]: `SECRET`: the variable `SECRET` is not set in mcpd's own environment");
    assert_snapshot!(mistake(&secret("{ file = \"missing\" }")), @"apply the configuration: mcpd.toml:5:10: in [tool.env]: `SECRET`: failed to read the file `@@ROOT@@/missing`: No such file or directory (os error 2)");
    assert_snapshot!(mistake(&secret("{ command = [\"sh\", \"-c\", \"echo hidden; exit 3\"] }")), @"apply the configuration: mcpd.toml:5:10: in [tool.env]: `SECRET`: `sh` failed with the exit code 3");
    assert_snapshot!(mistake(&secret("{ command = [\"no-such-program\"] }")), @"apply the configuration: mcpd.toml:5:10: in [tool.env]: `SECRET`: failed to start `no-such-program`: no such file or command");
    assert_snapshot!(mistake(&secret("{ command = [] }")), @r#"apply the configuration: mcpd.toml:5:10: in [tool.env]: `SECRET`: expected a text, `{ pass = true }`, `{ variable = "…" }`, `{ file = "…" }`, `{ credential = "…" }`, `{ keyring = "service/account" }` or `{ command = ["…"] }`, or for a `[[tool]]` also `{ header = "…" }` or `{ exchange = "…" }`"#);
    assert_snapshot!(mistake(&secret("{ file = \"a\", pass = true }")), @r#"apply the configuration: mcpd.toml:5:10: in [tool.env]: `SECRET`: expected a text, `{ pass = true }`, `{ variable = "…" }`, `{ file = "…" }`, `{ credential = "…" }`, `{ keyring = "service/account" }` or `{ command = ["…"] }`, or for a `[[tool]]` also `{ header = "…" }` or `{ exchange = "…" }`"#);
}

#[test]
fn error_messages_contain_no_secret() {
    for value in [
        "12345678",
        "12345678123456785678",
        "[\"12345678\"]",
        "{ pass = 12345678 }",
        "1234.5678",
        "\"12345678\\u0000\"",
    ] {
        let said = mistake(&secret(value));
        assert!(!said.contains("5678"), "{said}");
    }
}

#[test]
fn secret_reaches_only_its_script() {
    let configuration = secret("\"s3cret-text\"");
    assert_snapshot!(printer_output(&configuration, &[]), @"
    exit code: 0
    ----- stdout -----
    [redacted SECRET]|
    ----- stderr -----
    INFO it is [redacted SECRET]
    ");
    assert_snapshot!(printer_output(&configuration.replace("[tool.env]", "redact = false\n[tool.env]"), &[]), @"
    exit code: 0
    ----- stdout -----
    s3cret-text|
    ----- stderr -----
    INFO it is s3cret-text
    ");
    assert_snapshot!(printer_output(&secret("{ pass = true }"), &[]), @"
    exit code: 0
    ----- stdout -----
    [redacted SECRET]|
    ----- stderr -----
    INFO it is [redacted SECRET]
    ");
}

#[test]
fn variable_passed_to_some_is_inherited_by_no_other() {
    let passed = secret("{ pass = true }").replace("\"*\"", "\"other\"");
    assert_snapshot!(printer_output(&passed, &[]), @"
    exit code: 0
    ----- stdout -----
    |
    ----- stderr -----
    INFO it is
    ");
    let named = passed.replace(
        "SECRET = { pass = true }",
        "KEY = { variable = \"SECRET\" }",
    );
    assert_eq!(printer_output(&named, &[]), printer_output(&passed, &[]));
    let by_all = passed.replace("[[tool]]", "[env]\npass = [\"SECRET\"]\n[[tool]]");
    assert_snapshot!(printer_output(&by_all, &[]), @"
    exit code: 0
    ----- stdout -----
    inherited-secret|
    ----- stderr -----
    INFO it is inherited-secret
    ");
}

#[test]
fn secret_unfit_for_an_environment_is_located() {
    let sandbox = sandbox();
    fs::write(sandbox.path().join("bundle"), "x".repeat(200_000)).unwrap();
    let configuration = secret("{ file = \"bundle\" }");
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    assert_snapshot!(sandbox.run(&["config", "check"]), @"
    exit code: 1
    ----- stdout -----
    mcpd.toml:5:10: in [tool.env]: `SECRET`: the value has 200000 bytes, but programs cannot start with a variable of 128 KiB or more; pass the path of a file instead
    ");
}

#[test]
fn files_and_programs_give_secrets_without_the_last_newline() {
    let sandbox = sandbox();
    fs::write(sandbox.path().join("token"), "from-a-file\n\n").unwrap();
    for (value, expected) in [
        ("{ file = \"token\" }", "from-a-file\n|\n"),
        (
            "{ command = [\"echo\", \"from a program\"] }",
            "from a program|\n",
        ),
    ] {
        let configuration = secret(value).replace("[tool.env]", "redact = false\n[tool.env]");
        fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
        let stdout = sandbox.stdout(&["call", "scripts", "printer", "-q"]);
        assert_eq!(String::from_utf8_lossy(&stdout), expected);
    }
}

/// Program that stands in for that of libsecret, and knows one password.
#[cfg(target_os = "linux")]
const SECRET_TOOL: &str = "#!/bin/sh
[ \"$*\" = 'lookup service api.example/v1 username alice' ] || exit 1
printf 'from the keyring'
";

#[test]
#[cfg(target_os = "linux")]
fn keyring_gives_secrets() {
    let sandbox = sandbox();
    let printed = |entry: &str| {
        let value = format!("{{ keyring = \"{entry}\" }}");
        let configuration = secret(&value).replace("[tool.env]", "redact = false\n[tool.env]");
        fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
        let mut command = sandbox.command(&["call", "scripts", "printer", "-q"]);
        command.env("PATH", sandbox.path().join("scripts/.bin"));
        sandbox.transcript(&output(command, b""))
    };
    assert_snapshot!(printed("api.example/v1/alice"), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to apply the configuration: mcpd.toml:6:10: in [tool.env]: `SECRET`: the keyring gives no password for the service `api.example/v1` and the account `alice`: failed to start `secret-tool`: no such file or command; unlock the keyring and store it with `secret-tool store --label='api.example/v1' service 'api.example/v1' username 'alice'` (package libsecret-tools); without a desktop session use a `file` or a `credential`
    ");
    sandbox.write_script(".bin/secret-tool", SECRET_TOOL);
    assert_snapshot!(printed("api.example/v1/alice"), @"
    exit code: 0
    ----- stdout -----
    from the keyring|
    ");
    assert_snapshot!(printed("api.example/v1/bob"), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to apply the configuration: mcpd.toml:6:10: in [tool.env]: `SECRET`: the keyring gives no password for the service `api.example/v1` and the account `bob`: `secret-tool` failed with the exit code 1; unlock the keyring and store it with `secret-tool store --label='api.example/v1' service 'api.example/v1' username 'bob'` (package libsecret-tools); without a desktop session use a `file` or a `credential`
    ");
    assert_snapshot!(printed("alice"), @r#"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to apply the configuration: mcpd.toml:6:10: in [tool.env]: `SECRET`: expected a text, `{ pass = true }`, `{ variable = "…" }`, `{ file = "…" }`, `{ credential = "…" }`, `{ keyring = "service/account" }` or `{ command = ["…"] }`, or for a `[[tool]]` also `{ header = "…" }` or `{ exchange = "…" }`
    "#);
}

#[test]
fn a_credential_of_systemd_is_a_secret() {
    let sandbox = sandbox();
    let configuration = secret("{ credential = \"api-key\" }");
    let configuration = configuration.replace("[tool.env]", "redact = false\n[tool.env]");
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    let credentials = sandbox.path().join("credentials");
    fs::create_dir(&credentials).unwrap();
    let printed = || {
        let mut command = sandbox.command(&["call", "scripts", "printer", "-q"]);
        command.env("CREDENTIALS_DIRECTORY", &credentials);
        sandbox.transcript(&output(command, b""))
    };
    assert_snapshot!(printed(), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to apply the configuration: mcpd.toml:6:10: in [tool.env]: `SECRET`: the service manager provides no credential `api-key`
    ");
    fs::write(credentials.join("api-key"), "handed-over\n").unwrap();
    assert_snapshot!(printed(), @"
    exit code: 0
    ----- stdout -----
    handed-over|
    ");
}

#[test]
fn secret_too_short_to_redact_is_reported() {
    assert_snapshot!(printer_output(&secret("\"12345\""), &["--log", "warn"]), @r#"
    exit code: 0
    ----- stdout -----
    12345|
    ----- stderr -----
     WARN secret `SECRET` is too short to be redacted; a script that prints it discloses it tools="*"
    INFO it is 12345
    "#);
}

#[test]
fn description_names_variables_without_values() {
    let sandbox = sandbox();
    fs::write(sandbox.path().join("mcpd.toml"), secret("\"s3cret-text\"")).unwrap();
    assert_snapshot!(sandbox.run(&["describe", "scripts", "printer"]), @"
    exit code: 0
    ----- stdout -----
    printer

    Knows nothing

    No options.

    Sandbox: none
    Limits: time limit 60s
    Variables: SECRET
    ");
}

#[test]
fn environment_is_passed_dropped_and_set() {
    let configuration = "[env]\ndrop = [\"SEC*\"]\nset = { PLAIN = \"set\" }\n";
    assert_snapshot!(printer_output(configuration, &["-q"]), @"
    exit code: 0
    ----- stdout -----
    |set
    ");
    let configuration = "[env]\npass = [\"SECRET\"]\n";
    assert_snapshot!(printer_output(configuration, &["-q", "--sandbox", "guarded"]), @"
    exit code: 0
    ----- stdout -----
    inherited-secret|
    ");
    assert_snapshot!(printer_output("", &["-q", "--sandbox", "guarded"]), @"
    exit code: 0
    ----- stdout -----
    |
    ");
}

#[test]
fn first_existing_configuration_applies() {
    let sandbox = sandbox();
    let own = sandbox.path().join("config/mcpd");
    fs::create_dir_all(&own).unwrap();
    let places = [
        own.join("mcpd.toml"),
        sandbox.path().join("mcpd.toml"),
        sandbox.path().join("named.toml"),
    ];
    for place in &places {
        let name = place.strip_prefix(sandbox.path()).unwrap().display();
        fs::write(place, format!("[env]\nset = {{ PLAIN = \"{name}\" }}\n")).unwrap();
    }
    let call = ["call", "scripts", "printer", "-q"];
    let ends_with = |arguments: &[&str], expected: &str| {
        let stdout = String::from_utf8(sandbox.stdout(arguments)).unwrap();
        assert!(stdout.trim_end().ends_with(expected), "{stdout}");
    };
    ends_with(
        &[&call[..], &["--config", "named.toml"]].concat(),
        "|named.toml",
    );
    ends_with(&call, "|mcpd.toml");
    fs::remove_file(&places[1]).unwrap();
    ends_with(&call, "|config/mcpd/mcpd.toml");
    assert_snapshot!(sandbox.run(&[&call[..], &["--config", "missing.toml"]].concat()), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to read the configuration `missing.toml`: No such file or directory (os error 2)
    ");
}

#[test]
fn unreadable_configuration_is_an_error() {
    let sandbox = sandbox();
    symlink("gone.toml", sandbox.path().join("mcpd.toml")).unwrap();
    assert_snapshot!(sandbox.run(&["list", "scripts"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to read the configuration `mcpd.toml`: No such file or directory (os error 2)
    ");
    fs::remove_file(sandbox.path().join("mcpd.toml")).unwrap();
    symlink("mcpd", sandbox.path().join("mcpd")).unwrap();
    let run = |config: &str| {
        let mut command = sandbox.command(&["list", "scripts"]);
        command.env("XDG_CONFIG_HOME", sandbox.path().join(config));
        sandbox.transcript(&output(command, b""))
    };
    assert_snapshot!(run("."), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to read the configuration `@@ROOT@@/./mcpd/mcpd.toml`: Too many levels of symbolic links (os error 40)
    ");
    // A file stands where a directory is expected.
    assert_snapshot!(run("scripts/hello"), @"
    exit code: 0
    ----- stdout -----
    hello()    Says hello
    printer()  Knows nothing
    ");
}

/// This is the situation in a container that runs as an arbitrary user.
#[test]
fn unreadable_home_directory_has_no_configuration() {
    let sandbox = sandbox();
    // Without capabilities, root has the rights of an ordinary user.
    let powerless = || {
        let mut command = sandbox.program("env");
        if rustix::process::geteuid().is_root() {
            command.args(["setpriv", "--bounding-set=-all", "--inh-caps=-all"]);
        }
        command
    };
    let tried = powerless().arg("true").output();
    if !tried.is_ok_and(|output| output.status.success()) {
        return skip("a home of somebody else: root can't give up its capabilities");
    }
    let home = sandbox.path().join("config");
    fs::create_dir(&home).unwrap();
    fs::set_permissions(&home, Permissions::from_mode(0o000)).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = powerless();
        command
            .arg(binary())
            .args(["list", "scripts"])
            .args(arguments);
        sandbox.transcript(&output(command, b""))
    };
    assert_snapshot!(run(&["--config", "config/mcpd/mcpd.toml"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to read the configuration `config/mcpd/mcpd.toml`: Permission denied (os error 13)
    ");
    assert_snapshot!(run(&[]), @"
    exit code: 0
    ----- stdout -----
    hello()    Says hello
    printer()  Knows nothing
    ");
    fs::set_permissions(&home, Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn rules_survive_the_loss_of_the_configuration() {
    let sandbox = sandbox();
    let file = sandbox.path().join("mcpd.toml");
    fs::write(&file, "[[rule]]\ndeny = [\"printer\"]\n").unwrap();
    let daemon = Daemon::start(&sandbox, &[]);
    let listed = || {
        let list = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#;
        daemon.client().post(list).unwrap().1
    };
    assert!(!listed().contains("printer"));
    fs::remove_file(&file).unwrap();
    daemon.signal(Signal::HUP);
    let said = daemon.wait_for_line("configuration not reloaded");
    let expected = "failed to reload the configuration `mcpd.toml`: the file no longer exists; restore it, or restart mcpd to run without it";
    assert!(said.ends_with(expected), "{said}");
    assert!(!listed().contains("printer"));
    fs::write(&file, "").unwrap();
    daemon.signal(Signal::HUP);
    daemon.wait_for_line("configuration reloaded");
    assert!(listed().contains("printer"));
    // An empty file that vanishes is reported as well.
    fs::remove_file(&file).unwrap();
    daemon.signal(Signal::HUP);
    daemon.wait_for_line("no longer exists");
}

#[test]
fn a_variable_with_a_wrong_value_is_named() {
    let mistake = |name: &str, value: &str, arguments: &[&str]| {
        let sandbox = sandbox().with_variable(name, value);
        let said = sandbox.run(arguments);
        let mut lines = said.lines().skip_while(|line| !line.contains("error: "));
        lines.next().unwrap_or_default().to_owned()
    };
    let call = ["call", "scripts", "hello"];
    assert_snapshot!(mistake("MCPD_TIMEOUT", "abc", &call), @"error: invalid value 'abc' for 'MCPD_TIMEOUT': expected a number of seconds above 0");
    assert_snapshot!(mistake("MCPD_TIMEOUT", "1", &["call", "scripts", "hello", "--timeout=abc"]), @"error: invalid value 'abc' for '--timeout <SECONDS>': expected a number of seconds above 0");
    assert_snapshot!(mistake("MCPD_NO_CACHE", "never", &call), @"error: invalid value 'never' for 'MCPD_NO_CACHE': value was not a boolean");
    let serve = ["serve", "scripts"];
    assert_snapshot!(mistake("MCPD_LISTEN", "foo", &serve), @"mcpd: error: failed to listen at the address of MCPD_LISTEN: use the address `foo`: expected HOST:PORT, such as 127.0.0.1:43210, or unix:PATH");
    assert_snapshot!(mistake("MCP_PORT", "99999", &serve), @"mcpd: error: failed to use the port `99999` of MCP_PORT: expected a number from 0 to 65535");
}

#[test]
fn boolean_variable_takes_1() {
    check_precedence(
        "watch",
        "watch = true",
        ("MCPD_NO_WATCH", "1"),
        &["--no-watch"],
        [
            "watch = false  # --no-watch",
            "watch = false  # MCPD_NO_WATCH",
            "watch = true  # mcpd.toml:2",
            "watch = true  # default",
        ],
    );
}

/// Sets a key in every possible way, then removes one way after the other.
#[track_caller]
fn check_precedence(
    key: &str,
    in_file: &str,
    variable: (&str, &str),
    flag: &[&str],
    said: [&str; 4],
) {
    let sandbox = sandbox();
    let shown = |arguments: &[&str], is_variable: bool| {
        let mut command = sandbox.command(&[&["config", "show", "--origin"], arguments].concat());
        if is_variable {
            command.env(variable.0, variable.1);
        }
        let transcript = sandbox.transcript(&output(command, b""));
        let mut lines = transcript.lines().map(str::to_owned);
        lines
            .find(|line| line.starts_with(key))
            .unwrap_or_else(|| format!("no {key}"))
    };
    let file = sandbox.path().join("mcpd.toml");
    fs::write(&file, format!("# first\n{in_file}\n")).unwrap();
    let with_all = shown(flag, true);
    let with_variable = shown(&[], true);
    let with_file = shown(&[], false);
    fs::remove_file(file).unwrap();
    let with_nothing = shown(&[], false);
    assert_eq!([with_all, with_variable, with_file, with_nothing], said);
}

#[test]
fn address_is_shown_with_its_origin() {
    check_precedence(
        "listen",
        "listen = [\"unix:a\", \"[::1]:7\"]",
        ("MCP_PORT", "8"),
        &["--listen", "localhost:9"],
        [
            "listen = [\"localhost:9\"]  # --listen",
            "listen = [\"127.0.0.1:8\"]  # MCP_PORT",
            "listen = [\"unix:a\",\"[::1]:7\"]  # mcpd.toml:2",
            "listen = [\"127.0.0.1:43210\"]  # default",
        ],
    );
}

#[test]
fn workdir_is_shown_with_its_origin() {
    check_precedence(
        "run_command.workdir",
        "enable = [\"run_command\"]\nrun_command.workdir = \"/in/file\"",
        ("MCPD_WORKDIR", "/in/variable"),
        &["--workdir", "/in/flag"],
        [
            "run_command.workdir = \"/in/flag\"  # --workdir",
            "run_command.workdir = \"/in/variable\"  # MCPD_WORKDIR",
            "run_command.workdir = \"/in/file\"  # mcpd.toml:3",
            "no run_command.workdir",
        ],
    );
}

#[test]
fn directories_by_position_and_by_flag_are_shown_together() {
    let sandbox = Sandbox::new();
    let shown = sandbox.run(&[
        "config",
        "show",
        "one",
        "--root-directory",
        "two",
        "--origin",
    ]);
    let roots = r#"roots = ["one","two"]  # --root-directory"#;
    assert!(shown.contains(roots), "{shown}");
}

#[test]
fn flags_go_before_variables_those_before_the_file_and_that_before_the_default() {
    check_precedence(
        "page_size",
        "page_size = 7",
        ("MCPD_PAGE_SIZE", "8"),
        &["--page-size", "9"],
        [
            "page_size = 9  # --page-size",
            "page_size = 8  # MCPD_PAGE_SIZE",
            "page_size = 7  # mcpd.toml:2",
            "page_size = 1000  # default",
        ],
    );
    check_precedence(
        "watch",
        "watch = false",
        ("MCPD_NO_WATCH", "false"),
        &["--no-watch"],
        [
            "watch = false  # --no-watch",
            "watch = true  # MCPD_NO_WATCH",
            "watch = false  # mcpd.toml:2",
            "watch = true  # default",
        ],
    );
    check_precedence(
        "allow_hosts",
        "allow_hosts = [\"a.example\", \"b.example\"]",
        ("MCPD_ALLOW_HOST", "c.example,d.example"),
        &["--allow-host", "e.example"],
        [
            "allow_hosts = [\"e.example\"]  # --allow-host",
            "allow_hosts = [\"c.example\",\"d.example\"]  # MCPD_ALLOW_HOST",
            "allow_hosts = [\"a.example\",\"b.example\"]  # mcpd.toml:2",
            "no allow_hosts",
        ],
    );
    check_precedence(
        "timeout",
        "timeout = 1.5",
        ("MCPD_TIMEOUT", "2.5"),
        &["--timeout", "3"],
        [
            "timeout = 3  # --timeout",
            "timeout = 2.5  # MCPD_TIMEOUT",
            "timeout = 1.5  # mcpd.toml:2",
            "timeout = 60  # default",
        ],
    );
    check_precedence(
        "log.filter",
        "[log]\nfilter = \"error\"",
        ("MCPD_LOG", "warn"),
        &["--log", "off"],
        [
            "log.filter = \"off\"  # --log",
            "log.filter = \"warn\"  # MCPD_LOG",
            "log.filter = \"error\"  # mcpd.toml:3",
            "no log.filter",
        ],
    );
}

#[test]
fn settings_of_the_file_take_effect() {
    let sandbox = sandbox();
    let configuration = "roots = [\"scripts\"]\ntimeout = 0.2\nfloor = \"slow\"\n[sandbox.slow]\nlevel = \"none\"\n";
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    assert_snapshot!(sandbox.run(&["list"]), @"
    exit code: 0
    ----- stdout -----
    hello()    Says hello
    printer()  Knows nothing
    ");
    // Directories on the command line take precedence over those of the file.
    assert_snapshot!(sandbox.run(&["list", "--root-directory", "missing"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to read the root directory `missing`: No such file or directory (os error 2)
    ");
    sandbox.write_script(
        "slow",
        "#!/bin/sh\n[ \"$1\" = --help ] && echo '{\"description\": \"d\"}' || exec sleep 60\n",
    );
    assert_snapshot!(sandbox.run(&["call", "scripts", "slow"]), @"
    exit code: 5
    ----- stderr -----
    The script was stopped because it ran longer than its limit of 0.2 s. It printed nothing.
    mcpd: error: `slow` failed: exit code 143 (time-limit)
    ");
}

#[test]
fn program_path_may_begin_with_a_tilde() {
    const PROGRAM: &str = "#!/bin/sh\nif [ $# -gt 0 ]; then echo \"run: $*\"; exit; fi\n\
        echo '{\"type\": \"result\", \"tools\": [{\"name\": \"remote\"}]}'\n";
    let sandbox = sandbox();
    sandbox.write_script("../home/bin/program", PROGRAM);
    fs::write(sandbox.path().join("scripts/note.xyz"), "").unwrap();
    let sidecar = "description = \"A note.\"\n";
    fs::write(sandbox.path().join("scripts/note.xyz.mcpd.toml"), sidecar).unwrap();
    let check = |configuration: &str, arguments: &[&str], expected: &str| {
        fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
        let said = sandbox.run(arguments);
        assert!(said.contains(expected), "{said}");
    };
    let call = |tool| ["call", "scripts", tool, "--enable", "run_command"];
    check(
        "[interpreter]\nxyz = [\"~/bin/program\", \"a\"]\n",
        &call("note.xyz"),
        "run: a",
    );
    check(
        "[[tool]]\nmatch = \"*\"\nredact = false\nenv = { SECRET = { command = [\"~/bin/program\", \"b\"] } }\n",
        &call("printer"),
        "run: b",
    );
    check(
        "[run_command]\nsandbox = \"none\"\nshell = [\"~/bin/program\"]\n",
        &[&call("run_command")[..], &["command=c"]].concat(),
        "run: c",
    );
    check(
        "[[endpoint]]\ncommand = [\"~/bin/program\"]\n",
        &["list", "scripts"],
        "remote",
    );
    let upstream = "#!/bin/sh\necho reached >&2\n";
    sandbox.write_script("../home/bin/program", upstream);
    check(
        "[[upstream]]\nname = \"up\"\ncommand = [\"~/bin/program\"]\n",
        &["list", "scripts", "--log", "debug"],
        "reached",
    );
}

#[test]
fn files_read_at_the_start_are_checked() {
    let sandbox = sandbox();
    let check = |configuration: &str| {
        fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
        sandbox.run(&["config", "check"])
    };
    assert_snapshot!(check("state_key_file = \"missing\"\n[tls]\ncertificate = \"gone.pem\"\nkey = \"key.pem\"\n"), @"
    exit code: 1
    ----- stdout -----
    mcpd.toml:1:18: `state_key_file`: failed to read the state key `@@ROOT@@/missing`: No such file or directory (os error 2)
    mcpd.toml:3:15: in [tls]: `certificate`: failed to read the file `@@ROOT@@/gone.pem`: No such file or directory (os error 2)
    ");
    assert_snapshot!(check("[tls]\nkey = \"key.pem\"\n[log]\nfilter = \"a=b=c\"\n"), @r#"
    exit code: 1
    ----- stdout -----
    mcpd.toml:4:10: in [log]: `filter`: failed to read the log filter `a=b=c`: error parsing level filter: expected one of "off", "error", "warn", "info", "debug", "trace", or a number 0-5
    mcpd.toml:2:7: in [tls]: `key`: failed to serve over TLS: both a certificate and its key are required; use `--tls-certificate` and `--tls-key` or the keys of `[tls]`
    "#);
    assert_snapshot!(check("[run_command]\nshell = []\n[metrics]\nlisten = \"0.0.0.0:9464\"\n"), @"
    exit code: 1
    ----- stdout -----
    mcpd.toml:2:9: in [run_command]: `shell`: expected a program and its arguments
    mcpd.toml:4:10: in [metrics]: `listen`: failed to serve metrics at `0.0.0.0:9464`: without a token they are served on loopback addresses only, such as 127.0.0.1:9464; use `--metrics-to-clients` to serve them to clients with a token
    ");
    assert_snapshot!(check("[run_command]\nshell = [\"fish\", \"-c\"]\nallow = [\"ls\"]\n[metrics]\nlisten = \"9464\"\n"), @"
    exit code: 1
    ----- stdout -----
    mcpd.toml:2:9: in [run_command]: `shell`: `allow` and `deny` require a known POSIX shell, and `fish` is not one
    mcpd.toml:5:10: in [metrics]: `listen`: failed to serve metrics at `9464`: expected HOST:PORT, such as 127.0.0.1:9464
    ");
    assert_snapshot!(check("roots = [\"scripts\", \"gone\"]\ncgroup = \"gone\"\n[run_command]\nworkdir = \"mcpd.toml\"\n"), @"
    exit code: 1
    ----- stdout -----
    mcpd.toml:1:21: `roots`: failed to read the directory `@@ROOT@@/gone`: No such file or directory (os error 2)
    mcpd.toml:2:10: `cgroup`: failed to read the directory `@@ROOT@@/gone`: No such file or directory (os error 2)
    mcpd.toml:4:11: in [run_command]: `workdir`: failed to read the directory `@@ROOT@@/mcpd.toml`: Not a directory (os error 20)
    ");
    assert_snapshot!(check("auth = false\nlisten = [\"127.0.0.1:1\", \"0.0.0.0:1\"]\n"), @"
    exit code: 1
    ----- stdout -----
    mcpd.toml:2:26: `listen`: failed to serve on `0.0.0.0:1` without a token: `--no-auth` and `auth = false` require a loopback address, such as 127.0.0.1
    ");
    assert_snapshot!(check("listen = [\"0.0.0.0:1\"]\n[[oauth.issuer]]\nurl = \"https://a.example\"\n"), @"
    exit code: 1
    ----- stdout -----
    mcpd.toml:2:3: in [[oauth.issuer]]: `resource` is missing: mcpd listens on every address and does not know which of them clients use
    ");
    let hash = "0".repeat(64);
    let certificate = format!("[[certificate]]\nname = \"ada\"\nsha256 = \"{hash}\"\n");
    assert_snapshot!(check(&certificate), @"
    exit code: 1
    ----- stdout -----
    mcpd.toml:2:8: in [[certificate]]: no client is asked for a certificate; set the certificate authorities with `--tls-client-ca` or `client_ca` in `[tls]`
    ");
    let right =
        "[run_command]\nshell = [\"fish\", \"-c\"]\n[metrics]\nlisten = \"localhost:9464\"\n";
    assert_snapshot!(check(right), @"exit code: 0");
}

#[test]
fn checked_file_is_named_by_position_flag_or_variable() {
    let sandbox = sandbox().with_variable("MCPD_CONFIG", "variable.toml");
    for name in ["variable", "flag", "position"] {
        let text = format!("{name} = 1\n");
        fs::write(sandbox.path().join(format!("{name}.toml")), text).unwrap();
    }
    let checked = |arguments: &[&str]| {
        let said = sandbox.run(&[&["config", "check"], arguments].concat());
        let names = ["variable", "flag", "position"].into_iter();
        let found = names.filter(|name| said.contains(&format!("unknown key `{name}`")));
        found.collect::<Vec<_>>()
    };
    assert_eq!(checked(&[]), ["variable"]);
    assert_eq!(checked(&["position.toml"]), ["position"]);
    assert_eq!(checked(&["--config", "flag.toml"]), ["flag"]);
    let both = ["--config", "flag.toml", "position.toml"];
    assert_eq!(checked(&both), ["flag", "position"]);
}

#[test]
fn a_configuration_is_checked_without_being_used() {
    let sandbox = sandbox();
    let check = |configuration: &str, arguments: &[&str]| {
        fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
        sandbox.run(&[&["config", "check"], arguments].concat())
    };
    let right = "[[tool]]\nmatch = \"*\"\nenv = { A = { command = [\"touch\", \"proof\"] } }\n";
    assert_snapshot!(check(right, &[]), @"exit code: 0");
    assert!(!sandbox.path().join("proof").exists());
    assert_snapshot!(check(right, &["--json"]), @"
    exit code: 0
    ----- stdout -----
    []
    ");
    assert_snapshot!(check("listen = [\"nowhere.invalid:80\", \"http://127.0.0.1\"]\n", &[]), @"
    exit code: 1
    ----- stdout -----
    mcpd.toml:1:33: `listen`: failed to use the address `http://127.0.0.1`: expected HOST:PORT, such as 127.0.0.1:43210, or unix:PATH
    ");
    let wrong = "floor = \"gaurded\"\n[interpreter]\n\".py\" = [\"python\"]\n[[rule]]\nclients = [\"reports\"]\nallow = [\"*\"]\n";
    assert_snapshot!(check(wrong, &[]), @r#"
    exit code: 1
    ----- stdout -----
    mcpd.toml:1:9: `floor = "gaurded"`: no such sandbox; did you mean `guarded`?
    mcpd.toml:3:1: in [interpreter]: `.py`: write the extension without the dot, `py`
    mcpd.toml:5:12: in [[rule]]: `clients`: there is no client `reports`; known: agent, anonymous, local
    "#);
    assert_snapshot!(check(wrong, &["--json"]), @r#"
    exit code: 1
    ----- stdout -----
    [
      {
        "file": "mcpd.toml",
        "line": 1,
        "column": 9,
        "message": "`floor = \"gaurded\"`: no such sandbox; did you mean `guarded`?"
      },
      {
        "file": "mcpd.toml",
        "line": 3,
        "column": 1,
        "message": "in [interpreter]: `.py`: write the extension without the dot, `py`"
      },
      {
        "file": "mcpd.toml",
        "line": 5,
        "column": 12,
        "message": "in [[rule]]: `clients`: there is no client `reports`; known: agent, anonymous, local"
      }
    ]
    "#);
    assert_snapshot!(check("[sandbox.x]\nlevle = 1\n", &["mcpd.toml", "missing.toml"]), @"
    exit code: 1
    ----- stdout -----
    mcpd.toml:2:1: in [sandbox.x]: unknown key `levle`; did you mean `level`?
    failed to read the configuration `missing.toml`: No such file or directory (os error 2)
    ");
}

#[test]
fn configuration_is_shown_without_secrets() {
    let sandbox = sandbox();
    let configuration = "[[tool]]\nmatch = \"*\"\n[tool.env]\nA = \"s3cret-text\"\nB = { file = \"b\" }\n\n[[upstream]]\nname = \"x\"\nurl = \"http://s3cret@localhost/mcp?key=s3cret\"\ntoken = \"s3cret-text\"\nheaders = { H = \"s3cret-text\" }\n";
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    for arguments in [&["--origin"][..], &["--json"]] {
        let shown = sandbox.run(&[&["config", "show"], arguments].concat());
        assert!(shown.contains("tool[0].env.A"), "{shown}");
        assert!(!shown.contains("s3cret"), "{shown}");
    }
    let shown = sandbox.run(&["config", "show", "--origin"]);
    let lines: Vec<_> = shown
        .lines()
        .filter(|line| line.contains("mcpd.toml"))
        .collect();
    assert_snapshot!(lines.join("\n"), @r#"
    tool[0].match = "*"  # mcpd.toml:2
    tool[0].env.A = "[secret]"  # mcpd.toml:4
    tool[0].env.B.file = "b"  # mcpd.toml:5
    upstream[0].name = "x"  # mcpd.toml:8
    upstream[0].url = "http://[secret]@localhost/mcp?[secret]"  # mcpd.toml:9
    upstream[0].token = "[secret]"  # mcpd.toml:10
    upstream[0].headers.H = "[secret]"  # mcpd.toml:11
    "#);
}

#[test]
fn flag_that_confines_nothing_is_refused() {
    let run = |arguments: &[&str]| sandbox().run(&[&["list", "scripts"], arguments].concat());
    assert_snapshot!(run(&["--sandbox", "gaurded"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to use the sandbox `gaurded`: no such sandbox; did you mean `guarded`?
    ");
    assert_snapshot!(run(&["--sandbox", "none", "--no-network"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to use the sandbox `none`: its level is `none`, so `--allow-read`, `--allow-write` and `--no-network` have no effect
    ");
    assert_snapshot!(run(&["--allow-write", "x"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to set up the sandbox: `--allow-read`, `--allow-write` and `--no-network` require `--sandbox`
    ");
}
