//! Passwords in the keyring of the user, read with the program of the system: `secret-tool` of
//! libsecret for the Secret Service of a desktop, `security` for the keychain of macOS.

use mcpd_exec::Executor;

use crate::file::File;
use crate::program;
use crate::value::KeyringEntry;

/// Reads the password of an entry; without an executor it is empty.
///
/// # Errors
///
/// There is none, or the keyring cannot be read, with advice.
pub(super) async fn read_password(
    entry: &KeyringEntry,
    file: &File,
    executor: Option<&Executor>,
) -> Result<String, String> {
    let Some(executor) = executor else {
        return Ok(String::new());
    };
    let password = program::output(&lookup(entry), file.directory(), executor).await;
    password.map_err(|fault| {
        let KeyringEntry { service, account } = entry;
        format!(
            "the keyring gives no password for the service `{service}` and the account `{account}`: {fault}; {}",
            advice(entry)
        )
    })
}

/// Command that prints the password of an entry. Other programs use these two attributes as well.
#[cfg(not(target_os = "macos"))]
fn lookup(entry: &KeyringEntry) -> Vec<String> {
    let KeyringEntry { service, account } = entry;
    let words = [
        "secret-tool",
        "lookup",
        "service",
        service,
        "username",
        account,
    ];
    words.map(str::to_owned).to_vec()
}

#[cfg(not(target_os = "macos"))]
fn advice(entry: &KeyringEntry) -> String {
    let KeyringEntry { service, account } = entry;
    format!(
        "unlock the keyring and store it with `secret-tool store --label='{service}' service '{service}' username '{account}'` (package libsecret-tools); without a desktop session use a `file` or a `credential`"
    )
}

#[cfg(target_os = "macos")]
fn lookup(entry: &KeyringEntry) -> Vec<String> {
    let KeyringEntry { service, account } = entry;
    let words = [
        "security",
        "find-generic-password",
        "-w",
        "-s",
        service,
        "-a",
        account,
    ];
    words.map(str::to_owned).to_vec()
}

#[cfg(target_os = "macos")]
fn advice(entry: &KeyringEntry) -> String {
    let KeyringEntry { service, account } = entry;
    format!(
        "unlock the keychain and store it with `security add-generic-password -s '{service}' -a '{account}' -w`"
    )
}
