//! Search for tools: its list, its ranking over 2,000 tools, and calls of what it finds.

#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]
#![expect(clippy::print_stdout, reason = "docs/search.md has the figures")]

use std::time::{Duration, Instant};

use bytes::Bytes;
use mcpd_server::catalog::Search;
use mcpd_server::policy::{Access, CallPattern};
use mcpd_server::{CallContext, Connection, Principal, Reply, Server, ServerBuilder, ToolNames};
use serde_json::{Value, json};

#[path = "search/corpus.rs"]
mod corpus;

/// Questions, each with the tool that answers it. The synonyms were chosen with these at hand.
const QUESTIONS: &str = include_str!("search/questions.txt");
/// Questions for tools drawn at random, as a user asks who knows what a tool is for, but not its
/// name. The ranking was improved after they were measured.
const TASKS: &str = include_str!("search/tasks.txt");
/// Further questions like these, with which the ranking was improved again.
const EVERYDAY: &str = include_str!("search/everyday.txt");
/// Questions about other tools. They are held out: nothing may be changed for their sake.
const HELD_OUT: &str = include_str!("search/held-out.txt");
/// Held out, too, and measured once: they were written before the last improvement, for tools
/// that no other question asks for.
const FRESH: &str = include_str!("search/fresh.txt");

async fn connect(server: ServerBuilder) -> Connection {
    let server = server.start().unwrap();
    server.catalog_ready().await;
    Connection::open(&server, ToolNames::Path).0
}

async fn answer(connection: &Connection, method: &str, mut params: Value) -> Bytes {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    match connection.receive(request.to_string().as_bytes()) {
        Reply::Ready(answer) => answer,
        Reply::Pending(answer) => answer.await.unwrap(),
        Reply::Nothing => panic!("no answer to {request}"),
    }
}

async fn call(connection: &Connection, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    let answer = answer(connection, "tools/call", params).await;
    serde_json::from_slice(&answer).unwrap()
}

/// Returns the names of the tools that a search finds.
async fn search(connection: &Connection, arguments: Value) -> Vec<String> {
    let answer = call(connection, "search_tools", arguments).await;
    let found = &answer["result"]["structuredContent"]["tools"];
    let tools = found
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"))
        .iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns the names of the listed tools, and the length of the answer.
async fn list(connection: &Connection) -> (Vec<String>, usize) {
    let answer = answer(connection, "tools/list", json!({})).await;
    let length = answer.len();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    let tools = answer["result"]["tools"].as_array().unwrap().iter();
    let names = tools.map(|tool| tool["name"].as_str().unwrap().to_owned());
    (names.collect(), length)
}

#[tokio::test]
async fn list_of_2000_tools_has_less_than_2_kb() {
    let connection = connect(corpus::add_tools(Server::builder()).search(Search::default())).await;
    let (names, length) = list(&connection).await;
    assert_eq!(names, ["call_tool", "search_tools"]);
    assert!(length < 2000, "{length} bytes");
}

/// Outcome of some questions.
#[derive(Debug, Default)]
struct Figures {
    questions: usize,
    /// Questions whose tool is not among the first five.
    missed: Vec<String>,
    /// Number of those whose tool is not named either.
    unnamed: usize,
    /// Mean time of a search.
    time: Duration,
}

async fn ask(lines: &str) -> Figures {
    let connection = connect(corpus::add_tools(Server::builder()).search(Search::default())).await;
    let questions = lines.lines().count();
    let mut figures = Figures {
        questions,
        ..Figures::default()
    };
    // The first search builds the index.
    search(&connection, json!({"query": "index"})).await;
    for line in lines.lines() {
        let (expected, question) = line.split_once(" | ").unwrap();
        let called = call(&connection, "call_tool", json!({"name": expected})).await;
        assert!(called["error"].is_null(), "{expected}: {called}");
        let start = Instant::now();
        let answer = call(&connection, "search_tools", json!({"query": question})).await;
        figures.time += start.elapsed() / u32::try_from(questions).unwrap();
        let found = &answer["result"]["structuredContent"];
        let tools = found["tools"].as_array().unwrap();
        assert!(tools.len() <= 5, "{found}");
        if !tools.iter().any(|tool| tool["name"] == expected) {
            figures.missed.push(line.to_owned());
            let mut more = found["more"].as_array().into_iter().flatten();
            figures.unnamed += usize::from(!more.any(|name| name == expected));
        }
    }
    figures
}

/// Asks questions, a part of which in percent must find their tool, and be told its name.
async fn check(lines: &str, found: usize, named: usize) {
    let figures = ask(lines).await;
    let is_enough = |missed: usize, wanted: usize| {
        (figures.questions - missed) * 100 >= wanted * figures.questions
    };
    println!("{} missed: {figures:#?}", figures.missed.len());
    assert!(is_enough(figures.missed.len(), found), "{figures:#?}");
    assert!(is_enough(figures.unnamed, named), "{figures:#?}");
}

#[tokio::test]
async fn search_finds_the_right_tool_among_the_first_five() {
    check(QUESTIONS, 98, 98).await;
    check(TASKS, 98, 98).await;
    check(EVERYDAY, 90, 94).await;
}

/// Figures of `docs/search.md`.
#[tokio::test]
async fn held_out_questions_find_their_tool_or_its_name() {
    check(HELD_OUT, 84, 92).await;
    check(FRESH, 78, 90).await;
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    /// Text to repeat.
    text: String,
}

fn server() -> ServerBuilder {
    let run = async |text: Text, _: CallContext| text.text;
    let server = Server::builder().tool("text/repeat", "Repeats a text.", run);
    server.tool("greet", "Greets a guest.", run)
}

#[tokio::test]
async fn pinned_tools_stay_in_the_list() {
    let search = Search::default().always_list("text/*").unwrap();
    let connection = connect(server().search(search)).await;
    assert_eq!(
        list(&connection).await.0,
        ["call_tool", "search_tools", "text/repeat"]
    );
}

#[tokio::test]
async fn call_through_call_tool_is_the_call_itself() {
    let connection = connect(server().search(Search::default())).await;
    for arguments in [json!({"text": "Hello"}), json!({"text": 7}), json!({})] {
        let direct = call(&connection, "text/repeat", arguments.clone()).await;
        for name in ["text/repeat", "text_repeat"] {
            let inner = json!({"name": name, "arguments": arguments});
            assert_eq!(call(&connection, "call_tool", inner).await, direct);
        }
    }
}

#[tokio::test]
async fn unknown_tool_and_faulty_call_say_what_to_do() {
    let connection = connect(server().search(Search::default())).await;
    let unknown = call(&connection, "call_tool", json!({"name": "nope"})).await;
    let message = unknown["error"]["message"].as_str().unwrap();
    assert_eq!(
        message,
        "unknown tool `nope`; find tools with `search_tools`"
    );
    for (arguments, part) in [
        (json!({}), "name"),
        (json!({"name": 7}), "name"),
        (json!({"name": "greet", "arguments": []}), "arguments"),
        (json!({"name": "greet", "text": "flat"}), "text"),
        (json!({"name": "call_tool"}), "cannot call itself"),
    ] {
        let answer = call(&connection, "call_tool", arguments).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(
            text.starts_with("Invalid arguments: ") && text.contains(part),
            "{text}"
        );
    }
}

#[tokio::test]
async fn search_without_a_match_says_how_to_ask() {
    let connection = connect(server().search(Search::default())).await;
    for query in ["xylophone", "what is the", "?", "\u{202e}\n"] {
        let answer = call(&connection, "search_tools", json!({"query": query})).await;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("None of 2 tools matches"), "{text}");
        assert_eq!(answer["result"]["structuredContent"]["tools"], json!([]));
    }
    for arguments in [
        json!({"query": ""}),
        json!({"query": "x", "limit": 21}),
        json!({}),
    ] {
        let answer = call(&connection, "search_tools", arguments).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
    }
}

