//! Command lines for one run, as they are documented.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Launch, of};
use crate::backend::Backend;
use crate::linux::view::{Ground, Layer, Mount};
use crate::sandbox::Network;

/// Layers of a home that shows a script, and of a place that may be written except for a part.
fn layers<'a>(link: &'a Mount) -> Vec<Layer<'a>> {
    const HOME: &str = "/home/ann";
    const WRITTEN: &str = "/srv/out";
    let written = &Mount::Tree { writable: true };
    let shown = &Mount::Tree { writable: false };
    let all = [
        ("/dev/null", written, "/", Ground::ReadOnly),
        ("/dev/pts", &Mount::Terminals, "/", Ground::ReadOnly),
        ("/dev/shm", &Mount::Private, "/", Ground::ReadOnly),
        ("/etc/shadow", &Mount::Null, "/", Ground::ReadOnly),
        (HOME, &Mount::Empty, "/", Ground::ReadOnly),
        ("/home/ann/link", link, HOME, Ground::Memory),
        ("/home/ann/my tools", shown, HOME, Ground::Memory),
        ("/proc", &Mount::Processes, "/", Ground::ReadOnly),
        ("/run", &Mount::Empty, "/", Ground::ReadOnly),
        (WRITTEN, written, "/", Ground::ReadOnly),
        ("/srv/out/a", &Mount::Fixed, WRITTEN, Ground::Writable),
        ("/srv/out/a/key", &Mount::Null, WRITTEN, Ground::Writable),
        ("/tmp", &Mount::Private, "/", Ground::ReadOnly),
        ("/var/tmp", &Mount::Private, "/", Ground::ReadOnly),
    ];
    let layers = all.map(|(path, mount, base, ground)| Layer {
        path: Path::new(path),
        mount,
        base: Path::new(base),
        ground,
    });
    layers.into_iter().collect()
}

/// Returns the command line of a backend without a network, one word per line.
fn command_line(backend: Backend, layers: &[Layer<'_>]) -> Result<String, String> {
    let programs = backend.programs().iter();
    let programs: Vec<_> = programs
        .map(|name| PathBuf::from(format!("/usr/bin/{name}")))
        .collect();
    let launch = Launch {
        programs: &programs,
        words: &["/home/ann/my tools/script", "--name", "-x", ""].map(OsString::from),
        directory: Path::new("/home/ann/my tools"),
        network: Network::Off,
        variables: &["KEY", "PATH"].map(OsString::from),
        layers,
    };
    let arguments = of(backend).arguments(&launch)?;
    let words = programs
        .iter()
        .take(1)
        .map(|program| program.as_os_str().to_owned());
    let words = words
        .chain(arguments)
        .map(|word| word.into_string().unwrap());
    Ok(words.collect::<Vec<_>>().join("\n"))
}

/// Returns the command line that is documented. Firejail can show no link in a hidden directory,
/// and lists what this machine has in `/run`.
fn documented(backend: Backend) -> String {
    let link = Mount::Link {
        target: "/srv/tools".into(),
    };
    let mut layers = layers(&link);
    if backend == Backend::Firejail {
        let error = command_line(backend, &layers).unwrap_err();
        assert!(error.contains("the link `/home/ann/link`"), "{error}");
        layers.retain(|layer| *layer.mount != link && layer.path != Path::new("/run"));
    }
    command_line(backend, &layers).unwrap()
}

#[test]
fn command_line_of_bwrap() {
    insta::assert_snapshot!(documented(Backend::Bwrap));
}

#[test]
fn command_line_of_gvisor() {
    insta::assert_snapshot!(documented(Backend::Gvisor));
}

#[test]
fn command_line_of_podman() {
    insta::assert_snapshot!(documented(Backend::Podman));
}

#[test]
fn command_line_of_firejail() {
    insta::assert_snapshot!(documented(Backend::Firejail));
}

#[test]
fn options_of_the_command_lines_are_in_the_documentation() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/backends.md");
    let page = std::fs::read_to_string(page).unwrap();
    for backend in Backend::ALL {
        let line = documented(backend);
        let (options, _) = line.split_once("/home/ann/my tools/script\n").unwrap();
        for word in options.lines().filter(|word| word.starts_with('-')) {
            assert!(page.contains(word), "{backend}: {word}");
        }
    }
}

/// Such a path would be another one, or several, or an option more.
#[test]
fn path_with_a_meaning_is_refused() {
    for (backend, path) in [
        (Backend::Podman, "/srv/a,ro=false"),
        (Backend::Podman, "/srv/\"a"),
        (Backend::Podman, "/srv/a\nb"),
        (Backend::Firejail, "/srv/*"),
        (Backend::Firejail, "/srv/${HOME}"),
        (Backend::Firejail, "/srv/a\nb"),
    ] {
        let layer = Layer {
            path: Path::new(path),
            mount: &Mount::Tree { writable: true },
            base: Path::new("/"),
            ground: Ground::ReadOnly,
        };
        let error = command_line(backend, &[layer]).unwrap_err();
        assert!(error.contains("rename it"), "{error}");
    }
}
