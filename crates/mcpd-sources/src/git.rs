//! Content of git repositories, by the `git` program. Nothing is checked out, so that no filter,
//! hook or attribute of the repository has a part in it: files are read as objects.

use std::path::Path;
use std::time::Duration;

use mcpd_exec::{Command, Executor, Limits, Outcome};
use url::Url;

use crate::FetchError;
use crate::staging::{MAX_BYTES, Staging};

/// Time limit of one run of `git`.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Maximum size of a list of files, in bytes.
const MAX_LIST: usize = 16 << 20;

/// Bytes of a message that are kept.
const MAX_MESSAGE: usize = 4096;

/// Settings for every run. A repository that is fetched can't change them.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "credential.interactive=never",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
];

/// Variables that would point `git` to another repository.
const LOCAL: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// A repository with what was fetched of another one.
pub(crate) struct Repository<'a> {
    executor: &'a Executor,
    directory: &'a Path,
    /// The transport that is allowed.
    scheme: String,
}

/// A file or link of a commit.
struct Entry {
    mode: String,
    object: String,
    size: usize,
    path: String,
}

impl<'a> Repository<'a> {
    /// Makes an empty repository in a directory.
    pub(crate) async fn new(
        executor: &'a Executor,
        directory: &'a Path,
        url: &Url,
    ) -> Result<Self, FetchError> {
        let repository = Self {
            executor,
            directory,
            scheme: url.scheme().to_owned(),
        };
        let init = ["init", "--quiet", "--bare", "--template=", "."];
        repository.run(&init, "", MAX_MESSAGE).await?;
        Ok(repository)
    }

    /// Fetches a revision, and returns the id of its commit. Without one it is the default
    /// branch.
    pub(crate) async fn fetch(
        &self,
        url: &Url,
        revision: Option<&str>,
    ) -> Result<String, FetchError> {
        let wanted = revision.unwrap_or("HEAD");
        let fetch = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules"];
        let shallow = [&fetch[..], &["--depth=1", "--", url.as_str(), wanted]].concat();
        let Err(refused) = self.run(&shallow, "", MAX_MESSAGE).await else {
            return self.commit("FETCH_HEAD").await;
        };
        // Some hosts give no commit by its id, and none by a short one.
        let is_id = |text: &str| text.len() >= 7 && text.bytes().all(|b| b.is_ascii_hexdigit());
        if !is_id(wanted) || !matches!(refused, FetchError::Git { .. }) {
            return Err(refused);
        }
        let branches = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"];
        let all = [&fetch[..], &["--", url.as_str()], &branches].concat();
        self.run(&all, "", MAX_MESSAGE).await?;
        let found = self.commit(wanted).await;
        found.map_err(|_| refused)
    }

    async fn commit(&self, name: &str) -> Result<String, FetchError> {
        let commit = format!("{name}^{{commit}}");
        let parse = ["rev-parse", "--verify", "--end-of-options", &commit];
        let printed = self.run(&parse, "", MAX_MESSAGE).await?;
        Ok(String::from_utf8_lossy(&printed).trim().to_owned())
    }

    /// Writes the files of a directory in a commit, as they are in it.
    pub(crate) async fn extract(
        &self,
        commit: &str,
        path: Option<&str>,
        staging: &mut Staging,
    ) -> Result<(), FetchError> {
        let tree = format!("{commit}:{}", path.unwrap_or_default());
        let list = ["ls-tree", "-r", "-z", "-l", "--end-of-options", &tree];
        let listed = self.run(&list, "", MAX_LIST).await;
        let listed = listed.map_err(|error| match (error, path) {
            (FetchError::Git { .. }, Some(path)) => FetchError::NoDirectory {
                path: path.to_owned(),
                commit: commit.to_owned(),
            },
            (error, _) => error,
        })?;
        let mut entries = Vec::new();
        for line in listed
            .split(|byte| *byte == 0)
            .filter(|line| !line.is_empty())
        {
            let entry = entry(line)?;
            staging.reserve(&entry.path, entry.size as u64)?;
            entries.push(entry);
        }
        let objects: String = entries
            .iter()
            .map(|entry| format!("{}\n", entry.object))
            .collect();
        let total: usize = entries.iter().map(|entry| entry.size).sum();
        let room = total + objects.len() * 3 + MAX_MESSAGE;
        let content = self.run(&["cat-file", "--batch"], &objects, room).await?;
        let mut rest = &content[..];
        for entry in &entries {
            let object = next_object(&mut rest, entry)?;
            match &*entry.mode {
                "120000" => staging.link(&entry.path, object)?,
                mode => staging.write(&entry.path, object, mode == "100755")?,
            }
        }
        Ok(())
    }

