//! Every client's file before and after an installation, byte for byte.
//!
//! `tests/golden/CLIENT/before.*` is a file as an operator may have it. The others are what an
//! installation makes of it: of scripts (`stdio.*`), of a URL (`http.*`), of a URL that mcpd
//! connects to (`connect.*`), and of scripts in the file of a project (`project.*`).
//! `MCPD_BLESS=1` writes them anew.

#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::fs;
use std::path::{Path, PathBuf};

use mcpd_clients::edit::Removal;
use mcpd_clients::{
    Client, ClientError, ConfigFile, Connection, Drift, Places, Platform, ProjectPath, Reference,
    Request, Scope, Server, UrlTransport,
};

fn directory(client: &Client) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(client.name())
}

fn extension(client: &Client) -> &'static str {
    match client.name() {
        "codex" => "toml",
        "continue" | "goose" => "yaml",
        _ => "json",
    }
}

fn user_file(client: &'static Client) -> ConfigFile {
    let places = Places::new(Platform::Linux, "/home/ada");
    client.file(Scope::User, &places, "mcpd").unwrap()
}

/// Server that uses what the client can do.
fn stdio_server(client: &Client) -> Server {
    let server = Server::stdio(
        "mcpd",
        "/usr/local/bin/mcpd",
        ["stdio", "--root", "/home/ada/my tools"],
    );
    let server = match client.takes_path() {
        true => server.set_env("PATH", "/opt/homebrew/bin:/usr/bin:/bin"),
        false => server.set_env("MCPD_LOG", "warn"),
    };
    match client.reference() {
        Reference::Missing => server,
        _ => server.pass_env("WIKI_TOKEN"),
    }
}

fn http_server(client: &Client) -> Server {
    let server = Server::http("mcpd", "http://127.0.0.1:8080/mcp");
    match client.reference() {
        Reference::Missing => server,
        _ => server.send_token("MCPD_TOKEN"),
    }
}

fn project() -> Places {
    Places::new(Platform::Linux, "/home/ada").with_project("/home/ada/web")
}

/// Server at a URL that mcpd connects to.
fn connected_server(client: &'static Client) -> Server {
    let url = "https://tools.example/mcp";
    let request =
        Request::connect("mcpd", "/usr/local/bin/mcpd", url).set_transport(UrlTransport::Stdio);
    let request = match client.reference() {
        Reference::Missing => request.send_token_file("/home/ada/token"),
        _ => request.send_token("MCPD_TOKEN"),
    };
    request
        .prepare(client, Scope::User, &project())
        .unwrap()
        .server
}

/// Scripts in a project, whose file has no path of this machine if the client can do that.
fn project_server(client: &'static Client) -> Server {
    let directories = ["/home/ada/web/my tools", "/home/ada/web"];
    let request = Request::serve("mcpd", "/usr/local/bin/mcpd", directories)
        .set_configuration("/home/ada/web/mcpd.toml")
        .set_search_path("/home/ada/bin:/bin");
    let prepared = request.prepare(client, Scope::Project, &project()).unwrap();
    let count = match client.project_path() {
        ProjectPath::Missing => 3,
        _ => 0,
    };
    assert_eq!(prepared.machine_paths.len(), count, "{}", client.name());
    prepared.server
}

/// Cases of a client: what its golden file is called, and the server.
fn cases(client: &'static Client) -> Vec<(&'static str, Server)> {
    let has_project = client.scopes().any(|scope| scope == Scope::Project);
    let cases = [
        Some(("stdio", stdio_server(client))),
        Some(("connect", connected_server(client))),
        client.has_http().then(|| ("http", http_server(client))),
        has_project.then(|| ("project", project_server(client))),
    ];
    cases.into_iter().flatten().collect()
}

