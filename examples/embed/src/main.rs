//! A server of your own: a directory of scripts beside a tool written in Rust, on stdin and stdout.

use mcpd_server::{CallContext, Server, transport::stdio};
use schemars::JsonSchema;
use serde::Deserialize;

// What clients see as the input schema of the tool is made from this.
#[derive(Deserialize, JsonSchema)]
struct Roll {
    /// How many dice to roll.
    #[schemars(range(min = 1, max = 100))]
    dice: u32,
    /// How many sides each of them has.
    #[schemars(range(min = 2, max = 1000))]
    sides: u32,
}

async fn roll(roll: Roll, _: CallContext) -> Result<String, getrandom::Error> {
    let throw = |_| Ok(getrandom::u32()? % roll.sides + 1);
    let thrown = (0..roll.dice).map(throw).collect::<Result<Vec<u32>, _>>()?;
    Ok(format!("{thrown:?}, {} in all", thrown.iter().sum::<u32>()))
}

#[tokio::main]
async fn main() -> Result<(), mcpd_server::Error> {
    let scripts = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "examples/scripts".to_owned());
    let server = Server::builder()
        .scripts(scripts)
        .tool("dice/roll", "Rolls dice and adds them up.", roll)
        .start()?;
    stdio::serve(
        &server,
        std::io::stdin(),
        std::io::stdout(),
        stdio::Options::default(),
    )
    .await
}
