//! Bubblewrap: lays the same view as the namespaces of this crate, and runs our first process
//! in it.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::{Arguments, Launch, Launcher};
use crate::linux::raw::SpawnPlan;
use crate::linux::view::{Mount, PRIVATE_BYTES};
use crate::sandbox::Network;

/// `bwrap`, from version 0.8 on.
#[derive(Debug)]
pub(super) struct Bwrap;

impl Launcher for Bwrap {
    fn is_transparent(&self) -> bool {
        true
    }

    fn arguments(&self, launch: &Launch<'_>) -> Result<Vec<OsString>, String> {
        let mut arguments = namespaces(launch);
        // Writable, it would let root change settings of the system.
        arguments.add(["--remount-ro", "/proc"]);
        arguments.add(["--cap-drop", "ALL", "--as-pid-1"]);
        let filter = SpawnPlan::FILTER_FD.to_string();
        arguments.add(["--seccomp", &filter, "--"]);
        arguments.add([format!("/proc/self/fd/{}", SpawnPlan::INIT_FD)]);
        arguments.add(launch.words);
        Ok(arguments.0)
    }
}

/// Returns the arguments for the namespaces of a run, and what it sees in them.
pub(super) fn namespaces(launch: &Launch<'_>) -> Arguments {
    let mut arguments = Arguments::default();
    arguments.add(["--unshare-user", "--unshare-pid", "--unshare-ipc"]);
    arguments.add(["--unshare-uts", "--die-with-parent"]);
    // With destinations, the run is in the namespace of its proxy already.
    if launch.network == Network::Off {
        arguments.add(["--unshare-net"]);
    }
    arguments.add(["--ro-bind", "/", "/", "--dev", "/dev"]);
    for layer in launch.layers {
        lay(&mut arguments, layer.path, layer.mount);
    }
    // Memory that held mount points until now, and must not be written.
    for layer in launch.layers.iter().rev() {
        if *layer.mount == Mount::Empty && is_laid(layer.path) {
            arguments.option("--remount-ro", layer.path);
        }
    }
    arguments.add(["--remount-ro", "/dev"]);
    arguments.option("--chdir", launch.directory);
    arguments
}

/// Returns whether anything is laid at a path. Of the devices of the system, `--dev` leaves
/// nothing to cover.
fn is_laid(path: &Path) -> bool {
    !path.starts_with("/dev")
}

fn lay(arguments: &mut Arguments, path: &Path, mount: &Mount) {
    let text = path.as_os_str();
    let mut bind = |option: &str| arguments.add([OsStr::new(option), text, text]);
    match mount {
        Mount::Tree { .. } if path.starts_with("/dev") => bind("--dev-bind"),
        Mount::Tree { writable: true } | Mount::Fixed => bind("--bind"),
        Mount::Tree { writable: false } => bind("--ro-bind"),
        Mount::Private => {
            let size = PRIVATE_BYTES.to_string();
            arguments.add(["--perms", "1777", "--size", &size]);
            arguments.option("--tmpfs", path);
        }
        // `--dev` has made terminals.
        Mount::Terminals => {}
        Mount::Empty | Mount::Null if !is_laid(path) => {}
        Mount::Empty => {
            arguments.add(["--perms", "0755"]);
            arguments.option("--tmpfs", path);
        }
        Mount::Null => arguments.add([OsStr::new("--dev-bind"), OsStr::new("/dev/null"), text]),
        Mount::Processes => arguments.option("--proc", path),
        Mount::Link { target } => {
            arguments.add([OsStr::new("--symlink"), target.as_os_str(), text]);
        }
    }
}
