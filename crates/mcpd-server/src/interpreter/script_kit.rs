//! What Script Kit declares for its scripts before they run.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Interpreter;

/// The module that declares it, as a URL: it need not lie in a file.
static MODULE: LazyLock<String> = LazyLock::new(|| {
    let text = STANDARD.encode(include_str!("script_kit.mjs"));
    format!("data:text/javascript;base64,{text}")
});

/// The programs that take such a module.
const IMPORTERS: [&str; 3] = ["node", "nodejs", "tsx"];

impl Interpreter {
    /// The same for a script of Script Kit, which uses names that the program itself does not know. Without a way to
    /// tell it, the script has to do without them.
    pub(crate) fn for_script_kit(&self) -> Self {
        let mut interpreter = self.clone();
        let name = self.program.file_stem().unwrap_or_default();
        if IMPORTERS.iter().any(|importer| name == *importer) {
            let flags = ["--import", &MODULE];
            interpreter.args.extend(flags.map(Into::into));
        }
        interpreter
    }
}