#[tokio::test]
async fn search_finds_a_tool_by_its_name() {
    let connection = connect(server().search(Search::default())).await;
    for query in [
        "text/repeat",
        "text_repeat",
        "textRepeat",
        "repeating texts",
    ] {
        let found = search(&connection, json!({"query": query, "limit": 1})).await;
        assert_eq!(found, ["text/repeat"], "{query}");
    }
}

/// All callers share the index of the whole catalog.
#[tokio::test]
async fn search_finds_only_what_the_caller_may_use() {
    let server = server().search(Search::default()).start().unwrap();
    server.catalog_ready().await;
    let greet = CallPattern::default().tool("greet").unwrap();
    let access = Access::default().allow_only([greet]);
    let principal = Principal::new("ada").with_access(access);
    let (ada, _) = Connection::open_for(principal, &server, ToolNames::Path);
    let (local, _) = Connection::open(&server, ToolNames::Path);
    for query in ["text/repeat", "repeat a text"] {
        let query = json!({"query": query});
        assert_eq!(search(&local, query.clone()).await[0], "text/repeat");
        // It has an argument of that name.
        assert_eq!(search(&ada, query).await, ["greet"]);
    }
}

#[tokio::test]
async fn function_with_the_name_of_the_search_is_not_served_and_said() {
    let run = async |text: Text, _: CallContext| text.text;
    let server = Server::builder().tool("call_tool", "Mine.", run);
    let server = server.search(Search::default()).start().unwrap();
    server.catalog_ready().await;
    let catalog = server.catalog();
    let conflicts: Vec<_> = catalog.conflicts().iter().map(|it| &it.message).collect();
    assert_eq!(conflicts.len(), 1, "{conflicts:?}");
    assert!(
        conflicts[0].contains("`call_tool` (built in) is not served"),
        "{conflicts:?}"
    );
}

#[tokio::test]
async fn synonym_of_a_verb_alone_finds_tools() {
    let run = async |text: Text, _: CallContext| text.text;
    let server = server().tool("delete_note", "Deletes a note.", run);
    let connection = connect(server.search(Search::default())).await;
    let found = search(&connection, json!({"query": "erase"})).await;
    assert_eq!(found, ["delete_note"]);
    let found = search(&connection, json!({"query": "xylophone"})).await;
    assert_eq!(found, [""; 0]);
}
