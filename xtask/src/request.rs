//! Requests that are repeated, and their expected answers.

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

/// Protocol revision in use.
pub(crate) const REVISION: &str = "2026-07-28";

/// Placeholder for the id of a request while a text is made.
const NUMBER: u64 = 7_777_777_777;

/// Text with one number in several places, which is cheap to write and to compare.
#[derive(Debug, Clone)]
pub(crate) struct Template(Vec<Vec<u8>>);

impl Template {
    /// Splits the text at each [`NUMBER`].
    fn new(text: &[u8]) -> Self {
        let mark = NUMBER.to_string();
        let mut pieces = Vec::new();
        let mut start = 0;
        for place in memchr::memmem::find_iter(text, &mark) {
            pieces.push(text[start..place].to_vec());
            start = place + mark.len();
        }
        pieces.push(text[start..].to_vec());
        Self(pieces)
    }

    /// Returns the text with this number.
    pub(crate) fn with(&self, number: u64) -> Vec<u8> {
        self.0.join(number.to_string().as_bytes())
    }

    /// Returns whether `text` is this text with this number.
    fn is(&self, number: u64, text: &[u8]) -> bool {
        let number = number.to_string();
        let (first, others) = self.0.split_first().expect("one at least");
        let rest = others
            .iter()
            .try_fold(text.strip_prefix(first.as_slice()), |rest, piece| {
                let rest = rest?.strip_prefix(number.as_bytes())?;
                Some(rest.strip_prefix(piece.as_slice()))
            });
        rest.flatten().is_some_and(<[u8]>::is_empty)
    }
}

/// Request, and its expected answer.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) tool: Option<String>,
    message: Template,
    expected: Expected,
}

#[derive(Debug, Clone)]
enum Expected {
    /// Any result.
    Result,
    /// Number of tools, or the first page of them.
    Tools(usize),
    /// Result of a tool that is not an error; with this text, if there is one.
    Success(Option<String>),
}

impl Request {
    pub(crate) fn new(method: &'static str, params: Value) -> Self {
        Self::with_expectation(method, params, Expected::Result)
    }

    /// Requests the list of this number of tools.
    pub(crate) fn list(tools: usize) -> Self {
        Self::with_expectation("tools/list", json!({}), Expected::Tools(tools))
    }

    /// Calls a tool that succeeds, with this text if there is one.
    pub(crate) fn call(tool: &str, arguments: &Value, text: Option<String>) -> Self {
        let params = json!({"name": tool, "arguments": arguments});
        Self {
            tool: Some(tool.to_owned()),
            ..Self::with_expectation("tools/call", params, Expected::Success(text))
        }
    }

    /// Reads a resource.
    pub(crate) fn read(uri: &str) -> Self {
        Self {
            // Revision 2026-07-28 names it in a header, as it does a tool.
            tool: Some(uri.to_owned()),
            ..Self::new("resources/read", json!({ "uri": uri }))
        }
    }

    /// Calls for a greeting, with a different name each time.
    pub(crate) fn greet() -> Self {
        let arguments = json!({"name": format!("n{NUMBER}")});
        Self::call("greet", &arguments, Some(format!("Hello, n{NUMBER}!")))
    }

    fn with_expectation(method: &'static str, mut params: Value, expected: Expected) -> Self {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientInfo": {"name": "xtask", "version": "0"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let message = json!({"jsonrpc": "2.0", "id": NUMBER, "method": method, "params": params});
        Self {
            method,
            tool: None,
            message: Template::new(message.to_string().as_bytes()),
            expected,
        }
    }

    /// Returns the message with this id.
    pub(crate) fn message(&self, number: u64) -> Vec<u8> {
        self.message.with(number)
    }

    /// Checks the answer to the request with this id.
    fn check(&self, number: u64, answer: &[u8]) -> anyhow::Result<()> {
        let message: Value = serde_json::from_slice(answer).context("no JSON")?;
        let result = &message["result"];
        let is_right = match &self.expected {
            Expected::Result => result.is_object(),
            Expected::Tools(number) => {
                let listed = result["tools"].as_array().map_or(0, Vec::len);
                listed == *number || (result["nextCursor"].is_string() && listed > 0)
            }
            Expected::Success(text) => {
                let given = result["content"][0]["text"].as_str();
                let text = text.as_ref().map(|text| Template::new(text.as_bytes()));
                let text = text.map(|text| text.with(number));
                result["isError"] != true
                    && given.is_some_and(|given| text.is_none_or(|text| given.as_bytes() == text))
            }
        };
        ensure!(
            is_right && message["jsonrpc"] == "2.0" && message["id"] == number,
            "wrong answer: {:.300}",
            message.to_string()
        );
        Ok(())
    }
}

/// Checker of many answers of one server to one request: it parses the first, and compares the
/// others with that.
#[derive(Debug)]
pub(crate) struct Checker {
    request: Request,
    right: Template,
}

impl Checker {
    /// Id of the first request.
    pub(crate) const FIRST: u64 = NUMBER;

    /// Learns from the first answer.
    ///
    /// # Errors
    ///
    /// Fails if that is wrong.
    pub(crate) fn learn(request: &Request, first: &[u8]) -> anyhow::Result<Self> {
        request.check(Self::FIRST, first)?;
        let right = Template::new(first);
        let request = request.clone();
        Ok(Self { request, right })
    }

    pub(crate) fn request(&self) -> &Request {
        &self.request
    }

    /// Checks the answer to the request with this id.
    ///
    /// # Errors
    ///
    /// Fails if it is wrong.
    pub(crate) fn check(&self, number: u64, answer: &[u8]) -> anyhow::Result<()> {
        if self.right.is(number, answer) {
            return Ok(());
        }
        // A different encoding may still be a right answer.
        self.request.check(number, answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(request: &Request, first: &str, number: u64, answer: &str, is_right: bool) {
        let checker = Checker::learn(request, first.as_bytes()).expect("a right answer");
        let checked = checker.check(number, answer.as_bytes());
        assert_eq!(checked.is_ok(), is_right, "{checked:?}");
    }

    #[test]
    fn an_answer_is_right_if_it_is_the_first_with_another_number() {
        let first = format!(
            r#"{{"jsonrpc":"2.0","id":{NUMBER},"result":{{"content":[{{"type":"text","text":"Hello, n{NUMBER}!"}}]}}}}"#
        );
        let fifth = first.replace(&NUMBER.to_string(), "5");
        let other_order = r#"{"result":{"content":[{"type":"text","text":"Hello, n5!"}]},"id":5,"jsonrpc":"2.0"}"#;
        let greet = Request::greet();
        check(&greet, &first, 5, &fifth, true);
        check(&greet, &first, 5, other_order, true);
        check(&greet, &first, 6, &fifth, false);
        check(&greet, &first, 5, &fifth.replace("n5", "n6"), false);
        check(&greet, &first, 5, &format!("{fifth}5"), false);
        check(&greet, &first, 5, "", false);
    }

    #[test]
    fn a_list_has_so_many_tools() {
        let answer =
            |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{{}},{{}}]}}}}"#);
        check(&Request::list(2), &answer(NUMBER), 5, &answer(5), true);
        let fewer = answer(5).replace("{},{}", "{}");
        check(&Request::list(2), &answer(NUMBER), 5, &fewer, false);
        assert!(Checker::learn(&Request::list(3), answer(NUMBER).as_bytes()).is_err());
    }
}
