//! The inventory before an import. Lists show it while the import runs. Vulnerabilities in it cause
//! no alerts.

use std::collections::BTreeSet;

use area_sdk::prelude::*;
use area_sdk::{DocumentError, JobError, Scope};

use super::imports::{ImportState, StoredImport};
use super::{AuditStarted, BranchInventoryHead, derived_id, head_id};
use crate::inventory::component::StoredComponent;
use crate::inventory::matches::{self, StoredMatch};
use crate::matching::Vulnerability;

/// The audit whose components are a branch's inventory while the import of another audit runs.
#[derive(Debug)]
pub(super) struct FormerInventoryAudit {
    audit_id: Uuid,
    started_at: Timestamp,
}

impl FormerInventoryAudit {
    /// Returns the audit whose components are the branch's inventory before another audit's import;
    /// `None` if the branch has no inventory.
    pub(super) fn of(ctx: &JobCtx, audit: &AuditStarted) -> Result<Option<Self>, JobError> {
        let head = audit.head(ctx)?.filter(|head| head.audit_id != audit.audit_id);
        let head = head.map(|head| head.value);
        Ok(head.map(|head| Self { audit_id: head.audit_id, started_at: head.started_at }))
    }

    /// Returns the document id that the component with this identity has in the former inventory.
    fn component_id(&self, scope: &Scope, identity: &str) -> String {
        derived_id(scope, self.started_at, &format!("{}\n{identity}", self.audit_id)).to_string()
    }

    /// Returns, for each component, those of its vulnerabilities that the component with the same
    /// identity in the former inventory does not have under any name.
    pub(super) fn unknown<'a>(
        &self,
        scope: &Scope,
        components: Vec<(&'a StoredComponent, &'a [Vulnerability])>,
    ) -> Result<Vec<Vec<&'a Vulnerability>>, DocumentError> {
        let components = components.into_iter();
        let named: Vec<_> = components
            .map(|(component, found)| (self.component_id(scope, &component.identity), found))
            .collect();
        let ids = named.iter().flat_map(|(id, vulnerabilities)| {
            let names = vulnerabilities.iter().flat_map(|found| &found.names);
            names.map(move |name| matches::id(id, name))
        });
        let ids: Vec<String> = ids.collect();
        let mut known = BTreeSet::new();
        for ids in ids.chunks(1_000) {
            let found = scope.documents::<StoredMatch>().get_many(ids)?.into_iter();
            known.extend(found.map(|found| found.id));
        }
        let is_known = |id: &str, found: &Vulnerability| {
            found.names.iter().any(|name| known.contains(&matches::id(id, name)))
        };
        let unknown = named.iter().map(|(id, vulnerabilities)| {
            vulnerabilities.iter().filter(|found| !is_known(id, found)).collect()
        });
        Ok(unknown.collect())
    }
}

/// Whether a vulnerability that a reassessment finds in a component causes an alert: the component
/// is in its branch's inventory, or will be when its import ends and is not in the former one. A
/// component of both causes one alert, that of the former inventory.
pub(crate) fn causes_alert(
    scope: &Scope,
    component: &StoredComponent,
) -> Result<bool, DocumentError> {
    let head = head_id(scope, component.repository_id, component.branch_ref.as_deref());
    let head = scope.documents::<BranchInventoryHead>().find(head)?;
    let Some(head) = head.filter(|head| head.audit_id != component.audit_id) else {
        return Ok(true);
    };
    let import = scope.documents::<StoredImport>().find(component.audit_id)?;
    let becomes_head = import.is_some_and(|import| {
        import.state == ImportState::Running
            && (import.started_at, component.audit_id) > (head.started_at, head.audit_id)
    });
    if !becomes_head {
        return Ok(false);
    }
    let former = FormerInventoryAudit { audit_id: head.audit_id, started_at: head.started_at };
    let id = former.component_id(scope, &component.identity);
    Ok(scope.documents::<StoredComponent>().find(id)?.is_none())
}
