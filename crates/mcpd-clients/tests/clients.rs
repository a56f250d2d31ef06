//! Places, scopes, links and detection of clients.

#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::fs;
use std::path::Path;

use mcpd_clients::edit::Removal;
use mcpd_clients::{Client, Drift, Places, Platform, Scope, Server, diff};

fn user_path(name: &str, places: &Places) -> String {
    let file = Client::find(name)
        .unwrap()
        .file(Scope::User, places, "mcpd")
        .unwrap();
    file.path().to_str().unwrap().replace('\\', "/")
}

#[test]
fn clients_are_sorted_and_complete() {
    let names: Vec<_> = Client::all().iter().map(Client::name).collect();
    assert!(names.is_sorted(), "{names:?}");
    for name in [
        "claude-desktop",
        "claude-code",
        "cursor",
        "vscode",
        "windsurf",
        "zed",
        "codex",
        "gemini-cli",
        "antigravity",
        "goose",
        "opencode",
        "copilot-cli",
        "cline",
        "continue",
        "lm-studio",
        "mcporter",
    ] {
        assert!(names.contains(&name), "{name}");
    }
    for client in Client::all() {
        assert!(!client.title().is_empty());
        assert!(client.scopes().next().is_some());
    }
}

#[test]
fn user_files_are_where_each_platform_has_them() {
    let paths = [
        (
            "claude-desktop",
            "/h/.config/Claude/claude_desktop_config.json",
            "/h/Library/Application Support/Claude/claude_desktop_config.json",
            "/h/AppData/Roaming/Claude/claude_desktop_config.json",
        ),
        (
            "vscode",
            "/h/.config/Code/User/mcp.json",
            "/h/Library/Application Support/Code/User/mcp.json",
            "/h/AppData/Roaming/Code/User/mcp.json",
        ),
        (
            "goose",
            "/h/.config/goose/config.yaml",
            "/h/.config/goose/config.yaml",
            "/h/AppData/Roaming/Block/goose/config/config.yaml",
        ),
        (
            "zed",
            "/h/.config/zed/settings.json",
            "/h/.config/zed/settings.json",
            "/h/AppData/Roaming/Zed/settings.json",
        ),
        (
            "crush",
            "/h/.config/crush/crush.json",
            "/h/.config/crush/crush.json",
            "/h/AppData/Local/crush/crush.json",
        ),
        (
            "codex",
            "/h/.codex/config.toml",
            "/h/.codex/config.toml",
            "/h/.codex/config.toml",
        ),
    ];
    for (name, linux, macos, windows) in paths {
        assert_eq!(user_path(name, &Places::new(Platform::Linux, "/h")), linux);
        assert_eq!(user_path(name, &Places::new(Platform::MacOs, "/h")), macos);
        assert_eq!(
            user_path(name, &Places::new(Platform::Windows, "/h")),
            windows
        );
    }
}

#[cfg(unix)]
#[test]
fn variables_move_files_if_they_are_absolute() {
    let places = |variables: &[(&str, &str)]| {
        let owned: Vec<_> = variables
            .iter()
            .map(|(k, v)| ((*k).into(), (*v).into()))
            .collect();
        Places::new(Platform::Linux, "/h").with_variables(owned)
    };
    let moved = places(&[
        ("XDG_CONFIG_HOME", "/x"),
        ("CODEX_HOME", "/c"),
        ("CLAUDE_CONFIG_DIR", "d"),
    ]);
    assert_eq!(user_path("vscode", &moved), "/x/Code/User/mcp.json");
    assert_eq!(user_path("codex", &moved), "/c/config.toml");
    assert_eq!(user_path("claude-code", &moved), "/h/.claude.json");
    assert_eq!(
        user_path("codex", &places(&[("CODEX_HOME", "")])),
        "/h/.codex/config.toml"
    );
}

