//! Stored grants: one file for each server and client, which only its owner can read, replaced
//! atomically.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use mcpd_files::{Access, NewFile, create_private_directory};
use reqwest::Url;
use sha2::{Digest as _, Sha256};

use super::grant::Grant;

/// File of one grant.
#[derive(Debug)]
pub(super) struct Store {
    directory: PathBuf,
    file: PathBuf,
    server: String,
}

impl Store {
    pub(super) fn new(directory: &Path, server: &Url, client_id: Option<&str>) -> Self {
        // A URL is no file name, and may be longer than one.
        let key = format!("{server}\n{}", client_id.unwrap_or_default());
        let digest = Sha256::digest(key.as_bytes());
        let name: String = digest[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Self {
            directory: directory.to_owned(),
            file: directory.join(format!("{name}.json")),
            server: server.as_str().to_owned(),
        }
    }

    /// Reads the grant. A missing or damaged one is as good as none.
    pub(super) fn load(&self) -> Option<Grant> {
        read(&self.file).filter(|grant| grant.server == self.server)
    }

    /// Replaces the grant.
    pub(super) fn save(&self, grant: &Grant) -> io::Result<()> {
        create_private_directory(&self.directory)?;
        let mut text = serde_json::to_vec_pretty(grant)?;
        text.push(b'\n');
        NewFile::with_content(&self.file, &text, Access::Owner)?.replace()
    }
}

/// Removes all grants for a server. Returns their number.
pub(super) fn remove(directory: &Path, server: &Url) -> io::Result<usize> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut removed = 0;
    for entry in entries {
        let file = entry?.path();
        let is_grant = file
            .extension()
            .is_some_and(|extension| extension == "json");
        if is_grant && read(&file).is_some_and(|grant| grant.server == server.as_str()) {
            fs::remove_file(&file)?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn read(file: &Path) -> Option<Grant> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn grant_is_private_and_belongs_to_its_server() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().join("connect");
        let grant = |server: &str| Grant {
            server: server.to_owned(),
            token_endpoint: "https://auth.example/token".to_owned(),
            client_id: "me".to_owned(),
            client_secret: None,
            resource: server.to_owned(),
            scope: None,
            access_token: "secret".to_owned(),
            refresh_token: None,
            expires_at: None,
        };
        let [one, two] = ["https://one.example/mcp", "https://two.example/mcp"]
            .map(|url| Url::parse(url).unwrap());
        for (url, client_id) in [(&one, None), (&one, Some("me")), (&two, None)] {
            let store = Store::new(&directory, url, client_id);
            assert!(store.load().is_none());
            store.save(&grant(url.as_str())).unwrap();
            assert_eq!(store.load().unwrap().access_token, "secret");
            let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&store.file), mode(&directory)), (0o600, 0o700));
        }
        assert_eq!(remove(&directory, &one).unwrap(), 2);
        assert_eq!(remove(&directory, &one).unwrap(), 0);
        assert!(Store::new(&directory, &one, None).load().is_none());
        assert!(Store::new(&directory, &two, None).load().is_some());
        assert_eq!(remove(&directory.join("missing"), &two).unwrap(), 0);
    }
}
