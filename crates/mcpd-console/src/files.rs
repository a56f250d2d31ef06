//! Files below the roots that are not served, and the reasons. A live catalog knows those that
//! should be served; a scan that runs nothing finds the others when a page asks for them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use mcpd_check::{FileStatus, ListedFile};
use mcpd_server::catalog::scan::{PassOverKind, Scanner};
use mcpd_server::{Catalog, Interpreters, Policy, Server};
use serde_json::Value;
use tokio::sync::Mutex;

/// Time for which a scan is kept.
const SCAN_LIFETIME: Duration = Duration::from_secs(3);
/// Maximum number of files that are listed.
const MAX_FILES: usize = 2000;

/// Last scan, and its time.
#[derive(Debug, Default)]
pub(crate) struct FileCache {
    last: Mutex<Option<(Instant, Vec<Value>)>>,
}

impl FileCache {
    /// Lists the files that are not served.
    pub(crate) async fn not_served(&self, server: &Server) -> Vec<Value> {
        let mut last = self.last.lock().await;
        if let Some((time, files)) = &*last
            && time.elapsed() < SCAN_LIFETIME
        {
            return files.clone();
        }
        let files = find(server).await;
        *last = Some((Instant::now(), files.clone()));
        files
    }
}

async fn find(server: &Server) -> Vec<Value> {
    let catalog = server.catalog();
    let mut files = mcpd_check::files(&catalog);
    let known: BTreeSet<_> = files.iter().map(|listed| listed.file.clone()).collect();
    let others = find_passed_over(server).await.into_iter();
    files.extend(others.filter(|listed| !known.contains(&listed.file)));
    files.retain(|listed| listed.status != FileStatus::Served);
    files.sort();
    let files = files.iter().take(MAX_FILES);
    files
        .filter_map(|listed| serde_json::to_value(listed).ok())
        .collect()
}

/// Lists what a scan passes over, without running anything.
async fn find_passed_over(server: &Server) -> Vec<ListedFile> {
    let (executor, roots) = (server.executor().clone(), server.roots().to_vec());
    let scanner = Scanner::new(executor, Policy::default(), Interpreters::default(), roots);
    let mut scan = scanner.thorough().static_only().scan().await;
    // Only the live catalog knows if these are tools.
    (scan.passed_over).retain(|passed| passed.kind != PassOverKind::NotProbed);
    let mut files = mcpd_check::files(&Catalog::from(scan));
    files.retain(|listed| matches!(listed.status, FileStatus::PassedOver | FileStatus::Ignored));
    files
}
