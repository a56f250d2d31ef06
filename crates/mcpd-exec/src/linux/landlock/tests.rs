//! Abilities of a process under a ruleset. Each refused act succeeds without the ruleset.

use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::*;
use crate::linux::skip::skip;

/// Directory with `open/file`, `in/file`, `secret/key` and `secret/public`, and a link `dangling`
/// to `open/later`.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for path in ["open/file", "in/file", "secret/key", "secret/public"] {
            place.make(path);
        }
        symlink(place.at("open/later"), place.at("dangling")).unwrap();
        place
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// Makes a file and the directories above it.
    fn make(&self, path: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "text").unwrap();
    }

    fn rules(&self, write: &[&str], hidden: &[&str]) -> Rules {
        let mut sandbox = Sandbox::none();
        sandbox.write = write.iter().map(|path| self.at(path)).collect();
        sandbox.hidden = hidden.iter().map(|path| self.at(path)).collect();
        Rules::new(&sandbox, &[], None).unwrap()
    }

    fn ruleset(&self, write: &[&str], hidden: &[&str]) -> Ruleset {
        self.rules(write, hidden)
            .finish(supported_abi().unwrap())
            .unwrap()
    }

    /// Returns rules that allow writing `in` and hide `secret`.
    fn usual(&self) -> Rules {
        self.rules(&["in"], &["secret"])
    }
}

/// Runs `act` on a thread of its own that has entered the rules.
fn run_confined<T: Send>(rules: Rules, act: impl FnOnce() -> T + Send) -> T {
    let run = || {
        rules.created.restrict_self().unwrap();
        act()
    };
    thread::scope(|scope| scope.spawn(run).join().unwrap())
}

/// Checks that the act is refused under the rules, and succeeds without.
#[track_caller]
fn check<T: Debug + Send>(rules: Rules, act: impl Fn() -> io::Result<T> + Sync) {
    if !has_landlock() {
        return;
    }
    let refusal = run_confined(rules, &act).expect_err("refused under the rules");
    let codes = [libc::EACCES, libc::EPERM, libc::EXDEV].map(Some);
    assert!(codes.contains(&refusal.raw_os_error()), "{refusal}");
    act().expect("possible without");
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(path)
}

fn has_landlock() -> bool {
    let supported = supported_abi();
    if let Err(missing) = &supported {
        skip(&format!("{missing:?}"));
    }
    supported.is_ok()
}

/// Returns whether the kernel has scopes, which came with version 6 of the ABI.
fn has_scopes() -> bool {
    let abi = supported_abi().unwrap_or(0);
    if abi < 6 {
        skip(&format!("scopes need Landlock 6, this system has {abi}"));
    }
    abi >= 6
}

#[test]
fn hidden_directory_is_unreadable_and_its_neighbour_is_not() {
    let place = Place::new();
    check(place.usual(), || fs::read(place.at("secret/key")));
    check(place.usual(), || fs::read(place.at("in/../secret/key")));
    run_confined(place.usual(), || {
        fs::read(place.at("open/file")).unwrap();
        fs::read(place.at("in/file")).unwrap();
        fs::read("/etc/passwd").unwrap();
        // Names are not hidden.
        assert_eq!(fs::read_dir(place.at("")).unwrap().count(), 4);
        assert_eq!(fs::read_dir(place.at("secret")).unwrap().count(), 2);
    });
}

#[test]
fn hidden_file_is_unreadable_and_its_neighbour_is_not() {
    let place = Place::new();
    let rules = || place.rules(&[], &["secret/key"]);
    check(rules(), || fs::read(place.at("secret/key")));
    run_confined(rules(), || fs::read(place.at("secret/public"))).unwrap();
}

