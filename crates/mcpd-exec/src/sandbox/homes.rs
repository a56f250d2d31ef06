//! Home directories, and the part of them that a confined process sees. Only names are
//! considered, not the file system.
//!
//! A deny-list of secrets contains only what its author thought of. So this is an allow-list:
//! everything in a home is hidden that programs keep there for themselves, in entries whose names
//! begin with a dot. The exceptions are listed here: tool chains, and configuration without
//! secrets that programs need to start.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::account::Account;

/// Directories of the system that some accounts have as their home. Users keep nothing in them.
const SYSTEM: &[&str] = &[
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/nix", "/proc", "/run", "/sbin", "/sys",
    "/usr",
];

/// Entries of a home that programs keep for themselves although their names begin with no dot.
const UNDOTTED_ENTRIES: &[&str] = &["snap"];

/// Paths below a home that are readable at `guarded` although programs keep them. Secrets in them
/// are hidden all the same.
const READABLE_PATHS: &[&str] = &[
    // Tool chains and their packages.
    ".asdf",
    ".bin",
    ".bun",
    ".cabal",
    ".cargo",
    ".composer",
    ".conda",
    ".cpan",
    ".cpanm",
    ".deno",
    ".dotnet",
    ".elan",
    ".fnm",
    ".gem",
    ".ghcup",
    ".goenv",
    ".gradle",
    ".ivy2",
    ".jdks",
    ".jenv",
    ".julia",
    ".juliaup",
    ".kenv/node_modules",
    ".kit/node_modules",
    ".krew",
    ".linuxbrew",
    ".local/bin",
    ".local/include",
    ".local/lib",
    ".local/lib64",
    ".local/opt",
    ".local/pipx",
    ".local/share/gem",
    ".local/state/nix",
    ".luarocks",
    ".m2",
    ".moon",
    ".n",
    ".nimble",
    ".nix-defexpr",
    ".nix-profile",
    ".node-gyp",
    ".node_modules",
    ".nodenv",
    ".npm",
    ".npm-global",
    ".npm-packages",
    ".nuget",
    ".nvm",
    ".opam",
    ".perl5",
    ".pex",
    ".phpenv",
    ".plenv",
    ".pnpm-store",
    ".poetry",
    ".proto",
    ".pub-cache",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".rvm",
    ".rye",
    ".sbt",
    ".scriptkit/node_modules",
    ".scriptkit/sdk",
    ".sdkman",
    ".stack",
    ".swiftly",
    ".swiftpm",
    ".tfenv",
    ".venv",
    ".venvs",
    ".virtualenvs",
    ".volta",
    ".yarn",
    ".zig",
    // Downloads, and files for drawing.
    ".cache/Cypress",
    ".cache/bazel",
    ".cache/bazelisk",
    ".cache/deno",
    ".cache/fontconfig",
    ".cache/go-build",
    ".cache/huggingface",
    ".cache/matplotlib",
    ".cache/ms-playwright",
    ".cache/node",
    ".cache/pip",
    ".cache/pnpm",
    ".cache/pre-commit",
    ".cache/puppeteer",
    ".cache/pypoetry",
    ".cache/torch",
    ".cache/uv",
    ".cache/yarn",
    ".fontconfig",
    ".fonts",
    ".icons",
    ".local/share/applications",
    ".local/share/bash-completion",
    ".local/share/cargo",
    ".local/share/fnm",
    ".local/share/fonts",
    ".local/share/icons",
    ".local/share/man",
    ".local/share/mime",
    ".local/share/mise",
    ".local/share/nvm",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/pypoetry",
    ".local/share/rtx",
    ".local/share/rustup",
    ".local/share/themes",
    ".local/share/uv",
    ".local/share/virtualenv",
    ".local/share/virtualenvs",
    ".themes",
    // Configuration without secrets.
    ".XCompose",
    ".config/fontconfig",
    ".config/git",
    ".config/go",
    ".config/matplotlib",
    ".config/mimeapps.list",
    ".config/pip",
    ".config/user-dirs.dirs",
    ".config/user-dirs.locale",
    ".config/uv",
    ".editorconfig",
    ".gitattributes",
    ".gitconfig",
    ".gitignore",
    ".gitignore_global",
    ".go-version",
    ".hgignore",
    ".inputrc",
    ".mailcap",
    ".mime.types",
    ".node-version",
    ".nvmrc",
    ".pip",
    ".python-version",
    ".ruby-version",
    ".tool-versions",
];

/// Directories of a home that variables can put elsewhere, with their usual paths.
pub(super) const MOVABLE: &[(&str, &str)] = &[
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
    ("XDG_CACHE_HOME", ".cache"),
];

/// Homes whose files this process may read: `$HOME`, that of its account, and for root those of
/// regular users.
pub(super) fn of_caller() -> Vec<PathBuf> {
    let account = Account::of_caller().map(|account| account.home().to_owned());
    let own = std::env::home_dir().into_iter().chain(account);
    distinct(own.chain(of_regular_users()))
}

/// Home of the user with the number `user`.
pub(super) fn of_user(user: u32) -> Vec<PathBuf> {
    distinct(Account::of_user(user).map(|account| account.home().to_owned()))
}

/// Homes of the regular users of this machine, if this process is root and so may read them.
#[cfg(unix)]
fn of_regular_users() -> Vec<PathBuf> {
    static HOMES: LazyLock<Vec<PathBuf>> = LazyLock::new(|| {
        let table = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        regular_homes(&table).collect()
    });
    match nix::unistd::geteuid().is_root() {
        true => HOMES.clone(),
        false => Vec::new(),
    }
}

#[cfg(not(unix))]
fn of_regular_users() -> Vec<PathBuf> {
    Vec::new()
}

