//! Operation 16: the dependencies of the workspace's repositories, each with
//! its advisories and where it is deployed.

use std::collections::BTreeSet;

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Query};

use super::component::{SourceScope, StoredComponent};
use super::pages;
use crate::advisories::mentions;
use crate::deployments::join::{DeploymentEntry, Join};
use crate::ingest;
use crate::matching::AdvisoryMatch;
use crate::sbom::Scope;

/// The rules, for the operation's documentation.
pub(crate) const DESCRIPTION: &str = "\
Ordered by name, ecosystem, version, id. A dependency is a package, by its canonical purl, of a \
repository's branch; several mentions of it are one. By default those of the latest audit of each \
repository and branch that had a bill of materials (CycloneDX 1.2 to 1.7 or SPDX 2.2 and 2.3, \
JSON); `history=true` lists those of all audits, and finds an older audit's by `audit_id`.\n\n\
`q` is looked for in name and purl, without regard to case; `advisory` is an id or an alias; \
a dependency is found too if it is affected by an advisory that names this one in `upstream` or \
`related`, or that this one names there. \
`direct` comes from the bill's graph; without one it is false, and `limitations` say so. \
`advisories[].match_basis` is `purl_exact` where the advisory lists the version, `version_range` \
where it lies in a range, `scanner_reported` where a scanner said so. A component without a \
version is affected where all versions are. Advisories that cannot be compared with a component \
are counted in its `limitations`, one for each cause; without a limitation, all were compared.\n\n\
Of several SBOMs the newest of each subject counts, and one without components replaces none that \
has some. A subject that identifies nothing (`.`, a path, a `file` without purl) counts only \
together with the path of its file. VEX statements end matches and add some; `limitations` name \
those that end one, and `list_vex_statements` lists all.\n\n\
A dependency lists at most 50 advisories, the most severe; `limitations` then say how many there \
are, and `/dependencies/components/{id}/advisories` lists all of them. An import answers when it \
is whole: until then the one before it does, and `limitations` name the import that has not \
ended, or has failed. While one runs, a page may have fewer items than `limit`; `has_more` and \
`next_cursor` hold.\n\n\
`deployments` are the current ones of the commit the bill describes, or of the image it \
describes. `package_relationship` is `evidenced` where the bill is of the deployed image, or of \
the deployed commit and the package is needed at run time; else `possible`. \
`runtime_reachability` is `unknown` unless a deployment's evidence tells.";

/// Which dependencies.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Filters {
    /// Part of a name or purl, without regard to case.
    #[schemars(length(max = 200))]
    q: Option<String>,
    /// Only those affected by this advisory: an id, an alias, or a name in an
    /// advisory's `upstream` or `related`.
    #[schemars(length(max = 200))]
    advisory: Option<String>,
    /// Only this repository's.
    repository_id: Option<Uuid>,
    /// Only this audit's.
    audit_id: Option<Uuid>,
    /// Only this branch's.
    #[schemars(length(max = 500))]
    branch_ref: Option<String>,
    /// Those of earlier audits too.
    #[serde(default)]
    history: bool,
    /// `next_cursor` of the page before, with the same filters.
    #[schemars(length(max = 8000))]
    cursor: Option<String>,
    /// How many a page has at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
}

fn default_limit() -> u32 {
    50
}

/// A page of dependencies.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Inventory {
    has_more: bool,
    /// Whether earlier audits' were asked for too.
    historical: bool,
    items: Vec<Dependency>,
    /// What is left open for any of the items, and imports that the list does
    /// not show yet.
    limitations: BTreeSet<String>,
    next_cursor: Option<String>,
}

/// A package that a repository depends on.
#[derive(Serialize, JsonSchema)]
struct Dependency {
    advisories: Vec<AdvisoryMatch>,
    /// SHA-256 of the SBOM.
    artifact_sha256: String,
    audit_id: Uuid,
    branch_ref: Option<String>,
    commit_sha: Option<String>,
    /// How the SBOM refers to it.
    component_ref: Option<String>,
    /// Purls of what it depends on itself, or the SBOM's references.
    dependencies: Vec<String>,
    deployments: Vec<DeploymentEntry>,
    direct: bool,
    /// OSV's name of it, else the purl's type; null without a purl.
    ecosystem: Option<String>,
    id: Uuid,
    limitations: Vec<String>,
    /// As its ecosystem names it: `group:artifact`, `@scope/name`.
    name: String,
    observed_at: Timestamp,
    purl: Option<String>,
    repository_id: Uuid,
    /// The import of the SBOM.
    scanner_run_id: Uuid,
    /// `required`, `optional`, `excluded`; null where the SBOM does not say.
    scope: Option<Scope>,
    source_scope: SourceScope,
    version: Option<String>,
}

pub(crate) fn list(ctx: &Ctx, Params(filters): Params<Filters>) -> Result<Inventory> {
    let page = pages::page(ctx, &filters).map_err(|error| match error {
        DocumentError::InvalidCursor => Problem::from(error).hint(
            "A cursor goes with the filters of the page that gave it; only `limit` may change.",
        ),
        other => other.into(),
    })?;
    let join = Join::load(ctx, &page.items)?;
    let mut limitations = join.limitations();
    let branch = filters.branch_ref.as_deref();
    limitations.extend(ingest::limitations(ctx, filters.repository_id, branch)?);
    if filters.advisory.is_some() {
        limitations.extend(mentions::limitation(ctx)?);
    }
    let items: Vec<Dependency> =
        page.items.into_iter().map(|component| dependency(component, &join, ctx.now())).collect();
    limitations.extend(items.iter().flat_map(|item| &item.limitations).cloned());
    Ok(Inventory {
        has_more: page.next_cursor.is_some(),
        historical: filters.history,
        items,
        limitations,
        next_cursor: page.next_cursor,
    })
}

impl Filters {
    /// The name of the advisory that is asked for.
    pub(super) fn advisory(&self) -> Option<&str> {
        self.advisory.as_deref()
    }

    pub(super) fn history(&self) -> bool {
        self.history
    }

    /// How many items a page has, and where it begins.
    pub(super) fn span(&self) -> (usize, Option<String>) {
        (self.limit as usize, self.cursor.clone())
    }

    /// What components and matches are both filtered and ordered by.
    pub(super) fn apply<'a, T: Document>(&self, query: Query<'a, T>) -> Query<'a, T> {
        let query = match self.history {
            true => query.one_of("latest", [false, true]),
            false => query.equals("latest", true),
        };
        let query = query
            .equals_if("repository_id", self.repository_id)
            .equals_if("audit_id", self.audit_id)
            .equals_if("branch_ref", self.branch_ref.as_deref());
        let query = match &self.q {
            Some(part) => query.contains(&["search_text"], part),
            None => query,
        };
        query.ascending("name").ascending("ecosystem").ascending("version")
    }
}

fn dependency(component: Stored<StoredComponent>, join: &Join, now: Timestamp) -> Dependency {
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
