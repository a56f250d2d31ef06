//! Link to the web console of a server, which the holder of its token asks for.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde::Deserialize;
use tokio::time::timeout;

use crate::Error;
use crate::http::{HttpClient, Outgoing};
use crate::target::Target;

/// Time limit of the request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Deserialize)]
struct Answer {
    code: String,
}

/// Asks the server of this URL for a link that opens its console once; the URL of the console, if
/// the server requires no token.
///
/// # Errors
///
/// Fails if the token would cross a network in plain text, and with [`Error::Unreachable`],
/// [`Error::Unauthorized`], or [`Error::Console`] if the server has no console.
///
/// # Cancel safety
///
/// May be dropped at any time.
pub async fn console_link(url: &str, token: Option<&str>) -> Result<String, Error> {
    let mut target = Target::new(url)?;
    target.url.set_query(None);
    target.url.set_path("/console");
    let console = target.place();
    let Some(token) = token else {
        return Ok(console);
    };
    target.url.set_path("/console/code");
    let client = HttpClient::new(target.token(token)?)?;
    let unreachable = |reason| Error::Unreachable {
        place: console.clone(),
        reason,
    };
    let refused = |reason| Error::Console {
        place: console.clone(),
        reason,
    };
    let outgoing = Outgoing::bare(Method::POST);
    let exchange = async {
        let response = client.send(&outgoing, None).await;
        let response = response.map_err(|fault| unreachable(fault.reason))?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED => return Err(Error::Unauthorized(console.clone())),
            StatusCode::NOT_FOUND => {
                return Err(refused(
                    "the server was started without `--console`".to_owned(),
                ));
            }
            status => return Err(refused(format!("the server answers {status}"))),
        }
        let answer = response.json::<Answer>().await;
        let answer = answer.map_err(|_| refused("the answer has no code".to_owned()))?;
        Ok(format!("{console}#code={}", answer.code))
    };
    let late = || unreachable(format!("no answer within {} s", ANSWER_TIMEOUT.as_secs()));
    timeout(ANSWER_TIMEOUT, exchange)
        .await
        .unwrap_or_else(|_| Err(late()))
}
