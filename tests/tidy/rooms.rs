//! Structure of the source: the folders of `mcpd-server` are layers, of which each imports only
//! those below it, and no file is long.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::{root, rust_files};

/// Folders from the bottom to the top. `fuzzing`, which tests alone compile, is above all.
const LAYERS: [&str; 16] = [
    "support",
    "policy",
    "limits",
    "database",
    "message",
    "remote",
    "observe",
    "client",
    "script",
    "execution",
    "catalog",
    "tools",
    "server",
    "methods",
    "transport",
    "fuzzing",
];

/// Maximum length of a file without its tests, in lines.
const MAX_LINES: usize = 500;

/// Maximum length of the body of a function, in lines of code, as for Clippy.
const MAX_FUNCTION_LINES: usize = 60;

/// Maximum length of `mcpd-cli`, in lines.
const MAX_CLI_LINES: usize = 8000;

/// Maximum number of public types at the root of a library.
const MAX_ROOT_TYPES: usize = 25;

/// Constants of the crate's root.
const ROOT_ITEMS: [&str; 2] = ["DEFAULT_KEEP", "DEFAULT_MAX_MESSAGE"];

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| *layer == name)
}

/// Returns the text of a file before its tests.
fn production(text: &str) -> &str {
    let tests = text.find("\n#[cfg(test)]\n#[cfg(unix)]\nmod tests {");
    let tests = tests.or_else(|| text.find("\n#[cfg(test)]\nmod tests {"));
    &text[..tests.unwrap_or(text.len())]
}

fn is_test(file: &Path) -> bool {
    file.ends_with("tests.rs") || file.iter().any(|name| name == "tests" || name == "benches")
}

/// Returns the first names of the paths below `crate::` in the production code of a file.
fn imported_names(text: &str) -> impl Iterator<Item = &str> {
    production(text)
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split("crate::").skip(1))
        .map(|path| {
            let end = path.find(|char: char| !char.is_alphanumeric() && char != '_');
            &path[..end.unwrap_or(path.len())]
        })
}

/// Returns the imports of `files`, given with their folders, that break the order.
fn find_upward<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> BTreeSet<(&'a str, &'a str)> {
    let mut upward = BTreeSet::new();
    for (folder, text) in files {
        let own = layer(folder).unwrap_or_else(|| panic!("`{folder}` is not in LAYERS"));
        for name in imported_names(text) {
            match layer(name) {
                Some(other) if other > own => {
                    upward.insert((folder, name));
                }
                Some(_) => {}
                None => assert!(
                    ROOT_ITEMS.contains(&name),
                    "{folder} imports `crate::{name}`; name the folder that the item is in"
                ),
            }
        }
    }
    upward
}

#[test]
fn server_folders_import_only_lower_ones() {
    let source = root().join("crates/mcpd-server/src");
    let files = rust_files(&source);
    let folder = |file: &Path| {
        let below = file.strip_prefix(&source).expect("a file below it");
        let first = below.components().next().expect("a name");
        let name = Path::new(first.as_os_str()).with_extension("");
        name.to_string_lossy().into_owned()
    };
    let files: Vec<_> = files
        .into_iter()
        .map(|(file, text)| (folder(&file), file, text))
        .filter(|(folder, file, _)| folder != "lib" && !is_test(file))
        .collect();
    let files = files.iter().map(|(folder, _, text)| (&**folder, &**text));
    assert_eq!(find_upward(files), BTreeSet::new());
    for name in LAYERS {
        assert!(
            fs::exists(source.join(format!("{name}.rs"))).expect("a folder"),
            "{name}"
        );
    }
}

#[test]
fn files_are_short_without_their_tests() {
    let files = rust_files(&root().join("crates")).into_iter();
    let lengths = files
        .filter(|(file, _)| !is_test(file))
        .map(|(file, text)| (production(&text).lines().count(), file));
    let long: Vec<_> = lengths.filter(|(lines, _)| *lines > MAX_LINES).collect();
    assert!(
        long.is_empty(),
        "files of more than {MAX_LINES} lines: {long:?}"
    );
}