#[test]
fn hidden_file_is_unreadable_by_another_name() {
    let place = Place::new();
    symlink(place.at("secret"), place.at("in/link")).unwrap();
    symlink(place.at("secret"), place.at("beside")).unwrap();
    check(place.usual(), || fs::read(place.at("in/link/key")));
    check(place.usual(), || fs::read(place.at("beside/key")));
    check(place.usual(), || {
        fs::hard_link(place.at("secret/key"), place.at("in/hard"))
    });
    check(place.usual(), || {
        fs::rename(place.at("secret"), place.at("in/moved"))
    });
}

#[test]
fn link_is_hidden_with_its_target() {
    let place = Place::new();
    symlink(place.at("secret"), place.at("link")).unwrap();
    check(place.rules(&[], &["link"]), || {
        fs::read(place.at("secret/key"))
    });
    check(place.rules(&[], &["link/key"]), || {
        fs::read(place.at("secret/key"))
    });
    run_confined(place.rules(&[], &["link/key"]), || {
        fs::read(place.at("secret/public"))
    })
    .unwrap();
}

#[test]
fn hidden_file_stays_hidden_with_any_mode() {
    let place = Place::new();
    let set_mode =
        |path: &str, mode| fs::set_permissions(place.at(path), fs::Permissions::from_mode(mode));
    set_mode("secret/key", 0).unwrap();
    set_mode("secret", 0).unwrap();
    check(place.rules(&[], &["secret/key"]), || {
        set_mode("secret", 0o700)?;
        set_mode("secret/key", 0o600)?;
        fs::read(place.at("secret/key"))
    });
}

#[test]
fn neighbours_of_a_hidden_path_are_readable_in_unlisted_directories() {
    let place = Place::new();
    place.make("open/deep/secret");
    let set_mode = |mode| fs::set_permissions(place.at(""), fs::Permissions::from_mode(mode));
    set_mode(0o311).unwrap();
    let rules = || place.rules(&[], &["open/deep/secret"]);
    run_confined(rules(), || fs::read(place.at("open/file"))).unwrap();
    check(rules(), || fs::read(place.at("open/deep/secret")));
    // Otherwise it could not be removed.
    set_mode(0o700).unwrap();
}

#[test]
fn outside_paths_are_not_writable() {
    let place = Place::new();
    symlink(place.at("open"), place.at("in/link")).unwrap();
    check(place.usual(), || append(&place.at("open/file")));
    check(place.usual(), || File::create(place.at("open/new")));
    check(place.usual(), || File::create(place.at("in/link/by-link")));
    check(place.usual(), || {
        File::create(place.at("in/../open/by-dots"))
    });
    check(place.usual(), || fs::create_dir(place.at("open/directory")));
    check(place.usual(), || symlink("/", place.at("open/symlink")));
    check(place.usual(), || {
        fs::rename(place.at("in/file"), place.at("open/moved"))
    });
    check(place.usual(), || {
        fs::hard_link(place.at("open/file"), place.at("in/hard"))
    });
    check(place.usual(), || fs::remove_file(place.at("open/file")));
}

#[test]
fn inside_paths_are_writable() {
    let place = Place::new();
    run_confined(place.usual(), || {
        fs::create_dir(place.at("in/directory")).unwrap();
        File::create(place.at("in/directory/new")).unwrap();
        append(&place.at("in/file")).unwrap().set_len(1).unwrap();
        symlink("/", place.at("in/symlink")).unwrap();
        UnixListener::bind(place.at("in/socket")).unwrap();
        fs::rename(place.at("in/file"), place.at("in/directory/moved")).unwrap();
        fs::hard_link(place.at("in/directory/moved"), place.at("in/hard")).unwrap();
        fs::remove_dir_all(place.at("in/directory")).unwrap();
    });
}

#[test]
fn single_file_is_writable_and_its_neighbour_is_not() {
    let place = Place::new();
    let rules = || place.rules(&["open/file"], &[]);
    run_confined(rules(), || fs::write(place.at("open/file"), "new")).unwrap();
    check(rules(), || File::create(place.at("open/new")));
}