#[test]
fn url_is_reached_in_the_way_that_was_asked_for() {
    let desktop = Client::find("claude-desktop").unwrap();
    let cursor = Client::find("cursor").unwrap();
    let request = || Request::connect("mcpd", "/bin/mcpd", "https://tools.example/mcp");
    let prepare = |client, request: Request| request.prepare(client, Scope::User, &project());
    let entry = |client: &'static Client, request| {
        client
            .entry(&prepare(client, request).unwrap().server)
            .unwrap()
    };
    assert_eq!(entry(cursor, request())["url"], "https://tools.example/mcp");
    assert_eq!(entry(desktop, request())["args"][0], "connect");
    let file = || request().send_token_file("/t");
    assert_eq!(entry(cursor, file())["args"][3], "/t");
    let forced = request().set_transport(UrlTransport::Stdio);
    assert_eq!(entry(cursor, forced)["args"][0], "connect");
    let refusal = |client, request: Request| {
        let refused = prepare(client, request.set_transport(UrlTransport::Http));
        refused.unwrap_err().to_string()
    };
    assert!(refusal(desktop, request()).contains("takes no URL in its file"));
    assert!(refusal(cursor, file()).contains("can't send a token that is in a file"));
}

#[test]
fn install_gives_golden_file_and_remove_restores_the_original() {
    for client in Client::all() {
        let file = user_file(client);
        let name = |stem: &str| directory(client).join(format!("{stem}.{}", extension(client)));
        let before = fs::read_to_string(name("before")).unwrap();
        for (stem, server) in cases(client) {
            let after = file.install(&before, &server).unwrap();
            if std::env::var_os("MCPD_BLESS").is_some() {
                fs::write(name(stem), &after).unwrap();
            }
            let golden = fs::read_to_string(name(stem)).unwrap();
            assert_eq!(after, golden, "{} {stem}", client.name());

            assert_eq!(
                file.install(&after, &server).unwrap(),
                after,
                "{} again",
                client.name()
            );
            assert_eq!(file.drift(&before, &server).unwrap(), Drift::Missing);
            assert_eq!(file.drift(&after, &server).unwrap(), Drift::Same);
            for original in [None, Some(before.as_str())] {
                let removal = file.remove(&after, "mcpd", original).unwrap();
                assert_eq!(
                    removal,
                    Removal::Text(before.clone()),
                    "{} {stem}",
                    client.name()
                );
            }
        }
    }
}

#[test]
fn install_into_a_missing_file_gives_the_snippet_and_remove_leaves_nothing() {
    for client in Client::all() {
        let file = user_file(client);
        for (stem, server) in cases(client) {
            let after = file.install("", &server).unwrap();
            assert_eq!(after, client.render_snippet(&server).unwrap());
            assert_eq!(file.install(&after, &server).unwrap(), after);
            let removal = file.remove(&after, "mcpd", None).unwrap();
            assert!(
                matches!(removal, Removal::Empty(_)),
                "{} {stem}: {removal:?}",
                client.name()
            );
            assert_eq!(file.installed_servers(&after).unwrap().len(), 1);
        }
    }
}

#[test]
fn installed_servers_has_what_was_installed() {
    for client in Client::all() {
        let file = user_file(client);
        let text = client.render_snippet(&stdio_server(client)).unwrap();
        let servers = file.installed_servers(&text).unwrap();
        let Connection::Stdio { command, args, .. } = &servers[0].connection else {
            panic!("{}: {servers:?}", client.name());
        };
        assert_eq!(servers[0].name, "mcpd");
        assert_eq!(command, "/usr/local/bin/mcpd");
        assert_eq!(args, &["stdio", "--root", "/home/ada/my tools"]);
        if client.has_http() {
            let text = client.render_snippet(&http_server(client)).unwrap();
            let servers = file.installed_servers(&text).unwrap();
            let Connection::Http {
                url,
                headers,
                token_variable,
                ..
            } = &servers[0].connection
            else {
                panic!("{}: {servers:?}", client.name());
            };
            assert_eq!(url, "http://127.0.0.1:8080/mcp");
            let has_token = token_variable.is_some() || headers.contains_key("Authorization");
            assert_eq!(
                has_token,
                client.reference() != Reference::Missing,
                "{}",
                client.name()
            );
        }
    }
}

#[test]
fn broken_file_is_refused_with_its_place() {
    for client in Client::all() {
        let file = user_file(client);
        let broken = match extension(client) {
            "toml" => "model = \"a\"\n[mcp_servers.x\ncommand = \"y\"\n",
            "yaml" => "extensions:\n  a: {name: [}\nmcpServers:\n  - a\n",
            _ => "{\n  \"mcpServers\": {\"a\": }\n}\n",
        };
        for (_, server) in cases(client) {
            let error = file.install(broken, &server).unwrap_err().to_string();
            assert!(
                error.starts_with("line 2, column "),
                "{}: {error}",
                client.name()
            );
            assert!(error.contains("not valid "), "{error}");
        }
    }
}

