//! A Script Kit: tools that show and hide a window and tell its state, and resources that list the scripts. What
//! shows the window is a program of the configuration; without one only the state changes.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcpd_server::{CallContext, Catalog, Json, Server, ServerBuilder, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use crate::program;

/// Where the state of the window can be read.
const STATE: &str = "kit://state";
/// The directories of a root that a Script Kit knows.
const SCRIPTS: &str = "scripts/";
const SCRIPTLETS: &str = "scriptlets/";

/// What the configuration says of the window.
#[derive(Debug)]
pub(crate) struct Commands {
    /// Shows it.
    pub(crate) show: Vec<String>,
    /// Hides it.
    pub(crate) hide: Vec<String>,
    /// Where they run.
    pub(crate) directory: PathBuf,
}

/// The window, as far as mcpd knows.
#[derive(Debug)]
struct Kit {
    commands: Commands,
    is_shown: AtomicBool,
    /// Held while a command runs: they take effect one after the other.
    turn: Mutex<()>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

/// What `kit/state` answers.
#[derive(Serialize)]
struct State {
    visible: bool,
    focused: bool,
    script_count: usize,
    scriptlet_count: usize,
}

/// A script or scriptlet, as the lists show it.
#[derive(Serialize)]
struct Entry {
    /// What a call names.
    tool: String,
    name: Option<String>,
    description: Option<String>,
    /// Relative to its root.
    file: Option<PathBuf>,
}

/// The server with the kit.
pub(crate) fn add(server: ServerBuilder, commands: Commands) -> ServerBuilder {
    let kit = Arc::new(Kit {
        commands,
        is_shown: AtomicBool::new(false),
        turn: Mutex::new(()),
    });
    let turn = |show| {
        let kit = Arc::clone(&kit);
        move |_: NoArguments, context: CallContext| {
            let kit = Arc::clone(&kit);
            async move { kit.turn(show, context.server()).await }
        }
    };
    let state = {
        let kit = Arc::clone(&kit);
        move |context: CallContext| {
            let kit = Arc::clone(&kit);
            async move { Json(kit.state(&context.catalog())) }
        }
    };
    let ask = state.clone();
    server
        .tool("kit/show", "Shows the window.", turn(true))
        .tool("kit/hide", "Hides the window.", turn(false))
        .tool(
            "kit/state",
            "Says whether the window is visible and focused, and how many scripts and scriptlets there are.",
            move |_: NoArguments, context: CallContext| ask(context),
        )
        .resource(
            STATE,
            "kit/state",
            "Whether the window is visible and focused, and how many scripts and scriptlets there are.",
            state,
        )
        .resource("scripts://", "scripts", "The scripts.", async |context: CallContext| {
            Json(entries(&context, SCRIPTS))
        })
        .resource(
            "scriptlets://",
            "scriptlets",
            "The scriptlets.",
            async |context: CallContext| Json(entries(&context, SCRIPTLETS)),
        )
}

impl Kit {
    /// Shows or hides the window.
    async fn turn(&self, show: bool, server: &Server) -> Result<&'static str, String> {
        let _turn = self.turn.lock().await;
        let command = if show {
            &self.commands.show
        } else {
            &self.commands.hide
        };
        if !command.is_empty() {
            let run = program::run(command, &self.commands.directory, server.executor());
            run.await.map_err(|reason| {
                tracing::error!(show, "the command of the window: {reason}");
                let what = if show { "shown" } else { "hidden" };
                format!("The window could not be {what}. The server's log says why.")
            })?;
        }
        if self.is_shown.swap(show, Ordering::Relaxed) != show {
            server.resource_updated(STATE);
        }
        Ok(if show {
            "Window shown"
        } else {
            "Window hidden"
        })
    }

    fn state(&self, catalog: &Catalog) -> State {
        // Whoever shows a window gives it the focus; what a person does with it then, nobody tells us.
        let is_shown = self.is_shown.load(Ordering::Relaxed);
        State {
            visible: is_shown,
            focused: is_shown,
            script_count: below(catalog, SCRIPTS).count(),
            scriptlet_count: below(catalog, SCRIPTLETS).count(),
        }
    }
}

/// The tools whose paths begin so.
fn below<'a>(catalog: &'a Catalog, prefix: &'a str) -> impl Iterator<Item = &'a Arc<Tool>> {
    let tools = catalog.tools().iter();
    tools.filter(move |tool| tool.path().as_str().starts_with(prefix))
}

fn entries(context: &CallContext, prefix: &str) -> Vec<Entry> {
    let relative = |tool: &Tool| {
        let file = tool.file()?;
        let mut roots = context.server().roots().iter();
        roots.find_map(|root| file.strip_prefix(root).ok().map(PathBuf::from))
    };
    below(&context.catalog(), prefix)
        .map(|tool| Entry {
            tool: tool.path().to_string(),
            name: tool.definition().title.clone(),
            description: tool.definition().description.clone(),
            file: relative(tool),
        })
        .collect()
}
