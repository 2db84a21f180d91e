//! Operations that read previews and their items.

use area_sdk::DocumentError;
use area_sdk::prelude::*;

use super::{OwnershipPreview, PreviewedFinding, StoredPreview, StoredPreviewedFinding};

/// Text for the OpenAPI document: how previews and their items are listed.
pub(crate) const DESCRIPTION: &str = "\
`before_id` takes the last preview of the page before: strictly older ones follow. A snapshot \
shows its first 100 items; where there are more, its `next_cursor` is for `after_id` of the \
operation that lists a preview's items.";

/// Query parameters that filter the list of previews.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// Only previews with the rules of this audit.
    audit_id: Option<Uuid>,
    /// Only previews older than the one with this id.
    before_id: Option<Uuid>,
    /// Maximum number of previews to return.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 50))]
    limit: u32,
}

fn default_limit() -> u32 {
    20
}

pub(crate) fn list(ctx: &Ctx, Params(params): Params<ListParams>) -> Result<Vec<OwnershipPreview>> {
    let previews = ctx.documents::<StoredPreview>();
    if let Some(id) = params.before_id
        && previews.find(id)?.is_none()
    {
        return Err(Problem::validation("before_id", "There is no such preview.")
            .hint("Begin without before_id, or give the id of a preview that was listed."));
    }
    let wanted = previews.query().equals_if("audit_id", params.audit_id);
    let found = wanted.after(params.before_id).limit(params.limit).list()?;
    Ok(found.into_iter().map(OwnershipPreview::from).collect())
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<OwnershipPreview>> {
    let preview = ctx.documents::<StoredPreview>().get(id)?;
    Ok(preview.versioned(OwnershipPreview::from))
}

/// Query parameters that select a page of a preview's items.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ItemParams {
    preview_id: Uuid,
    /// Only items after the one with this id, which is the `next_cursor` of a snapshot.
    after_id: Option<Uuid>,
}

pub(crate) fn items(
    ctx: &Ctx,
    Params(params): Params<ItemParams>,
    paging: Paging<100, 200>,
) -> Result<Page<PreviewedFinding>> {
    let preview = ctx.documents::<StoredPreview>().get(params.preview_id)?;
    let applied = preview.result.is_some();
    let items =
        ctx.documents::<StoredPreviewedFinding>().query().equals("preview_id", params.preview_id);
    let items = items.ascending("position").limit(paging.limit);
    // The parameter `cursor` takes precedence over `after_id`.
    let items = match paging.cursor {
        Some(cursor) => items.cursor(Some(cursor)),
        None => items.after(params.after_id),
    };
    let page = items.page().map_err(|error| match error {
        DocumentError::NotFound => Problem::validation("after_id", "There is no such item.")
            .hint("Give the snapshot's next_cursor."),
        error => error.into(),
    })?;
    Ok(page.map(|stored| {
        let mut item = stored.value.item;
        item.show(applied);
        item
    }))
}
