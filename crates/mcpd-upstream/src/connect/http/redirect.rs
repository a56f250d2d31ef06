//! Redirects: followed within the same origin, with the message and its credentials; a redirect
//! elsewhere is a fault that names the target.

use reqwest::header::LOCATION;
use reqwest::{Client, Request, Response, StatusCode, Url};
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::client::{HttpFault, without_url};
use crate::remarks::Remarks;

/// Maximum number of redirects followed for one request.
const MAX_REDIRECTS: usize = 5;

/// Sends `request`, following redirects.
pub(super) async fn follow(
    client: &Client,
    mut request: Request,
    remarks: &Remarks,
) -> Result<Response, HttpFault> {
    for _ in 0..=MAX_REDIRECTS {
        let again = request.try_clone();
        let from = request.url().clone();
        let response = client.execute(request).await.map_err(without_url)?;
        let Some(to) = target(&response, &from) else {
            return Ok(response);
        };
        let again = again.filter(|_| to.origin() == from.origin() && is_same_request(&response));
        let Some(mut again) = again else {
            return Err(fault(response.status(), &to, &from));
        };
        remarks.add(format!(
            "redirects from `{}` to `{}`; set `url` to the target to save a round trip per request",
            from.path(),
            to.path()
        ));
        *again.url_mut() = to;
        request = again;
    }
    let fault = format!("more than {MAX_REDIRECTS} redirects");
    Err(StreamableHttpError::UnexpectedServerResponse(fault.into()))
}

/// Returns the target of a redirect.
fn target(response: &Response, from: &Url) -> Option<Url> {
    if !response.status().is_redirection() {
        return None;
    }
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    from.join(location).ok()
}

/// Returns whether the redirect asks for the same request at the new location, rather than for a
/// `GET` of its result.
fn is_same_request(response: &Response) -> bool {
    matches!(
        response.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    )
}

fn fault(status: StatusCode, to: &Url, from: &Url) -> HttpFault {
    // A query may be a secret.
    let place = format!("{}{}", to.origin().ascii_serialization(), to.path());
    let reason = match to.origin() == from.origin() {
        true => "which is not a usable target",
        false => "which is another origin; set `url` to it if that is intended",
    };
    let fault = format!("HTTP {status} redirects to `{place}`, {reason}");
    StreamableHttpError::UnexpectedServerResponse(fault.into())
}
