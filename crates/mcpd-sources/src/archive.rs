//! Archives: fetched whole, held against their digest, and unpacked only then.

use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use flate2::read::GzDecoder;
use reqwest::Client;
use reqwest::redirect::Policy;
use url::Url;

use crate::staging::{MAX_BYTES, Staging};
use crate::{Digest, FetchError};

/// Time limit of a download.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// Maximum number of redirects of a download.
const MAX_REDIRECTS: usize = 5;

/// Bits of a mode that make a file a program.
const EXECUTABLE: u32 = 0o111;

/// The bytes of an archive, which have this digest.
pub(crate) async fn download(url: &Url, digest: Digest) -> Result<Vec<u8>, FetchError> {
    let bytes = match url.to_file_path() {
        Ok(path) if url.scheme() == "file" => read(&path)?,
        _ => get(url).await?,
    };
    let found = Digest::of(&bytes);
    match found == digest {
        true => Ok(bytes),
        false => Err(FetchError::Digest {
            expected: digest,
            found,
        }),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, FetchError> {
    let read = || {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path)?;
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|reason: io::Error| FetchError::Download {
        reason: format!("read `{}`: {reason}", path.display()),
    })?;
    within_limit(bytes)
}

async fn get(url: &Url) -> Result<Vec<u8>, FetchError> {
    // The embedding program may have installed a provider already, which serves as well.
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    let builder = Client::builder()
        .user_agent(concat!("mcpd-sources/", env!("CARGO_PKG_VERSION")))
        .timeout(TIME_LIMIT)
        .redirect(Policy::limited(MAX_REDIRECTS));
    let builder = match url.scheme() {
        // Plain HTTP needs no certificate authorities, and leads to no other scheme.
        "http" => builder.tls_certs_only([]),
        _ => builder.https_only(true),
    };
    let failed = |error: reqwest::Error| FetchError::Download {
        reason: chain(&error),
    };
    let client = builder.build().map_err(failed)?;
    let response = client.get(url.clone()).send().await.map_err(failed)?;
    let mut response = response.error_for_status().map_err(failed)?;
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() as u64 > MAX_BYTES {
            break;
        }
    }
    within_limit(bytes)
}

fn within_limit(bytes: Vec<u8>) -> Result<Vec<u8>, FetchError> {
    match bytes.len() as u64 > MAX_BYTES {
        true => Err(FetchError::Download {
            reason: format!("it is larger than {MAX_BYTES} bytes"),
        }),
        false => Ok(bytes),
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// Unpacks an archive, a zip if its name ends so.
pub(crate) fn unpack(url: &Url, bytes: &[u8], staging: &mut Staging) -> Result<(), FetchError> {
    match url.path().ends_with(".zip") {
        true => unpack_zip(bytes, staging),
        false => unpack_tar(bytes, staging),
    }
}

fn broken(error: impl std::fmt::Display) -> FetchError {
    FetchError::Archive {
        reason: error.to_string(),
    }
}

fn unpack_tar(bytes: &[u8], staging: &mut Staging) -> Result<(), FetchError> {
    let mut archive = tar::Archive::new(GzDecoder::new(bytes));
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let path = path.trim_start_matches("./").to_owned();
        let header = entry.header();
        let kind = header.entry_type();
        let is_executable = header.mode().is_ok_and(|mode| mode & EXECUTABLE != 0);
        if kind.is_dir() || kind.is_pax_global_extensions() {
            staging.reserve(&path, 0)?;
            continue;
        }
        staging.reserve(&path, entry.size())?;
        if kind.is_symlink() {
            let target = entry.link_name_bytes().unwrap_or_default().into_owned();
            staging.link(&path, &target)?;
        } else if kind.is_file() {
            staging.write(&path, &content(&mut entry)?, is_executable)?;
        } else {
            return Err(FetchError::Entry {
                path,
                reason: "it is neither a file, a directory nor a symbolic link",
            });
        }
    }
    Ok(())
}

fn unpack_zip(bytes: &[u8], staging: &mut Staging) -> Result<(), FetchError> {
    let mut archive = zip::ZipArchive::new(io::Cursor::new(bytes)).map_err(broken)?;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(broken)?;
        let path = entry.name().map_err(broken)?.into_owned();
        // The size that a header claims is a limit, too.
        let size = entry.size();
        staging.reserve(&path, size)?;
        if entry.is_dir() {
            continue;
        }
        let is_executable = entry.unix_mode().is_some_and(|mode| mode & EXECUTABLE != 0);
        let is_link = entry.is_symlink();
        let content = content(&mut (&mut entry).take(size))?;
        match is_link {
            true => staging.link(&path, &content)?,
            false => staging.write(&path, &content, is_executable)?,
        }
    }
    Ok(())
}

fn content(reader: &mut impl Read) -> Result<Vec<u8>, FetchError> {
    let mut content = Vec::new();
    reader
        .take(MAX_BYTES)
        .read_to_end(&mut content)
        .map_err(broken)?;
    Ok(content)
}
