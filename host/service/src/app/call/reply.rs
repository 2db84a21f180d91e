//! Checks a handler's reply against its route, before anything is committed.

use serde::de::IgnoredAny;

use assurance_contract::CompiledRoute;
use assurance_core::domain::area::{Problem, SuccessReply};
use assurance_work::CallError;

/// Returns the handler's result, or an error if the reply breaks the route's
/// contract. The body of a write must be JSON, because it may be stored and
/// replayed; in development every body must conform to its schema. Bodies of
/// reads are large, and parsing them would cost much of the request.
pub(crate) fn checked(
    development: bool,
    route: &CompiledRoute,
    result: Result<SuccessReply, Problem>,
) -> Result<Result<SuccessReply, Problem>, CallError> {
    if let Ok(reply) = &result {
        check_reply(development, route, reply).map_err(CallError::Contract)?;
    }
    Ok(result)
}

fn check_reply(
    development: bool,
    route: &CompiledRoute,
    reply: &SuccessReply,
) -> Result<(), String> {
    let Some(schema) = &route.response else {
        return if reply.body.is_none() { Ok(()) } else { Err("it replied with a body".into()) };
    };
    let body = reply.body.as_ref().ok_or("it replied without a body")?;
    let not_json = |error: serde_json::Error| format!("its reply is not JSON: {error}");
    if !development {
        if route.route.writes {
            serde_json::from_str::<IgnoredAny>(body).map_err(not_json)?;
        }
        return Ok(());
    }
    let value = serde_json::from_str(body).map_err(not_json)?;
    let (wrong, _) = schema.violations(&value, 1);
    match wrong.first() {
        Some(first) => Err(format!("its reply: {} {}", first.pointer, first.message)),
        None => Ok(()),
    }
}
