//! Names of the packages: files that have to spell them out agree with `packaging/names.toml`.

use std::fs;

use mcpd_tests::repository;

use super::{Packages, VERSION, program, run, transcript};

fn read(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap()
}

/// Returns a name of `packaging/names.toml`.
pub(crate) fn name(table: &str, key: &str) -> String {
    let names: toml::Table = toml::from_str(&read("packaging/names.toml")).unwrap();
    names[table][key].as_str().unwrap().to_owned()
}

#[test]
fn repository_is_the_same_everywhere() {
    let names: toml::Table = toml::from_str(&read("packaging/names.toml")).unwrap();
    let url = names["repository"].as_str().unwrap();
    let short = url.strip_prefix("https://github.com/").unwrap();
    let workspace: toml::Table = toml::from_str(&read("Cargo.toml")).unwrap();
    assert_eq!(
        workspace["workspace"]["package"]["repository"].as_str(),
        Some(url)
    );
    assert!(read("packaging/install.sh").contains(&format!("\nREPOSITORY={url}\n")));
    assert_eq!(read("packaging/homebrew/mcpd.rb").matches(url).count(), 5);
    assert!(read("packaging/github-action/action.yml").contains(&format!("uses: {short}/")));
    assert!(read("flake.nix").contains(&format!("github:{short} ")));
}

#[test]
fn binstall_expects_the_archive_that_is_made() {
    let manifest: toml::Table = toml::from_str(&read("crates/mcpd-cli/Cargo.toml")).unwrap();
    let binstall = &manifest["package"]["metadata"]["binstall"];
    let fill = |key: &str| {
        let text = binstall[key].as_str().unwrap();
        let text = text
            .replace("{ version }", VERSION)
            .replace("{ bin }", "mcpd");
        text.replace("{ target }", super::TARGET)
    };
    let url = fill("pkg-url");
    let name = url.rsplit('/').next().unwrap();
    let archive = Packages::of_stand_in().path().join(name);
    let listed = run(program("tar").arg("-tzf").arg(archive));
    assert!(
        listed.lines().any(|line| line == fill("bin-dir")),
        "{listed}"
    );
}

#[test]
fn formula_has_the_sums_of_the_release() {
    let place = tempfile::tempdir().unwrap();
    let sums = place.path().join("SHA256SUMS");
    let targets = [
        "aarch64-apple-darwin",
        "x86_64-apple-darwin",
        "aarch64-unknown-linux-musl",
        "x86_64-unknown-linux-musl",
    ];
    let line = |(number, target): (usize, &&str)| {
        let sum = number.to_string().repeat(64);
        format!("{sum}  mcpd-1.2.3-{target}.tar.gz\n")
    };
    let lines: String = targets.iter().enumerate().map(line).collect();
    fs::write(&sums, &lines).unwrap();
    let render = repository().join("packaging/homebrew/render");
    let formula = run(program(&render).arg("1.2.3").arg(&sums));
    assert!(formula.starts_with("class Mcpd < Formula\n"), "{formula}");
    assert!(!formula.contains('@'), "{formula}");
    for (number, target) in targets.iter().enumerate() {
        let url = format!("/v1.2.3/mcpd-1.2.3-{target}.tar.gz\"\n      sha256 \"{number}{number}");
        assert!(formula.contains(&url), "{target}: {formula}");
    }
    let output = program(&render).arg("1.2.4").arg(&sums).output().unwrap();
    assert!(!output.status.success(), "{}", transcript(&output));
}
