//! The four lists, page by page.

use mcpd_protocol::{PaginatedRequestParams, Params};

use crate::Server;
use crate::catalog::{Catalog, Wanted};
use crate::context::Context;
use crate::dispatch::MethodResult;

/// One page, in the naming of the face that asks.
pub(crate) fn list(
    server: &Server,
    params: &Params<'_>,
    context: &Context,
    page: fn(&Catalog, Wanted<'_>) -> MethodResult,
) -> MethodResult {
    let params: PaginatedRequestParams = params.parse()?;
    let wanted = Wanted {
        cursor: params.cursor.as_deref(),
        version: context.version,
        names: context.names,
        stamp: &context.stamp,
    };
    page(&server.catalog_for(&context.principal), wanted)
}
