//! npm packages for `npx` and `npm install`: one with the binary for each platform, which npm
//! installs only there, and one that depends on all of these and starts the installed one.

use serde_json::{Map, Value, json};

use super::archive::{PackageFile, tar_gz};
use super::platform::{PLATFORMS, Platform, System};
use super::{Release, read};

/// Makes the package of the platform and the one that starts it.
///
/// # Errors
///
/// Fails if a file of the workspace can't be read.
pub(crate) fn make(release: &Release) -> anyhow::Result<[PackageFile; 2]> {
    Ok([make_for_platform(release)?, make_launcher(release)?])
}

fn make_for_platform(release: &Release) -> anyhow::Result<PackageFile> {
    let platform = release.platform;
    let name = name_of_platform(release, platform);
    let mut manifest = describe(release, &name);
    manifest["description"] = format!("mcpd for {}", platform.triple).into();
    manifest["os"] = json!([platform.npm_os()]);
    manifest["cpu"] = json!([platform.npm_cpu()]);
    match platform.system {
        System::Glibc => manifest["libc"] = json!(["glibc"]),
        System::Musl => manifest["libc"] = json!(["musl"]),
        System::MacOs => {}
    }
    // A program in an archive, where Yarn leaves other packages, can't be started.
    manifest["preferUnplugged"] = true.into();
    let files = vec![
        PackageFile::program("bin/mcpd", release.binary.bytes.clone()),
        PackageFile::data("THIRD-PARTY-LICENSES.txt", release.licences.clone()),
        PackageFile::data("mcpd.cdx.json", release.sbom.clone()),
    ];
    pack(release, &name, &manifest, files)
}

fn make_launcher(release: &Release) -> anyhow::Result<PackageFile> {
    let name = &release.names.npm.package;
    let mut manifest = describe(release, name);
    manifest["bin"] = json!({"mcpd": "bin/mcpd.js"});
    manifest["engines"] = json!({"node": ">=18"});
    let platforms = PLATFORMS.iter().map(|platform| {
        let name = name_of_platform(release, platform);
        (name, release.version.clone().into())
    });
    manifest["optionalDependencies"] = Value::Object(platforms.collect::<Map<_, _>>());
    let files = vec![
        PackageFile::program("bin/mcpd.js", read("packaging/npm/mcpd.js")?),
        PackageFile::data("README.md", read("README.md")?),
    ];
    pack(release, name, &manifest, files)
}

fn name_of_platform(release: &Release, platform: &Platform) -> String {
    let npm = &release.names.npm;
    let suffix = platform.npm_suffix();
    format!("{}/{}-{suffix}", npm.scope, npm.package)
}

/// Returns what the manifests have in common.
fn describe(release: &Release, name: &str) -> Value {
    json!({
        "name": name,
        "version": release.version,
        "description": "A directory of executable scripts as an MCP server",
        "license": "MIT OR Apache-2.0",
        "repository": {"type": "git", "url": format!("git+{}.git", release.names.repository)},
        "keywords": ["mcp", "model-context-protocol", "scripts"],
    })
}

/// Makes the archive that `npm pack` would.
fn pack(
    release: &Release,
    name: &str,
    manifest: &Value,
    mut files: Vec<PackageFile>,
) -> anyhow::Result<PackageFile> {
    files.push(PackageFile::data("package.json", format!("{manifest:#}\n")));
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        files.push(PackageFile::data(licence, read(licence)?));
    }
    for file in &mut files {
        file.path = format!("package/{}", file.path);
    }
    let name = name.trim_start_matches('@').replace('/', "-");
    Ok(PackageFile::data(
        format!("{name}-{}.tgz", release.version),
        tar_gz(files, release.time)?,
    ))
}
