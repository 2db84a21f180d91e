//! Lists deployments.

use std::collections::BTreeMap;

use area_sdk::DocumentError;
use area_sdk::prelude::*;

use super::document::{Deployment, LatestCommitAudit, StoredDeployment};
/// Query parameters that filter the list of deployments.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// Only deployments of this repository.
    repository_id: Option<Uuid>,
    /// Only deployments of this service.
    service_id: Option<Uuid>,
    /// Only deployments in this environment.
    #[schemars(length(max = 300))]
    environment: Option<String>,
    /// Whether to include deployments that newer ones have replaced.
    #[serde(default)]
    history: bool,
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
    paging: Paging<50, 100, 4000>,
) -> Result<Page<Deployment>> {
    let all = ctx.documents::<StoredDeployment>().query();
    let some = all
        .equals_if("current", (!params.history).then_some(true))
        .equals_if("repository_id", params.repository_id)
        .equals_if("service_id", params.service_id)
        .equals_if("environment", params.environment);
    let page = some.descending("observed_at").paging(paging).page()?;
    let audits = audits(ctx, &page.items)?;
    Ok(page.map(|found| {
        let audit_id = found.commit_key.as_ref().and_then(|key| audits.get(key)).copied();
        Deployment::new(&found, audit_id, ctx.now())
    }))
}

/// Returns the id of the latest audit with an SBOM of each deployed commit, by
/// [`commit_key`](super::document::commit_key).
fn audits(
    ctx: &Ctx,
    deployments: &[Stored<StoredDeployment>],
) -> Result<BTreeMap<String, Uuid>, DocumentError> {
    let keys = deployments.iter().filter_map(|found| found.commit_key.as_ref());
    let found = ctx.documents::<LatestCommitAudit>().get_many(keys)?;
    Ok(found.into_iter().map(|commit| (commit.id, commit.value.audit_id)).collect())
}
