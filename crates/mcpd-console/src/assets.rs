//! Files of the page. They are part of the program, so that nothing is fetched from elsewhere.

use mcpd_server::transport::http::console::{AssetKind, SiteAsset};

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// Path below `/console/`, content type and content.
macro_rules! asset {
    ($path:literal, $file:literal, $content_type:ident) => {
        asset!($path, $file, $content_type, Console)
    };
    ($path:literal, $file:literal, $content_type:ident, $kind:ident) => {
        (
            $path,
            SiteAsset {
                content_type: $content_type,
                content: include_bytes!(concat!("../assets/", $file)),
                kind: AssetKind::$kind,
            },
        )
    };
}

const ASSETS: [(&str, SiteAsset); 21] = [
    asset!("", "index.html", HTML),
    asset!("app.css", "app.css", CSS),
    asset!("icon.svg", "icon.svg", SVG),
    asset!("frame", "frame.html", HTML, Frame),
    asset!("app.js", "app.js", SCRIPT),
    asset!("apps.js", "apps.js", SCRIPT),
    asset!("call.js", "call.js", SCRIPT),
    asset!("catalog.js", "catalog.js", SCRIPT),
    asset!("charts.js", "charts.js", SCRIPT),
    asset!("choice.js", "choice.js", SCRIPT),
    asset!("commands.js", "commands.js", SCRIPT),
    asset!("connect.js", "connect.js", SCRIPT),
    asset!("dom.js", "dom.js", SCRIPT),
    asset!("form.js", "form.js", SCRIPT),
    asset!("result.js", "result.js", SCRIPT),
    asset!("runs.js", "runs.js", SCRIPT),
    asset!("server.js", "server.js", SCRIPT),
    asset!("session.js", "session.js", SCRIPT),
    asset!("sidebar.js", "sidebar.js", SCRIPT),
    asset!("skills.js", "skills.js", SCRIPT),
    asset!("tools.js", "tools.js", SCRIPT),
];

/// Returns the file at a path below `/console/`.
pub(crate) fn find(path: &str) -> Option<SiteAsset> {
    let mut assets = ASSETS.into_iter();
    assets.find_map(|(known, asset)| (known == path).then_some(asset))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum size of all files together, in bytes; compressed they are smaller still.
    const MAX_SIZE: usize = 150_000;

    #[test]
    fn page_has_no_inline_code_and_loads_nothing_from_elsewhere() {
        let pages = ASSETS.into_iter();
        for (path, asset) in pages.filter(|(_, asset)| asset.kind == AssetKind::Console) {
            let text = String::from_utf8(asset.content.to_vec()).unwrap();
            for word in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
            ] {
                assert!(!text.contains(word), "{path}: {word}");
            }
            if asset.content_type == HTML {
                assert!(!text.contains("style=") && !text.contains(" on"), "{path}");
                assert!(
                    !text.contains("http:") && !text.contains("https:"),
                    "{path}"
                );
            }
        }
    }

    #[test]
    fn page_names_only_files_that_exist() {
        for (path, asset) in ASSETS {
            let text = String::from_utf8(asset.content.to_vec()).unwrap();
            let imports = text
                .match_indices("from \"./")
                .map(|(at, mark)| at + mark.len());
            let names = imports.filter_map(|at| text[at..].split('"').next());
            for name in names {
                assert!(find(name).is_some(), "{path} imports {name}");
            }
        }
        assert!(find("api/about").is_none() && find("../Cargo.toml").is_none());
    }

    #[test]
    fn page_is_small() {
        let size: usize = ASSETS.iter().map(|(_, asset)| asset.content.len()).sum();
        assert!(size < MAX_SIZE, "{size}");
    }
}
