//! The operation of the host that a request executes.

use std::sync::{Arc, LazyLock};

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;

use super::context::RequestContext;
use super::operations::host_operations;
use assurance_contract::{HostOperation, OperationRequestDurations};
use assurance_core::domain::manifest::Method;

/// Value of the label `area` in the metrics of the host's own operations.
const HOST: &str = "host";

/// Method, path template and metrics of one of the host's own operations.
type MeteredOperation = (Method, &'static str, Arc<OperationRequestDurations>);

/// Records the operation that the request executes, for its metrics and the hints of problems.
pub(super) async fn noted(
    path: Option<MatchedPath>,
    context: RequestContext,
    request: Request,
    next: Next,
) -> Response {
    static KNOWN: LazyLock<Vec<MeteredOperation>> =
        LazyLock::new(|| host_operations().iter().map(metered).collect());
    let (method, path) = (request.method().as_str(), path.as_ref().map(MatchedPath::as_str));
    let executes = |one: &&MeteredOperation| one.0.as_str() == method && Some(one.1) == path;
    if let Some((_, _, meter)) = KNOWN.iter().find(executes) {
        context.set_meter(meter);
    }
    next.run(request).await
}

fn metered(one: &HostOperation) -> MeteredOperation {
    (one.method, one.path, Arc::new(OperationRequestDurations::new(HOST, one.operation_id)))
}
