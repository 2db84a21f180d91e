//! Groups: people who answer for something together, the names that other
//! systems know them by, and the zone and class of what they handle.

use std::collections::BTreeSet;

use area_sdk::Scope;
use area_sdk::prelude::*;

use crate::resource::{self, Resource, assign, default_limit, versioned};

/// How confidential the data is that a group handles, least first.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DataClassification {
    /// Anybody may see it.
    Public,
    /// For the organisation.
    #[default]
    Internal,
    /// For those who need it.
    Confidential,
    /// Regulated, or harmful in other hands.
    Restricted,
}

impl DataClassification {
    fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Internal => "internal",
            Self::Confidential => "confidential",
            Self::Restricted => "restricted",
        }
    }
}

/// A group as it is kept.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Group {
    pub(crate) name: String,
    /// Users of the workspace.
    member_ids: Vec<Uuid>,
    /// Names other systems know it by: `@organisation/team`, `@user`, e-mail.
    identities: Vec<String>,
    trust_zone: String,
    data_classification: DataClassification,
}

impl Document for Group {
    const COLLECTION: &'static str = "groups";
}

/// A group to be made.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewGroup {
    /// Unique in the workspace.
    #[schemars(length(min = 1, max = 200), regex(pattern = r"^\S(?:.*\S)?$"))]
    name: String,
    /// Users of the workspace.
    #[serde(default)]
    #[schemars(length(max = 500))]
    member_ids: Vec<Uuid>,
    /// Names other systems know it by: `@organisation/team`, `@user`, e-mail.
    #[serde(default)]
    #[schemars(length(max = 100), inner(length(min = 1, max = 254), regex(pattern = r"^\S+$")))]
    identities: Vec<String>,
    /// Groups of one zone trust each other.
    #[serde(default = "default_zone")]
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z0-9][a-z0-9_.-]*$"))]
    trust_zone: String,
    #[serde(default)]
    data_classification: DataClassification,
}

fn default_zone() -> String {
    "internal".to_owned()
}

/// Told when a group is made.
#[derive(Serialize, JsonSchema)]
pub(crate) struct GroupCreated {
    group_id: Uuid,
    name: String,
}

impl Event for GroupCreated {
    const NAME: &'static str = "group.created";
}

/// Told when a group is changed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct GroupUpdated {
    group_id: Uuid,
    name: String,
    trust_zone: String,
    data_classification: DataClassification,
}

impl Event for GroupUpdated {
    const NAME: &'static str = "group.updated";
}

/// Each user once, all of them of the workspace.
fn members(scope: &Scope, ids: Vec<Uuid>) -> Result<Vec<Uuid>> {
    if ids.is_empty() {
        return Ok(ids);
    }
    let known: BTreeSet<String> = scope.members().into_iter().map(|person| person.user).collect();
    if let Some(place) = ids.iter().position(|id| !known.contains(&id.to_string())) {
        let message = "This user is no member of the workspace.";
        return Err(Problem::validation(format!("/member_ids/{place}"), message));
    }
    Ok(once(ids))
}

/// Each value once, in the order given.
fn once<T: Ord + Clone>(values: Vec<T>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    values.into_iter().filter(|value| seen.insert(value.clone())).collect()
}

pub(crate) fn create(
    ctx: &Ctx,
    Body(new): Body<NewGroup>,
) -> Result<Created<Versioned<Resource<Group>>>> {
    let id = ctx.new_id();
    let group = Group {
        name: new.name,
        member_ids: members(ctx, new.member_ids)?,
        identities: once(new.identities),
        trust_zone: new.trust_zone,
        data_classification: new.data_classification,
    };
    ctx.publish(GroupCreated { group_id: id, name: group.name.clone() });
    resource::create(ctx, id, group)
}

/// Which groups.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// Only those whose name contains this, case ignored.
    #[schemars(length(max = 200))]
    q: Option<String>,
    trust_zone: Option<String>,
    data_classification: Option<DataClassification>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// How many a page has at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
}

pub(crate) fn list(ctx: &Ctx, Params(params): Params<ListParams>) -> Result<Page<Resource<Group>>> {
    let mut query = ctx.documents::<Group>().query();
    if let Some(part) = &params.q {
        query = query.contains(&["name"], part);
    }
    let class = params.data_classification.map(DataClassification::as_str);
    let query = query.equals_if("trust_zone", params.trust_zone);
    let query = query.equals_if("data_classification", class);
    Ok(query.cursor(params.cursor).limit(params.limit).page()?.map(Resource::from))
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<Resource<Group>>> {
    Ok(versioned(ctx.documents().get(id)?))
}

/// What is to be changed.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct GroupChanges {
    #[schemars(length(min = 1, max = 200), regex(pattern = r"^\S(?:.*\S)?$"))]
    name: Option<String>,
    #[schemars(length(max = 500))]
    member_ids: Option<Vec<Uuid>>,
    #[schemars(length(max = 100), inner(length(min = 1, max = 254), regex(pattern = r"^\S+$")))]
    identities: Option<Vec<String>>,
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z0-9][a-z0-9_.-]*$"))]
    trust_zone: Option<String>,
    data_classification: Option<DataClassification>,
}

pub(crate) fn update(
    ctx: &Ctx,
    Path(id): Path<Uuid>,
    Body(changes): Body<GroupChanges>,
) -> Result<Versioned<Resource<Group>>> {
    let mut group = ctx.documents::<Group>().get(id)?;
    ctx.check_if_match(group.version)?;
    assign(&mut group.name, changes.name);
    assign(&mut group.member_ids, changes.member_ids.map(|ids| members(ctx, ids)).transpose()?);
    assign(&mut group.identities, changes.identities.map(once));
    assign(&mut group.trust_zone, changes.trust_zone);
    assign(&mut group.data_classification, changes.data_classification);
    ctx.documents().replace(&mut group)?;
    ctx.publish(GroupUpdated {
        group_id: id,
        name: group.name.clone(),
        trust_zone: group.trust_zone.clone(),
        data_classification: group.data_classification,
    });
    Ok(versioned(group))
}
