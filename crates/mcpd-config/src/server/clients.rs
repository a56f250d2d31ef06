//! Clients, their credentials and their access rules, from `[[token]]`,
//! `[[certificate]]` and `[[rule]]`.

use std::num::NonZeroU32;
use std::ptr;

use mcpd_server::Principal;
use mcpd_server::policy::{Access, CallPattern, PatternError, Quota, RateLimit, Selection};
use mcpd_server::transport::http::{Certificate, Token};

use super::profiles;
use crate::file::{self, File};
use crate::tables::{ClientTable, ConsoleRole, RuleTable, Variables};
use crate::value::Spanned;

/// Client that presents the token created by mcpd.
pub const AGENT: &str = "agent";
/// Client at a server that requires no token.
pub(crate) const ANONYMOUS: &str = "anonymous";
/// Client with a token of an issuer and without a rule of its own.
pub(crate) const UNNAMED: &str = "";
/// Client that started `mcpd stdio`.
pub(crate) const LOCAL: &str = "local";
const RESERVED: [&str; 3] = [AGENT, ANONYMOUS, LOCAL];

/// Default rate limit of a client with a configured token: calls per second, and burst. Clients on
/// this machine have none: `agent` is a client that can read the file of its token.
const DEFAULT_RATE: f64 = 20.0;
const DEFAULT_BURST: NonZeroU32 = NonZeroU32::new(40).expect("it is not zero");

/// Tokens that `file` configures.
///
/// # Errors
///
/// A faulty table, with its place.
pub(crate) fn tokens(file: &File, selected: &[Selection]) -> anyhow::Result<Vec<Token>> {
    let hash_command = "mcpd token new";
    read_credentials(
        file,
        selected,
        &file.tables.token,
        hash_command,
        Token::from_hash,
    )
}

/// Client certificates that `file` configures, if the server requests certificates.
///
/// # Errors
///
/// A faulty table, with its place.
pub(crate) fn certificates(
    file: &File,
    selected: &[Selection],
    requests_certificates: bool,
) -> anyhow::Result<Vec<Certificate>> {
    let hash_command = "openssl x509 -noout -fingerprint -sha256";
    let tables = &file.tables.certificate;
    if let (Some(first), false) = (tables.first(), requests_certificates) {
        let what = "no client is asked for a certificate; set the certificate authorities with `--tls-client-ca` or `client_ca` in `[tls]`";
        return Err(file.error(first.name.span(), what));
    }
    read_credentials(file, selected, tables, hash_command, Certificate::from_hash)
}

/// Credentials of the clients in `tables`, by hashes as `hash_command` prints them.
fn read_credentials<T>(
    file: &File,
    selected: &[Selection],
    tables: &[ClientTable],
    hash_command: &str,
    from_hash: impl Fn(&str, Principal) -> Option<T>,
) -> anyhow::Result<Vec<T>> {
    let known = tables.iter().map(|table| {
        check_name(file, table)?;
        check_hash(file, table, tables)?;
        let owner = principal(file, selected, table.name.get_ref(), Some(table))?;
        from_hash(table.sha256.get_ref(), owner).ok_or_else(|| {
            let what = format!(
                "`sha256`: expected 64 hexadecimal digits, as `{hash_command}` prints them"
            );
            file.error(table.sha256.span(), &what)
        })
    });
    known.collect()
}

/// Returns why a client cannot have this name.
pub fn name_fault(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("it is empty")
    } else if RESERVED.contains(&name) {
        Some("this name is reserved; choose another name")
    } else if name.chars().any(char::is_control) {
        Some("it has a control character")
    } else {
        None
    }
}

/// Rejects a name that is reserved or used twice.
fn check_name(file: &File, table: &ClientTable) -> anyhow::Result<()> {
    let name = table.name.get_ref();
    let mut of_this_name = tables(file).filter(|other| other.name.get_ref() == name);
    let is_taken = of_this_name
        .next()
        .is_some_and(|first| !ptr::eq(first, table));
    let taken = is_taken.then_some("another client already has this name");
    let Some(what) = name_fault(name).or(taken) else {
        return Ok(());
    };
    Err(file.error(table.name.span(), &format!("`name`: {what}")))
}

/// Rejects a hash that two clients share: the rules of one of them would never apply.
fn check_hash(file: &File, table: &ClientTable, tables: &[ClientTable]) -> anyhow::Result<()> {
    let plain = |table: &ClientTable| table.sha256.get_ref().replace(':', "").to_lowercase();
    let hash = plain(table);
    let first = tables.iter().find(|other| plain(other) == hash);
    if first.is_some_and(|first| !ptr::eq(first, table)) {
        let what = "`sha256`: another client already has this hash";
        return Err(file.error(table.sha256.span(), what));
    }
    Ok(())
}

