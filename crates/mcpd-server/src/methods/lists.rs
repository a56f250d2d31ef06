//! Handler of the four lists, which are paginated.

use mcpd_protocol::Params;
use mcpd_protocol::method::PaginatedRequestParams;

use crate::catalog::{Catalog, ListForm, PageRequest};
use crate::client::request::context::Context;
use crate::message::reply::MethodResult;
use crate::server::Server;

/// Returns one page, with names as the transport spells them.
pub(crate) fn list(
    server: &Server,
    params: &Params<'_>,
    context: &Context,
    page: fn(&Catalog, PageRequest<'_>) -> MethodResult,
) -> MethodResult {
    let params: PaginatedRequestParams = params.parse()?;
    let wanted = PageRequest {
        cursor: params.cursor.as_deref(),
        form: ListForm {
            version: context.version,
            names: context.peer.names,
            has_apps: context.shows_apps(),
        },
        stamp: &context.stamp,
    };
    page(&server.catalog_for(&context.peer.principal), wanted)
}
