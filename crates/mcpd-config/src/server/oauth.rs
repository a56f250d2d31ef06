//! OAuth issuers from `[oauth]` whose tokens are accepted, and the scopes of these tokens.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use anyhow::Context as _;
use mcpd_exec::Executor;
use mcpd_server::policy::Selection;
use mcpd_server::transport::http::{Issuer, OAuth, OAuthError, Scope, TokenExchange};

use super::{clients, environment};
use crate::file::File;
use crate::listening::ListenPlace;
use crate::tables::{ExchangeTable, IssuerTable, ScopeTable};
use crate::value::Spanned;

/// Accepted issuers, if `file` has any.
///
/// # Errors
///
/// A faulty value, with its place.
pub(crate) fn oauth(file: &File, selected: &[Selection]) -> anyhow::Result<Option<OAuth>> {
    let Some(table) = &file.tables.oauth else {
        return Ok(None);
    };
    let (span, table) = (table.span(), table.get_ref());
    if table.issuer.is_empty() {
        let what = "at least one `[[oauth.issuer]]` is required";
        return Err(file.error(span, what));
    }
    let issuers = table.issuer.iter().map(|table| issuer(file, table));
    let mut oauth = OAuth::new(issuers.collect::<anyhow::Result<Vec<_>>>()?);
    if let Some(url) = &table.resource {
        let set = oauth.resource(url.get_ref());
        oauth = set.map_err(|error| wrong(file, "resource", url, &error))?;
    }
    for audience in &table.audience {
        oauth = oauth.audience(audience);
    }
    for claim in &table.claims {
        oauth = oauth.claim(claim);
    }
    if !table.exchange.is_empty() {
        oauth = oauth.keep_tokens();
    }
    for scope in &table.scope {
        oauth = oauth.scope(self::scope(file, scope)?);
    }
    for name in clients::issuer_clients(file) {
        oauth = oauth.client(clients::principal(file, selected, name, None)?);
    }
    let others = clients::principal(file, selected, clients::UNNAMED, None)?;
    Ok(Some(oauth.others(others)))
}

/// Exchanges of tokens, by name. Programs that print secrets run with `executor`, and not at all
/// without one.
///
/// # Errors
///
/// A faulty value, with its place.
pub(crate) async fn exchanges<'a>(
    file: &'a File,
    executor: Option<&Executor>,
) -> anyhow::Result<BTreeMap<&'a str, Arc<TokenExchange>>> {
    let mut exchanges = BTreeMap::new();
    let tables = file.tables.oauth.iter();
    for table in tables.flat_map(|table| &table.get_ref().exchange) {
        let exchange = exchange(file, table, executor).await?;
        let name = table.name.get_ref().as_str();
        if exchanges.insert(name, Arc::new(exchange)).is_some() {
            let what = "`name`: another exchange already has this name";
            return Err(file.error(table.name.span(), what));
        }
    }
    Ok(exchanges)
}

async fn exchange(
    file: &File,
    table: &ExchangeTable,
    executor: Option<&Executor>,
) -> anyhow::Result<TokenExchange> {
    let endpoint = &table.endpoint;
    let mut exchange = TokenExchange::new(endpoint.get_ref())
        .map_err(|error| wrong(file, "endpoint", endpoint, &error))?;
    match (&table.client_id, &table.client_secret) {
        (Some(id), Some(secret)) => {
            let secret = environment::value(file, "client_secret", secret, executor).await?;
            exchange = exchange.client(id, secret);
        }
        (Some(id), None) => exchange = exchange.parameter("client_id", id),
        (None, None) => {}
        (None, Some(secret)) => {
            let what = "`client_secret`: `client_id` is missing";
            return Err(file.error(secret.span(), what));
        }
    }
    let parameters = [
        ("audience", &table.audience),
        ("resource", &table.resource),
        ("scope", &table.scope),
    ];
    let parameters = parameters.into_iter();
    let parameters = parameters.filter_map(|(name, value)| Some((name, value.as_ref()?)));
    Ok(parameters.fold(exchange, |exchange, (name, value)| {
        exchange.parameter(name, value)
    }))
}

/// Refuses to derive the public URL from `places` if clients know none of these addresses.
///
/// # Errors
///
/// The URL is not configured, and can't be derived.
pub(crate) fn check_resource(file: &File, places: &[ListenPlace]) -> anyhow::Result<()> {
    let mut addresses = places.iter().flat_map(ListenPlace::addresses);
    let tables = file.tables.oauth.as_ref();
    match tables.filter(|table| table.get_ref().resource.is_none()) {
        Some(table) if addresses.any(|address| address.ip().is_unspecified()) => {
            let what = "`resource` is missing: mcpd listens on every address and does not know which of them clients use";
            Err(file.error(table.span(), what))
        }
        _ => Ok(()),
    }
}

fn issuer(file: &File, table: &IssuerTable) -> anyhow::Result<Issuer> {
    let issuer = Issuer::new(table.url.get_ref());
    let issuer = issuer.map_err(|error| wrong(file, "url", &table.url, &error))?;
    let Some(keys) = &table.jwks else {
        return Ok(issuer);
    };
    let wrong = |error| wrong(file, "jwks", keys, &error);
    if keys.get_ref().contains("://") {
        return issuer.keys_at(keys.get_ref()).map_err(wrong);
    }
    let path = file.absolute(keys.get_ref().as_ref());
    let read = fs::read(&path).with_context(|| format!("read `{}`", path.display()));
    let read = read.map_err(|error| file.failure("jwks", keys.span(), &error))?;
    issuer.keys(&read).map_err(wrong)
}

fn scope(file: &File, table: &ScopeTable) -> anyhow::Result<Scope> {
    let tools = clients::tools(file, "tools", table.tools.get_ref())?;
    let scope = Scope::new(table.name.get_ref(), tools);
    let scope = scope.map_err(|error| wrong(file, "name", &table.name, &error))?;
    Ok(if table.step_up {
        scope.in_step_up()
    } else {
        scope
    })
}

fn wrong(file: &File, key: &str, value: &Spanned<String>, error: &OAuthError) -> anyhow::Error {
    file.failure(key, value.span(), error)
}
