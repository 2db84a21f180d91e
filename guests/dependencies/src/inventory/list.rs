//! Operation 16: dependencies of the workspace's repositories, with their advisories and
//! deployments.

use std::collections::BTreeSet;

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Query};

use super::LongCursorPaging;
use super::component::{SourceSbom, StoredComponent};
use super::pages;
use crate::advisories::document::StoredAdvisory;
use crate::advisories::mentions;
use crate::deployments::join::{ContainingDeployment, PageComponentDeployments};
use crate::ingest;
use crate::matching::AdvisoryMatch;
use crate::sbom::Scope;

/// Text for the OpenAPI document: what the list of dependencies contains.
pub(crate) const DESCRIPTION: &str = "Ordered by name, ecosystem, version, id. A dependency is a \
    package of a repository's branch, identified by its canonical purl; several mentions are one \
    dependency. By default the list has those of the latest audit of each repository and branch \
    with an SBOM (CycloneDX 1.2 to 1.7 or SPDX 2.2 and 2.3, JSON); `history=true` lists those of \
    all audits, and finds an older audit's by `audit_id`.\n\n\
    `q` is searched in name and purl, ignoring case; `advisory` is an id or an alias; a \
    dependency is found too if it is affected by an advisory that names this one in `upstream` or \
    `related`, or that this one names there. `direct` comes from the SBOM's graph; without a \
    graph it is false, and `limitations` mention it. `advisories[].match_basis` is `purl_exact` \
    if the advisory lists the version, `version_range` if the version is in a range, \
    `scanner_reported` if a scanner reported it. A component without a version is affected if all \
    versions are. Advisories that cannot be compared with a component are counted in its \
    `limitations`, one for each cause; without a limitation, all were compared.\n\n\
    Of several SBOMs the newest of each subject counts, and an SBOM without components never \
    replaces one with components. A subject that identifies nothing (`.`, a path, a `file` \
    without purl) counts only together with the path of its file. VEX statements end matches and \
    add some; `limitations` name those that end one, and `list_vex_statements` lists all.\n\n\
    A dependency lists at most 50 advisories, the most severe; `limitations` then say how many \
    there are, and `/dependencies/components/{id}/advisories` lists all of them. A new import is \
    listed when it is complete. Until then the previous one is listed, and `limitations` name the \
    import that has not ended or has failed. While one runs, a page may have fewer items than \
    `limit`; `has_more` and `next_cursor` hold.\n\n\
    `deployments` are the current ones of the commit or the image that the SBOM describes. \
    `package_relationship` is `evidenced` if the SBOM describes the deployed image, or the \
    deployed commit and the package is needed at run time; otherwise `possible`. \
    `runtime_reachability` is `unknown` unless a deployment's evidence tells.";

/// Limitation of a list while the workspace has no advisory.
const NO_ADVISORIES: &str = "The workspace has no advisories, so components were not compared with \
                             any; only what scanners and VEX statements report is listed. Import \
                             advisories in the OSV format.";

/// Query parameters that filter the list of dependencies.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Filters")]
pub(crate) struct DependencyFilters {
    /// Only dependencies with this text in the name or purl, ignoring case.
    #[schemars(length(max = 200))]
    q: Option<String>,
    /// Only dependencies affected by this advisory: an id, an alias, or an id in an advisory's
    /// `upstream` or `related`.
    #[schemars(length(max = 200))]
    pub(super) advisory: Option<String>,
    /// Only dependencies of this repository.
    repository_id: Option<Uuid>,
    /// Only dependencies that this audit imported.
    audit_id: Option<Uuid>,
    /// Only dependencies of this branch.
    #[schemars(length(max = 500))]
    branch_ref: Option<String>,
    /// Whether to include dependencies of earlier audits.
    #[serde(default)]
    pub(super) history: bool,
}

/// A page of the list of dependencies.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DependencyInventory")]
pub(crate) struct DependencyPage {
    has_more: bool,
    /// Whether the page includes dependencies of earlier audits.
    historical: bool,
    items: Vec<Dependency>,
    /// Limitations of the dependencies on the page, and of imports that the list does not show yet.
    limitations: BTreeSet<String>,
    next_cursor: Option<String>,
}

