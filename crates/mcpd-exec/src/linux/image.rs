//! Conversion of a command to the kernel's form: arguments, environment and resource limits.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

use super::raw::Image;
use crate::command::Command;
use crate::egress::Gate;
use crate::limits::Limits;
use crate::sandbox::Level;

/// Converts text to a C string.
///
/// # Errors
///
/// It contains a NUL byte.
pub(crate) fn text(text: impl AsRef<OsStr>) -> io::Result<CString> {
    Ok(CString::new(text.as_ref().as_bytes())?)
}

/// Returns the image of a process with these arguments and the environment of `command`.
pub(crate) fn image(
    command: &Command,
    arguments: &[&OsStr],
    temporary: Option<&Path>,
    gate: Option<&Gate>,
) -> io::Result<Image> {
    let mut changes: Vec<(&OsStr, Option<&OsStr>)> = Vec::new();
    if let Some(directory) = temporary {
        let further = command.temporary_variables();
        let further = further.filter(|name| *name != "TMPDIR");
        let names = further.chain(["TMPDIR"]);
        changes.extend(names.map(|name| (OsStr::new(name), Some(directory.as_os_str()))));
    }
    let proxied: Vec<_> = gate.into_iter().flat_map(Gate::variables).collect();
    let own = proxied.iter();
    changes.extend(own.map(|(name, value)| (OsStr::new(name), Some(OsStr::new(value)))));
    let own_count = changes.len();
    for (name, value) in command.changed_variables() {
        if !changes[..own_count].iter().any(|(own, _)| *own == name) {
            changes.push((name, value));
        }
    }
    Image::new(arguments, command.base_variables(), &changes)
}

/// Returns the resource limits of a process, none above the hard limit of this process.
pub(crate) fn resources(limits: &Limits, level: Level) -> Vec<(i32, u64, u64)> {
    let seconds = limits.cpu.map(|cpu| cpu.as_secs().max(1));
    let core = (level >= Level::Guarded).then_some(0);
    let wanted = [
        (libc::RLIMIT_CPU, Resource::Cpu, seconds),
        (libc::RLIMIT_AS, Resource::As, limits.address_space),
        (libc::RLIMIT_FSIZE, Resource::Fsize, limits.file_size),
        (libc::RLIMIT_NOFILE, Resource::Nofile, limits.open_files),
        (libc::RLIMIT_NPROC, Resource::Nproc, limits.processes),
        (libc::RLIMIT_CORE, Resource::Core, core),
    ];
    let wanted = wanted.into_iter().filter_map(|(number, resource, wish)| {
        let wish = wish?;
        let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let soft = wish.min(most);
        // At the soft limit of processor time the program gets SIGXCPU, a second later SIGKILL.
        let hard = if resource == Resource::Cpu {
            soft.saturating_add(1).min(most)
        } else {
            soft
        };
        Some((number as i32, soft, hard))
    });
    wanted.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variables::Variables;

    fn image_of(command: &Command, temporary: Option<&Path>) -> io::Result<Image> {
        image(command, &[OsStr::new("/bin/true")], temporary, None)
    }

    #[test]
    fn change_takes_the_place_of_an_inherited_variable() {
        let inherited = ["KEPT", "REMOVED", "SET", "TMPDIR"];
        let inherited = inherited.map(|name| (name, Some("old".into())));
        let command = Command::new("/bin/true")
            .inherit(&Variables::default().with(inherited))
            .env("SET", "new")
            .env("TMPDIR", "/own")
            .env("ADDED", "=")
            .env_remove("REMOVED")
            .env_remove("UNKNOWN");
        let image = image_of(&command, Some(Path::new("/run"))).unwrap();
        let entries: Vec<_> = image.variables().map(|entry| entry.to_bytes()).collect();
        let expected: [&[u8]; 4] = [b"KEPT=old", b"TMPDIR=/run", b"ADDED==", b"SET=new"];
        assert_eq!(entries, expected);
    }

    #[test]
    fn nul_byte_is_refused() {
        let value = Command::new("/bin/true").env("A", "b\0c");
        assert!(image_of(&value, None).is_err());
        let arguments = [OsStr::new("/bin/true"), OsStr::new("a\0b")];
        assert!(image(&Command::new("/bin/true"), &arguments, None, None).is_err());
    }
}