/// All clients that have a table.
fn tables(file: &File) -> impl Iterator<Item = &ClientTable> {
    let tables = &file.tables;
    tables.token.iter().chain(&tables.certificate)
}

/// The client called `name`, with its access rules and the quota from its table if it has one.
/// Every client is restricted to what is `selected`.
///
/// # Errors
///
/// A faulty table or rule, with its place.
pub(crate) fn principal(
    file: &File,
    selected: &[Selection],
    name: &str,
    table: Option<&ClientTable>,
) -> anyhow::Result<Principal> {
    let principal = Principal::new(name).with_quota(quota(file, name, table)?);
    let principal = match console_role(file, name, table) {
        ConsoleRole::Operator => principal.operator(),
        ConsoleRole::Caller => principal,
    };
    let tools = table.and_then(|table| table.tools.as_deref());
    let (mut allowed, mut denied) = (Vec::new(), Vec::new());
    for rule in &file.tables.rule {
        let (is_allowed, calls) = calls(file, rule)?;
        match (is_about(file, rule.get_ref(), name)?, is_allowed) {
            (false, _) => {}
            (true, true) => allowed.push(calls),
            (true, false) => denied.push(calls),
        }
    }
    let profile = profile(file, name, table)?;
    let selections: Vec<_> = selected.iter().cloned().chain(profile).collect();
    if allowed.is_empty() && denied.is_empty() && tools.is_none() && selections.is_empty() {
        return Ok(principal);
    }
    let mut access = Access::default();
    if !allowed.is_empty() {
        access = access.allow_only(allowed);
    }
    if let Some(tools) = tools {
        access = access.allow_only([self::tools(file, "tools", tools)?]);
    }
    let access = denied.into_iter().fold(access, Access::deny);
    Ok(principal.with_access(selections.into_iter().fold(access, Access::select)))
}

/// Role of a client in the web console, from its table or from `[[client]]`.
fn console_role(file: &File, name: &str, table: Option<&ClientTable>) -> ConsoleRole {
    let mut others = file.tables.client.iter();
    match table {
        Some(table) => table.console,
        None => others
            .find(|other| other.name.get_ref() == name)
            .map_or(ConsoleRole::default(), |other| other.console),
    }
}

/// Selection of the profile that a client has in its table or in `[[client]]`, if it has one.
fn profile(
    file: &File,
    name: &str,
    table: Option<&ClientTable>,
) -> anyhow::Result<Option<Selection>> {
    let mut others = file.tables.client.iter();
    let profile = match table {
        Some(table) => table.profile.as_ref(),
        None => others
            .find(|other| other.name.get_ref() == name)
            .and_then(|other| other.profile.as_ref()),
    };
    profile
        .map(|profile| profiles::of_client(file, profile))
        .transpose()
}

/// Variables of each client that brings any to the scripts it calls.
///
/// # Errors
///
/// A table for a client that can't exist, or has a table elsewhere, with its place.
pub(crate) fn variables(file: &File) -> anyhow::Result<Vec<(&str, &Variables)>> {
    let known = tables(file).map(|table| (&table.name, &table.env));
    let others = &file.tables.client;
    for (place, table) in others.iter().enumerate() {
        let name = table.name.get_ref();
        let wrong = |what: &str| Err(file.error(table.name.span(), &format!("`name`: {what}")));
        if others
            .iter()
            .take(place)
            .any(|other| other.name.get_ref() == name)
        {
            return wrong("another `[[client]]` already has this name");
        }
        if tables(file).any(|other| other.name.get_ref() == name) {
            return wrong("this client has a table of its own; put its keys there");
        }
        if !RESERVED.contains(&name.as_str()) && !is_of_issuer(file, name) {
            return wrong(
                "expected `agent`, `local`, `anonymous`, or `ISSUER#SUBJECT` with an issuer of `[[oauth.issuer]]`",
            );
        }
    }
    let others = others.iter().map(|table| (&table.name, &table.env));
    let all = known.chain(others);
    Ok(all
        .map(|(name, variables)| (name.get_ref().as_str(), variables))
        .collect())
}

/// Clients that rules or tables name and that present tokens of an issuer.
pub(crate) fn issuer_clients(file: &File) -> impl Iterator<Item = &str> {
    let rules = file.tables.rule.iter().map(|rule| rule.get_ref());
    let clients = rules.filter_map(|rule| rule.clients.as_ref()).flatten();
    let others = file.tables.client.iter().map(|table| &table.name);
    let clients = clients.chain(others);
    let clients = clients.map(|client| client.get_ref().as_str());
    clients.filter(|client| is_of_issuer(file, client))
}

