//! Checks a handler's reply against its route, before anything is committed.

use assurance_contract::CompiledRoute;
use assurance_core::domain::area::{Problem, SuccessReply};
use assurance_work::CallError;

/// Returns the handler's result, or an error if the reply breaks the route's
/// contract. Bodies are validated against the schema in development only.
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
    if !development {
        return Ok(());
    }
    let value = serde_json::from_str(body).map_err(|error| format!("its reply: {error}"))?;
    let (wrong, _) = schema.violations(&value, 1);
    match wrong.first() {
        Some(first) => Err(format!("its reply: {} {}", first.pointer, first.message)),
        None => Ok(()),
    }
}
