//! Content of the packages: the right files, sums, owners and facts, and the same bytes each time.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use mcpd_tests::{repository, skip};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::names::name;
use super::{Packages, TARGET, VERSION, dist, has, program, run, stand_in, transcript};

/// Returns the files of an archive with their modes.
fn entries(archive: &Path) -> BTreeMap<String, u32> {
    let mut archive = tar::Archive::new(GzDecoder::new(File::open(archive).unwrap()));
    let entries = archive.entries().unwrap().map(|entry| {
        let entry = entry.unwrap();
        let header = entry.header();
        assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
        let path = entry.path().unwrap().to_string_lossy().into_owned();
        (path, header.mode().unwrap())
    });
    entries.collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn run_makes_every_package_of_the_target() {
    let machine = TARGET.split('-').next().unwrap();
    let names = Packages::of_stand_in().names();
    let (architecture, cpu) = match machine {
        "aarch64" => ("arm64", "arm64"),
        _ => ("amd64", "x64"),
    };
    let wheel = names.iter().find(|name| name.ends_with(".whl")).unwrap();
    assert!(wheel.ends_with(&format!("_{machine}.whl")), "{wheel}");
    let scope = name("npm", "scope").replace('@', "");
    let npm = name("npm", "package");
    let debian = name("debian", "package");
    let mut expected = vec![
        "SHA256SUMS".to_owned(),
        wheel.clone(),
        format!("mcpd-{VERSION}-{TARGET}.THIRD-PARTY-LICENSES.txt"),
        format!("mcpd-{VERSION}-{TARGET}.cdx.json"),
        format!("mcpd-{VERSION}-{TARGET}.tar.gz"),
        format!("{npm}-{VERSION}.tgz"),
        format!("{scope}-{npm}-linux-{cpu}-{VERSION}.tgz"),
        format!("{debian}_{VERSION}_{architecture}.deb"),
    ];
    expected.sort();
    assert_eq!(names, expected);
}

#[test]
fn sums_are_those_of_the_files() {
    let packages = Packages::of_stand_in();
    let sums = fs::read_to_string(packages.path().join("SHA256SUMS")).unwrap();
    for line in sums.lines() {
        let (sum, name) = line.split_once("  ").unwrap();
        let bytes = fs::read(packages.path().join(name)).unwrap();
        assert_eq!(hex(&Sha256::digest(bytes)), sum, "{name}");
    }
    assert_eq!(sums.lines().count(), packages.names().len() - 1);
}

#[test]
fn packages_made_twice_have_the_same_bytes() {
    let again = Packages::make(stand_in(), &[]);
    let sums =
        |packages: &Packages| fs::read_to_string(packages.path().join("SHA256SUMS")).unwrap();
    assert_eq!(sums(Packages::of_stand_in()), sums(&again));
}

#[test]
fn archive_has_program_documents_and_licences() {
    let archive = Packages::of_stand_in().file(&format!("{TARGET}.tar.gz"));
    let root = format!("mcpd-{VERSION}-{TARGET}");
    let entries = entries(&archive);
    for file in [
        "README.md",
        "CHANGELOG.md",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "THIRD-PARTY-LICENSES.txt",
        "mcpd.cdx.json",
        "share/man/man1/mcpd.1",
        "share/bash-completion/completions/mcpd",
        "share/fish/vendor_completions.d/mcpd.fish",
        "share/zsh/vendor-completions/_mcpd",
        "systemd/mcpd.service",
        "systemd/mcpd.socket",
    ] {
        assert_eq!(
            entries.get(&format!("{root}/{file}")),
            Some(&0o644),
            "{file}"
        );
    }
    assert_eq!(entries.get(&format!("{root}/mcpd")), Some(&0o755));
}

#[test]
fn debian_package_states_what_it_installs() {
    if !has("dpkg-deb") {
        return skip("there is no dpkg-deb to read a Debian package with");
    }
    let package = Packages::of_stand_in().file(".deb");
    let place = tempfile::tempdir().unwrap();
    let (root, control) = (place.path().join("root"), place.path().join("control"));
    run(program("dpkg-deb").arg("-x").args([&package, &root]));
    run(program("dpkg-deb").arg("-e").args([&package, &control]));
    run(program("md5sum")
        .args(["--check", "--strict", "--quiet"])
        .arg(control.join("md5sums"))
        .current_dir(&root));
    let sums = fs::read_to_string(control.join("md5sums")).unwrap();
    assert_eq!(sums.lines().count(), super::files_below(&root).len());
    let unit = root.join("usr/lib/systemd/system/mcpd.service");
    let unit = fs::read_to_string(unit).unwrap();
    assert!(unit.contains("\nExecStart=/usr/bin/mcpd serve /etc/mcpd/scripts "));
    assert!(root.join("etc/mcpd/scripts").is_dir());
    for document in [
        "usr/share/man/man1/mcpd.1.gz",
        "usr/share/bash-completion/completions/mcpd",
        "usr/share/zsh/vendor-completions/_mcpd",
        &format!("usr/share/doc/{}/copyright", name("debian", "package")),
    ] {
        assert!(root.join(document).exists(), "{document}");
    }
    let version = run(program(root.join("usr/bin/mcpd")).arg("--version"));
    assert_eq!(version, "mcpd 0.0.0\n");
    let fields = run(program("dpkg-deb").arg("-f").arg(&package));
    assert!(fields.contains("\nDepends: libc6 (>= 2."), "{fields}");
    assert!(!control.join("conffiles").exists());
    for script in ["postinst", "prerm", "postrm"] {
        run(program("sh").arg("-n").arg(control.join(script)));
    }
}

#[test]
fn oldest_glibc_is_that_of_the_symbols() {
    let package = Packages::of_stand_in().file(".whl");
    let (true, Ok(symbols)) = (
        has("objdump"),
        program("objdump").arg("-T").arg(stand_in()).output(),
    ) else {
        return skip("there is no objdump to compare the versions of symbols with");
    };
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let version = rest.split([')', ' ']).next()?;
        let mut numbers = version.split('.').map(|number| number.parse().ok());
        Some((numbers.next()??, numbers.next()??))
    });
    let (major, minor): (u32, u32) = versions.max().unwrap();
    let expected = match minor {
        ..=17 => "manylinux_2_17_".to_owned(),
        _ => format!("manylinux_{major}_{minor}_"),
    };
    let name = package.file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.contains(&expected), "{name}: {major}.{minor}");
}