/// Homes of the regular users in a table of the form of `/etc/passwd`.
#[cfg(unix)]
fn regular_homes(table: &str) -> impl Iterator<Item = PathBuf> {
    /// User numbers that distributions give to people: below are services, above are containers
    /// and the overflow user.
    const REGULAR_USERS: std::ops::Range<u32> = 1_000..60_000;
    table.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let user: u32 = fields.nth(2)?.parse().ok()?;
        let home = fields.nth(2)?;
        REGULAR_USERS.contains(&user).then(|| home.into())
    })
}

/// Removes duplicates, and directories of the system.
fn distinct(homes: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut distinct = Vec::new();
    for home in homes {
        // Without slashes at the end.
        let home: PathBuf = home.components().collect();
        if home.is_absolute() && !is_system(&home) && !distinct.contains(&home) {
            distinct.push(home);
        }
    }
    distinct
}

/// Returns whether `path` is in a directory that belongs to the system and to no user.
pub(crate) fn is_system(path: &Path) -> bool {
    path.parent().is_none() || SYSTEM.iter().any(|system| path.starts_with(system))
}

/// Returns whether an entry of a home is kept there by a program for itself.
pub(crate) fn is_kept_by_program(name: &std::ffi::OsStr) -> bool {
    let is_listed = || UNDOTTED_ENTRIES.iter().any(|kept| name == *kept);
    name.as_encoded_bytes().starts_with(b".") || is_listed()
}

/// Returns the directories that variables name in place of those of a home.
pub(super) fn overridden_directories(
    variable: impl Fn(&str) -> Option<OsString>,
) -> impl Iterator<Item = (PathBuf, &'static str)> {
    /// Directories that hold more than the files of one user or one program.
    const SHARED: &[&str] = &["/home", "/opt", "/srv", "/tmp", "/var", "/var/tmp"];
    MOVABLE.iter().filter_map(move |(name, usual)| {
        let moved: PathBuf = variable(name)?.into();
        let is_shared = || SHARED.iter().any(|shared| moved == Path::new(shared));
        // The XDG specification says that a relative path must be ignored.
        (moved.is_absolute() && !is_system(&moved) && !is_shared()).then_some((moved, *usual))
    })
}

/// Directories that replace those in the home of this process.
static MOVED: LazyLock<Vec<(PathBuf, &'static str)>> =
    LazyLock::new(|| overridden_directories(|name| std::env::var_os(name)).collect());

/// Directories that are hidden like those that they replace.
pub(crate) fn moved_directories() -> impl Iterator<Item = &'static PathBuf> {
    MOVED.iter().map(|(moved, _)| moved)
}

/// Returns the kept paths of these homes that are readable at `guarded`.
pub(super) fn readable_paths(homes: &[PathBuf]) -> Vec<PathBuf> {
    let below = homes.iter().map(|home| (home, ""));
    let moved = MOVED.iter().map(|(moved, usual)| (moved, *usual));
    let shown = below.chain(moved);
    shown
        .flat_map(|(directory, usual)| readable_paths_in(directory, usual))
        .collect()
}

/// Returns the readable paths in `directory`, which takes the place of `usual` in a home.
fn readable_paths_in(directory: &Path, usual: &str) -> Vec<PathBuf> {
    let names = READABLE_PATHS.iter();
    let names = names.filter_map(|path| Path::new(path).strip_prefix(usual).ok());
    names.map(|name| directory.join(name)).collect()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn homes_of_the_caller_include_that_of_the_user_database() {
        let account = Account::of_caller().unwrap();
        if !is_system(account.home()) {
            assert!(of_caller().contains(&account.home().to_owned()));
        }
    }

    #[test]
    fn homes_are_distinct_and_not_the_systems() {
        let homes = [
            "/home/ann",
            "/home/ann/",
            "/",
            "/usr/sbin",
            "ann",
            "/srv/ann",
        ];
        let expected = ["/home/ann", "/srv/ann"].map(PathBuf::from);
        assert_eq!(distinct(homes.map(PathBuf::from)), expected);
    }

    #[test]
    fn homes_of_regular_users_leave_out_services() {
        let table = "root:x:0:0:root:/root:/bin/sh\nmail:x:8:8::/var/mail:/bin/false\n\
                     ann:x:1000:1000:Ann,,,:/home/ann:/bin/sh\nodd\n\
                     nobody:x:65534:65534::/nonexistent:/bin/false\n";
        let homes: Vec<_> = regular_homes(table).collect();
        assert_eq!(homes, [PathBuf::from("/home/ann")]);
    }

    #[test]
    fn programs_keep_dot_entries_and_snaps() {
        for (name, is_kept) in [
            (".x", true),
            ("snap", true),
            ("x.y", false),
            ("snaps", false),
        ] {
            assert_eq!(is_kept_by_program(name.as_ref()), is_kept, "{name}");
        }
    }

    #[test]
    fn moved_directories_are_absolute_and_not_the_systems() {
        let variable = |name: &str| match name {
            "XDG_CONFIG_HOME" => Some("/srv/config".into()),
            "XDG_DATA_HOME" => Some("/usr/share".into()),
            "XDG_STATE_HOME" => Some("state".into()),
            "XDG_CACHE_HOME" => Some("/tmp".into()),
            _ => None,
        };
        let moved: Vec<_> = overridden_directories(variable).collect();
        assert_eq!(moved, [(PathBuf::from("/srv/config"), ".config")]);
        let shown = readable_paths_in(Path::new("/srv/config"), ".config");
        assert!(
            shown.contains(&PathBuf::from("/srv/config/git")),
            "{shown:?}"
        );
    }
}