/// A package that a repository depends on.
#[derive(Serialize, JsonSchema)]
struct Dependency {
    advisories: Vec<AdvisoryMatch>,
    /// Lower-case hex SHA-256 of the SBOM that contains the dependency.
    artifact_sha256: String,
    audit_id: Uuid,
    branch_ref: Option<String>,
    commit_sha: Option<String>,
    /// Reference of the component in the SBOM: `bom-ref` or `SPDXID`.
    component_ref: Option<String>,
    /// Direct dependencies of this package: purls; for components without a purl, references in the
    /// SBOM.
    dependencies: Vec<String>,
    deployments: Vec<ContainingDeployment>,
    direct: bool,
    /// Ecosystem of the OSV schema; the purl's type if OSV has none for it; null without a purl.
    ecosystem: Option<String>,
    id: Uuid,
    limitations: Vec<String>,
    /// Name of the package in its ecosystem: `group:artifact`, `@scope/name`.
    name: String,
    observed_at: Timestamp,
    purl: Option<String>,
    repository_id: Uuid,
    /// Id of the SBOM's import that stored the dependency.
    scanner_run_id: Uuid,
    /// Scope of the dependency in the SBOM: `required`, `optional` or `excluded`; null if the SBOM
    /// has none.
    scope: Option<Scope>,
    source_scope: SourceSbom,
    version: Option<String>,
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(filters): Params<DependencyFilters>,
    paging: LongCursorPaging,
) -> Result<DependencyPage> {
    let page = pages::page(ctx, &filters, paging).map_err(|error| match error {
        DocumentError::InvalidCursor => Problem::from(error)
            .hint("Use a cursor with the filters of its page; only `limit` may change."),
        other => other.into(),
    })?;
    let join = PageComponentDeployments::load(ctx, &page.items)?;
    let mut limitations = join.limitations();
    let branch = filters.branch_ref.as_deref();
    limitations.extend(ingest::limitations(ctx, filters.repository_id, branch)?);
    if filters.advisory.is_some() {
        limitations.extend(mentions::limitation(ctx)?);
    }
    if !page.items.is_empty() && StoredAdvisory::none(ctx)? {
        limitations.insert(NO_ADVISORIES.to_owned());
    }
    let items: Vec<Dependency> =
        page.items.into_iter().map(|component| dependency(component, &join, ctx.now())).collect();
    limitations.extend(items.iter().flat_map(|item| &item.limitations).cloned());
    Ok(DependencyPage {
        has_more: page.next_cursor.is_some(),
        historical: filters.history,
        items,
        limitations,
        next_cursor: page.next_cursor,
    })
}

impl DependencyFilters {
    /// Adds these filters, and the order that components and matches have in common, to a query.
    pub(super) fn apply<'a, T: Document>(&self, query: Query<'a, T>) -> Query<'a, T> {
        let query = match self.history {
            true => query.one_of("latest", [false, true]),
            false => query.equals("latest", true),
        };
        query
            .equals_if("repository_id", self.repository_id)
            .equals_if("audit_id", self.audit_id)
            .equals_if("branch_ref", self.branch_ref.as_deref())
            .contains_if(&["search_text"], self.q.as_deref())
            .ascending("name")
            .ascending("ecosystem")
            .ascending("version")
    }
}

fn dependency(
    component: Stored<StoredComponent>,
    join: &PageComponentDeployments,
    now: Timestamp,
) -> Dependency {
    let (deployments, mut limitations) = join.of(&component, now);
    limitations.splice(0..0, component.all_limitations());
    let id = component.uuid();
    let value = component.value;
    Dependency {
        advisories: value.advisories,
        artifact_sha256: value.artifact_sha256,
        audit_id: value.audit_id,
        branch_ref: value.branch_ref,
        commit_sha: value.commit_sha,
        component_ref: value.component_ref,
        dependencies: value.dependencies,
        deployments,
        direct: value.direct,
        ecosystem: value.ecosystem,
        id,
        limitations,
        name: value.name,
        observed_at: value.observed_at,
        purl: value.purl,
        repository_id: value.repository_id,
        scanner_run_id: value.scanner_run_id,
        scope: value.scope,
        source_scope: value.source_scope,
        version: value.version,
    }
}
