//! Minimal HTTP server on hyper: it gives every request the same result.
//!
//! `hyper-peer FILE` answers with the result in FILE, and the id of the request.

use std::convert::Infallible;

use anyhow::Context as _;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use serde_json::value::RawValue;

#[derive(serde::Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let file = std::env::args().nth(1).context("usage: hyper-peer FILE")?;
    let result: &'static str = std::fs::read_to_string(file)?.leak();
    mcpd_peers::serve(service_fn(move |request| answer(request, result))).await?;
    Ok(())
}

async fn answer(
    request: Request<Incoming>,
    result: &str,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    let Ok(Envelope { id }) = serde_json::from_slice(&body) else {
        let mut refusal = Response::default();
        *refusal.status_mut() = StatusCode::BAD_REQUEST;
        return Ok(refusal);
    };
    let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    let mut response = Response::new(Full::from(message));
    let json = hyper::header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    Ok(response)
}
