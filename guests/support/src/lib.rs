//! Support cases (operations 10 and 11): a person of the workspace writes what
//! is wrong, and sees their own cases. Category and priority come from the
//! words of the case, by the rules in [`triage`].

mod cases;
pub mod triage;

use area_sdk::prelude::*;

use cases::{CaseAnswered, CaseClosed, CaseCreated, StoredCase};

/// The area.
pub fn area() -> Area {
    Area::new("support", env!("CARGO_PKG_VERSION"))
        .summary("Support cases of the workspace's people")
        .collection(
            Collection::of::<StoredCase>()
                .summary("One case each, with its notes")
                .text("author_id")
                .text("status")
                .index(&["author_id"])
                .index(&["author_id", "status"]),
        )
        .event::<CaseCreated>("Somebody opened a support case")
        .event::<CaseAnswered>("Somebody added a note to a support case")
        .event::<CaseClosed>("A support case was closed")
        .route(
            post("create_support_case", "/v1/workspaces/{workspace_id}/support/cases")
                .summary("Open a support case")
                .description(triage::DESCRIPTION)
                .in_contract()
                .role(Role::Viewer)
                .idempotency_required()
                .handler(cases::create),
        )
        .route(
            get("list_support_cases", "/v1/workspaces/{workspace_id}/support/cases")
                .summary("List the caller's own support cases")
                .description(
                    "All cases the caller opened, newest first: up to 1,000, and from 4 MiB of \
                     text on no more. `/support/case-history` pages through any number.",
                )
                .in_contract()
                .deadline_ms(5_000)
                .handler(cases::list),
        )
        .route(
            get("page_support_cases", "/v1/workspaces/{workspace_id}/support/case-history")
                .summary("Page through the caller's own support cases")
                .handler(cases::page),
        )
        .route(
            get("get_support_case", "/v1/workspaces/{workspace_id}/support/cases/{case_id}")
                .summary("Read one of the caller's own support cases")
                .description("Admins may read and answer everybody's cases.")
                .handler(cases::show),
        )
        .route(
            post("add_support_note", "/v1/workspaces/{workspace_id}/support/cases/{case_id}/notes")
                .summary("Add a note to a support case")
                .description(
                    "By the case's author or an admin. `latest_response_at` is the latest note \
                     of somebody other than the author. A note reopens a closed case. A case \
                     takes 200 notes.",
                )
                .role(Role::Viewer)
                .problems(&["too_many_notes"])
                .handler(cases::add_note),
        )
        .route(
            post(
                "close_support_case",
                "/v1/workspaces/{workspace_id}/support/cases/{case_id}/close",
            )
            .summary("Close a support case")
            .description("By the case's author or an admin. Closing twice changes nothing.")
            .role(Role::Viewer)
            .handler(cases::close),
        )
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
