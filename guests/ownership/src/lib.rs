//! Ownership (operation 17). Audits import CODEOWNERS files, a preview compares them with the open
//! findings, and applying a preview assigns the findings once.

mod catalog;
mod codeowners;
mod directory;
mod findings;
#[cfg(not(target_arch = "wasm32"))]
pub mod fuzzing;
mod preview;
mod source;

use area_sdk::prelude::*;

use preview::apply::OwnershipApplied;
use preview::{StoredPreview, StoredPreviewedFinding};
use source::StoredSource;
use source::import::{ImportOwnershipJob, OwnershipImported};
use source::intake::EarlyFindingsMarker;

/// Declares the area `ownership`: its operations, collections, events and jobs.
pub fn area() -> Area {
    let area = Area::new("ownership", env!("CARGO_PKG_VERSION"))
        .summary("Ownership from CODEOWNERS, and assignments of findings")
        .uses(&[Capability::Blobs, Capability::Crypto, Capability::Directory])
        .event::<OwnershipImported>("An audit's ownership rules are imported")
        .event::<OwnershipApplied>("A preview was applied: findings are to be assigned")
        .on("audit.started", source::intake::audit_started)
        .on("audit.findings_imported", source::intake::findings_imported)
        .job::<ImportOwnershipJob>(Lane::Ingest, 10, 30_000, source::import::run);
    routes(collections(area))
}

fn collections(area: Area) -> Area {
    area.collections([
        Collection::of::<StoredSource>()
            .summary("Ownership sources of audits; the id is the audit's")
            .index(&["repository_id", "state"])
            .readable_by(&["*"]),
        Collection::of::<EarlyFindingsMarker>()
            .summary("Audits whose findings arrived before the audit's event"),
        Collection::of::<StoredPreview>()
            .summary("Previews: assignments of findings at one moment")
            .fields(&["repository_id"])
            .index(&["audit_id"])
            .readable_by(&["*"]),
        Collection::of::<StoredPreviewedFinding>()
            .summary("The findings of a preview")
            .index(&["preview_id", "position"])
            .index(&["preview_id", "status"]),
    ])
}

const PREVIEWS: &str = "/v1/workspaces/{workspace_id}/ownership/previews";
const PREVIEW: &str = "/v1/workspaces/{workspace_id}/ownership/previews/{preview_id}";

fn routes(area: Area) -> Area {
    area.routes([
        get("list_ownership_previews", PREVIEWS)
            .summary("List ownership previews, newest first")
            .description(preview::list::DESCRIPTION)
            .in_contract()
            .example(include_str!("../examples/list_ownership_previews.json"))
            .handler(preview::list::list),
        post("create_ownership_preview", PREVIEWS)
            .summary("Preview the assignment of a repository's open findings")
            .description(preview::create::DESCRIPTION)
            .deadline_ms(15_000)
            .example(include_str!("../examples/create_ownership_preview.json"))
            .handler(preview::create::create),
        get("get_ownership_preview", PREVIEW)
            .summary("Read an ownership preview")
            .description(
                "With its first 100 findings; `/items` pages through all of them. The `ETag` of \
                 the response is the version that a change names in `If-Match`.",
            )
            .example(include_str!("../examples/get_ownership_preview.json"))
            .handler(preview::list::show),
        get(
            "list_ownership_preview_items",
            "/v1/workspaces/{workspace_id}/ownership/previews/{preview_id}/items",
        )
        .summary("List all findings of a preview, in its order")
        .description(
            "`after_id` accepts the snapshot's `next_cursor`, for the items that the snapshot \
            does not have.",
        )
        .example(include_str!("../examples/list_ownership_preview_items.json"))
        .handler(preview::list::items),
        post(
            "apply_ownership_preview",
            "/v1/workspaces/{workspace_id}/ownership/previews/{preview_id}/apply",
        )
        .summary("Assign the findings of a preview that are ready")
        .description(preview::apply::DESCRIPTION)
        .problems(&["preview_applied", "findings_changed"])
        .deadline_ms(10_000)
        .example(include_str!("../examples/apply_ownership_preview.json"))
        .if_match()
        .handler(preview::apply::apply),
        get("list_ownership_sources", "/v1/workspaces/{workspace_id}/ownership/sources")
            .summary("List ownership sources of audits, newest first")
            .description(source::DESCRIPTION)
            .example(include_str!("../examples/list_ownership_sources.json"))
            .handler(source::list),
    ])
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
