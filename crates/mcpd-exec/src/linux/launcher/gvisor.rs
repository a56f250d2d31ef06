//! gVisor: a kernel of its own, which `runsc do` starts in the namespaces of Bubblewrap. These lay
//! the view, since `runsc do` shows and hides no single path.

use std::ffi::{OsStr, OsString};

use super::bwrap;
use super::{Launch, Launcher};
use crate::sandbox::Network;

/// `runsc`, as an ordinary user or as root.
#[derive(Debug)]
pub(super) struct Gvisor;

impl Launcher for Gvisor {
    fn is_transparent(&self) -> bool {
        false
    }

    fn arguments(&self, launch: &Launch<'_>) -> Result<Vec<OsString>, String> {
        let [_, runsc] = launch.programs else {
            return Err("`runsc` is missing".to_owned());
        };
        let network = match launch.network {
            Network::Host => "--network=host",
            Network::Listed | Network::Off => "--network=none",
        };
        let mut arguments = bwrap::namespaces(launch);
        arguments.add([OsStr::new("--"), runsc.as_os_str()]);
        arguments.add(["--rootless", "--ignore-cgroups", network, "do", "-quiet"]);
        // Otherwise what is written to a writable place would be lost.
        arguments.add(["-force-overlay=false"]);
        arguments.option("-cwd", launch.directory);
        arguments.add(["--"]);
        arguments.add(launch.words);
        Ok(arguments.0)
    }
}
