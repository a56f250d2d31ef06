//! Sources that are fetched from repositories and archives made for the test.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use mcpd_exec::{Command, Executor};
use mcpd_sources::{Digest, FetchError, FileChange, Pin, Source, Store};
use tempfile::TempDir;

/// A repository, and a place for what is fetched.
struct Fixture {
    directory: TempDir,
    executor: Executor,
    store: Store,
}

impl Fixture {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let fixture = Self {
            store: Store::new(directory.path().join("store")),
            executor: Executor::new(Default::default()).unwrap(),
            directory,
        };
        fs::create_dir(fixture.repository()).unwrap();
        fixture
            .git(&["init", "--quiet", "--initial-branch=main"])
            .await;
        fixture.write("scripts/hello", "#!/bin/sh\necho hello\n");
        fixture.commit("first").await;
        fixture
    }

    fn repository(&self) -> PathBuf {
        self.directory.path().join("repository")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.repository().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    async fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]).await;
        self.git(&["commit", "--quiet", "--message", message]).await;
        self.git(&["rev-parse", "HEAD"]).await.trim().to_owned()
    }

    async fn git(&self, arguments: &[&str]) -> String {
        let git = Command::new("git")
            .args(["-c", "user.name=Test", "-c", "user.email=test@example.org"])
            .args([
                "-c",
                "protocol.file.allow=always",
                "-c",
                "commit.gpgSign=false",
            ])
            .args(arguments)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .current_dir(self.repository());
        let outcome = self.executor.run(git).await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(outcome.success(), "{}", text(&outcome.stderr.head));
        text(&outcome.stdout.head)
    }

    fn source(&self, query: &str) -> Source {
        let address = format!("git+file://{}{query}", self.repository().display());
        address.parse().unwrap()
    }

    async fn fetch(
        &self,
        source: &Source,
        pin: Option<&Pin>,
    ) -> Result<mcpd_sources::Fetched, FetchError> {
        source
            .fetch(&self.executor, pin, self.store.directory())
            .await
    }
}

#[tokio::test]
async fn a_directory_of_a_branch_a_tag_and_a_commit_is_fetched() {
    let fixture = Fixture::new().await;
    let first = fixture.git(&["rev-parse", "HEAD"]).await.trim().to_owned();
    fixture.git(&["tag", "v1"]).await;
    fixture.write("scripts/hello", "#!/bin/sh\necho changed\n");
    let second = fixture.commit("second").await;
    for (query, commit) in [
        ("?path=scripts".to_owned(), &second),
        ("?rev=main&path=scripts".to_owned(), &second),
        ("?rev=v1&path=scripts".to_owned(), &first),
        (format!("?rev={first}&path=scripts"), &first),
        (format!("?rev={}&path=scripts", &first[..10]), &first),
    ] {
        let fetched = fixture.fetch(&fixture.source(&query), None).await.unwrap();
        assert_eq!(fetched.pin().commit.as_ref(), Some(commit), "{query}");
        let script = fetched.root().join("hello");
        let mode = script.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111, "{query}");
    }
}

#[tokio::test]
async fn filters_and_attributes_of_the_repository_have_no_effect() {
    let fixture = Fixture::new().await;
    fixture.write(
        ".gitattributes",
        "* text eol=crlf export-subst filter=evil\n",
    );
    fixture.write("scripts/hello", "$Format:%H$\n");
    fixture.commit("attributes").await;
    let fetched = fixture.fetch(&fixture.source(""), None).await.unwrap();
    let content = fs::read_to_string(fetched.root().join("scripts/hello")).unwrap();
    assert_eq!(content, "$Format:%H$\n");
}