    /// Runs `git` in the repository, and returns what it prints.
    async fn run(
        &self,
        arguments: &[&str],
        stdin: &str,
        max_output: usize,
    ) -> Result<Vec<u8>, FetchError> {
        let mut limits = Limits::default();
        limits.wall = TIME_LIMIT;
        limits.capture_head = max_output;
        limits.output_hard = MAX_BYTES * 2;
        let mut command = Command::new("git")
            .current_dir(self.directory)
            .limits(limits)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("LC_ALL", "C");
        for name in LOCAL {
            command = command.env_remove(name);
        }
        if std::env::var_os("GIT_SSH_COMMAND").is_none() {
            // Without a person at the terminal a question would never end.
            command = command.env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes");
        }
        let allowed = format!("protocol.{}.allow=always", self.scheme);
        for setting in SETTINGS.iter().copied().chain([&*allowed]) {
            command = command.args(["-c", setting]);
        }
        let command = command.args(arguments).stdin(stdin.to_owned());
        let outcome = self.executor.run(command).await;
        let outcome = outcome.map_err(|error| FetchError::NoGit {
            reason: error.to_string(),
        })?;
        match outcome.success() {
            true => Ok(outcome.stdout.head.to_vec()),
            false => Err(failure(arguments, &outcome)),
        }
    }
}

fn failure(arguments: &[&str], outcome: &Outcome) -> FetchError {
    let message = String::from_utf8_lossy(&outcome.stderr.head).into_owned();
    let message = message.trim().trim_start_matches("fatal: ");
    FetchError::Git {
        command: arguments.first().copied().unwrap_or_default().to_owned(),
        reason: match message {
            "" => format!("{:?}", outcome.ending),
            message => message.replace('\n', "; "),
        },
    }
}

/// Reads `100644 blob ID    SIZE<tab>PATH`.
fn entry(line: &[u8]) -> Result<Entry, FetchError> {
    let line = String::from_utf8_lossy(line);
    let wrong = |reason| FetchError::Entry {
        path: line.clone().into_owned(),
        reason,
    };
    let (head, path) = line
        .split_once('\t')
        .ok_or_else(|| wrong("git listed it in another form"))?;
    if path.contains(char::REPLACEMENT_CHARACTER) {
        return Err(wrong("its name is no UTF-8"));
    }
    let fields: Vec<_> = head.split_whitespace().collect();
    let [mode, kind, object, size] = fields[..] else {
        return Err(wrong("git listed it in another form"));
    };
    if kind != "blob" {
        return Err(FetchError::Entry {
            path: path.to_owned(),
            reason: "it is a submodule, which is not fetched",
        });
    }
    Ok(Entry {
        mode: mode.to_owned(),
        object: object.to_owned(),
        size: size.parse().map_err(|_| wrong("its size is unknown"))?,
        path: path.to_owned(),
    })
}

/// Takes `ID blob SIZE<newline>CONTENT<newline>` from the front.
fn next_object<'c>(rest: &mut &'c [u8], entry: &Entry) -> Result<&'c [u8], FetchError> {
    let head = format!("{} blob {}\n", entry.object, entry.size);
    let content = rest
        .strip_prefix(head.as_bytes())
        .filter(|content| content.len() > entry.size);
    let content = content.ok_or_else(|| FetchError::Entry {
        path: entry.path.clone(),
        reason: "git did not print it as it was listed",
    })?;
    *rest = &content[entry.size + 1..];
    Ok(&content[..entry.size])
}