#[test]
fn local_scope_of_claude_code_is_in_the_file_of_the_user() {
    let client = Client::find("claude-code").unwrap();
    let places = Places::new(Platform::Linux, "/h").with_project("/work/a.b");
    let file = client.file(Scope::Local, &places, "mcpd").unwrap();
    assert_eq!(file.path(), Path::new("/h/.claude.json"));
    let before = "{\n  \"projects\": {\n    \"/work/a.b\": {\n      \"mcpServers\": {},\n      \"x\": 1\n    }\n  }\n}";
    let server = Server::stdio("mcpd", "/bin/mcpd", ["stdio"]);
    let after = file.install(before, &server).unwrap();
    assert!(
        after.contains("\n      \"mcpServers\": {\n        \"mcpd\": {\n"),
        "{after}"
    );
    assert_eq!(file.drift(&after, &server).unwrap(), Drift::Same);
    assert_eq!(
        file.remove(&after, "mcpd", None).unwrap(),
        Removal::Text(before.to_owned())
    );
    let new = file.install("{}", &server).unwrap();
    assert_eq!(
        file.remove(&new, "mcpd", Some("{}")).unwrap(),
        Removal::Text("{}".to_owned())
    );
    assert!(matches!(
        file.remove(&new, "mcpd", None).unwrap(),
        Removal::Empty(_)
    ));
    assert!(
        client
            .file(Scope::Project, &Places::new(Platform::Linux, "/h"), "mcpd")
            .is_none()
    );
    assert!(
        Client::find("cursor")
            .unwrap()
            .file(Scope::Local, &places, "mcpd")
            .is_none()
    );
}

#[test]
fn original_restores_what_the_text_alone_does_not_tell() {
    let places = Places::new(Platform::Linux, "/h");
    let file = Client::find("vscode")
        .unwrap()
        .file(Scope::User, &places, "mcpd")
        .unwrap();
    let server = Server::http("mcpd", "http://127.0.0.1/mcp").send_token("MCPD_TOKEN");
    for before in [
        "{\"inputs\":[],\"servers\":{ }}",
        "{\n  \"x\": 1,\n  \"servers\": { }\n}\n",
        "{ // none\n}",
        "",
    ] {
        let after = file.install(before, &server).unwrap();
        assert_eq!(file.install(&after, &server).unwrap(), after);
        let removal = file.remove(&after, "mcpd", Some(before)).unwrap();
        assert_eq!(removal, Removal::Text(before.to_owned()));
        let changed = after.replace("http:", "https:");
        let removal = file.remove(&changed, "mcpd", Some("{\"y\": 2}")).unwrap();
        assert!(!format!("{removal:?}").contains("mcpd"), "{removal:?}");
    }
}

#[test]
fn input_of_another_server_is_kept() {
    let places = Places::new(Platform::Linux, "/h");
    let file = Client::find("vscode")
        .unwrap()
        .file(Scope::User, &places, "mcpd")
        .unwrap();
    let first = Server::http("first", "http://127.0.0.1:1/mcp").send_token("MCPD_TOKEN");
    let second = Server::http("second", "http://127.0.0.1:2/mcp").send_token("MCPD_TOKEN");
    let one = file.install("", &first).unwrap();
    let both = file.install(&one, &second).unwrap();
    assert_eq!(both.matches("\"id\": \"mcpd-token\"").count(), 1);
    assert_eq!(
        file.remove(&both, "second", None).unwrap(),
        Removal::Text(one)
    );
}

#[test]
fn file_for_each_server_has_a_safe_name() {
    let client = Client::find("continue").unwrap();
    let places = Places::new(Platform::Linux, "/h");
    for (name, expected) in [
        ("mcpd", "mcpd.yaml"),
        ("../a b", "-a-b.yaml"),
        ("", "mcpd.yaml"),
        ("..", "mcpd.yaml"),
    ] {
        let file = client.file(Scope::User, &places, name).unwrap();
        assert_eq!(
            file.path(),
            Path::new("/h/.continue/mcpServers").join(expected)
        );
    }
}

