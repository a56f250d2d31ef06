//! Settings that are also flags. A value in the file replaces the default of its flag, so each
//! flag and its variable take precedence over the file without further code.

use std::ffi::OsString;
use std::path::PathBuf;

use super::file::File;
use super::tables::{LogTable, MetricsTable};
use super::value::Spanned;
use crate::args::spellings;

/// A setting, by its key in the file and by its argument on the command line.
#[derive(Debug)]
pub(crate) struct Setting {
    /// The key, such as `log.filter`.
    pub(crate) key: &'static str,
    /// The argument, by the name of its field.
    pub(crate) argument: &'static str,
    /// Value in the file, as words of the command line.
    pub(crate) words: Option<Vec<OsString>>,
    /// The flag switches off what the key switches on.
    pub(crate) is_opposite: bool,
}

impl Setting {
    fn new(key: &'static str, argument: &'static str, words: Option<Vec<OsString>>) -> Self {
        Self {
            key,
            argument,
            words,
            is_opposite: false,
        }
    }

    fn opposite(key: &'static str, argument: &'static str, is_on: Option<bool>) -> Self {
        Self {
            is_opposite: true,
            ..Self::new(key, argument, word(is_on.map(|is_on| !is_on)))
        }
    }
}

/// All settings, with their values in `file`.
pub(crate) fn settings(file: &File) -> Vec<Setting> {
    let tables = &file.tables;
    let LogTable { format, filter } = &tables.log;
    let filter = filter.as_ref().map(|filter| filter.get_ref());
    let path = |path: &Option<_>| path.as_ref().map(|path| paths(file, [path]));
    let own = tables.root.iter().map(|root| &root.path);
    let roots: Vec<_> = tables.roots.iter().flatten().chain(own).collect();
    let has_roots = tables.roots.is_some() || !tables.root.is_empty();
    let roots = has_roots.then(|| paths(file, roots));
    let mut settings = vec![
        Setting::new("roots", "directories", roots),
        Setting::new("enable", "enable", tables.enable.as_deref().map(spellings)),
        Setting::opposite("cache", "no_cache", tables.cache),
        Setting::opposite("watch", "no_watch", tables.watch),
        Setting::new(
            "tool_names",
            "tool_names",
            tables.tool_names.map(|names| spellings(&[names])),
        ),
        Setting::new("page_size", "page_size", word(tables.page_size)),
        Setting::new("max_message", "max_message", word(tables.max_message)),
        Setting::new("concurrency", "concurrency", word(tables.concurrency)),
        Setting::new("timeout", "timeout", word(tables.timeout)),
        Setting::new(
            "floor",
            "sandbox",
            word(tables.floor.as_ref().map(|name| name.get_ref())),
        ),
        Setting::new("cgroup", "cgroup", path(&tables.cgroup)),
        Setting::new(
            "state_key_file",
            "state_key_file",
            path(&tables.state_key_file),
        ),
        Setting::opposite("auth", "no_auth", tables.auth),
        Setting::new("token_file", "token_file", path(&tables.token_file)),
        Setting::new(
            "allow_hosts",
            "allow_host",
            tables.allow_hosts.as_deref().map(words),
        ),
        Setting::new(
            "allow_origins",
            "allow_origin",
            tables.allow_origins.as_deref().map(words),
        ),
        Setting::new("http_sse", "http_sse", word(tables.http_sse)),
        Setting::new("resume_buffer", "resume_buffer", word(tables.resume_buffer)),
        Setting::new("kit.serve", "kit", word(tables.kit.serve)),
        Setting::new(
            "log.format",
            "log_format",
            format.map(|format| spellings(&[format])),
        ),
        Setting::new("log.filter", "filter", word(filter)),
    ];
    settings.extend(settings_of_tls(file));
    settings.extend(settings_of_metrics(&tables.metrics));
    settings
}

fn settings_of_tls(file: &File) -> [Setting; 4] {
    let tls = &file.tables.tls;
    let path = |path: &Option<_>| path.as_ref().map(|path| paths(file, [path]));
    let demand = tls.client_certificates.as_ref();
    let demand = demand.map(|demand| spellings(&[*demand.get_ref()]));
    [
        Setting::new("tls.certificate", "tls_certificate", path(&tls.certificate)),
        Setting::new("tls.key", "tls_key", path(&tls.key)),
        Setting::new("tls.client_ca", "tls_client_ca", path(&tls.client_ca)),
        Setting::new("tls.client_certificates", "tls_client_certificates", demand),
    ]
}

fn settings_of_metrics(table: &MetricsTable) -> [Setting; 2] {
    let listen = table.listen.as_ref().map(|address| address.get_ref());
    let (listen, to_clients) = (word(listen), word(table.to_clients));
    [
        Setting::new("metrics.listen", "metrics_listen", listen),
        Setting::new("metrics.to_clients", "metrics_to_clients", to_clients),
    ]
}

fn word(value: Option<impl ToString>) -> Option<Vec<OsString>> {
    value.map(|value| vec![value.to_string().into()])
}

fn paths<'a>(file: &File, paths: impl IntoIterator<Item = &'a Spanned<PathBuf>>) -> Vec<OsString> {
    let absolute = |path: &Spanned<PathBuf>| file.absolute(path.get_ref()).into();
    paths.into_iter().map(absolute).collect()
}

fn words(values: &[impl ToString]) -> Vec<OsString> {
    values
        .iter()
        .map(|value| value.to_string().into())
        .collect()
}
