//! Firejail: lists of paths instead of mounts, so that it can't show everything that a view holds.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::{Arguments, Launch, Launcher, check_path};
use crate::linux::view::{Ground, Layer, Mount};
use crate::sandbox::Network;

/// Characters that it expands in paths.
const SPECIAL: &str = "*?[]{}$~,";

/// Directory of sockets, of which it needs a part.
const RUN: &str = "/run";

/// `firejail`, from version 0.9.72 on, which starts programs without a shell.
#[derive(Debug)]
pub(super) struct Firejail;

impl Launcher for Firejail {
    fn is_transparent(&self) -> bool {
        false
    }

    fn arguments(&self, launch: &Launch<'_>) -> Result<Vec<OsString>, String> {
        let mut arguments = Arguments::default();
        arguments.add(["--quiet", "--noprofile", "--nonewprivs", "--nogroups"]);
        arguments.add(["--caps.drop=all", "--seccomp", "--private-dev"]);
        arguments.add(["--ipc-namespace", "--dbus-user=none", "--dbus-system=none"]);
        // It ends with the program, even if others are left.
        arguments.add(["--deterministic-shutdown", "--deterministic-exit-code"]);
        if launch.network != Network::Host {
            arguments.add(["--net=none"]);
        }
        for layer in launch.layers {
            list(&mut arguments, layer, launch.layers)?;
        }
        arguments.add(["--read-only=/"]);
        for layer in launch.layers {
            if let Some(option) = access(layer) {
                check_path(layer.path, SPECIAL)?;
                arguments.joined(option, layer.path);
            }
        }
        arguments.add(["--"]);
        arguments.add(launch.words);
        Ok(arguments.0)
    }
}

/// Returns the option that corrects the access to a layer, after all is read-only.
fn access(layer: &Layer<'_>) -> Option<&'static str> {
    match layer.mount {
        _ if layer.path.starts_with("/dev") => None,
        Mount::Tree { writable: true } => Some("--read-write="),
        Mount::Private if layer.path == Path::new("/tmp") => Some("--read-write="),
        Mount::Tree { writable: false } if layer.ground == Ground::Memory => Some("--read-only="),
        _ => None,
    }
}

/// Lists one layer. A directory that shows parts of itself is replaced by a list of these.
fn list(arguments: &mut Arguments, layer: &Layer<'_>, layers: &[Layer<'_>]) -> Result<(), String> {
    let path = layer.path;
    let shows_parts = layers.iter().any(|inner| inner.base == path);
    let option = match layer.mount {
        // It makes its own.
        Mount::Processes | Mount::Terminals => return Ok(()),
        _ if path.starts_with("/dev") => return Ok(()),
        Mount::Private | Mount::Empty if shows_parts => return Ok(()),
        Mount::Empty if path == Path::new(RUN) => {
            // It works in there itself.
            for entry in fs::read_dir(path).into_iter().flatten().flatten() {
                if entry.file_name() != "firejail" {
                    check_path(&entry.path(), SPECIAL)?;
                    arguments.joined("--blacklist=", &entry.path());
                }
            }
            return Ok(());
        }
        Mount::Private if path == Path::new("/tmp") => {
            arguments.add(["--private-tmp"]);
            return Ok(());
        }
        Mount::Private | Mount::Empty | Mount::Null => "--blacklist=",
        Mount::Tree { .. } if layer.ground == Ground::Memory => "--whitelist=",
        Mount::Tree { .. } | Mount::Fixed => return Ok(()),
        Mount::Link { .. } => {
            return Err(format!(
                "it cannot show the link `{path}` in a hidden directory; name its target instead, or use the backend `bwrap`",
                path = path.display()
            ));
        }
    };
    check_path(path, SPECIAL)?;
    arguments.joined(option, path);
    Ok(())
}
