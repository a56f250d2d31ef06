//! Approval of calls by a person, from `[approval]`.

use mcpd_server::policy::{Approval, AskFor, Remember, WithoutPerson};

use crate::file::File;
use crate::tables::approval as tables;

/// Builds the settings from `file`.
///
/// # Errors
///
/// A faulty value, with its place.
pub(crate) fn approval(file: &File) -> anyhow::Result<Approval> {
    let table = &file.tables.approval;
    let mut approval = Approval::default();
    if let Some(ask) = table.ask {
        approval.ask = match ask {
            tables::AskFor::Never => AskFor::Never,
            tables::AskFor::Destructive => AskFor::Destructive,
            tables::AskFor::UnlessReadOnly => AskFor::UnlessReadOnly,
            tables::AskFor::Always => AskFor::Always,
        };
    }
    if let Some(without) = table.without {
        approval.without = match without {
            tables::WithoutPerson::Refuse => WithoutPerson::Refuse,
            tables::WithoutPerson::Allow => WithoutPerson::Allow,
        };
    }
    if let Some(remember) = table.remember {
        approval.remember = match remember {
            tables::Remember::Never => Remember::Never,
            tables::Remember::Session => Remember::Session,
            tables::Remember::For(time) => Remember::For(time),
        };
    }
    if let Some(timeout) = &table.timeout {
        let most = Approval::MAX_TIMEOUT;
        if timeout.get_ref().0 > most {
            let what = format!("`timeout`: expected at most {} seconds", most.as_secs());
            return Err(file.error(timeout.span(), &what));
        }
        approval.timeout = timeout.get_ref().0;
    }
    Ok(approval)
}
