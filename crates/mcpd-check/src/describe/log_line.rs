//! Notifications of a script that runs, as lines.

use mcpd_protocol::NotificationMethod as _;
use mcpd_protocol::jsonrpc::Notification;
use mcpd_protocol::meta::Meta;
use mcpd_protocol::method::{
    LoggingMessageNotification, LoggingMessageNotificationParams, ProgressNotification,
    ProgressNotificationParams,
};

/// Line of a script's log, or its progress, in the format that scripts print it in; none for what
/// the server says of the script, such as a heartbeat.
#[must_use]
pub fn log_line(message: &Notification<'_>) -> Option<String> {
    if message.method == LoggingMessageNotification::NAME {
        let params: LoggingMessageNotificationParams = message.parse_params().ok()?;
        let level = serde_json::to_value(params.level).unwrap_or_default();
        let level = level.as_str().unwrap_or_default().to_uppercase();
        let text = params.data.as_str().map(str::to_owned);
        let text = text.unwrap_or_else(|| params.data.to_string());
        is_its_own(params.meta.as_ref()).then(|| format!("{level} {text}\n"))
    } else if message.method == ProgressNotification::NAME {
        let params: ProgressNotificationParams = message.parse_params().ok()?;
        let total = params.total.map(|total| format!("/{total}"));
        let text = params.message.map(|text| format!(" {text}"));
        let (total, text) = (total.unwrap_or_default(), text.unwrap_or_default());
        let progress = params.progress;
        is_its_own(params.meta.as_ref()).then(|| format!("PROGRESS {progress}{total}{text}\n"))
    } else {
        None
    }
}

/// Returns whether the script logged the message, rather than mcpd about the script.
fn is_its_own(meta: Option<&Meta>) -> bool {
    let is_said = |key| meta.is_some_and(|meta| meta.contains_key(key));
    !is_said("mcpd/stream") && !is_said("mcpd/heartbeat")
}
