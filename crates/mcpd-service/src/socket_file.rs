//! Unix domain socket that only its owner can open. Its file exists as long as the server listens;
//! a stale file is replaced.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixSocket, UnixStream};

/// Maximum number of clients that wait to be accepted.
const BACKLOG: u32 = 1024;

/// The file of a socket, removed on drop.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode of the file, if this process created it and removes it.
    own: Option<(u64, u64)>,
}

/// Listens at `path`, for clients of this user alone. Must be called on a tokio runtime.
///
/// # Errors
///
/// A process listens there already, or the file there is no socket.
pub async fn listen(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    remove_stale(path).await?;
    let path = std::path::absolute(path)?;
    let socket = UnixSocket::new_stream()?;
    socket.bind(&path)?;
    let own = Some(identity(&path)?);
    let file = SocketFile { path, own };
    // Clients can connect only after `listen`, so the mode is set in time.
    fs::set_permissions(&file.path, Permissions::from_mode(0o600))?;
    Ok((socket.listen(BACKLOG)?, file))
}

/// Removes a stale socket, at which no process listens.
async fn remove_stale(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(io::Error::new(
                ErrorKind::AlreadyExists,
                "a file that is not a socket exists there",
            ));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        _ => Err(io::Error::new(
            ErrorKind::AddrInUse,
            "the socket is in use, perhaps by another mcpd; stop that program or choose another path",
        )),
    }
}

/// Device and inode of the file at `path`.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

impl SocketFile {
    /// The file of a socket that another program created and will remove.
    ///
    /// # Errors
    ///
    /// The socket has no path.
    pub fn of_passed_listener(listener: &StdUnixListener) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let path = address.as_pathname().ok_or(ErrorKind::AddrNotAvailable)?;
        Ok(Self {
            path: path.to_owned(),
            own: None,
        })
    }

    /// Absolute path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another server may listen there by now, at a file of its own.
        if self.own.is_some() && identity(&self.path).ok() == self.own {
            fs::remove_file(&self.path).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn socket_file_is_private_and_goes_with_its_owner() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let (listener, file) = listen(&path).await.unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let error = listen(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        drop((listener, file));
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn stale_socket_is_replaced_and_another_file_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        drop(StdUnixListener::bind(&path).unwrap());
        let (_listener, file) = listen(&path).await.unwrap();
        // Another server has replaced the file, which therefore stays.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "mine").unwrap();
        drop(file);
        let error = listen(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"mine");
    }
}
