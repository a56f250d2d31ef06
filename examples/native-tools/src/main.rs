//! Serves functions as MCP tools over stdin and stdout, beside the scripts of a directory.

use mcpd_server::transport::stdio;
use mcpd_server::{CallContext, Server};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// One summand.
    a: i64,
    /// The other.
    b: i64,
}

async fn add(add: Add, _: CallContext) -> Result<String, &'static str> {
    let sum = add.a.checked_add(add.b).ok_or("the sum is too large")?;
    Ok(sum.to_string())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), mcpd_server::Error> {
    let mut server = Server::builder().tool("math/add", "Adds two numbers.", add);
    if let Some(directory) = std::env::args_os().nth(1) {
        server = server.scripts(directory);
    }
    let server = server.start()?;
    let options = stdio::Options::default();
    stdio::serve(&server, std::io::stdin(), std::io::stdout(), options).await
}
