//! Packs a directory of scripts, unpacks the bundle again, and prints what a client would start:
//! `cargo run --package mcpd-bundle --example pack -- DIRECTORY`.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::collections::BTreeMap;
use std::env;
use std::path::Path;

use mcpd_bundle::{Archive, Manifest, Platform, Selection, Tree, unpack};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = env::args().nth(1).ok_or("name a directory")?;
    let tree = Tree::read(Path::new(&directory), &Selection::default())?;
    for one in &tree.left_out {
        println!("left out: {} ({})", one.path, one.reason);
    }
    let mut manifest = Manifest::new("example", "1.0.0", "An example.", "Ada");
    let args = [
        "stdio".to_owned(),
        format!("{}/scripts", Manifest::DIRECTORY),
    ];
    manifest.set_programs(&[Platform::current()], args.into());

    let mut archive = Archive::default();
    archive.add_tree("scripts", &tree)?;
    archive.add_bytes("manifest.json", manifest.to_json())?;
    let mut file = tempfile::tempfile()?;
    archive.write(&mut file)?;

    let unpacked = tempfile::tempdir()?;
    unpack(&mut file, unpacked.path())?;
    let place = unpacked.path().to_string_lossy();
    let launch = manifest.launch(&place, Platform::current(), &BTreeMap::new())?;
    println!("{} {}", launch.command, launch.args.join(" "));
    Ok(())
}
