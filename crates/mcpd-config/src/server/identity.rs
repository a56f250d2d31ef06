//! Identity of the server: how `[server]` describes it to clients and models.

use mcpd_protocol::Implementation;
use mcpd_protocol::content::Icon;
use mcpd_server::Settings;

use crate::file::File;
use crate::tables::{IconTable, ServerTable, Theme};
use crate::value::Spanned;

/// Adds the identity in the file to `settings`.
///
/// # Errors
///
/// An address is not one that clients can open.
pub(crate) fn add(mut settings: Settings, file: &File) -> anyhow::Result<Settings> {
    let ServerTable {
        name,
        version,
        title,
        instructions,
        website_url,
        icons,
    } = &file.tables.server;
    if let Some(instructions) = instructions {
        settings = settings.instructions(instructions);
    }
    let name = name.as_deref().unwrap_or("mcpd");
    let version = version.as_deref().unwrap_or(env!("CARGO_PKG_VERSION"));
    let mut identity = Implementation::new(name, version);
    identity.title.clone_from(title);
    let website_url = website_url.as_ref();
    let website_url = website_url.map(|url| address(file, url, &["https:", "http:"]));
    identity.website_url = website_url.transpose()?;
    let icons = icons.iter().map(|table| icon(file, table));
    identity.icons = icons.collect::<Result<_, _>>()?;
    Ok(settings.identity(identity))
}

fn icon(file: &File, table: &IconTable) -> anyhow::Result<Icon> {
    let mut icon = Icon::new(address(file, &table.src, &["https:", "http:", "data:"])?);
    icon.mime_type.clone_from(&table.mime_type);
    icon.sizes.clone_from(&table.sizes);
    icon.theme = table.theme.map(|theme| match theme {
        Theme::Light => "light".into(),
        Theme::Dark => "dark".into(),
    });
    Ok(icon)
}

/// Accepts an address that begins with one of `schemes`.
fn address(file: &File, url: &Spanned<String>, schemes: &[&str]) -> anyhow::Result<String> {
    let text = url.get_ref();
    if schemes.iter().any(|scheme| text.starts_with(scheme)) {
        return Ok(text.clone());
    }
    let schemes = schemes.join("`, `");
    Err(file.error(
        url.span(),
        &format!("expected an address that begins with one of `{schemes}`"),
    ))
}
