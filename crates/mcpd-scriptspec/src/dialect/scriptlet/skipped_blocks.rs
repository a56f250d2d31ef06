//! Blocks that are not run: actions on a desktop, code that needs Script Kit
//! itself, and illustrations.

/// Script Kit's kinds of desktop actions, and their descriptions.
const DESKTOP: &[(&str, &str)] = &[
    ("paste", "it pastes text into the active window"),
    ("type", "it types text into the active window"),
    (
        "submit",
        "it pastes text into the active window and presses Enter",
    ),
    (
        "transform",
        "it replaces the selection in the active window",
    ),
    ("open", "it opens something with a desktop application"),
    ("edit", "it opens a file in an editor"),
    ("chat", "it starts a chat in a window"),
    ("applescript", "it controls macOS applications"),
    ("osascript", "it controls macOS applications"),
    ("cmd", "it is for the Windows command interpreter"),
    ("bat", "it is for the Windows command interpreter"),
];

/// Languages of texts and data.
const TEXTS: &[&str] = &[
    "console",
    "css",
    "csv",
    "diff",
    "html",
    "ini",
    "json",
    "json5",
    "jsonc",
    "log",
    "markdown",
    "md",
    "mermaid",
    "output",
    "plain",
    "plaintext",
    "svg",
    "text",
    "toml",
    "txt",
    "xml",
    "yaml",
    "yml",
];

/// Functions and objects that only Script Kit provides, as far as scripts call them.
const KIT: &[&str] = &[
    "applescript",
    "arg",
    "beep",
    "browse",
    "clipboard",
    "copy",
    "db",
    "div",
    "download",
    "drop",
    "edit",
    "editor",
    "env",
    "exec",
    "execLog",
    "eyeDropper",
    "fields",
    "fileSearch",
    "find",
    "focusTab",
    "focusWindow",
    "form",
    "get",
    "getActiveTab",
    "getSelectedFile",
    "getSelectedText",
    "getTabs",
    "grid",
    "hide",
    "home",
    "hotkey",
    "kenvPath",
    "keyboard",
    "keystroke",
    "kitPath",
    "menu",
    "micro",
    "mini",
    "mouse",
    "notify",
    "npm",
    "open",
    "post",
    "readFile",
    "replace",
    "run",
    "say",
    "select",
    "setActiveAppBounds",
    "setHint",
    "setInput",
    "setPanel",
    "setSelectedText",
    "show",
    "template",
    "term",
    "toast",
    "trash",
    "widget",
    "writeFile",
];

/// Returns why a block of this name is not run, if it is not.
pub(super) fn reason(name: &str) -> Option<String> {
    if let Some((_, what)) = DESKTOP.iter().find(|(kind, _)| *kind == name) {
        return Some(format!(
            "a block of `{name}` needs a desktop and is not served: {what}"
        ));
    }
    let is_text = TEXTS.contains(&name);
    is_text.then(|| format!("a block of `{name}` is text and cannot run"))
}

/// Returns the first name in JavaScript that only Script Kit provides and the code does not
/// declare; none for code that checks whether it has a window.
pub(super) fn kit_name(code: &str) -> Option<&'static str> {
    if code.contains("metadata.mcp") {
        return None;
    }
    let words = words(code);
    let is_declared = |name: &str| {
        let mut before = words.iter().zip(words.iter().skip(1));
        let introduces =
            |word: &str| matches!(word, "const" | "let" | "var" | "function" | "class" | "as");
        before.any(|((word, _), (next, _))| introduces(word) && *next == name)
            || is_imported(code, name)
    };
    let is_used = |(word, end): &(&str, usize)| {
        let rest = &code[*end..];
        let start = end - word.len();
        let is_member = code[..start].trim_end().ends_with(['.', '"', '\'']);
        let is_object = matches!(*word, "clipboard" | "keyboard" | "mouse");
        !is_member && (rest.starts_with('(') || is_object && rest.starts_with('.'))
    };
    let used = words.iter().filter(|word| is_used(word));
    let mut names = used.filter_map(|(word, _)| KIT.iter().find(|name| *name == word));
    names.find(|name| !is_declared(name)).copied()
}

/// Returns whether the name is in an import or a destructuring.
fn is_imported(code: &str, name: &str) -> bool {
    let mut lists = code
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}'));
    lists.any(|(inside, rest)| {
        let rest = rest.trim_start();
        let takes = rest.starts_with("from") || rest.starts_with('=') && !rest.starts_with("==");
        takes && inside.split([',', ':']).any(|part| part.trim() == name)
    })
}

/// Returns the words of code, each with its end.
fn words(code: &str) -> Vec<(&str, usize)> {
    let is_part = |char: char| char.is_alphanumeric() || matches!(char, '_' | '$');
    let mut at = 0;
    let mut words = Vec::new();
    while let Some(start) = code[at..].find(is_part) {
        let start = at + start;
        let rest = &code[start..];
        at = start + rest.find(|char| !is_part(char)).unwrap_or(rest.len());
        words.push((&code[start..at], at));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::kit_name;

    #[test]
    fn names_that_only_script_kit_has_are_found() {
        for (code, name) in [
            ("const who = await arg('Who?')", Some("arg")),
            ("await clipboard.readText()", Some("clipboard")),
            ("console.log(await input())", None),
            (
                "import { open } from 'node:fs/promises'\nawait open('x')",
                None,
            ),
            ("const { copy, run: start } = tools\ncopy(1)", None),
            ("function find(x) { return x }\nfind(1)", None),
            ("import { x as open } from 'y'\nopen()", None),
            ("list.find(x => x)", None),
            ("if (!metadata.mcp) await div('x')", None),
            ("const open = 1", None),
        ] {
            assert_eq!(kit_name(code), name, "{code}");
        }
    }
}
