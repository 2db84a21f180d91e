//! Documents of other areas that are only counted, the number of components, and the distinct texts
//! of a field.

use std::collections::BTreeSet;

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Query, Value};

/// Declares a document type without members for each of these collections.
macro_rules! counted {
    ($($(#[$doc:meta])* $name:ident = $collection:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Serialize, Deserialize)]
        pub struct $name {}

        document!($name, $collection);
    )*};
}

counted! {
    /// An advisory.
    Advisory = "dependencies.advisories";
    /// A deployment.
    Deployment = "dependencies.deployments";
    /// A finding of a scanner.
    Finding = "control_room.findings";
    /// A dependency between groups.
    GroupDependency = "groups.dependencies";
    /// The latest audit of a repository's branch.
    LatestBranchAudit = "dependencies.heads";
    /// A question of a questionnaire.
    Question = "questionnaires.questions";
    /// A remediation program.
    RemediationProgram = "remediation.programs";
}

/// Returns the number of components in the latest audits, summed over branches: there are few
/// branches, but up to a million components.
///
/// # Errors
/// When the call's limits are used up.
pub fn component_count(scope: &Scope) -> Result<u64, DocumentError> {
    let sizes = scope.documents::<LatestBranchAudit>().query().count_by(&["components"])?;
    let components = |(size, heads): (Vec<Value>, u64)| match size.first() {
        Some(Value::Integer(size)) => size.unsigned_abs() * heads,
        _ => 0,
    };
    Ok(sizes.into_iter().map(components).sum())
}

/// Returns the distinct texts of a field in the documents of a query. Reads none of the documents,
/// because they count against the call's limit of documents.
///
/// # Errors
/// When the call's limits are used up.
pub fn distinct<T: Document>(
    query: Query<'_, T>,
    field: &str,
) -> Result<BTreeSet<String>, DocumentError> {
    let counts = query.count_by(&[field])?;
    let texts = counts.into_iter().filter_map(|(values, _)| match values.into_iter().next() {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    });
    Ok(texts.collect())
}
