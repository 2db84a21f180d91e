//! Differences between routes that affect clients.

use super::schema::SchemaUser;
use super::{ChangeCollector, ChangeSubject, Comparison, Compatibility};
use crate::checks;
use crate::contract::max_body_bytes;
use assurance_core::domain::manifest::{
    BodyKind, FormPart, IdempotencyMode, ParameterKind, ParameterPlace, ParameterSpec, Route,
};

/// Compares the live version's routes with the candidate's of the same
/// operation ids.
pub(super) fn compare(live: &[Route], candidate: &[Route], found: &mut Comparison) {
    for route in live {
        let mut findings =
            ChangeCollector { subject: ChangeSubject::Operation, name: &route.operation_id, found };
        match candidate.iter().find(|other| other.operation_id == route.operation_id) {
            Some(other) => one(route, other, &mut findings),
            None => findings.breaking("", "", "is gone"),
        }
    }
    for route in candidate {
        if !live.iter().any(|other| other.operation_id == route.operation_id) {
            let name = &route.operation_id;
            ChangeCollector { subject: ChangeSubject::Operation, name, found }.safe("is new");
        }
    }
}

fn one(live: &Route, candidate: &Route, findings: &mut ChangeCollector<'_>) {
    place(live, candidate, findings);
    access(live, candidate, findings);
    parameters(live, candidate, findings);
    body(live, candidate, findings);
    idempotency(live, candidate, findings);
    answer(live, candidate, findings);
}

fn place(live: &Route, candidate: &Route, findings: &mut ChangeCollector<'_>) {
    let at = |route: &Route| (route.method, checks::template_key(&route.path));
    if at(live) != at(candidate) {
        let at = |route: &Route| format!("{} {}", route.method.as_str(), route.path);
        findings.breaking("", "", format!("answers at {} now, not {}", at(candidate), at(live)));
    }
    if live.workspace != candidate.workspace {
        findings.breaking("request", "", "the workspace is named in another place now");
    }
}

fn access(live: &Route, candidate: &Route, findings: &mut ChangeCollector<'_>) {
    if candidate.least_role > live.least_role {
        let (now, before) = (candidate.least_role, live.least_role);
        findings.breaking("role", "", format!("needs {now} now, and needed {before}"));
    }
    match &candidate.feature_flag {
        Some(flag) if live.feature_flag.as_ref() != Some(flag) => {
            findings.breaking("feature flag", "", format!("needs the feature {flag} now"));
        }
        _ => {}
    }
}

fn parameters(live: &Route, candidate: &Route, findings: &mut ChangeCollector<'_>) {
    for parameter in &live.parameters {
        match counterpart(parameter, live, candidate) {
            Some(other) => one_parameter(parameter, other, findings),
            None => findings.breaking("parameter", &parameter.name, "is not accepted any more"),
        }
    }
    for parameter in candidate.parameters.iter().filter(|parameter| parameter.required) {
        if counterpart(parameter, candidate, live).is_none() {
            findings.breaking("parameter", &parameter.name, "is required now");
        }
    }
}

/// Returns the parameter of the route `other` that corresponds to a parameter
/// of the route `of`. Path parameters correspond by their order, others by
/// name.
fn counterpart<'r>(
    parameter: &ParameterSpec,
    of: &Route,
    other: &'r Route,
) -> Option<&'r ParameterSpec> {
    let mut name = parameter.name.clone();
    if parameter.place == ParameterPlace::Path {
        let nth = checks::template_parameters(&of.path).iter().position(|own| *own == name)?;
        name = checks::template_parameters(&other.path).get(nth)?.clone();
    }
    other.parameters.iter().find(|found| found.place == parameter.place && found.name == name)
}

fn one_parameter(
    live: &ParameterSpec,
    candidate: &ParameterSpec,
    findings: &mut ChangeCollector<'_>,
) {
    if candidate.required && !live.required {
        findings.breaking("parameter", &live.name, "is required now");
    }
    if live.default != candidate.default && live.default.is_some() {
        findings.breaking("parameter", &live.name, "has another default now");
    }
    if let Some(what) = narrower(&live.kind, &candidate.kind) {
        findings.breaking("parameter", &live.name, what);
    }
}

