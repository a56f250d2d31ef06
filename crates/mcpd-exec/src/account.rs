//! Accounts of the system's user database: home directory and the variables that name the user.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Account of the user database. Systems other than Unix have none.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Account {
    name: String,
    home: PathBuf,
    shell: PathBuf,
}

impl Account {
    /// Returns the account with the number `user`, if the database can be read and has it.
    #[must_use]
    pub fn of_user(user: u32) -> Option<Self> {
        look_up(user)
    }

    /// Returns the account that this process runs as. It is looked up once.
    #[cfg(unix)]
    #[must_use]
    pub fn of_caller() -> Option<&'static Self> {
        use std::sync::OnceLock;

        static ACCOUNT: OnceLock<Option<Account>> = OnceLock::new();
        let look_up = || look_up(nix::unistd::geteuid().as_raw());
        ACCOUNT.get_or_init(look_up).as_ref()
    }

    /// Returns the account that this process runs as.
    #[cfg(not(unix))]
    #[must_use]
    pub fn of_caller() -> Option<&'static Self> {
        None
    }

    /// The home directory.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The variables that tell programs their user: `HOME`, `USER`, `LOGNAME` and `SHELL`.
    #[must_use]
    pub fn variables(&self) -> [(&'static str, OsString); 4] {
        [
            ("HOME", self.home.clone().into()),
            ("USER", self.name.clone().into()),
            ("LOGNAME", self.name.clone().into()),
            ("SHELL", self.shell.clone().into()),
        ]
    }
}

/// Replaces a `~` at the beginning of a path with the caller's home directory. Shells do that; a
/// program that is started without one gets the path as it is.
#[must_use]
pub fn expand_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

#[cfg(unix)]
fn look_up(user: u32) -> Option<Account> {
    let found = nix::unistd::User::from_uid(user.into()).ok().flatten()?;
    let shell = match found.shell.as_os_str().is_empty() {
        // "If this field is empty, the default is /bin/sh" -- passwd(5)
        true => PathBuf::from("/bin/sh"),
        false => found.shell,
    };
    Some(Account {
        name: found.name,
        home: found.dir,
        shell,
    })
}

#[cfg(not(unix))]
fn look_up(_: u32) -> Option<Account> {
    None
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn account_of_root_has_a_home_and_a_name() {
        let root = Account::of_user(0).expect("every system has it");
        assert_eq!(root.home(), Path::new("/root"));
        let variables = root.variables();
        assert_eq!(variables[1], ("USER", "root".into()));
        assert_eq!(variables[2], ("LOGNAME", "root".into()));
    }

    #[test]
    fn home_is_put_in_place_of_a_tilde_alone() {
        let home = std::env::home_dir().expect("there is one");
        assert_eq!(expand_home(Path::new("~/tools")), home.join("tools"));
        assert_eq!(expand_home(Path::new("~")), home);
        for other in ["~tools", "./~/tools", "/~", "tools/~"] {
            assert_eq!(expand_home(Path::new(other)), Path::new(other));
        }
    }

    #[test]
    fn account_of_an_unknown_number_is_none() {
        assert_eq!(Account::of_user(3_999_999_999), None);
    }
}