#[test]
fn bill_of_materials_names_the_crates_of_the_binary() {
    let packages = Packages::of_stand_in();
    let bill = fs::read(packages.file(".cdx.json")).unwrap();
    let bill: Value = serde_json::from_slice(&bill).unwrap();
    let licences = fs::read_to_string(packages.file("LICENSES.txt")).unwrap();
    let lock = fs::read_to_string(repository().join("Cargo.lock")).unwrap();
    let components = bill["components"].as_array().unwrap();
    let mut names = Vec::new();
    for component in components {
        let name = component["name"].as_str().unwrap();
        let version = component["version"].as_str().unwrap();
        names.push(name);
        let locked = format!("name = \"{name}\"\nversion = \"{version}\"");
        assert!(lock.contains(&locked), "{name} {version} is not locked");
        assert!(component["licenses"][0]["expression"].is_string(), "{name}");
        if !name.starts_with("mcpd-") {
            assert!(component["hashes"][0]["content"].is_string(), "{name}");
            assert!(
                licences.contains(&format!("\n  {name} {version}: ")),
                "{name}"
            );
        }
    }
    assert!(names.contains(&"tokio") && names.contains(&"mcpd-server"));
    // A crate of the tests, one of packaging itself, and procedural macros with theirs.
    for absent in ["insta", "cargo_metadata", "serde_derive", "syn"] {
        assert!(!names.contains(&absent), "{absent}");
    }
    let dependencies = bill["dependencies"].as_array().unwrap();
    assert_eq!(dependencies.len(), components.len() + 1);
}

#[test]
fn licences_have_their_texts() {
    let licences = fs::read_to_string(Packages::of_stand_in().file("LICENSES.txt")).unwrap();
    for text in [
        "Permission is hereby granted",
        "TERMS AND CONDITIONS FOR USE",
        "UNICODE LICENSE",
    ] {
        assert!(licences.contains(text), "{text}");
    }
}

#[test]
fn wrong_choices_are_refused() {
    #[track_caller]
    fn check(binary: &Path, options: &[&str], reason: &str) {
        let place = tempfile::tempdir().unwrap();
        let output = dist(binary, place.path(), options);
        let printed = transcript(&output);
        assert!(
            !output.status.success() && printed.contains(reason),
            "{printed}"
        );
        assert_eq!(super::files_below(place.path()), Vec::<String>::new());
    }
    let wrong = "the binary is not of the target";
    check(
        stand_in(),
        &["--target", "x86_64-pc-solaris"],
        "no packages for the target",
    );
    check(stand_in(), &["--target", "aarch64-apple-darwin"], wrong);
    check(
        stand_in(),
        &["--target", "x86_64-unknown-linux-musl"],
        wrong,
    );
    check(
        Path::new("/bin/sh-of-nowhere"),
        &[],
        "failed to read `/bin/sh-of-nowhere`",
    );
    check(&repository().join("README.md"), &[], wrong);
}

#[test]
fn only_chosen_formats_are_made() {
    let packages = Packages::make(stand_in(), &["--format", "tar"]);
    let names = packages.names();
    assert!(
        names
            .iter()
            .all(|name| !name.ends_with(".deb") && !name.ends_with(".tgz"))
    );
    packages.file(".tar.gz");
}

#[test]
fn debian_package_of_macos_is_refused_if_asked_for() {
    let place = tempfile::tempdir().unwrap();
    let binary = place.path().join("mcpd");
    // The magic number is all that is looked at.
    fs::write(&binary, b"\xcf\xfa\xed\xfe").unwrap();
    let target = ["--target", "aarch64-apple-darwin", "--format", "deb"];
    let output = dist(&binary, &place.path().join("out"), &target);
    let printed = transcript(&output);
    assert!(
        !output.status.success() && printed.contains("has no Debian package"),
        "{printed}"
    );
}

#[test]
fn npm_packages_name_their_platform() {
    let packages = Packages::of_stand_in();
    let manifest = |archive: &Path| -> Value {
        let mut archive = tar::Archive::new(GzDecoder::new(File::open(archive).unwrap()));
        let mut entries = archive.entries().unwrap().map(Result::unwrap);
        let mut file = entries
            .find(|entry| entry.path().unwrap().ends_with("package.json"))
            .unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let launcher = manifest(&packages.npm_launcher());
    let platform = manifest(&packages.npm_binary());
    assert_eq!(platform["os"], serde_json::json!(["linux"]));
    assert_eq!(platform["libc"], serde_json::json!(["glibc"]));
    let optional = launcher["optionalDependencies"].as_object().unwrap();
    assert_eq!(optional[platform["name"].as_str().unwrap()], VERSION);
    assert_eq!(optional.len(), 6);
    assert_eq!(entries(&packages.npm_binary())["package/bin/mcpd"], 0o755);
}
