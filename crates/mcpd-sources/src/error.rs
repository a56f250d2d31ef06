//! Refusals, each with what is wrong and what to write in its place.

use std::path::PathBuf;

/// Reason why an address is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The address is no URL.
    #[error("`{address}` is no address of a source: {reason}")]
    Address {
        /// The text as it was given.
        address: String,
        /// The fault.
        reason: String,
    },
    /// The transport is not one of those allowed.
    #[error("a source can't be fetched by `{found}`; use one of {known}")]
    Scheme {
        /// The scheme of the address.
        found: String,
        /// Schemes that are allowed, separated by commas.
        known: String,
    },
    /// The address has a password, which the lock file would publish.
    #[error("an address must not have a password; let a credential helper of git give it")]
    Password,
    /// A parameter is unknown.
    #[error("a source has no parameter `{name}`; it has {known}")]
    Parameter {
        /// Name of the parameter.
        name: String,
        /// Known parameters, separated by commas.
        known: &'static str,
    },
    /// A parameter is given twice.
    #[error("an address gives `{name}` twice; leave one of them")]
    Twice {
        /// Name of the parameter.
        name: String,
    },
    /// The revision could be an option or a range.
    #[error("`{value}` is no revision; give a branch, a tag or a commit")]
    Revision {
        /// The value of `rev`.
        value: String,
    },
    /// The path leaves the repository.
    #[error("`{value}` is no directory inside the repository; give a relative path without `..`")]
    Path {
        /// The value of `path`.
        value: String,
    },
    /// The archive has an unknown format.
    #[error("`{path}` is no archive that can be read; its name must end with .tar.gz or .zip")]
    Kind {
        /// Path of the address.
        path: String,
    },
    /// An archive has no digest.
    #[error("an archive needs its digest; add `?sha256=` and what `sha256sum` prints")]
    NoDigest,
    /// A digest is not one.
    #[error("`{value}` is no SHA-256 digest; it has 64 hexadecimal digits")]
    Digest {
        /// The value.
        value: String,
    },
}

/// Reason why a lock file can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The text is not that of a lock file.
    #[error("the lock file can't be read: {0}")]
    Syntax(#[from] toml::de::Error),
    /// A newer version has written the file.
    #[error("the lock file has format {found}, and only format 1 is known; use a newer version")]
    Version {
        /// The format of the file.
        found: u32,
    },
    /// An entry is not valid.
    #[error("the lock of `{source_text}` is wrong: {reason}")]
    Entry {
        /// Address of the source.
        source_text: String,
        /// The fault.
        reason: String,
    },
}

/// Reason why a directory has no digest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// Something can't be read.
    #[error("can't read {}: {reason}", path.display())]
    Read {
        /// File or directory.
        path: PathBuf,
        /// The error of the system.
        reason: std::io::Error,
    },
    /// A symbolic link leaves the directory.
    #[error("{} points out of the directory; links must be relative and stay inside", path.display())]
    LinkOut {
        /// The link.
        path: PathBuf,
    },
    /// A device, socket or pipe, or a name that is not UTF-8.
    #[error("{} is neither a file, a directory nor a link with a name in UTF-8", path.display())]
    Kind {
        /// The entry.
        path: PathBuf,
    },
}

/// Reason why the content of a source is not there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The `git` program can't be run.
    #[error("run `git`, which fetches repositories: {reason}; is it installed?")]
    NoGit {
        /// Reason of the system.
        reason: String,
    },
    /// `git` failed.
    #[error("git {command}: {reason}")]
    Git {
        /// Its task.
        command: String,
        /// Its message.
        reason: String,
    },
    /// The commit has no such directory.
    #[error("commit {commit} has no directory `{path}`")]
    NoDirectory {
        /// Directory of the address.
        path: String,
        /// The commit.
        commit: String,
    },
    /// An archive can't be had.
    #[error("download the archive: {reason}")]
    Download {
        /// The cause.
        reason: String,
    },
    /// An archive can't be read.
    #[error("unpack the archive: {reason}")]
    Archive {
        /// The fault.
        reason: String,
    },
    /// The content is not what was pinned or written in the address.
    #[error("the content is not what was expected: its digest is {found}, not {expected}")]
    Digest {
        /// Digest of what was reviewed.
        expected: crate::Digest,
        /// Digest of what came.
        found: crate::Digest,
    },
    /// An entry is refused.
    #[error("refuse `{path}`: {reason}")]
    Entry {
        /// Path inside the source.
        path: String,
        /// The fault.
        reason: &'static str,
    },
    /// There is too much.
    #[error("the source has more than {entries} files or {bytes} bytes, at `{path}`")]
    TooLarge {
        /// First path that is too much.
        path: String,
        /// Maximum number of files.
        entries: usize,
        /// Maximum size together, in bytes.
        bytes: u64,
    },
    /// The content can't be kept.
    #[error("write `{path}`: {reason}")]
    Write {
        /// Place on this machine.
        path: PathBuf,
        /// Reason of the system.
        reason: std::io::Error,
    },
    /// The content has no digest.
    #[error(transparent)]
    Tree(#[from] TreeError),
}