#[tokio::test]
async fn a_pinned_commit_is_fetched_whatever_became_of_its_branch() {
    let fixture = Fixture::new().await;
    let source = fixture.source("?rev=main&path=scripts");
    let pin = fixture.fetch(&source, None).await.unwrap().pin().clone();
    fixture.write("scripts/hello", "#!/bin/sh\nrm -rf ~\n");
    fixture.commit("moved on").await;
    let again = fixture.fetch(&source, Some(&pin)).await.unwrap();
    assert_eq!(*again.pin(), pin);
    let forged = Pin::git(pin.commit.clone().unwrap(), Digest::of(b"other"));
    let refused = fixture.fetch(&source, Some(&forged)).await;
    assert!(
        matches!(refused, Err(FetchError::Digest { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn what_is_not_there_is_named() {
    let fixture = Fixture::new().await;
    let refusal =
        async |source: Source| fixture.fetch(&source, None).await.unwrap_err().to_string();
    let message = refusal(fixture.source("?rev=gone")).await;
    assert!(message.contains("gone"), "{message}");
    let message = refusal(fixture.source("?rev=0123456789abcdef")).await;
    assert!(message.contains("0123456789abcdef"), "{message}");
    let message = refusal(fixture.source("?path=other")).await;
    assert!(message.contains("no directory `other`"), "{message}");
    let message = refusal("git+http://127.0.0.1:9/x".parse().unwrap()).await;
    assert!(message.contains("127.0.0.1"), "{message}");
}

#[tokio::test]
async fn submodules_and_links_out_of_the_directory_are_refused() {
    let fixture = Fixture::new().await;
    symlink("/etc/passwd", fixture.repository().join("scripts/link")).unwrap();
    fixture.commit("link").await;
    let refused = fixture.fetch(&fixture.source(""), None).await;
    assert!(matches!(refused, Err(FetchError::Tree(_))), "{refused:?}");
    fs::remove_file(fixture.repository().join("scripts/link")).unwrap();
    let own = fixture.repository();
    let add = [
        "submodule",
        "--quiet",
        "add",
        own.to_str().unwrap(),
        "module",
    ];
    fixture.git(&add).await;
    fixture.commit("module").await;
    let message = fixture.fetch(&fixture.source(""), None).await.unwrap_err();
    assert!(message.to_string().contains("submodule"), "{message}");
    let left: Vec<_> = fs::read_dir(fixture.store.directory()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_store_gives_only_unchanged_content() {
    let fixture = Fixture::new().await;
    let source = fixture.source("?path=scripts");
    let fetched = fixture.fetch(&source, None).await.unwrap();
    let tree = fetched.pin().tree;
    assert_eq!(fixture.store.find(tree).await.unwrap(), None);
    let place = fixture.store.keep(fetched).await.unwrap();
    let hello = place.join("hello");
    assert_eq!(hello.metadata().unwrap().permissions().mode() & 0o222, 0);
    assert_eq!(fixture.store.find(tree).await.unwrap(), Some(place.clone()));
    // A script that runs as root leaves a file.
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(place.join("cache"), "x").unwrap();
    assert_eq!(fixture.store.find(tree).await.unwrap(), Some(place.clone()));
    assert!(!place.join("cache").exists());
    fs::set_permissions(&hello, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(&hello, "#!/bin/sh\nid\n").unwrap();
    assert_eq!(fixture.store.find(tree).await.unwrap(), None);
    let again = fixture.fetch(&source, None).await.unwrap();
    fixture.store.keep(again).await.unwrap();
    assert!(fixture.store.find(tree).await.unwrap().is_some());
}

#[tokio::test]
async fn changes_are_shown_as_a_diff() {
    let fixture = Fixture::new().await;
    let source = fixture.source("?path=scripts");
    let before = fixture.fetch(&source, None).await.unwrap();
    fixture.write(
        "scripts/hello",
        "#!/bin/sh\necho hello\ncurl evil.example\n",
    );
    fixture.write("scripts/new", "\0binary");
    fixture.commit("second").await;
    let after = fixture.fetch(&source, None).await.unwrap();
    let changes = FileChange::between(Some(before.root()), after.root()).unwrap();
    let paths: Vec<_> = changes.iter().map(|change| &*change.path).collect();
    assert_eq!(paths, ["hello", "new"]);
    assert!(changes[0].diff().contains("+curl evil.example"));
    assert!(changes[1].diff().contains("7 bytes"));
}

/// Writes an archive, and returns its address.
fn archive(directory: &Path, name: &str, entries: &[(&str, &[u8])]) -> Source {
    let path = directory.join(name);
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o755);
        // The library refuses such names itself.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        archive.append(&header, *content).unwrap();
    }
    let bytes = archive.into_inner().unwrap().finish().unwrap();
    fs::write(&path, &bytes).unwrap();
    let digest = Digest::of(&bytes);
    format!("file://{}?sha256={digest}", path.display())
        .parse()
        .unwrap()
}

#[tokio::test]
async fn an_archive_is_unpacked_without_its_top_directory() {
    let fixture = Fixture::new().await;
    let directory = fixture.directory.path();
    let source = archive(
        directory,
        "a.tar.gz",
        &[("tools-1.0/hello", b"#!/bin/sh\n")],
    );
    let fetched = fixture.fetch(&source, None).await.unwrap();
    assert!(fetched.root().join("hello").is_file());
    assert_eq!(fetched.pin().commit, None);
    let path = directory.join("b.zip");
    let mut zip = zip::ZipWriter::new(File::create(&path).unwrap());
    let options = zip::write::SimpleFileOptions::default().unix_permissions(0o755);
    zip.start_file("hello", options).unwrap();
    std::io::Write::write_all(&mut zip, b"#!/bin/sh\n").unwrap();
    zip.finish().unwrap();
    let digest = Digest::of(&fs::read(&path).unwrap());
    let source: Source = format!("file://{}?sha256={digest}", path.display())
        .parse()
        .unwrap();
    let zipped = fixture.fetch(&source, None).await.unwrap();
    assert_eq!(zipped.pin().tree, fetched.pin().tree);
}

#[tokio::test]
async fn hostile_archives_are_refused() {
    let fixture = Fixture::new().await;
    let directory = fixture.directory.path();
    for (number, name) in ["../evil", "/tmp/evil", "a/../../evil", ".git/hooks/x"]
        .iter()
        .enumerate()
    {
        let source = archive(directory, &format!("{number}.tar.gz"), &[(name, b"x")]);
        let refused = fixture.fetch(&source, None).await;
        assert!(
            matches!(refused, Err(FetchError::Entry { .. })),
            "{name}: {refused:?}"
        );
    }
    let source = archive(directory, "c.tar.gz", &[("hello", b"x")]);
    fs::write(directory.join("c.tar.gz"), "other").unwrap();
    let refused = fixture.fetch(&source, None).await;
    assert!(
        matches!(refused, Err(FetchError::Digest { .. })),
        "{refused:?}"
    );
    assert!(!directory.join("evil").exists());
}