#[test]
fn jsonc_file_is_taken_if_it_is_the_one_that_exists() {
    let home = tempfile::tempdir().unwrap();
    let places = Places::new(Platform::Linux, home.path());
    let directory = home.path().join(".config/opencode");
    fs::create_dir_all(&directory).unwrap();
    assert!(user_path("opencode", &places).ends_with("/opencode.json"));
    fs::write(directory.join("opencode.jsonc"), "{}").unwrap();
    assert!(user_path("opencode", &places).ends_with("/opencode.jsonc"));
}

#[cfg(unix)]
#[test]
fn client_is_detected_by_its_directory_or_program() {
    use std::os::unix::fs::PermissionsExt as _;

    let home = tempfile::tempdir().unwrap();
    let places = Places::new(Platform::Linux, home.path());
    let codex = Client::find("codex").unwrap();
    let bin = home.path().join("bin");
    let program = bin.join("codex");
    fs::create_dir_all(&bin).unwrap();
    fs::write(&program, "").unwrap();
    assert_eq!(codex.detect(&places, Some(bin.as_os_str())), None);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(codex.detect(&places, Some(bin.as_os_str())), Some(program));
    assert_eq!(
        codex.detect(&places, Some(std::ffi::OsStr::new("bin"))),
        None
    );
    fs::create_dir(home.path().join(".codex")).unwrap();
    assert_eq!(
        codex.detect(&places, None),
        Some(home.path().join(".codex"))
    );
}

#[test]
fn links_are_those_of_the_clients() {
    let stdio = Server::stdio("mcpd", "/bin/mcpd", ["stdio", "a b"]);
    let link = |name: &str| Client::find(name).unwrap().link(&stdio).unwrap();
    assert_eq!(
        link("cursor").unwrap(),
        "cursor://anysphere.cursor-deeplink/mcp/install?name=mcpd&config=\
         eyJjb21tYW5kIjoiL2Jpbi9tY3BkIiwiYXJncyI6WyJzdGRpbyIsImEgYiJdfQ%3D%3D"
    );
    assert!(
        link("lm-studio")
            .unwrap()
            .starts_with("lmstudio://add_mcp?name=mcpd&config=eyJ")
    );
    assert_eq!(
        link("vscode").unwrap(),
        "vscode:mcp/install?%7B%22name%22%3A%22mcpd%22%2C%22type%22%3A%22stdio%22%2C\
         %22command%22%3A%22%2Fbin%2Fmcpd%22%2C%22args%22%3A%5B%22stdio%22%2C%22a%20b%22%5D%7D"
    );
    assert_eq!(
        link("goose").unwrap(),
        "goose://extension?cmd=%2Fbin%2Fmcpd&arg=stdio&arg=a%20b&id=mcpd&name=mcpd&description=mcpd"
    );
    assert_eq!(link("codex"), None);

    // Variables are asked for where a link can't refer to them.
    let goose = Client::find("goose").unwrap();
    let link = goose.link(&stdio.clone().pass_env("WIKI_TOKEN")).unwrap();
    assert!(
        link.unwrap()
            .contains("&env=WIKI%5FTOKEN%3DWIKI%5FTOKEN&id=")
    );
    let http = Server::http("mcpd", "https://tools.example/mcp").send_token("MCPD_TOKEN");
    assert!(goose.link(&http).is_err());
    let vscode = Client::find("vscode")
        .unwrap()
        .link(&http)
        .unwrap()
        .unwrap();
    assert!(
        vscode.contains("%22inputs%22%3A%5B%7B%22type%22%3A%22promptString%22"),
        "{vscode}"
    );
}

#[test]
fn diff_has_the_lines_that_differ() {
    assert_eq!(diff("a\nb\n", "a\nb\n"), "");
    assert_eq!(diff("a\nb\n", "a\nc\n"), "@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
}
