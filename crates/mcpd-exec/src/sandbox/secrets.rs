//! Locations of secrets. Only names are considered, not the file system.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::homes;

/// Paths below a home directory. Most are hidden anyway, with everything that programs keep in a
/// home. They are named for secrets inside readable tool chains, and for sandboxes that declare a
/// directory above them readable.
const HOME: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".boto",
    ".oci",
    ".s3cfg",
    ".kube",
    ".docker",
    ".netrc",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".vault-token",
    ".terraform.d/credentials.tfrc.json",
    ".git-credentials",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pypirc",
    ".cabal/config",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".composer/auth.json",
    ".condarc",
    ".conda/.condarc",
    ".gem/credentials",
    ".gradle/gradle.properties",
    ".gradle/init.d",
    ".ivy2/.credentials",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".nuget/NuGet",
    ".sbt/.credentials",
    ".swiftpm/security",
    ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
    ".env",
    ".bash_history",
    ".zsh_history",
    ".sh_history",
    ".history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
    ".local/share/fish/fish_history",
    ".claude.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".cursor/mcp.json",
    ".codeium/windsurf/mcp_config.json",
    ".config/Claude",
    ".config/github-copilot",
    ".copilot",
    ".password-store",
    ".mozilla",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/git/credentials",
    ".config/containers/auth.json",
    ".config/doctl",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".config/mcpd",
    ".config/Bitwarden",
    ".config/Bitwarden CLI",
    ".config/BraveSoftware",
    ".config/chromium",
    ".config/google-chrome",
    ".config/microsoft-edge",
    ".local/share/gopass",
    ".local/share/uv/credentials",
    ".local/share/keyrings",
    ".local/state/mcpd",
    #[cfg(target_os = "macos")]
    "Library/Keychains",
    #[cfg(target_os = "macos")]
    "Library/Cookies",
    #[cfg(target_os = "macos")]
    "Library/Application Support/BraveSoftware",
    #[cfg(target_os = "macos")]
    "Library/Application Support/Chromium",
    #[cfg(target_os = "macos")]
    "Library/Application Support/Claude",
    #[cfg(target_os = "macos")]
    "Library/Application Support/Firefox",
    #[cfg(target_os = "macos")]
    "Library/Application Support/Google/Chrome",
    #[cfg(target_os = "macos")]
    "Library/Application Support/Microsoft Edge",
];

const SYSTEM: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/security/opasswd",
    "/etc/krb5.keytab",
    "/etc/NetworkManager/system-connections",
    "/etc/ssh/ssh_host_dsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/wireguard",
    "/etc/wpa_supplicant",
    "/etc/ssl/private",
    "/run/docker.sock",
    "/run/containerd",
    "/run/secrets",
    "/run/credentials",
];

/// Returns the secrets below these homes, in the directories that variables name instead, and of
/// the system. A client or a container may have changed `HOME` while the user's real home still
/// exists.
pub(super) fn of_caller(
    homes: &[PathBuf],
    variable: impl Fn(&str) -> Option<OsString>,
) -> Vec<PathBuf> {
    let mut secrets: Vec<PathBuf> = homes.iter().flat_map(|home| below(home)).collect();
    for (moved, usual) in homes::overridden_directories(variable) {
        let names = HOME
            .iter()
            .filter_map(|path| Path::new(path).strip_prefix(usual).ok());
        let moved = names.map(|name| moved.join(name));
        let moved: Vec<_> = moved.filter(|path| !secrets.contains(path)).collect();
        secrets.extend(moved);
    }
    secrets.extend(SYSTEM.iter().map(PathBuf::from));
    #[cfg(unix)]
    secrets.push(runtime_directory(nix::unistd::geteuid().as_raw()));
    secrets
}

/// Returns the locations of the sockets and tokens of user sessions. Root can access those of all
/// users.
///
/// Other users' sessions are not listed for the rest: each directory is accessible to its user
/// only, and hiding one costs a rule for each file in `/run`.
#[cfg(unix)]
fn runtime_directory(user: u32) -> PathBuf {
    let all = Path::new("/run/user");
    match user {
        0 => all.to_owned(),
        user => all.join(user.to_string()),
    }
}

/// Returns the secrets below a home.
pub(super) fn below(home: &Path) -> impl Iterator<Item = PathBuf> {
    HOME.iter().map(|path| home.join(path))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], hidden: &str) {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let secrets = of_caller(&["/home/alice".into()], variable);
        let found = secrets.iter().filter(|path| *path == Path::new(hidden));
        assert_eq!(found.count(), 1, "{hidden} in {secrets:?}");
    }

    #[test]
    fn secrets_have_their_usual_paths() {
        check(&[], "/home/alice/.pgpass");
        check(&[], "/home/alice/.config/rclone");
        check(&[], "/etc/shadow");
    }

    #[test]
    fn secrets_follow_directories_named_by_variables() {
        let moved = [
            ("XDG_CONFIG_HOME", "/srv/config"),
            ("XDG_STATE_HOME", "/srv/state"),
        ];
        check(&moved, "/srv/config/containers/auth.json");
        check(&moved, "/srv/state/mcpd");
        check(&moved, "/home/alice/.config/containers/auth.json");
    }

    #[test]
    fn secrets_are_hidden_below_every_home() {
        let homes = ["/snap/tool/1", "/home/alice"].map(PathBuf::from);
        let secrets = of_caller(&homes, |_| None);
        for hidden in ["/snap/tool/1/.ssh", "/home/alice/.ssh"] {
            assert!(
                secrets.iter().any(|path| path == Path::new(hidden)),
                "{hidden}"
            );
        }
        assert!(secrets.iter().all(|path| path.is_absolute()), "{secrets:?}");
    }

    #[test]
    fn variable_with_the_usual_path_changes_nothing() {
        let usual = [
            ("XDG_CONFIG_HOME", "/home/alice/.config"),
            ("XDG_DATA_HOME", "share"),
        ];
        check(&usual, "/home/alice/.config/op");
        check(&usual, "/home/alice/.local/share/keyrings");
    }

    #[test]
    fn session_directory_is_hidden_from_its_user_and_all_from_root() {
        assert_eq!(runtime_directory(1000), Path::new("/run/user/1000"));
        assert_eq!(runtime_directory(0), Path::new("/run/user"));
    }
}