#[test]
fn missing_path_makes_nothing_writable() {
    let place = Place::new();
    let rules = || place.rules(&["open/missing/deep"], &[]);
    let skipped = format!(
        "`{}` does not exist, so it is not writable",
        place.at("open/missing/deep").display()
    );
    assert_eq!(rules().skipped, [skipped]);
    check(rules(), || fs::create_dir(place.at("open/missing")));
}

#[test]
fn more_specific_entry_of_hidden_and_writable_counts() {
    let place = Place::new();
    place.make("secret/in/file");
    let within = || place.rules(&["secret/in"], &["secret"]);
    run_confined(within(), || append(&place.at("secret/in/file"))).unwrap();
    check(within(), || fs::read(place.at("secret/key")));

    let equal = || place.rules(&["secret"], &["secret"]);
    run_confined(equal(), || fs::read(place.at("secret/key"))).unwrap();
    run_confined(equal(), || append(&place.at("secret/key"))).unwrap();
    run_confined(equal(), || File::create(place.at("secret/new"))).unwrap();
}

#[test]
fn hidden_path_in_a_writable_directory_stays_hidden() {
    let place = Place::new();
    place.make("in/secret/key");
    place.make("in/directory/file");
    let rules = || place.rules(&["in"], &["in/secret"]);
    check(rules(), || fs::read(place.at("in/secret/key")));
    check(rules(), || append(&place.at("in/secret/key")));
    check(rules(), || {
        fs::rename(place.at("in/secret/key"), place.at("in/directory/key"))
    });
    check(rules(), || File::create(place.at("in/new")));
    run_confined(rules(), || File::create(place.at("in/directory/new"))).unwrap();
    run_confined(rules(), || append(&place.at("in/file"))).unwrap();
}

#[test]
fn devices_are_refused_except_harmless_ones() {
    let place = Place::new();
    run_confined(place.usual(), || {
        fs::write("/dev/null", "text").unwrap();
        File::open("/dev/urandom").unwrap();
        tempfile::tempfile_in("/dev/shm").unwrap();
    });
    let others = ["/dev/kmsg", "/dev/fuse", "/dev/kvm"];
    match others.iter().find(|device| File::open(device).is_ok()) {
        Some(device) => check(place.usual(), || File::open(device)),
        None => skip(&format!("none of {others:?} can be opened here")),
    }
}

#[test]
fn process_files_are_readable_and_not_writable() {
    let place = Place::new();
    run_confined(place.usual(), || fs::read("/proc/self/status")).unwrap();
    check(place.usual(), || {
        append(Path::new("/proc/self/oom_score_adj"))
    });
}

#[test]
fn output_is_opened_by_the_name_of_its_device() {
    let place = Place::new();
    #[expect(
        clippy::disallowed_methods,
        reason = "what starts processes properly is built on this"
    )]
    let output = run_confined(place.usual(), || {
        Command::new("sh")
            .args(["-c", "echo text >/dev/stdout"])
            .output()
    });
    assert_eq!(output.unwrap().stdout, b"text\n");
}

/// Process that is killed on drop.
struct Bystander(std::process::Child);

impl Bystander {
    #[expect(
        clippy::disallowed_methods,
        reason = "what starts processes properly is built on this"
    )]
    fn start() -> Self {
        Self(Command::new("sleep").arg("60").spawn().unwrap())
    }

    fn signal(&self) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(&self.0), Signal::CONT)?)
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn outside_processes_are_not_signalled() {
    if has_scopes() {
        let bystander = Bystander::start();
        check(Place::new().usual(), || bystander.signal());
    }
}