/// Returns the names of the functions whose bodies have more lines than allowed, without blank ones
/// and comments: of rustfmt's code, in which a body ends at the indentation of its function.
fn long_functions(text: &str) -> Vec<&str> {
    let lines: Vec<_> = production(text).lines().collect();
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let is_code = |line: &&&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    let starts = lines.iter().enumerate().filter_map(|(place, line)| {
        let name = line.trim_start().split("fn ").nth(1)?;
        let is_function = !line.trim_start().starts_with("//") && !line.contains('"');
        is_function.then_some((place, name))
    });
    let starts = starts.filter(|(place, _)| {
        let rest = &lines[*place..];
        let ends = |line: &&str| line.ends_with(';') || line.ends_with('{');
        let Some(head) = rest.iter().position(ends) else {
            return false;
        };
        let own = indentation(rest[0]);
        let body = rest[head + 1..].iter().take_while(|line| {
            line.is_empty() || indentation(line) > own || !line.trim_start().starts_with('}')
        });
        rest[head].ends_with('{') && body.filter(is_code).count() > MAX_FUNCTION_LINES
    });
    starts.map(|(_, name)| name).collect()
}

#[test]
fn functions_are_short() {
    let files = rust_files(&root().join("crates")).into_iter();
    let files = files.filter(|(file, _)| !is_test(file));
    let long: Vec<_> = files
        .flat_map(|(_, text)| {
            long_functions(&text)
                .into_iter()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(
        long.is_empty(),
        "functions of more than {MAX_FUNCTION_LINES} lines: {long:?}"
    );
    let body = |lines| format!("fn long() {{\n{}}}\n", "    step();\n".repeat(lines));
    assert_eq!(long_functions(&body(MAX_FUNCTION_LINES)), [""; 0]);
    assert_eq!(long_functions(&body(MAX_FUNCTION_LINES + 1)), ["long() {"]);
}

#[test]
fn command_line_stays_thin() {
    let files = rust_files(&root().join("crates/mcpd-cli/src")).into_iter();
    let lines: usize = files.map(|(_, text)| text.lines().count()).sum();
    assert!(
        lines <= MAX_CLI_LINES,
        "{lines} lines; move what others might want into a library"
    );
}

/// Returns the public types at the root of a library: those that it declares or exports by name.
fn root_types(lib: &str) -> BTreeSet<&str> {
    let is_line = |at: &usize| *at == 0 || lib[..*at].ends_with('\n');
    let starts = lib.match_indices("pub ").map(|(at, _)| at).filter(is_line);
    let names = starts.flat_map(|start| {
        let item = lib[start..].split(';').next().unwrap_or_default();
        let words = item.split(|char: char| !char.is_alphanumeric() && char != '_');
        // A declaration has its name in the third place.
        words.take(if item.starts_with("pub use ") {
            usize::MAX
        } else {
            3
        })
    });
    let is_type =
        |name: &&str| name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
    names.filter(is_type).collect()
}

#[test]
fn roots_of_libraries_have_few_types() {
    for library in fs::read_dir(root().join("crates")).expect("crates") {
        let library = library.expect("an entry").path();
        let Ok(lib) = fs::read_to_string(library.join("src/lib.rs")) else {
            continue;
        };
        let types = root_types(&lib);
        let count = types.len();
        assert!(
            count <= MAX_ROOT_TYPES,
            "{}: {count} {types:?}",
            library.display()
        );
    }
}

#[test]
fn root_types_are_counted() {
    let lib = "//! Docs.\n\nmod a;\npub mod b;\n\npub use a::{A, B,\n    C};\npub use a::D;\n\n/// A type.\npub struct Own {\n    field: Other,\n}\n\npub const MAX: usize = 1;\n";
    let types: Vec<_> = root_types(lib).into_iter().collect();
    assert_eq!(types, ["Own"]);
    let types = root_types("pub use a::{Alpha, beta, GAMMA};\npub use a::Delta;\n");
    assert_eq!(types.into_iter().collect::<Vec<_>>(), ["Alpha", "Delta"]);
}

#[test]
fn upward_import_is_found() {
    let check = |folder, text, expected: &[(&str, &str)]| {
        let expected = expected.iter().copied().collect();
        assert_eq!(find_upward([(folder, text)]), expected);
    };
    check("limits", "use crate::policy::quota::Quota;\n", &[]);
    let turned = "use crate::limits::admission::Admission;\n";
    check("policy", turned, &[("policy", "limits")]);
    let comment_and_test = "// crate::server\n#[cfg(test)]\nmod tests {\n    use crate::server;\n";
    check("support", comment_and_test, &[]);
}
