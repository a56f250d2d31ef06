//! Tables `[[token]]` in the text of `mcpd.toml`: added and removed, with everything else as it is.

use std::path::Path;

use anyhow::{Context as _, bail};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, Value, value};

use crate::file::File;
use crate::server::clients;

const KEY: &str = "token";

/// Table of a client that is known by its token.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenTable {
    /// Name of the client.
    pub name: String,
    /// SHA-256 hash of the token, 64 hexadecimal digits.
    pub sha256: String,
    /// Patterns of what the client may use; all if there is none.
    pub tools: Vec<String>,
    /// Name of the profile of the client.
    pub profile: Option<String>,
}

impl TokenTable {
    /// Describes a client that may use everything.
    pub fn new(name: impl Into<String>, sha256: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            sha256: sha256.into(),
            tools: Vec::new(),
            profile: None,
        }
    }

    /// Table as it stands in `mcpd.toml`.
    pub fn text(&self) -> String {
        let mut document = DocumentMut::new();
        let tables = ArrayOfTables::from_iter([self.table()]);
        document.insert(KEY, Item::ArrayOfTables(tables));
        document.to_string()
    }

    /// Adds the table to the text of a file.
    ///
    /// # Errors
    ///
    /// The text is no TOML, a client has this name already, or the file would be faulty: a profile
    /// that does not exist, or a pattern that is none.
    pub fn add_to(&self, text: &str) -> anyhow::Result<String> {
        let document = parse(text)?;
        if places_of(&document, &self.name).next().is_some() {
            bail!("another client is called `{}`", self.name.escape_debug());
        }
        // At the end of the file, where it can't become a part of another table.
        let separator = match text {
            "" => "",
            text if text.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        let text = format!("{text}{separator}{}", self.text());
        check(&text)?;
        Ok(text)
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.insert("name", value(&self.name));
        table.insert("sha256", value(&self.sha256));
        if !self.tools.is_empty() {
            table.insert("tools", value(Value::from_iter(&self.tools)));
        }
        if let Some(profile) = &self.profile {
            table.insert("profile", value(profile));
        }
        table
    }

    /// Removes the table of the client called `name` from the text of a file, with the tables
    /// inside it.
    ///
    /// # Errors
    ///
    /// The text is no TOML, has no such client, or something else refers to that client: a server
    /// would refuse the new text, and go on with the token.
    pub fn remove_from(text: &str, name: &str) -> anyhow::Result<String> {
        let mut document = parse(text)?;
        let place = places_of(&document, name).next();
        let tables = document.get_mut(KEY).and_then(Item::as_array_of_tables_mut);
        let (Some(place), Some(tables)) = (place, tables) else {
            bail!("there is no `[[token]]` called `{}`", name.escape_debug());
        };
        tables.remove(place);
        if tables.is_empty() {
            document.remove(KEY);
        }
        let text = document.to_string();
        check(&text)?;
        Ok(text)
    }
}

fn parse(text: &str) -> anyhow::Result<DocumentMut> {
    let document: DocumentMut = text.parse().context("parse the configuration file")?;
    if document.get(KEY).is_some_and(Item::is_value) {
        bail!("`token` is an array in one line; write it as `[[token]]` tables first");
    }
    Ok(document)
}

/// Checks the clients and rules of a text, as a server does when it reads them.
fn check(text: &str) -> anyhow::Result<()> {
    let file = File::of_text(Path::new("mcpd.toml"), text.to_owned())?;
    clients::tokens(&file, &[])?;
    // It reads all rules.
    clients::principal(&file, &[], clients::AGENT, None)?;
    Ok(())
}

fn places_of<'a>(document: &'a DocumentMut, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    let tables = document.get(KEY).and_then(Item::as_array_of_tables);
    let names = tables.into_iter().flatten().map(|table| table.get("name"));
    let names = names.map(|name| name.and_then(Item::as_str)).enumerate();
    names.filter_map(move |(place, known)| (known == Some(name)).then_some(place))
}

impl File {
    /// Clients that are known by tokens of their own.
    pub fn token_tables(&self) -> Vec<TokenTable> {
        let tables = self.tables.token.iter().map(|table| TokenTable {
            name: table.name.get_ref().clone(),
            sha256: table.sha256.get_ref().clone(),
            tools: table
                .tools
                .iter()
                .flatten()
                .map(|pattern| pattern.get_ref().clone())
                .collect(),
            profile: table.profile.as_ref().map(|name| name.get_ref().clone()),
        });
        tables.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "# Ours.\nroots = [ 'a' ]\n\n[profile.small]\n\n[[token]] # the first\nname = \"a\"\nsha256 = \"0000000000000000000000000000000000000000000000000000000000000000\"\n\n[token.env]\nKEY = \"x\"\n\n[[tool]]\nmatch = \"*\"";

    #[test]
    fn table_is_added_at_the_end_and_removed_without_a_trace() {
        let hash = "1".repeat(64);
        let mut table = TokenTable::new("b", &hash);
        table.tools = vec!["git/*".to_owned()];
        table.profile = Some("small".to_owned());
        let after = table.add_to(BEFORE).unwrap();
        let added = format!(
            "\n\n[[token]]\nname = \"b\"\nsha256 = \"{hash}\"\ntools = [\"git/*\"]\nprofile = \"small\"\n"
        );
        assert_eq!(after, format!("{BEFORE}{added}"));
        assert!(table.add_to(&after).is_err());
        let removed = TokenTable::remove_from(&after, "b").unwrap();
        assert_eq!(removed.trim_end(), BEFORE);
        assert!(table.add_to("").is_err(), "it has no such profile");
        table.profile = None;
        let alone = table.add_to("").unwrap();
        assert!(added.trim_start().starts_with(alone.trim_end()), "{alone}");
    }

    #[test]
    fn faulty_text_is_not_made() {
        let mut table = TokenTable::new("b", "1".repeat(64));
        table.tools = vec!["[".to_owned()];
        assert!(table.add_to(BEFORE).is_err());
        let ruled = format!("{BEFORE}\n\n[[rule]]\nclients = [\"a\"]\nallow = [\"**\"]\n");
        let refused = TokenTable::remove_from(&ruled, "a").unwrap_err();
        assert!(
            format!("{refused:#}").contains("there is no client"),
            "{refused:#}"
        );
        let inline = format!(
            "token = [{{ name = \"a\", sha256 = \"{}\" }}]",
            "0".repeat(64)
        );
        let refused = TokenTable::remove_from(&inline, "a").unwrap_err();
        assert!(refused.to_string().contains("[[token]]"), "{refused}");
    }

    #[test]
    fn tables_inside_are_removed_too() {
        let after = TokenTable::remove_from(BEFORE, "a").unwrap();
        assert!(
            after.contains("# Ours.") && after.contains("[[tool]]"),
            "{after}"
        );
        assert!(
            !after.contains("KEY") && !after.contains("token"),
            "{after}"
        );
        assert!(TokenTable::remove_from(BEFORE, "c").is_err());
        assert!(TokenTable::remove_from("a = ", "c").is_err());
    }
}