#[test]
fn entry_of_a_client_without_urls_or_references_is_refused() {
    let desktop = Client::find("claude-desktop").unwrap();
    let error = desktop.entry(&http_server(desktop)).unwrap_err();
    assert_eq!(
        error,
        ClientError::NoHttp {
            client: "Claude Desktop"
        }
    );
    for client in Client::all()
        .iter()
        .filter(|client| client.reference() == Reference::Missing)
    {
        let server = Server::stdio("mcpd", "/bin/mcpd", ["stdio"]).pass_env("TOKEN");
        let error = client.entry(&server).unwrap_err();
        assert!(matches!(error, ClientError::NoReference { .. }), "{error}");
        let server = Server::http("mcpd", "http://127.0.0.1/mcp").send_token("TOKEN");
        assert!(client.entry(&server).is_err(), "{}", client.name());
    }
    let goose = Client::find("goose").unwrap();
    let server = Server::stdio("mcpd", "/bin/mcpd", ["stdio"]).set_env("PATH", "/bin");
    let error = goose.entry(&server).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Goose does not give servers the variable `PATH`; leave it out or use another name"
    );
    let copilot = Client::find("copilot-cli").unwrap();
    let server = Server::stdio("mcpd", "/bin/mcpd", ["stdio"]).pass_env("GITHUB_TOKEN");
    assert!(copilot.entry(&server).is_err());
}

#[test]
fn settings_that_an_operator_added_to_an_entry_are_kept() {
    let client = Client::find("cline").unwrap();
    let file = user_file(client);
    let old = concat!(
        "{\"mcpServers\": {\"mcpd\": {\"command\": \"/old/mcpd\", \"args\": [], ",
        "\"autoApprove\": [\"add\"], \"env\": {\"A\": \"b\"}, \"disabled\": true}}}"
    );
    let server = Server::stdio("mcpd", "/new/mcpd", ["stdio"]);
    assert_eq!(file.drift(old, &server).unwrap(), Drift::Differs);
    let new = file.install(old, &server).unwrap();
    assert_eq!(
        new,
        concat!(
            "{\"mcpServers\": {\"mcpd\": {\"command\": \"/new/mcpd\", \"args\": [\"stdio\"], ",
            "\"autoApprove\": [\"add\"], \"disabled\": true}}}"
        )
    );
    assert!(!file.installed_servers(&new).unwrap()[0].is_enabled);
}

#[test]
fn installed_servers_reads_the_entries_of_operators() {
    let mut shown = Vec::new();
    for name in [
        "cline",
        "codex",
        "copilot-cli",
        "goose",
        "mcporter",
        "opencode",
        "windsurf",
    ] {
        let client = Client::find(name).unwrap();
        let path = directory(client).join(format!("before.{}", extension(client)));
        let text = fs::read_to_string(path).unwrap();
        for server in user_file(client).installed_servers(&text).unwrap() {
            let connection = match &server.connection {
                Connection::Stdio {
                    command, args, env, ..
                } => {
                    format!("{command} {} {env:?}", args.join(" "))
                }
                Connection::Http { url, headers, .. } => format!("{url} {headers:?}"),
                _ => "unknown".to_owned(),
            };
            let switch = if server.is_enabled { "" } else { " (off)" };
            shown.push(format!("{name}:{}{switch}: {connection}", server.name));
        }
    }
    let expected = [
        "cline:weather (off): uv --directory /srv/weather run weather.py {}",
        "codex:context7: npx -y @upstash/context7-mcp {\"LOG\": \"warn\"}",
        "copilot-cli:jira: uvx mcp-atlassian {\"JIRA_TOKEN\": \"${JIRA_TOKEN}\"}",
        "goose:developer: unknown",
        "goose:memory (off): npx -y @modelcontextprotocol/server-memory {}",
        "mcporter:linear: https://mcp.linear.app/mcp {\"Authorization\": \"Bearer ${LINEAR_API_KEY}\"}",
        "opencode:context7 (off): https://mcp.context7.com/mcp {}",
        "windsurf:github: docker run -i --rm -e GITHUB_TOKEN ghcr.io/github/github-mcp-server \
         {\"GITHUB_TOKEN\": \"${env:GITHUB_TOKEN}\"}",
    ];
    assert_eq!(shown, expected);
}
