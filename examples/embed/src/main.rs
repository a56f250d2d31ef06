//! An application of your own: a directory of scripts beside tools and a resource written in Rust, on stdin and
//! stdout. It has dice, and a kit for its window.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcpd_server::{CallContext, Json, Server, ServerBuilder, transport::stdio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// The window of the application; here no more than whether it is shown.
#[derive(Clone, Default)]
struct Window(Arc<AtomicBool>);

#[derive(Serialize)]
struct State {
    visible: bool,
    tool_count: usize,
}

#[derive(Deserialize, JsonSchema)]
struct NoArguments {}

impl Window {
    async fn turn(self, visible: bool, context: CallContext) -> &'static str {
        self.0.store(visible, Ordering::Relaxed);
        // Clients that have subscribed to the state read it again.
        context.notify_resource_updated("kit://state");
        if visible { "shown" } else { "hidden" }
    }

    async fn state(self, context: CallContext) -> Json<State> {
        Json(State {
            visible: self.0.load(Ordering::Relaxed),
            // Those that whoever asks may use.
            tool_count: context.catalog().tools().len(),
        })
    }
}

/// Tools and a resource that share a state.
fn with_kit(server: ServerBuilder) -> ServerBuilder {
    let window = Window::default();
    let (show, hide, ask) = (window.clone(), window.clone(), window.clone());
    server
        .tool(
            "kit/show",
            "Shows the window.",
            move |_: NoArguments, context| show.clone().turn(true, context),
        )
        .tool(
            "kit/hide",
            "Hides the window.",
            move |_: NoArguments, context| hide.clone().turn(false, context),
        )
        .tool(
            "kit/state",
            "Says how the window is.",
            move |_: NoArguments, context| ask.clone().state(context),
        )
        .resource(
            "kit://state",
            "kit/state",
            "How the window is.",
            move |context| window.clone().state(context),
        )
}

#[tokio::main]
async fn main() -> Result<(), mcpd_server::Error> {
    let scripts = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "examples/scripts".to_owned());
    let server = with_kit(Server::builder())
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
