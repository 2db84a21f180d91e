//! Groups: people who own something together, with their names in other systems, their trust zone
//! and the class of data they handle.

use std::collections::BTreeSet;

use area_sdk::Scope;
use area_sdk::prelude::*;
use area_sdk::text::name;

use area_shared::catalog::DataClassification;

use crate::resource::{self, DocumentResponse, assign, once, versioned};

/// A stored group of users.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Group")]
pub(crate) struct UserGroup {
    pub(crate) name: String,
    /// Ids of the users who are members of the group.
    member_ids: Vec<Uuid>,
    /// Names of the group in other systems: `@organisation/team`, `@user`, e-mail.
    identities: Vec<String>,
    trust_zone: String,
    data_classification: DataClassification,
}

document!(UserGroup, "groups");

/// A request to create a group of users.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewGroup {
    /// Name of the group, unique in the workspace.
    #[schemars(length(min = 1, max = 200), regex(pattern = r"^\S(?:.*\S)?$"))]
    name: String,
    /// Ids of the users who are members of the group.
    #[serde(default)]
    #[schemars(length(max = 500))]
    member_ids: Vec<Uuid>,
    /// Names of the group in other systems: `@organisation/team`, `@user`, e-mail.
    #[serde(default)]
    #[schemars(length(max = 100), inner(length(min = 1, max = 254), regex(pattern = r"^\S+$")))]
    identities: Vec<String>,
    /// Trust zone of the group. Groups of one zone trust each other.
    #[serde(default = "default_zone")]
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z0-9][a-z0-9_.-]*$"))]
    trust_zone: String,
    #[serde(default)]
    data_classification: DataClassification,
}

fn default_zone() -> String {
    "internal".to_owned()
}

/// Published when a group was created.
#[derive(Serialize, JsonSchema)]
pub(crate) struct GroupCreated {
    group_id: Uuid,
    name: String,
}

event!(GroupCreated, "group.created");

/// Published when a group was changed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct GroupUpdated {
    group_id: Uuid,
    name: String,
    trust_zone: String,
    data_classification: DataClassification,
}

event!(GroupUpdated, "group.updated");

/// Removes duplicate user ids and checks that every user is a member of the workspace.
fn members(scope: &Scope, ids: Vec<Uuid>) -> Result<Vec<Uuid>> {
    if ids.is_empty() {
        return Ok(ids);
    }
    let known: BTreeSet<String> = scope.members().into_iter().map(|person| person.user).collect();
    if let Some(place) = ids.iter().position(|id| !known.contains(&id.to_string())) {
        let message = "This user is not a member of the workspace.";
        return Err(Problem::validation(format!("/member_ids/{place}"), message));
    }
    Ok(once(ids))
}

pub(crate) fn create(
    ctx: &Ctx,
    Body(new): Body<NewGroup>,
) -> Result<Created<Versioned<DocumentResponse<UserGroup>>>> {
    let id = ctx.new_id();
    let group = UserGroup {
        name: new.name,
        member_ids: members(ctx, new.member_ids)?,
        identities: once(new.identities),
        trust_zone: new.trust_zone,
        data_classification: new.data_classification,
    };
    ctx.publish(GroupCreated { group_id: id, name: group.name.clone() });
    resource::create(ctx, id, group)
}

/// Query parameters that filter the list of groups.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// Only groups whose name contains this text, ignoring case.
    #[schemars(length(max = 200))]
    q: Option<String>,
    trust_zone: Option<String>,
    data_classification: Option<DataClassification>,
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
    paging: Paging,
) -> Result<Page<DocumentResponse<UserGroup>>> {
    let query = ctx
        .documents::<UserGroup>()
        .query()
        .contains_if(&["name"], params.q.as_deref())
        .equals_if("trust_zone", params.trust_zone)
        .equals_if("data_classification", params.data_classification.as_ref().map(name));
    Ok(query.paging(paging).page()?.map(DocumentResponse::from))
}

/// Changes of a group; absent members keep their values.
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
) -> Result<Versioned<DocumentResponse<UserGroup>>> {
    let mut group = ctx.documents::<UserGroup>().get(id)?;
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
