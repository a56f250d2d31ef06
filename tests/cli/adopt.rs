//! `mcpd adopt`: programs that know nothing of mcpd become tools, and get exactly the words that
//! their help asks for.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use mcpd_tests::Sandbox;

/// Help texts in several styles, each with the arguments of a call and the words that the program
/// must get.
const PROGRAMS: &[(&str, &str, &[&str], &[&str])] = &[
    (
        "argparse",
        "usage: x [-h] [--name NAME] file\n\noptions:\n  -h, --help   show this help message and exit\n  --name NAME  a name\n",
        &["name=a b", "file=-x"],
        &["--name=a b", "--", "-x"],
    ),
    (
        "gnu",
        "Usage: x [OPTION]... [FILE]...\n  -n, --lines=NUM  number\n  -q, --quiet      say less\n",
        &["lines=-5", "quiet=true", r#"file:=["a'b", "\"c d\""]"#],
        &["--lines=-5", "--quiet", "a'b", "\"c d\""],
    ),
    (
        "curl",
        "Usage: x [options...] <url>\n -d, --data <data> Data to send\n -s, --silent      Silent mode\n",
        &["data=-a b", "url=http://localhost/?q=1&r"],
        &["--data", "-a b", "http://localhost/?q=1&r"],
    ),
    (
        "openssl",
        "Usage: x [options]\n\n -in infile   Input file\n -text        Print the text\n",
        &["in=my file", "text=true"],
        &["-in", "my file", "-text"],
    ),
    (
        "click",
        "Usage: x [OPTIONS] NAME\n\nOptions:\n  --loud / --quiet-not  x\n  --to TEXT             Receiver\n  --help                Show this message and exit.\n",
        &["to=$HOME", "name=`id`"],
        &["--to=$HOME", "`id`"],
    ),
    (
        "clap",
        "Usage: x [OPTIONS] [PATH]...\n\nOptions:\n  -e, --exclude <GLOB>...  Skip\n  -h, --help               Print help\n",
        &[r#"exclude:=["*.rs", "-a"]"#, r#"path:=["src"]"#],
        &["--exclude=*.rs", "--exclude=-a", "src"],
    ),
    (
        "git",
        "usage: x [<options>] [<path>...]\n\n    -q, --[no-]quiet  say less\n    -m, --message <text>\n                      the message\n",
        &["quiet=false", "message=one\ntwo"],
        &["--no-quiet", "--message", "one\ntwo"],
    ),
    (
        "range",
        "usage: x [-h] [--range A B] [--tags [TAG ...]]\n\noptions:\n  -h, --help        show this help message and exit\n  --range A B       two\n  --tags [TAG ...]  some\n",
        &[r#"range:=["1 1", "2"]"#, r#"tags:=["x", "y z"]"#],
        &["--range", "1 1", "2", "--tags", "x", "y z"],
    ),
    (
        "short",
        "usage: x [-v] [-w WIDTH] [file]\n\n  -v        say more\n  -w WIDTH  width\n",
        &["w=-3", "v=true"],
        &["-v", "-w-3"],
    ),
    (
        "optional",
        "Usage: x [OPTION]...\n      --color[=WHEN]  color the output\n  -z              end with NUL\n",
        &["color=always", "z=true"],
        &["--color=always", "-z"],
    ),
];

/// Creates a program that prints its help, or each of its words on a line as JSON would quote it.
fn create(sandbox: &Sandbox, name: &str, help: &str) {
    let directory = sandbox.path().join("bin");
    fs::create_dir_all(&directory).unwrap();
    let path = directory.join(name);
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" = --help ]; then\ncat <<'END'\n{help}END\nexit\nfi\nfor word; do printf '<%s>' \"$word\"; done\n"
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn adopted_program_gets_exactly_the_words_of_its_help() {
    let sandbox = Sandbox::new();
    for (name, help, arguments, words) in PROGRAMS {
        create(&sandbox, name, help);
        let adopted = sandbox.run(&["adopt", &format!("bin/{name}"), "--write", "tools"]);
        assert!(adopted.contains("exit code: 0"), "{name}: {adopted}");
        let call = [&["call", "tools", name], *arguments].concat();
        let answer = sandbox.run(&call);
        let expected: String = words.iter().map(|word| format!("<{word}>")).collect();
        assert!(answer.contains(&expected), "{name}: {expected}\n{answer}");
    }
    let checked = sandbox.run(&["check", "tools", "--deny", "warnings"]);
    assert!(checked.starts_with("exit code: 0"), "{checked}");
}

#[test]
fn draft_is_printed_and_nothing_is_written() {
    let sandbox = Sandbox::new();
    let (name, help, ..) = PROGRAMS[0];
    create(&sandbox, name, help);
    let printed = sandbox.run(&["adopt", "bin/argparse"]);
    assert!(printed.contains("[options.name]"), "{printed}");
    assert!(!sandbox.path().join("bin/argparse.mcpd.toml").exists());
    let written = sandbox.run(&["adopt", "bin/argparse", "--write"]);
    assert!(written.starts_with("exit code: 0"), "{written}");
    let again = sandbox.run(&["adopt", "bin/argparse", "--write"]);
    assert!(again.starts_with("exit code: 1"), "{again}");
}

#[test]
fn targets_of_a_makefile_become_tools() {
    let sandbox = Sandbox::new();
    fs::write(
        sandbox.path().join("Makefile"),
        "# Who is greeted.\nNAME ?= World\n\nhello: ## Say hello\n\t@echo \"Hello, $(NAME)\"\n",
    )
    .unwrap();
    let adopted = sandbox.run(&["adopt", "Makefile", "--write", "tools"]);
    assert!(adopted.starts_with("exit code: 0"), "{adopted}");
    let sidecar = fs::read_to_string(sandbox.path().join("tools/hello.mcpd.toml")).unwrap();
    assert!(sidecar.contains("argument = \"NAME={}\""), "{sidecar}");
}

#[test]
fn program_without_help_is_refused() {
    let sandbox = Sandbox::new();
    create(&sandbox, "mute", "nothing of use\n");
    let refused = sandbox.run(&["adopt", "bin/mute"]);
    assert!(refused.starts_with("exit code: 1"), "{refused}");
    assert!(refused.contains("--from"), "{refused}");
}

#[test]
fn sub_commands_become_a_choice_behind_the_flags() {
    let sandbox = Sandbox::new();
    let help = "Usage: ctl [options] COMMAND [ARG]...\n\nCommands:\n  up      Start\n  down    Stop\n\nOptions:\n  --host NAME  machine\n";
    create(&sandbox, "ctl", help);
    let choice = "--subcommands=choice";
    let adopted = sandbox.run(&["adopt", "bin/ctl", choice, "--write", "tools"]);
    assert!(adopted.starts_with("exit code: 0"), "{adopted}");
    let given = ["command=down", "host=a b", r#"arguments:=["web", "-x"]"#];
    let answer = sandbox.run(&[&["call", "tools", "ctl"], &given[..]].concat());
    assert!(
        answer.contains("<--host><a b><down><--><web><-x>"),
        "{answer}"
    );
    let refused = sandbox.run(&["call", "tools", "ctl", "command=destroy"]);
    assert!(refused.contains("expected one of"), "{refused}");
    let checked = sandbox.run(&["check", "tools", "--deny", "warnings"]);
    assert!(checked.starts_with("exit code: 0"), "{checked}");
}

#[test]
fn completions_and_manual_pages_are_read_without_running_the_program() {
    let sandbox = Sandbox::new();
    sandbox.write_script("pack", "#!/bin/sh\ntouch ran\n");
    let bash = "_pack() {\n  COMPREPLY=($(compgen -W '--level= --keep' -- \"$cur\"))\n}\ncomplete -F _pack pack\n";
    let fig = r#"{"options": [{"name": ["-l", "--level"], "args": {"name": "n"}}]}"#;
    let page = ".TH PACK 1\n.SH NAME\npack \\- make it small\n.SH OPTIONS\n.TP\n.BI \\-\\-level= N\nHow small it gets.\n";
    for (name, text) in [("pack", bash), ("fig.json", fig), ("pack.1", page)] {
        if name == "pack.1" && !is_in_path("man") {
            mcpd_tests::skip("MANUAL PAGE TEST SKIPPED: there is no `man`");
            continue;
        }
        fs::write(sandbox.path().join(name), text).unwrap();
        let adopted = sandbox.run(&["adopt", "scripts/pack", "--from", name]);
        assert!(adopted.contains("[options.level]"), "{name}: {adopted}");
    }
    assert!(!sandbox.path().join("ran").exists(), "the program ran");
    let nothing = sandbox.path().join("nothing.bash");
    fs::write(nothing, "complete -F _parse_help pack\n").unwrap();
    let refused = sandbox.run(&["adopt", "scripts/pack", "--from", "nothing.bash"]);
    assert!(refused.starts_with("exit code: 1"), "{refused}");
}

fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).exists())
}
