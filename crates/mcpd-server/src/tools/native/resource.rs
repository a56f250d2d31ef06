//! Resources that are functions of the embedding program. The return type determines the media
//! type.

use std::fmt;
use std::pin::Pin;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcpd_protocol::content::{ResourceBody, ResourceContents};
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::method::ReadResourceResult;
use mcpd_scriptspec::ScriptPath;
use serde::Serialize;

use super::Json;
use crate::catalog::call::CallContext;
use crate::catalog::handler::ResourceHandler;

/// Return type of a native resource.
pub trait IntoResourceBody {
    /// Media type in lists and results, such as `text/plain`.
    const MIME_TYPE: &'static str;

    /// Converts the value to the content for clients.
    ///
    /// # Errors
    ///
    /// Returns a reason, which is shown to clients.
    fn into_resource_body(self) -> Result<ResourceBody, String>;
}

impl IntoResourceBody for String {
    const MIME_TYPE: &'static str = "text/plain";

    fn into_resource_body(self) -> Result<ResourceBody, String> {
        Ok(ResourceBody::Text(self))
    }
}

impl IntoResourceBody for &str {
    const MIME_TYPE: &'static str = String::MIME_TYPE;

    fn into_resource_body(self) -> Result<ResourceBody, String> {
        self.to_owned().into_resource_body()
    }
}

impl IntoResourceBody for Vec<u8> {
    const MIME_TYPE: &'static str = "application/octet-stream";

    fn into_resource_body(self) -> Result<ResourceBody, String> {
        Ok(ResourceBody::Blob(STANDARD.encode(self)))
    }
}

impl<T: Serialize> IntoResourceBody for Json<T> {
    const MIME_TYPE: &'static str = "application/json";

    fn into_resource_body(self) -> Result<ResourceBody, String> {
        serde_json::to_string(&self.0)
            .map(ResourceBody::Text)
            .map_err(|error| format!("it cannot be encoded as JSON: {error}"))
    }
}

impl<T: IntoResourceBody, E: fmt::Display> IntoResourceBody for Result<T, E> {
    const MIME_TYPE: &'static str = T::MIME_TYPE;

    fn into_resource_body(self) -> Result<ResourceBody, String> {
        self.map_err(|error| error.to_string())?
            .into_resource_body()
    }
}

type Read = Pin<Box<dyn Future<Output = Result<ResourceBody, String>> + Send>>;

/// Native resource before its server: a function of the program, and the media type of its result.
pub(crate) struct NativeResource {
    mime_type: &'static str,
    read: Box<dyn Fn(CallContext) -> Read + Send + Sync>,
}

impl NativeResource {
    pub(crate) fn new<F, R, O>(function: F) -> Self
    where
        F: Fn(CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = O> + Send + 'static,
        O: IntoResourceBody,
    {
        Self {
            mime_type: O::MIME_TYPE,
            read: Box::new(move |context| {
                let read = function(context);
                Box::pin(async move { read.await.into_resource_body() })
            }),
        }
    }

    pub(crate) fn mime_type(&self) -> &'static str {
        self.mime_type
    }

    /// Converts it to the handler of the resource at `path`.
    pub(crate) fn into_handler(self, path: ScriptPath) -> ResourceHandler {
        let Self { mime_type, read } = self;
        ResourceHandler::new(None, path, move |uri, context| {
            let body = read(context);
            async move {
                let body = body.await.map_err(|reason| {
                    ErrorObject::internal_error(format!(
                        "failed to read the resource `{uri}`: {reason}"
                    ))
                })?;
                let mut contents = ResourceContents::new(uri, body);
                contents.mime_type = Some(mime_type.to_owned());
                Ok(ReadResourceResult::new(vec![contents]))
            }
        })
    }
}

impl fmt::Debug for NativeResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeResource").finish_non_exhaustive()
    }
}
