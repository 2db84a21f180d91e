//! The list of deployments.

use std::collections::BTreeMap;

use area_sdk::DocumentError;
use area_sdk::prelude::*;

use super::document::{AuditedCommit, Deployment, StoredDeployment};
/// Which deployments.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// Only this repository's.
    repository_id: Option<Uuid>,
    /// Only this service's.
    service_id: Option<Uuid>,
    /// Only in this environment.
    #[schemars(length(max = 300))]
    environment: Option<String>,
    /// Those whose place another took, too.
    #[serde(default)]
    history: bool,
    /// `next_cursor` of the page before.
    #[schemars(length(max = 4000))]
    cursor: Option<String>,
    /// How many a page has at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
}

fn default_limit() -> u32 {
    50
}

pub(crate) fn list(ctx: &Ctx, Params(params): Params<ListParams>) -> Result<Page<Deployment>> {
    let all = ctx.documents::<StoredDeployment>().query();
    let some = all
        .equals_if("current", (!params.history).then_some(true))
        .equals_if("repository_id", params.repository_id)
        .equals_if("service_id", params.service_id)
        .equals_if("environment", params.environment);
    let page = some.descending("observed_at").cursor(params.cursor).limit(params.limit).page()?;
    let audits = audits(ctx, &page.items)?;
    Ok(page.map(|found| {
        let audit_id = found.commit_key.as_ref().and_then(|key| audits.get(key)).copied();
        Deployment::new(&found, audit_id, ctx.now())
    }))
}

/// The latest audits of the deployed commits.
fn audits(
    ctx: &Ctx,
    deployments: &[Stored<StoredDeployment>],
) -> Result<BTreeMap<String, Uuid>, DocumentError> {
    let keys = deployments.iter().filter_map(|found| found.commit_key.as_ref());
    let found = ctx.documents::<AuditedCommit>().get_many(keys)?;
    Ok(found.into_iter().map(|commit| (commit.id, commit.value.audit_id)).collect())
}
