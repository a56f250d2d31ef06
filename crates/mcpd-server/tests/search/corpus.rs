//! A catalog of 2,000 tools, made of 100 objects and 20 verbs, and questions to it.

use mcpd_server::{CallContext, ServerBuilder};

const OBJECTS: &str = include_str!("objects.txt");
const VERBS: &str = include_str!("verbs.txt");

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// Which one, by its id.
    id: Option<String>,
}

/// Adds all tools to a server; each returns its id.
pub(crate) fn add_tools(server: ServerBuilder) -> ServerBuilder {
    let objects = OBJECTS.lines().enumerate();
    let tools = objects.flat_map(|(number, object)| describe_tools(number, object));
    let run = async |arguments: Arguments, _: CallContext| arguments.id.unwrap_or_default();
    tools.fold(server, |server, (name, description)| {
        server.tool(name, description, run)
    })
}

/// Returns names and descriptions of the tools for one object.
fn describe_tools(number: usize, object: &str) -> Vec<(String, String)> {
    let [path, plural, gloss] = columns(object);
    let (folder, object) = path.split_once('/').unwrap();
    let verbs = VERBS.lines().enumerate();
    let tool = |(place, verb): (usize, &str)| {
        let [verb, first, second] = columns(verb);
        let sentence = if (number + place).is_multiple_of(2) {
            first
        } else {
            second
        };
        let one = object.replace('_', " ");
        let article = if "aeiou".contains(&one[..1]) {
            "an"
        } else {
            "a"
        };
        let sentence = sentence.replace("{a}", &format!("{article} {one}"));
        let sentence = sentence.replace("{s}", plural);
        let is_of_many = ["list", "search", "export", "import", "count", "compare"].contains(&verb);
        let object = if is_of_many {
            plural.replace(' ', "_")
        } else {
            object.to_owned()
        };
        let name = format!("{folder}/{verb}_{}", object.to_lowercase());
        (name, format!("{sentence} {gloss}."))
    };
    verbs.map(tool).collect()
}

fn columns<const N: usize>(line: &str) -> [&str; N] {
    let columns: Vec<_> = line.split(" | ").collect();
    columns.try_into().unwrap()
}
