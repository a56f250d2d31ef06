//! Podman: a container whose files are those of the host, below an overlay that is dropped.

use std::ffi::OsString;
use std::path::Path;

use super::{Arguments, Launch, Launcher, check_path};
use crate::linux::view::{Mount, PRIVATE_BYTES};
use crate::sandbox::Network;

/// `podman`, from version 4 on, with `crun`.
#[derive(Debug)]
pub(super) struct Podman;

impl Launcher for Podman {
    fn is_transparent(&self) -> bool {
        false
    }

    fn arguments(&self, launch: &Launch<'_>) -> Result<Vec<OsString>, String> {
        let mut arguments = Arguments::default();
        arguments.add([
            "run",
            "--rm",
            "--interactive",
            "--init",
            "--log-driver=none",
        ]);
        // Limits and control group are those that the run was started with.
        arguments.add(["--cgroups=disabled", "--ulimit=host", "--ipc=private"]);
        arguments.add(["--uts=private", "--cap-drop=all", "--http-proxy=false"]);
        arguments.add(["--security-opt=no-new-privileges"]);
        arguments.add(["--security-opt=label=disable", "--no-hosts"]);
        arguments.add(["--read-only", "--read-only-tmpfs=false"]);
        arguments.add([match launch.network {
            Network::Host => "--network=host",
            Network::Listed | Network::Off => "--network=none",
        }]);
        for name in launch.variables {
            // Without a value, it is that of the environment.
            let mut word = OsString::from("--env=");
            word.push(name);
            arguments.add([word]);
        }
        for layer in launch.layers {
            lay(&mut arguments, layer.path, layer.mount)?;
        }
        arguments.joined("--workdir=", launch.directory);
        arguments.add(["--rootfs", "/:O"]);
        arguments.add(launch.words);
        Ok(arguments.0)
    }
}

fn lay(arguments: &mut Arguments, path: &Path, mount: &Mount) -> Result<(), String> {
    let memory = |options: &str| format!("--mount=type=tmpfs,{options},notmpcopyup,dst=");
    let (option, source) = match mount {
        // The container has its own.
        Mount::Processes | Mount::Terminals => return Ok(()),
        _ if path.starts_with("/dev") && path != Path::new("/dev/shm") => return Ok(()),
        Mount::Private => {
            let options = format!("tmpfs-size={PRIVATE_BYTES},tmpfs-mode=1777");
            (memory(&options), None)
        }
        Mount::Empty => (memory("tmpfs-mode=0755"), None),
        Mount::Null => bind(true, Path::new("/dev/null")),
        Mount::Tree { writable } => bind(!writable, path),
        Mount::Fixed => bind(false, path),
        Mount::Link { target } => bind(true, target),
    };
    check_path(path, ",\"")?;
    let mut word = OsString::from(option);
    if let Some(source) = source {
        check_path(source, ",\"")?;
        word.push(source);
        word.push(",dst=");
    }
    word.push(path);
    arguments.add([word]);
    Ok(())
}

fn bind(is_read_only: bool, source: &Path) -> (String, Option<&Path>) {
    let option = format!("--mount=type=bind,ro={is_read_only},src=");
    (option, Some(source))
}
