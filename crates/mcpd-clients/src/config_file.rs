//! A client's file in one scope: what an installation makes of its text, and what it has.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::client::{Client, ClientError, Reference, Scope, input_id};
use crate::edit::{self, EditError, Format, Removal, Table};
use crate::{Drift, InstalledServer, Server, Transport};

/// File of a client with the table of its servers.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    client: &'static Client,
    scope: Scope,
    path: PathBuf,
    table: Table,
}

impl ConfigFile {
    pub(crate) fn new(client: &'static Client, scope: Scope, path: PathBuf, table: Table) -> Self {
        Self {
            client,
            scope,
            path,
            table,
        }
    }

    /// Client whose file it is.
    #[must_use]
    pub fn client(&self) -> &'static Client {
        self.client
    }

    /// Reach of the file.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Path of the file, which may not exist.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Format of the file.
    #[must_use]
    pub fn format(&self) -> Format {
        self.client.format()
    }

    /// Table of the servers in it.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Belongs to the user alone, so that no other user should be able to read it.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.scope != Scope::Project
    }

    /// Servers that the file has, in its order.
    ///
    /// # Errors
    ///
    /// The text is not of the file's format.
    pub fn installed_servers(&self, text: &str) -> Result<Vec<InstalledServer>, EditError> {
        let entries = edit::entries(text, self.format(), &self.table)?;
        Ok(entries
            .into_iter()
            .map(|(name, entry)| InstalledServer::read(&name, entry))
            .collect())
    }

    /// Difference between the entry of that name and what an installation would write.
    ///
    /// # Errors
    ///
    /// The text is not of the file's format, or the client has no form for the server.
    pub fn drift(&self, text: &str, server: &Server) -> Result<Drift, ClientError> {
        let new = self.client.entry(server)?;
        Ok(match self.find_entry(text, &server.name)? {
            None => Drift::Missing,
            Some(old) if self.client.update_entry(&old, new) == old => Drift::Same,
            Some(_) => Drift::Differs,
        })
    }

    /// Text of the file with the server: the text itself if it has it already. Settings that an
    /// operator added to the entry are kept. A missing file is an empty text.
    ///
    /// # Errors
    ///
    /// The client has no form for the server, or the file can't be edited.
    pub fn install(&self, text: &str, server: &Server) -> Result<String, ClientError> {
        let new = self.client.entry(server)?;
        let entry = match self.find_entry(text, &server.name)? {
            Some(old) => self.client.update_entry(&old, new),
            None => new,
        };
        let input = self.token_input(server).filter(|(id, _)| {
            let inputs = edit::entries(text, self.format(), &inputs());
            !inputs.is_ok_and(|inputs| inputs.iter().any(|(existing, _)| existing == id))
        });
        Ok(self.put(text, &server.name, &entry, input.as_ref())?)
    }

    /// Text of the file without the entry of that name.
    ///
    /// `original` is the text before the installation, where there is a copy of it. It is
    /// returned if an installation of the entry into it gives just this text; without it an empty
    /// table that was there before may be missing, see [`edit`].
    ///
    /// # Errors
    ///
    /// The file can't be edited.
    pub fn remove(
        &self,
        text: &str,
        name: &str,
        original: Option<&str>,
    ) -> Result<Removal, EditError> {
        let Some(entry) = self.find_entry(text, name)? else {
            return Ok(Removal::Missing);
        };
        let input = self.find_input(text, &entry)?;
        if let Some(original) = original
            && let Ok(None) = self.find_entry(original, name)
        {
            let new_input = input
                .as_ref()
                .filter(|_| matches!(self.find_input(original, &entry), Ok(None)));
            if self
                .put(original, name, &entry, new_input)
                .is_ok_and(|again| again == text)
            {
                return Ok(Removal::Text(original.to_owned()));
            }
        }
        let removal = edit::remove(text, self.format(), &self.table, name)?;
        let removal = match (removal, input) {
            (Removal::Text(rest) | Removal::Empty(rest), Some((id, _)))
                if !rest.contains(&format!("${{input:{id}}}")) =>
            {
                edit::remove(&rest, self.format(), &inputs(), &id)?
            }
            (removal, _) => removal,
        };
        Ok(match removal {
            Removal::Text(rest) if self.has_only_preface(&rest) => Removal::Empty(rest),
            removal => removal,
        })
    }

    fn find_entry(&self, text: &str, name: &str) -> Result<Option<Value>, EditError> {
        let entries = edit::entries(text, self.format(), &self.table)?;
        Ok(entries
            .into_iter()
            .find(|(key, _)| key == name)
            .map(|(_, entry)| entry))
    }

    fn put(
        &self,
        text: &str,
        name: &str,
        entry: &Value,
        input: Option<&(String, Value)>,
    ) -> Result<String, EditError> {
        let text = if text.trim().is_empty() && !self.client.preface().is_empty() {
            self.client.preface()
        } else {
            text
        };
        // Before the server, so that its removal behind the server's finds it at the end.
        let text = match input {
            Some((id, input)) => edit::insert(text, self.format(), &inputs(), id, input)?,
            None => text.to_owned(),
        };
        edit::insert(&text, self.format(), &self.table, name, entry)
    }

    /// Input that asks for the token of a server, where the client has such.
    pub(crate) fn token_input(&self, server: &Server) -> Option<(String, Value)> {
        let Transport::Http {
            token_variable: Some(variable),
            ..
        } = &server.transport
        else {
            return None;
        };
        (self.client.reference() == Reference::Input).then(|| {
            let id = input_id(variable);
            let input = json!({
                "type": "promptString",
                "id": id,
                "description": format!("Token of {}", server.name),
                "password": true,
            });
            (id, input)
        })
    }

    /// Input of a file that an entry refers to.
    fn find_input(&self, text: &str, entry: &Value) -> Result<Option<(String, Value)>, EditError> {
        if self.client.reference() != Reference::Input {
            return Ok(None);
        }
        let entry = entry.to_string();
        let inputs = edit::entries(text, self.format(), &inputs())?;
        Ok(inputs
            .into_iter()
            .find(|(id, _)| entry.contains(&format!("${{input:{id}}}"))))
    }

    /// Nothing is left but what a new file starts with.
    fn has_only_preface(&self, text: &str) -> bool {
        let preface = self.client.preface();
        let (Ok(Value::Object(mut rest)), Ok(Value::Object(preface))) = (
            edit::read(text, self.format()),
            edit::read(preface, self.format()),
        ) else {
            return false;
        };
        rest.retain(|_, value| !value.is_null() && *value != json!([]));
        !preface.is_empty() && rest == preface
    }
}

/// Inputs of Visual Studio Code.
fn inputs() -> Table {
    Table::list(["inputs"], "id")
}
