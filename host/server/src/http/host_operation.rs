//! The operation of the host that a request executes.

use std::sync::LazyLock;

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;

use super::context::RequestContext;
use super::operations::host_operations;
use assurance_contract::HostOperation;

/// Records the operation that the request executes, for the hints of problems.
pub(super) async fn noted(
    path: Option<MatchedPath>,
    context: RequestContext,
    request: Request,
    next: Next,
) -> Response {
    static KNOWN: LazyLock<Vec<HostOperation>> = LazyLock::new(host_operations);
    let of_path =
        |one: &&HostOperation| path.as_ref().is_some_and(|path| path.as_str() == one.path);
    let method = request.method().as_str();
    let found = KNOWN.iter().filter(of_path).find(|one| one.method.as_str() == method);
    if let Some(found) = found {
        context.executes(found.operation_id);
    }
    next.run(request).await
}