fn narrower(live: &ParameterKind, candidate: &ParameterKind) -> Option<String> {
    use ParameterKind as K;
    match (live, candidate) {
        (K::Text { min_length: low, max_length: high }, K::Text { min_length, max_length }) => {
            (min_length > low || max_length < high).then(|| {
                format!(
                    "takes {min_length} to {max_length} characters now, and took {low} to {high}"
                )
            })
        }
        (K::Integer { minimum: low, maximum: high }, K::Integer { minimum, maximum }) => {
            (minimum > low || maximum < high)
                .then(|| format!("takes {minimum} to {maximum} now, and took {low} to {high}"))
        }
        (K::OneOf { values: known }, K::OneOf { values }) => {
            let gone = known.iter().find(|value| !values.contains(value))?;
            Some(format!("does not accept {gone:?} any more"))
        }
        // Every number, word or id is also a valid text if its length is
        // allowed.
        (K::Uuid, K::Text { min_length, max_length }) => (*min_length > 36 || *max_length < 36)
            .then(|| "does not accept a UUID any more".to_owned()),
        (live, candidate) => (live != candidate).then(|| "is of another type now".to_owned()),
    }
}

fn body(live: &Route, candidate: &Route, findings: &mut ChangeCollector<'_>) {
    match (&live.body, &candidate.body) {
        (BodyKind::Json(before), BodyKind::Json(now)) => {
            findings.schemas(
                Compatibility::Breaking,
                "request",
                SchemaUser::Writers,
                (before, now),
            );
        }
        (BodyKind::Multipart(before), BodyKind::Multipart(now)) => parts(before, now, findings),
        (before, now) if before != now => {
            findings.breaking("request", "", "takes a body of another kind now");
        }
        _ => {}
    }
    let limits = findings.found.limits;
    let [before, now] = [live, candidate].map(|route| max_body_bytes(route, &limits));
    // Without a limit of its own, a form takes what its parts take.
    if live.max_body_bytes != candidate.max_body_bytes && now < before {
        findings.breaking("request", "", format!("takes {now} bytes now, and took {before}"));
    }
}

fn parts(live: &[FormPart], candidate: &[FormPart], findings: &mut ChangeCollector<'_>) {
    for part in live {
        let at = format!("/{}", part.name);
        match candidate.iter().find(|other| other.name == part.name) {
            None => findings.breaking("request", &at, "is not accepted any more"),
            Some(other) if other.file != part.file => {
                findings.breaking("request", &at, "is of another kind now");
            }
            Some(other) if other.max_bytes < part.max_bytes => {
                let (now, before) = (other.max_bytes, part.max_bytes);
                let what = format!("takes {now} bytes now, and took {before}");
                findings.breaking("request", &at, what);
            }
            Some(_) => {}
        }
    }
    for part in candidate.iter().filter(|part| part.required) {
        if !live.iter().any(|other| other.name == part.name && other.required) {
            findings.breaking("request", &format!("/{}", part.name), "is required now");
        }
    }
}

fn idempotency(live: &Route, candidate: &Route, findings: &mut ChangeCollector<'_>) {
    let needs = |route: &Route| {
        matches!(route.idempotency, IdempotencyMode::Required | IdempotencyMode::KeptByArea)
    };
    if needs(candidate) && !needs(live) {
        findings.breaking("header", "Idempotency-Key", "is required now");
    }
    if candidate.idempotency == IdempotencyMode::None && live.idempotency != IdempotencyMode::None {
        findings.breaking("header", "Idempotency-Key", "is not supported any more");
    }
}

fn answer(live: &Route, candidate: &Route, findings: &mut ChangeCollector<'_>) {
    if live.success_status != candidate.success_status {
        let (now, before) = (candidate.success_status, live.success_status);
        findings.breaking("response", "", format!("the status is {now} now, and was {before}"));
    }
    match (&live.response, &candidate.response) {
        (Some(before), Some(now)) => {
            findings.schemas(
                Compatibility::Breaking,
                "response",
                SchemaUser::Readers,
                (before, now),
            );
        }
        (Some(_), None) => findings.breaking("response", "", "has no body any more"),
        (None, _) => {}
    }
}
