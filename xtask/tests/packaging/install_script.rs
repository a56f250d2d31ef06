//! `packaging/install.sh`: installs from a server on loopback, and refuses what has a wrong sum.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

use mcpd_tests::{repository, skip};
use tempfile::TempDir;

use super::{Packages, TARGET, VERSION, files_below, has, program, run, transcript};

/// HTTP server for the files of a directory. It ends with the test program.
fn serve(directory: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for connection in listener.incoming() {
            // A client that has gone away misses nothing.
            answer(connection.unwrap(), &directory).ok();
        }
    });
    format!("http://{address}")
}

fn answer(mut connection: TcpStream, directory: &Path) -> std::io::Result<()> {
    let mut head = String::new();
    let mut reader = BufReader::new(connection.try_clone()?);
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head)? > 0 {}
    let path = head.split(' ').nth(1).unwrap_or_default();
    let (status, body) = match fs::read(directory.join(path.trim_start_matches('/'))) {
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let length = body.len();
    write!(
        connection,
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    connection.write_all(&body)
}

/// Home of a user, and a place of downloads.
struct User {
    home: TempDir,
    downloads: TempDir,
}

impl User {
    /// Makes a user for whom the packages of the stand-in are served from a copy.
    fn new() -> Self {
        let (home, downloads) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for name in ["SHA256SUMS", &format!("mcpd-{VERSION}-{TARGET}.tar.gz")] {
            let package = Packages::of_stand_in().path().join(name);
            fs::copy(package, downloads.path().join(name)).unwrap();
        }
        fs::create_dir(home.path().join("tmp")).unwrap();
        Self { home, downloads }
    }

    fn archive(&self) -> PathBuf {
        let name = format!("mcpd-{VERSION}-{TARGET}.tar.gz");
        self.downloads.path().join(name)
    }

    fn script(&self, base: &str) -> Command {
        let mut script = program("sh");
        script.arg(repository().join("packaging/install.sh"));
        script
            .env("HOME", self.home.path())
            .env("MCPD_BASE_URL", base);
        script.env("TMPDIR", self.home.path().join("tmp"));
        script
            .env_remove("MCPD_INSTALL_DIR")
            .env_remove("XDG_STATE_HOME");
        script
    }

    fn install(&self) -> Output {
        let base = serve(self.downloads.path().to_owned());
        self.script(&base).output().unwrap()
    }

    /// Checks that the script fails for a reason, and leaves nothing.
    #[track_caller]
    fn check_refused(&self, output: &Output, reason: &str) {
        let printed = transcript(output);
        assert!(
            !output.status.success() && printed.contains(reason),
            "{printed}"
        );
        assert_eq!(files_below(self.home.path()), Vec::<String>::new());
    }
}

fn has_downloader() -> bool {
    let has = has("curl") || has("wget");
    if !has {
        skip("there is neither curl nor wget to download with");
    }
    has
}

#[test]
fn script_is_posix_sh() {
    let script = repository().join("packaging/install.sh");
    run(program("sh").arg("-n").arg(&script));
    if !has("dash") && program("dash").args(["-c", ":"]).output().is_err() {
        return skip("there is no dash to read install.sh with");
    }
    run(program("dash").arg("-n").arg(script));
}

#[test]
fn script_installs_and_uninstalls() {
    if !has_downloader() {
        return;
    }
    let user = User::new();
    let output = user.install();
    assert!(output.status.success(), "{}", transcript(&output));
    assert_eq!(files_below(user.home.path()), [".local/bin/mcpd"]);
    let installed = user.home.path().join(".local/bin/mcpd");
    assert_eq!(run(program(&installed).arg("--version")), "mcpd 0.0.0\n");
    // Once more over it, as an update.
    assert!(user.install().status.success());
    let mut script = user.script("http://127.0.0.1:9");
    let removed = run(script.arg("--uninstall"));
    assert!(removed.contains("is removed"), "{removed}");
    assert_eq!(files_below(user.home.path()), Vec::<String>::new());
    let output = user
        .script("http://127.0.0.1:9")
        .arg("--uninstall")
        .output();
    user.check_refused(&output.unwrap(), "there is no mcpd in ");
}

#[test]
fn script_installs_from_a_directory() {
    let user = User::new();
    let base = format!("file://{}", user.downloads.path().display());
    run(&mut user.script(&base));
    assert_eq!(files_below(user.home.path()), [".local/bin/mcpd"]);
}

#[test]
fn wrong_sum_is_refused() {
    if !has_downloader() {
        return;
    }
    let user = User::new();
    let mut bytes = fs::read(user.archive()).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(user.archive(), bytes).unwrap();
    user.check_refused(&user.install(), "nothing was installed");
}

#[test]
fn missing_files_are_refused() {
    if !has_downloader() {
        return;
    }
    let user = User::new();
    fs::remove_file(user.archive()).unwrap();
    user.check_refused(&user.install(), "can't be downloaded");
    fs::write(user.downloads.path().join("SHA256SUMS"), "").unwrap();
    user.check_refused(&user.install(), "has no archive for ");
    fs::remove_file(user.downloads.path().join("SHA256SUMS")).unwrap();
    user.check_refused(&user.install(), "SHA256SUMS can't be downloaded");
}

#[test]
fn unknown_argument_is_refused() {
    let user = User::new();
    let output = user.script("http://127.0.0.1:9").arg("--prefix").output();
    user.check_refused(&output.unwrap(), "unknown arguments: --prefix");
}
