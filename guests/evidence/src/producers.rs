//! Producers: systems outside the service that may sign evidence for the workspace.

use area_sdk::prelude::*;

use crate::keys;

/// A stored producer.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Producer {
    name: String,
    description: String,
    created_by: Uuid,
    pub(crate) revoked_at: Option<Timestamp>,
}

document!(Producer, "producers");

/// A producer of evidence.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Producer")]
pub(crate) struct ProducerView {
    id: Uuid,
    name: String,
    description: String,
    created_at: Timestamp,
    created_by: Uuid,
    revoked_at: Option<Timestamp>,
}

impl From<Stored<Producer>> for ProducerView {
    fn from(producer: Stored<Producer>) -> Self {
        Self {
            id: producer.uuid(),
            created_at: producer.created_at,
            name: producer.value.name,
            description: producer.value.description,
            created_by: producer.value.created_by,
            revoked_at: producer.value.revoked_at,
        }
    }
}

/// A request to create a producer of evidence.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewProducer {
    /// Name of the producer, unique in the workspace.
    #[schemars(length(min = 1, max = 200))]
    name: String,
    #[serde(default)]
    #[schemars(length(max = 2000))]
    description: String,
}

pub(crate) fn create(
    ctx: &Ctx,
    Body(new): Body<NewProducer>,
) -> Result<Created<Versioned<ProducerView>>> {
    let value = Producer {
        name: new.name,
        description: new.description,
        created_by: ctx.user(),
        revoked_at: None,
    };
    let stored = ctx.documents().create_stored(ctx.new_id(), value)?;
    Ok(Created(stored.versioned(ProducerView::from)))
}

pub(crate) fn list(ctx: &Ctx, paging: Paging) -> Result<Page<ProducerView>> {
    let all = ctx.documents::<Producer>().query();
    Ok(all.paging(paging).page()?.map(ProducerView::from))
}

pub(crate) fn revoke(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<ProducerView>> {
    let mut producer = ctx.documents::<Producer>().get(id)?;
    ctx.check_if_match(producer.version)?;
    if producer.revoked_at.is_none() {
        producer.revoked_at = Some(ctx.now());
        ctx.documents().replace(&mut producer)?;
        keys::revoke_all(ctx, id)?;
    }
    Ok(producer.versioned(ProducerView::from))
}
