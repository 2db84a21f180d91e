//! Dependencies between groups and their operations.

use area_sdk::prelude::*;
use area_shared::catalog::{DataClassification, UserGroup};

use crate::assessment::{TrustBoundaryAssessment, assess};
use crate::evidence;

/// Text for the OpenAPI document: rules of dependencies between groups.
pub(crate) const DESCRIPTION: &str = "`relationship_kind` is a lower-case word: `depends_on`, \
    `consumes_api`, `shares_data`. A pair of groups has each kind at most once. A dependency \
    crosses a trust boundary if the groups' `trust_zone` differs; its `data_classification` is \
    the higher one of the two groups, in the order public, internal, confidential, restricted. \
    Both are computed again when a group is changed.\n\n\
    `state` is `evidenced` if there are evidence records about the dependency, otherwise \
    `declared`. A record of kind `relationship` is about the group its `subject_key` names, by id \
    or name (a leading `group:` is dropped). Its description is a JSON object with `target` (a \
    group's id or name) and `relationship_kind`: the content of the upload whose SHA-256 is the \
    record's `content_sha256`, otherwise its `summary`. Content above 1,048,576 bytes is not read, \
    and such a record states nothing. A record creates the dependency if there is none; records that arrived before the groups were created count when it is declared. \
    The newest 100 records are listed.";

/// Maximum number of evidence records whose ids a dependency lists.
const MOST_EVIDENCE: usize = 100;

/// Origin of a dependency between groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "State")]
pub(crate) enum DependencyOrigin {
    /// A user declared the dependency.
    Declared,
    /// An evidence record states the dependency.
    Evidenced,
}

/// A stored dependency of one group on another.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Dependency")]
pub(crate) struct StoredGroupDependency {
    crosses_trust_boundary: bool,
    data_classification: DataClassification,
    pub(crate) evidence_ids: Vec<Uuid>,
    pub(crate) relationship_kind: String,
    pub(crate) source_group_id: Uuid,
    state: DependencyOrigin,
    pub(crate) target_group_id: Uuid,
}

document!(StoredGroupDependency, "dependencies");

impl StoredGroupDependency {
    /// Returns a new dependency between two groups with its evidence.
    pub(crate) fn between(
        source: &Stored<UserGroup>,
        target: &Stored<UserGroup>,
        relationship_kind: String,
        mut evidence_ids: Vec<Uuid>,
    ) -> Self {
        let assessment = assess(source, target);
        evidence_ids.truncate(MOST_EVIDENCE);
        Self {
            crosses_trust_boundary: assessment.crosses_trust_boundary,
            data_classification: assessment.data_classification,
            state: if evidence_ids.is_empty() {
                DependencyOrigin::Declared
            } else {
                DependencyOrigin::Evidenced
            },
            evidence_ids,
            relationship_kind,
            source_group_id: source.uuid(),
            target_group_id: target.uuid(),
        }
    }

    /// Lists the id of an evidence record after `newer` others. Returns false if the newest 100
    /// records do not contain it.
    pub(crate) fn add_evidence(&mut self, id: Uuid, newer: usize) -> bool {
        if newer >= MOST_EVIDENCE {
            return false;
        }
        self.evidence_ids.insert(newer, id);
        self.evidence_ids.truncate(MOST_EVIDENCE);
        self.state = DependencyOrigin::Evidenced;
        true
    }

    /// Sets the assessment of the dependency. Returns false if the assessment is unchanged.
    pub(crate) fn is_otherwise(&mut self, new: TrustBoundaryAssessment) -> bool {
        let old = TrustBoundaryAssessment {
            crosses_trust_boundary: self.crosses_trust_boundary,
            data_classification: self.data_classification,
        };
        self.crosses_trust_boundary = new.crosses_trust_boundary;
        self.data_classification = new.data_classification;
        old != new
    }
}

/// A dependency of one group on another.
#[derive(Serialize, JsonSchema)]
pub(crate) struct GroupDependency {
    id: Uuid,
    #[serde(flatten)]
    dependency: StoredGroupDependency,
}

impl From<Stored<StoredGroupDependency>> for GroupDependency {
    fn from(stored: Stored<StoredGroupDependency>) -> Self {
        Self { id: stored.uuid(), dependency: stored.value }
    }
}

