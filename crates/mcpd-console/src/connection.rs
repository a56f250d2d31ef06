//! Way in which clients reach the server, and the entry of the server in the file of each client.

use mcpd_clients::{Client, Places, Request, Scope};
use serde_json::{Value, json};

/// Way in which clients reach the server.
#[derive(Debug, Clone)]
pub struct Connection {
    name: String,
    url: String,
    program: String,
    token_file: Option<String>,
    is_open: bool,
    places: Option<Places>,
}

impl Connection {
    /// Describes a server called `name` at `url`, for clients that start `program` of mcpd if they
    /// can't connect themselves.
    #[must_use]
    pub fn new(name: &str, url: &str, program: &str) -> Self {
        Self {
            name: name.to_owned(),
            url: url.to_owned(),
            program: program.to_owned(),
            token_file: None,
            is_open: false,
            places: None,
        }
    }

    /// Sets the file with the token that operators have.
    #[must_use]
    pub fn token_file(mut self, path: &str) -> Self {
        self.token_file = Some(path.to_owned());
        self
    }

    /// Says that no token is required.
    #[must_use]
    pub fn without_token(mut self) -> Self {
        self.is_open = true;
        self
    }

    /// Sets the places of the files of clients.
    #[must_use]
    pub fn places(mut self, places: Places) -> Self {
        self.places = Some(places);
        self
    }

    /// URL of the endpoint.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// File with the token, for operators.
    pub(crate) fn operator_token_file(&self, is_operator: bool) -> Option<&str> {
        self.token_file.as_deref().filter(|_| is_operator)
    }

    /// Lists all clients, each with the text of its file, its link if it opens links, and the
    /// command that writes the file.
    pub(crate) fn clients(&self, is_operator: bool) -> Vec<Value> {
        let token_file = self.operator_token_file(is_operator);
        let mut request = Request::connect(&self.name, &self.program, &self.url);
        request = match (token_file, self.is_open) {
            (_, true) => request,
            (Some(file), false) => request.send_token_file(file),
            (None, false) => request.send_token(TOKEN_VARIABLE),
        };
        let clients = Client::all().iter();
        clients
            .filter_map(|client| self.client(client, &request, token_file))
            .collect()
    }

    fn client(
        &self,
        client: &'static Client,
        request: &Request,
        token_file: Option<&str>,
    ) -> Option<Value> {
        let elsewhere = Places::new(mcpd_clients::Platform::current(), "~");
        let places = self.places.as_ref().unwrap_or(&elsewhere);
        let scope = client.scopes().next().unwrap_or(Scope::User);
        let server = request.prepare(client, scope, places).ok()?.server;
        let snippet = client.render_snippet(&server).ok()?;
        let file = client.file(scope, places, &self.name);
        let mut command = vec!["mcpd", "install", client.name(), "--url", &self.url];
        match (token_file, self.is_open) {
            (_, true) => {}
            (Some(file), false) => command.extend(["--token-file", file]),
            (None, false) => command.extend(["--token-env", TOKEN_VARIABLE]),
        }
        Some(json!({
            "name": client.name(),
            "title": client.title(),
            "snippet": snippet,
            "link": client.link(&server).ok().flatten(),
            "file": file.map(|file| file.path().display().to_string()),
            "command": command,
        }))
    }
}

/// Variable with the token of a caller that has no file.
const TOKEN_VARIABLE: &str = "MCPD_TOKEN";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_gets_its_own_entry_and_no_token() {
        let connection = Connection::new("tools", "http://127.0.0.1:1/mcp", "/usr/bin/mcpd")
            .token_file("/home/ada/agent-token");
        let find = |is_operator: bool, name: &str| {
            let mut clients = connection.clients(is_operator).into_iter();
            clients.find(|client| client["name"] == name).unwrap()
        };
        let cursor = find(true, "cursor");
        assert!(cursor["link"].as_str().unwrap().starts_with("cursor://"));
        assert!(cursor["snippet"].as_str().unwrap().contains("agent-token"));
        let other = find(false, "cursor");
        assert!(!other.to_string().contains("agent-token"));
        assert!(other["snippet"].as_str().unwrap().contains(TOKEN_VARIABLE));
    }
}
