//! Globals that Script Kit declares for its scripts before they run.

use std::ffi::OsStr;
use std::iter;
use std::path::Path;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Interpreter;

/// Module that declares them, as a URL, so that it need not be in a file.
static MODULE: LazyLock<String> = LazyLock::new(|| {
    let text = STANDARD.encode(include_str!("script_kit.mjs"));
    format!("data:text/javascript;base64,{text}")
});

/// Import map for Deno, which resolves the packages of Script Kit before it runs anything.
static IMPORT_MAP: LazyLock<String> = LazyLock::new(|| {
    let module = "data:text/javascript,export const { defineSchema, input, output } = globalThis; export default globalThis";
    let packages = ["@scriptkit/sdk", "@johnlindquist/kit"];
    let imports: serde_json::Map<_, _> = packages
        .map(|name| (name.to_owned(), module.into()))
        .into_iter()
        .collect();
    let map = STANDARD.encode(serde_json::json!({ "imports": imports }).to_string());
    format!("data:application/json;base64,{map}")
});

impl Interpreter {
    /// Returns this interpreter for a script of Script Kit, which uses globals that the runtime
    /// does not have. A runtime that cannot load a module first runs the script without them.
    pub(crate) fn for_script_kit(&self) -> Self {
        let mut interpreter = self.clone();
        // Another program may start the runtime, as in `npx tsx`.
        let words = iter::once(self.program.as_path()).chain(self.args.iter().map(Path::new));
        let flags = words.filter_map(Path::file_stem).find_map(flags);
        interpreter
            .args
            .extend(flags.into_iter().flatten().map(Into::into));
        interpreter
    }
}

/// Returns the flags by which the runtime of this name loads the module before a script.
fn flags(runtime: &OsStr) -> Option<Vec<&'static str>> {
    match runtime.to_str()? {
        "node" | "nodejs" | "tsx" => Some(vec!["--import", &MODULE]),
        "bun" => Some(vec!["--preload", &MODULE]),
        "deno" => Some(vec!["--preload", &MODULE, "--import-map", &IMPORT_MAP]),
        _ => None,
    }
}
