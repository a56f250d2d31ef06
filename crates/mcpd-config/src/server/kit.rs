//! Script Kit: tools that show and hide a window and report its state, and resources that list the
//! scripts. A configured program shows the window; without one only the state changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcpd_server::{CallContext, Json, ServerBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use crate::program;

/// URI of the state of the window.
const STATE: &str = "kit://state";
/// Directories below a root that Script Kit knows.
const SCRIPTS: &str = "scripts/";
const SCRIPTLETS: &str = "scriptlets/";

/// Configured commands for the window.
#[derive(Debug)]
pub(crate) struct Commands {
    /// Shows the window.
    pub(crate) show: Vec<String>,
    /// Hides the window.
    pub(crate) hide: Vec<String>,
    /// Working directory of the commands.
    pub(crate) directory: PathBuf,
}

/// State of the window, as far as mcpd knows it.
#[derive(Debug)]
struct Kit {
    commands: Commands,
    is_shown: AtomicBool,
    /// Held while a command runs, so that commands take effect one after the other.
    command_lock: Mutex<()>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

/// Result of `kit/state`.
#[derive(Serialize)]
struct WindowState {
    visible: bool,
    focused: bool,
    script_count: usize,
    scriptlet_count: usize,
}

/// Script or scriptlet in a list: its description for Script Kit, and its name for calls.
#[derive(Default, Serialize)]
struct Entry {
    /// Name for calls; scripts without a schema have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Path of the file relative to its root.
    file: Option<PathBuf>,
    path: Option<PathBuf>,
    extension: Option<String>,
    has_schema: bool,
}

/// Adds the kit to a server.
pub(crate) fn add(server: ServerBuilder, commands: Commands) -> ServerBuilder {
    let kit = Arc::new(Kit {
        commands,
        is_shown: AtomicBool::new(false),
        command_lock: Mutex::new(()),
    });
    let handler = |show| {
        let kit = Arc::clone(&kit);
        move |_: NoArguments, context: CallContext| {
            let kit = Arc::clone(&kit);
            async move { kit.set_visible(show, &context).await }
        }
    };
    let state = {
        let kit = Arc::clone(&kit);
        move |context: CallContext| {
            let kit = Arc::clone(&kit);
            async move { Json(kit.state(&context).await) }
        }
    };
    let ask = state.clone();
    server
        .tool("kit/show", "Shows the window.", handler(true))
        .tool("kit/hide", "Hides the window.", handler(false))
        .tool(
            "kit/state",
            "Reports whether the window is visible and focused, and the number of scripts and scriptlets.",
            move |_: NoArguments, context: CallContext| ask(context),
        )
        .resource(
            STATE,
            "kit/state",
            "Visibility and focus of the window, and the number of scripts and scriptlets.",
            state,
        )
        .resource("scripts://", "scripts", "The scripts.", async |context: CallContext| {
            Json(scripts(&context).await)
        })
        .resource(
            "scriptlets://",
            "scriptlets",
            "The scriptlets.",
            async |context: CallContext| Json(tools(&context, SCRIPTLETS)),
        )
}

impl Kit {
    /// Shows or hides the window.
    async fn set_visible(&self, show: bool, context: &CallContext) -> Result<&'static str, String> {
        let _lock = self.command_lock.lock().await;
        let command = if show {
            &self.commands.show
        } else {
            &self.commands.hide
        };
        if !command.is_empty() {
            let run = program::run(command, &self.commands.directory, context.executor());
            run.await.map_err(|reason| {
                tracing::error!(show, "Script Kit window command failed: {reason}");
                let what = if show { "shown" } else { "hidden" };
                format!("The window could not be {what}. The reason is in the server's log.")
            })?;
        }
        if self.is_shown.swap(show, Ordering::Relaxed) != show {
            context.notify_resource_updated(STATE);
        }
        Ok(if show {
            "Window shown"
        } else {
            "Window hidden"
        })
    }

    async fn state(&self, context: &CallContext) -> WindowState {
        // A program that shows a window also focuses it; later changes by the user are not
        // reported to mcpd.
        let is_shown = self.is_shown.load(Ordering::Relaxed);
        WindowState {
            visible: is_shown,
            focused: is_shown,
            script_count: scripts(context).await.len(),
            scriptlet_count: tools(context, SCRIPTLETS).len(),
        }
    }
}

/// Returns the scripts: tools, and scripts without a schema.
async fn scripts(context: &CallContext) -> Vec<Entry> {
    let mut scripts = tools(context, SCRIPTS);
    let catalog = context.whole_catalog();
    if !catalog.scan().has_schemaless_scripts() {
        return scripts;
    }
    let schemaless = spawn_blocking(move || catalog.scan().schemaless_scripts()).await;
    let schemaless = schemaless.unwrap_or_default().into_iter();
    let schemaless = schemaless.filter(|script| context.allows(&script.path));
    scripts.extend(schemaless.map(|script| Entry {
        tool: None,
        name: Some(script.title),
        description: script.description,
        has_schema: false,
        ..Entry::of_file(context, &script.file)
    }));
    scripts
}

/// Returns the tools whose paths begin with `prefix`.
fn tools(context: &CallContext, prefix: &str) -> Vec<Entry> {
    let catalog = context.catalog();
    let tools = catalog.tools().iter();
    let tools = tools.filter(|tool| tool.path().as_str().starts_with(prefix));
    tools
        .map(|tool| Entry {
            tool: Some(tool.path().to_string()),
            name: tool.definition().title.clone(),
            description: tool.definition().description.clone(),
            has_schema: true,
            ..tool
                .file()
                .map_or_else(Entry::default, |file| Entry::of_file(context, file))
        })
        .collect()
}

impl Entry {
    /// Creates an entry with the paths of a file.
    fn of_file(context: &CallContext, file: &Path) -> Self {
        let mut roots = context.roots().iter();
        let relative = roots.find_map(|root| file.strip_prefix(root).ok());
        let extension = file.extension().unwrap_or_default();
        Self {
            file: relative.map(PathBuf::from),
            path: Some(file.to_owned()),
            extension: Some(extension.to_string_lossy().into_owned()),
            ..Self::default()
        }
    }
}
