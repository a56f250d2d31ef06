//! A socket in the file system, which only its owner can open. It is there as long as it is listened on; one that was
//! left behind is replaced.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::{Path, PathBuf};

use anyhow::bail;
use tokio::net::{UnixListener, UnixSocket, UnixStream};

/// Clients that may wait to be let in.
const BACKLOG: u32 = 1024;

/// Where a socket is.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Which file it is, if it goes with this.
    own: Option<(u64, u64)>,
}

/// Listens at `path`.
///
/// # Errors
///
/// Somebody listens there already, or what is there is no socket.
pub(super) async fn listen(path: &Path) -> anyhow::Result<(UnixListener, SocketFile)> {
    make_room(path).await?;
    let path = std::path::absolute(path)?;
    let socket = UnixSocket::new_stream()?;
    socket.bind(&path)?;
    let own = Some(identity(&path)?);
    let file = SocketFile { path, own };
    // Nobody can connect before somebody listens, whatever the mode was until now.
    fs::set_permissions(&file.path, Permissions::from_mode(0o600))?;
    Ok((socket.listen(BACKLOG)?, file))
}

/// Removes a socket that nobody listens at.
async fn make_room(path: &Path) -> anyhow::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            bail!("there is a file that is no socket")
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(fs::remove_file(path)?),
        _ => bail!(
            "another program does already, perhaps another mcpd; stop it, or choose another path"
        ),
    }
}

/// Which file is at `path`.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

impl SocketFile {
    /// The file of a socket that somebody else has made, who will also remove it.
    ///
    /// # Errors
    ///
    /// It is in no file system.
    pub(super) fn of_another(listener: &StdUnixListener) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let path = address.as_pathname().ok_or(ErrorKind::AddrNotAvailable)?;
        Ok(Self {
            path: path.to_owned(),
            own: None,
        })
    }

    pub(super) fn path(&self) -> &Path {
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