#[test]
fn outside_processes_are_not_reached_by_abstract_sockets() {
    if has_scopes() {
        let name = format!("mcpd-exec-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(name).unwrap();
        let _listener = UnixListener::bind_addr(&address).unwrap();
        check(Place::new().usual(), || UnixStream::connect_addr(&address));
    }
}

#[test]
fn scopes_leave_files_alone() {
    if has_scopes() {
        let (place, bystander) = (Place::new(), Bystander::start());
        check(Rules::scopes(Network::Host).unwrap(), || bystander.signal());
        run_confined(Rules::scopes(Network::Host).unwrap(), || {
            append(&place.at("open/file"))
        })
        .unwrap();
    }
}

#[test]
fn ports_are_refused_without_network() {
    let abi = supported_abi().unwrap_or(0);
    if abi < 4 {
        skip(&format!("ports need Landlock 4, this system has {abi}"));
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let without = || {
        [
            Rules::new(&Sandbox::none().network(Network::Off), &[], None).unwrap(),
            Rules::scopes(Network::Off).unwrap(),
        ]
    };
    for rules in without() {
        check(rules, || TcpStream::connect(address));
    }
    for rules in without() {
        check(rules, || TcpListener::bind("127.0.0.1:0"));
    }
    run_confined(Place::new().usual(), || TcpStream::connect(address)).unwrap();
}

/// Checks whether a ruleset is still current after a change, as far as it watches this place.
#[track_caller]
fn check_current(write: &[&str], hidden: &[&str], change: impl Fn(&Place), expected: bool) {
    if !has_landlock() {
        return;
    }
    let place = Place::new();
    thread::sleep(Duration::from_millis(30));
    let ruleset = place.ruleset(write, hidden);
    // Other tests make directories beside ours, on the way to hidden paths.
    let is_current = || ruleset.watch.is_current_below(place.0.path());
    assert!(is_current(), "before the change");
    change(&place);
    assert_eq!(is_current(), expected, "after the change");
}

#[test]
fn rules_are_current_until_a_neighbour_of_a_hidden_path_appears() {
    check_current(&[], &["secret"], |place| place.make("new/file"), false);
    check_current(
        &[],
        &["open/deep/secret"],
        |place| place.make("open/new"),
        true,
    );
    check_current(&["in"], &["secret"], |place| place.make("in/new"), true);
    check_current(&["in"], &["secret"], |place| place.make("secret/new"), true);
    check_current(
        &["in"],
        &["in/secret"],
        |place| place.make("in/secret/new"),
        false,
    );
}

#[test]
fn rules_are_current_until_a_hidden_path_appears() {
    check_current(
        &[],
        &["open/deep/secret"],
        |place| place.make("open/deep/secret"),
        false,
    );
    check_current(
        &[],
        &["secret/key", "secret/new"],
        |place| place.make("secret/new"),
        false,
    );
    check_current(
        &[],
        &["open/one", "open/two"],
        |place| place.make("open/two"),
        false,
    );
    check_current(&[], &["open/one"], |place| place.make("open/two"), true);
    let lead = |place: &Place| symlink(place.at("open"), place.at("link")).unwrap();
    check_current(&[], &["link"], lead, false);
    check_current(&[], &["link", "secret"], lead, false);
}

#[test]
fn rules_are_current_until_the_target_of_a_hidden_link_appears() {
    let appears = |place: &Place| place.make("open/later");
    check_current(&[], &["dangling"], appears, false);
    check_current(&[], &["dangling", "secret"], appears, false);
}

#[test]
fn rules_are_current_until_a_writable_path_is_replaced() {
    if has_landlock() {
        let place = Place::new();
        let ruleset = place.ruleset(&["in", "later"], &[]);
        assert_eq!(ruleset.skipped_paths().len(), 1);
        assert!(ruleset.is_current());
        place.make("later/file");
        assert!(!ruleset.is_current());

        let ruleset = place.ruleset(&["in", "later"], &[]);
        assert!(ruleset.is_current());
        fs::rename(place.at("in"), place.at("moved")).unwrap();
        fs::create_dir(place.at("in")).unwrap();
        assert!(!ruleset.is_current());
    }
}