/// A request to declare a dependency between two groups.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewGroupDependency {
    /// Kind of the dependency, for example `depends_on`.
    #[schemars(length(min = 1, max = 100), regex(pattern = "^[a-z][a-z0-9_]*$"))]
    relationship_kind: String,
    /// Id of the group that depends on the target.
    source_group_id: Uuid,
    /// Id of the group on which the source depends.
    target_group_id: Uuid,
}

/// Published when a dependency between groups was declared, or found in evidence.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DependencyCreated {
    dependency_id: Uuid,
    #[serde(flatten)]
    facts: DependencyEventFields,
}

event!(DependencyCreated, "group_dependency.created");

/// Published when a dependency between groups was deleted.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DependencyDeleted {
    dependency_id: Uuid,
    #[serde(flatten)]
    facts: DependencyEventFields,
}

event!(DependencyDeleted, "group_dependency.deleted");

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Facts")]
struct DependencyEventFields {
    source_group_id: Uuid,
    target_group_id: Uuid,
    relationship_kind: String,
    crosses_trust_boundary: bool,
}

impl From<&StoredGroupDependency> for DependencyEventFields {
    fn from(dependency: &StoredGroupDependency) -> Self {
        Self {
            source_group_id: dependency.source_group_id,
            target_group_id: dependency.target_group_id,
            relationship_kind: dependency.relationship_kind.clone(),
            crosses_trust_boundary: dependency.crosses_trust_boundary,
        }
    }
}

/// Stores a new dependency between groups and publishes its event.
pub(crate) fn keep(
    scope: &area_sdk::Scope,
    dependency: &StoredGroupDependency,
) -> Result<Uuid, area_sdk::DocumentError> {
    let dependency_id = scope.new_id();
    scope.documents().create(dependency_id, dependency)?;
    scope.publish(DependencyCreated { dependency_id, facts: dependency.into() });
    Ok(dependency_id)
}

/// Returns the group that a member of the request's body references, or the error for the client.
fn group(ctx: &Ctx, member: &str, id: Uuid) -> Result<Stored<UserGroup>> {
    ctx.documents::<UserGroup>().find(id)?.ok_or_else(|| Problem {
        detail: format!("The workspace has no group {id}, which {member} names."),
        ..Problem::not_found()
    })
}

pub(crate) fn create(
    ctx: &Ctx,
    Body(new): Body<NewGroupDependency>,
) -> Result<Created<GroupDependency>> {
    if new.source_group_id == new.target_group_id {
        let message = "A group cannot depend on itself.";
        return Err(
            Problem::validation("/target_group_id", message).hint("Name two different groups.")
        );
    }
    let source = group(ctx, "source_group_id", new.source_group_id)?;
    let target = group(ctx, "target_group_id", new.target_group_id)?;
    let evidence = evidence::about(ctx, &source, &target, &new.relationship_kind)?;
    let dependency =
        StoredGroupDependency::between(&source, &target, new.relationship_kind, evidence);
    let id = keep(ctx, &dependency)?;
    Ok(Created(GroupDependency { id, dependency }))
}

/// Query parameters that filter the list of dependencies.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    source_group_id: Option<Uuid>,
    target_group_id: Option<Uuid>,
    relationship_kind: Option<String>,
    crosses_trust_boundary: Option<bool>,
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
    paging: Paging,
) -> Result<Page<GroupDependency>> {
    let query = ctx.documents::<StoredGroupDependency>().query();
    let query = query
        .equals_if("source_group_id", params.source_group_id)
        .equals_if("target_group_id", params.target_group_id)
        .equals_if("relationship_kind", params.relationship_kind)
        .equals_if("crosses_trust_boundary", params.crosses_trust_boundary);
    Ok(query.paging(paging).page()?.map(GroupDependency::from))
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<GroupDependency>> {
    let dependency = ctx.documents::<StoredGroupDependency>().get(id)?;
    let version = dependency.version;
    Ok(Versioned(dependency.into(), version))
}

pub(crate) fn remove(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<NoContent> {
    let dependency = ctx.documents::<StoredGroupDependency>().get(id)?;
    ctx.check_if_match(dependency.version)?;
    ctx.documents().delete(&dependency)?;
    ctx.publish(DependencyDeleted { dependency_id: id, facts: (&dependency.value).into() });
    Ok(NoContent)
}
