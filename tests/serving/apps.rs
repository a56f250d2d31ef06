//! Apps of tools and skills, over stdio: which clients see them, how they are read, and what is
//! refused.

use std::fs;

use mcpd_tests::{Pipes, Sandbox, eventually};
use serde_json::{Value, json};

use crate::Server as _;

const TOOL: &str = r#"#!/bin/sh
[ "$1" = --help ] && { echo '{"description": "Shows.", "_meta": {"ui": {"csp": {"connectDomains": ["https://a.example"]}, "visibility": ["app", "model"]}}}'; exit; }
echo shown
"#;
const PAGE: &str = "<!doctype html><title>Shown</title>";
const SKILL: &str = "---\nname: odds\ndescription: Judges.\nlicense: MIT\n---\n# Odds\n";

fn request(method: &str, params: Value, has_apps: bool) -> Value {
    let apps = json!({"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}});
    let extensions = if has_apps { apps } else { json!({}) };
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"extensions": extensions},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn start() -> (Sandbox, Pipes) {
    let sandbox = Sandbox::new().with_script("show", TOOL);
    let skill = sandbox.path().join("scripts/skills/odds");
    fs::write(sandbox.path().join("scripts/show.ui.html"), PAGE).unwrap();
    fs::create_dir_all(skill.join("scripts")).unwrap();
    fs::write(skill.join("SKILL.md"), SKILL).unwrap();
    sandbox.write_script("skills/odds/scripts/run", "#!/bin/sh\n");
    let server = Pipes::start(&sandbox, &[]);
    (sandbox, server)
}

#[test]
fn app_is_for_clients_that_declare_the_extension() {
    let (sandbox, mut server) = start();
    let mut ui = |has_apps| {
        let answer = server.exchange(&request("tools/list", json!({}), has_apps));
        assert_eq!(answer["result"]["tools"].as_array().unwrap().len(), 1);
        answer["result"]["tools"][0]["_meta"]["ui"].clone()
    };
    let expected = json!({"resourceUri": "ui://mcpd/show", "visibility": ["app", "model"]});
    assert_eq!(ui(true), expected);
    assert_eq!(ui(false).get("resourceUri"), None);
    let uri = json!({"uri": "ui://mcpd/show"});
    let answer = server.exchange(&request("resources/read", uri.clone(), true));
    let page = &answer["result"]["contents"][0];
    assert_eq!(page["mimeType"], "text/html;profile=mcp-app");
    assert_eq!(page["text"], PAGE);
    let csp = json!({"csp": {"connectDomains": ["https://a.example"]}});
    assert_eq!(page["_meta"]["ui"], csp);
    let listed = server.exchange(&request("resources/list", json!({}), true));
    assert!(!listed.to_string().contains("ui://"), "{listed}");
    let discovered = server.exchange(&request("server/discover", json!({}), true));
    let extensions = &discovered["result"]["capabilities"]["extensions"];
    assert!(
        extensions["io.modelcontextprotocol/ui"].is_object(),
        "{extensions}"
    );
    // The page is followed like a script.
    fs::remove_file(sandbox.path().join("scripts/show.ui.html")).unwrap();
    eventually("a tool without its app", || {
        let list = request("tools/list", json!({}), true);
        let answer = server.exchange(&list);
        let ui = &answer["result"]["tools"][0]["_meta"]["ui"];
        ui.get("resourceUri").is_none().then_some(())
    });
    let answer = server.exchange(&request("resources/read", uri, true));
    assert_eq!(answer["error"]["code"], -32602);
}

#[test]
fn skill_is_listed_with_its_files_and_runs_nothing() {
    let (_sandbox, mut server) = start();
    let answer = server.exchange(&request("skills/list", json!({}), false));
    let result = &answer["result"];
    assert_eq!(result["resultType"], "complete");
    assert!(
        result["ttlMs"].is_u64() && result["cacheScope"].is_string(),
        "{result}"
    );
    let skill = &result["skills"][0];
    assert_eq!(skill["uri"], "skill://odds/SKILL.md");
    let frontmatter = json!({"name": "odds", "description": "Judges.", "license": "MIT"});
    assert_eq!(skill["frontmatter"], frontmatter);
    let files = skill["resources"].as_array().unwrap();
    assert_eq!(files.len(), 2);
    assert_eq!(files[0]["size"], SKILL.len());
    let digest = ring::digest::digest(&ring::digest::SHA256, SKILL.as_bytes());
    let digest: String = digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(files[0]["digest"], format!("sha256:{digest}"));
    for file in files {
        let read = json!({"uri": file["uri"]});
        let answer = server.exchange(&request("resources/read", read, false));
        let text = answer["result"]["contents"][0]["text"].as_str().unwrap();
        assert_eq!(file["size"], text.len());
    }
    let got = json!({"uri": "skill://odds/SKILL.md"});
    let answer = server.exchange(&request("skills/get", got, false));
    assert_eq!(answer["result"]["skill"], *skill);
    for uri in [
        "skill://odds",
        "skill://odds/scripts/run",
        "skill://x/SKILL.md",
    ] {
        let answer = server.exchange(&request("skills/get", json!({"uri": uri}), false));
        assert_eq!(answer["error"]["code"], -32602, "{uri}");
    }
    let listed = server.exchange(&request("resources/list", json!({}), false));
    let resources = listed["result"]["resources"].as_array().unwrap();
    assert_eq!(resources.len(), 1);
    assert_eq!(resources[0]["name"], "odds");
    assert_eq!(resources[0]["mimeType"], "text/markdown");
}

#[test]
fn faulty_apps_and_skills_are_reported_and_not_served() {
    let sandbox = Sandbox::new().with_script("show", TOOL);
    let scripts = sandbox.path().join("scripts");
    fs::create_dir_all(scripts.join("skills/odds")).unwrap();
    fs::write(scripts.join("skills/odds/SKILL.md"), "# Odds\n").unwrap();
    fs::write(scripts.join("show.ui.html"), "hello").unwrap();
    fs::write(scripts.join("gone.ui.html"), PAGE).unwrap();
    let output = sandbox.run(&["check", "scripts"]);
    for part in [
        "an app must be an HTML document that begins with `<!doctype html>`",
        "the script whose app it is does not exist",
        "`SKILL.md` must begin with YAML between two lines `---`",
    ] {
        assert!(output.contains(part), "{part} in:\n{output}");
    }
    let mut server = Pipes::start(&sandbox, &[]);
    let answer = server.exchange(&request("tools/list", json!({}), true));
    assert!(
        answer["result"]["tools"][0]["_meta"]["ui"]
            .get("resourceUri")
            .is_none()
    );
    let answer = server.exchange(&request("skills/list", json!({}), false));
    assert_eq!(answer["result"]["skills"], json!([]));
}

#[test]
fn changed_app_is_held_back_and_its_tool_is_not() {
    let sandbox = Sandbox::new().with_script("show", TOOL);
    let page = sandbox.path().join("scripts/show.ui.html");
    fs::write(&page, PAGE).unwrap();
    sandbox.stdout(&["approve", "--root-directory", "scripts", "--yes"]);
    let uri = |server: &mut Pipes| {
        let answer = server.exchange(&request("tools/list", json!({}), true));
        answer["result"]["tools"][0]["_meta"]["ui"]["resourceUri"].clone()
    };
    assert_eq!(
        uri(&mut Pipes::start(&sandbox, &["--locked"])),
        "ui://mcpd/show"
    );
    fs::write(&page, format!("{PAGE}<p>changed")).unwrap();
    let mut server = Pipes::start(&sandbox, &["--locked"]);
    assert_eq!(uri(&mut server), Value::Null);
    assert_ne!(server.call("show", json!({}))["isError"], true);
    let read = json!({"uri": "ui://mcpd/show"});
    let answer = server.exchange(&request("resources/read", read, true));
    assert_eq!(answer["error"]["code"], -32602);
}
