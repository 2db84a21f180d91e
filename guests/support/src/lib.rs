//! Support cases (operations 10 and 11): users report problems and see their own cases. [`triage`]
//! derives category and priority from the words of a case.

mod cases;
pub mod triage;

use area_sdk::prelude::*;

use cases::{CaseClosed, CaseCreated, CaseNoteAdded, StoredCase};

/// Declares the area `support`: its operations, collection and events.
pub fn area() -> Area {
    Area::new("support", env!("CARGO_PKG_VERSION"))
        .summary("Support cases of the workspace's users")
        .collection(
            Collection::of::<StoredCase>()
                .summary("One case each, with its notes")
                .index(&["author_id"])
                .index(&["author_id", "status"]),
        )
        .event::<CaseCreated>("A user opened a support case")
        .event::<CaseNoteAdded>("A user added a note to a support case")
        .event::<CaseClosed>("A support case was closed")
        .routes([
            post("create_support_case", "/v1/workspaces/{workspace_id}/support/cases")
                .summary("Open a support case")
                .description(triage::DESCRIPTION)
                .in_contract()
                .role(Role::Viewer)
                .idempotency_required()
                .example(include_str!("../examples/create_support_case.json"))
                .handler(cases::create),
            get("list_support_cases", "/v1/workspaces/{workspace_id}/support/cases")
                .summary("List the caller's own support cases")
                .description(
                    "The cases that the caller opened, newest first: at most 1,000 cases and \
                    4 MiB of JSON. `/support/case-history` pages through any number.",
                )
                .in_contract()
                .deadline_ms(5_000)
                .example(include_str!("../examples/list_support_cases.json"))
                .handler(cases::list),
            get("page_support_cases", "/v1/workspaces/{workspace_id}/support/case-history")
                .summary("Page through the caller's own support cases")
                .description(
                    "One page, newest first. `status` selects cases. A page ends before its \
                    `limit` where the next case would exceed 4 MiB of JSON.",
                )
                .example(include_str!("../examples/page_support_cases.json"))
                .handler(cases::page),
            get("get_support_case", "/v1/workspaces/{workspace_id}/support/cases/{case_id}")
                .summary("Read one of the caller's own support cases")
                .description("Admins may read and answer all cases.")
                .example(include_str!("../examples/get_support_case.json"))
                .handler(cases::show),
            post("add_support_note", "/v1/workspaces/{workspace_id}/support/cases/{case_id}/notes")
                .summary("Add a note to a support case")
                .description(
                    "By the case's author or an admin. `latest_response_at` is the latest note of \
                    somebody other than the author. A note reopens a closed case. A case can have \
                    at most 200 notes and 4 MiB of text.",
                )
                .role(Role::Viewer)
                .problems(&["too_many_notes"])
                .example(include_str!("../examples/add_support_note.json"))
                .handler(cases::add_note),
            post(
                "close_support_case",
                "/v1/workspaces/{workspace_id}/support/cases/{case_id}/close",
            )
            .summary("Close a support case")
            .description("By the case's author or an admin. Closing twice changes nothing.")
            .role(Role::Viewer)
            .example(include_str!("../examples/close_support_case.json"))
            .if_match()
            .handler(cases::close),
        ])
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