/// Returns whether `client` has the form of a client with a token of an issuer, `ISSUER#SUBJECT`.
fn is_of_issuer(file: &File, client: &str) -> bool {
    let issuers = file.tables.oauth.iter();
    let mut issuers = issuers.flat_map(|oauth| &oauth.get_ref().issuer);
    issuers.any(|issuer| {
        let rest = client.strip_prefix(issuer.url.get_ref().as_str());
        rest.is_some_and(|rest| rest.len() > 1 && rest.starts_with('#'))
    })
}

/// Rate limit and concurrency limit of a client.
fn quota(file: &File, name: &str, table: Option<&ClientTable>) -> anyhow::Result<Quota> {
    let all = &file.tables.limits;
    let mut quota = Quota::default();
    let concurrency = table.and_then(|table| table.concurrency);
    quota.concurrency = concurrency.or(all.concurrency).unwrap_or(quota.concurrency);
    let rate = table.and_then(|table| table.rate.as_ref());
    let burst = table.and_then(|table| table.burst).or(all.burst);
    quota.rate = match rate.or(all.rate.as_ref()) {
        Some(rate) => Some(self::rate(file, rate, burst)?),
        None if !RESERVED.contains(&name) => {
            RateLimit::new(DEFAULT_RATE, burst.unwrap_or(DEFAULT_BURST))
        }
        None => None,
    };
    Ok(match file.tables.cluster.fronts {
        Some(fronts) => quota.divided_among(fronts),
        None => quota,
    })
}

/// Rate limit of `rate` calls per second; the default burst is two seconds' worth.
fn rate(file: &File, rate: &Spanned<f64>, burst: Option<NonZeroU32>) -> anyhow::Result<RateLimit> {
    let per_second = *rate.get_ref();
    let two_seconds = NonZeroU32::new((2.0 * per_second).ceil() as u32);
    let burst = burst.or(two_seconds).unwrap_or(NonZeroU32::MIN);
    RateLimit::new(per_second, burst).ok_or_else(|| {
        let what = "`rate`: expected a number of calls per second above 0, or `inf` for no limit";
        file.error(rate.span(), what)
    })
}

/// Returns whether a rule applies to the client called `name`. A rule for an unknown client is an
/// error: it would never apply, which is never intended.
fn is_about(file: &File, rule: &RuleTable, name: &str) -> anyhow::Result<bool> {
    let Some(clients) = &rule.clients else {
        return Ok(true);
    };
    let names = tables(file).map(|table| table.name.get_ref().as_str());
    let known: Vec<_> = RESERVED.into_iter().chain(names).collect();
    for client in clients {
        let given = client.get_ref().as_str();
        if !known.contains(&given) && !is_of_issuer(file, given) {
            let suggestion = file::suggestion(given, &known);
            let what = format!("`clients`: there is no client `{given}`; {suggestion}");
            return Err(file.error(client.span(), &what));
        }
    }
    Ok(clients.iter().any(|client| client.get_ref() == name))
}

/// The effect of a rule: whether it allows, and the calls it covers.
fn calls(file: &File, rule: &Spanned<RuleTable>) -> anyhow::Result<(bool, CallPattern)> {
    let wants_one = || file.error(rule.span(), "a rule needs either `allow` or `deny`");
    let table = rule.get_ref();
    let (is_allowed, key, patterns) = match (&table.allow, &table.deny) {
        (Some(allow), None) => (true, "allow", allow),
        (None, Some(deny)) => (false, "deny", deny),
        _ => return Err(wants_one()),
    };
    if patterns.get_ref().is_empty() {
        let what = format!("`{key}`: expected at least one pattern");
        return Err(file.error(patterns.span(), &what));
    }
    let mut calls = tools(file, key, patterns.get_ref())?;
    for (argument, patterns) in &table.arguments {
        if patterns.is_empty() {
            let name = argument.get_ref();
            let what = format!("`arguments`: expected at least one pattern for `{name}`");
            return Err(file.error(argument.span(), &what));
        }
        for pattern in patterns {
            let added = calls.argument(argument.get_ref(), pattern.get_ref());
            calls = added.map_err(|error| wrong(file, "arguments", pattern, &error))?;
        }
    }
    Ok((is_allowed, calls))
}

/// All calls of these tools.
pub(crate) fn tools(
    file: &File,
    key: &str,
    patterns: &[Spanned<String>],
) -> anyhow::Result<CallPattern> {
    patterns
        .iter()
        .try_fold(CallPattern::default(), |calls, pattern| {
            let added = calls.tool(pattern.get_ref());
            added.map_err(|error| wrong(file, key, pattern, &error))
        })
}

fn wrong(file: &File, key: &str, pattern: &Spanned<String>, error: &PatternError) -> anyhow::Error {
    file.failure(key, pattern.span(), error)
}
