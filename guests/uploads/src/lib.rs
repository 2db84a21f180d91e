//! Uploads (operation 20): content that people and pipelines bring in, and
//! what it goes through before other areas read it. An upload is announced,
//! its content is sent to a URL that is its own authority, and a job looks at
//! it: for malware, unpacked within bounds, and for what it is.

mod expire;
mod format;
mod intake;
mod large;
mod lines;
mod process;
mod shape;
mod unpack;
mod upload;

use area_sdk::prelude::*;
use area_sdk::{LinkHolder, RateClass};

use expire::Expire;
use process::Process;
use upload::{Upload, UploadReady, UploadRejected};

/// Largest content as it is sent, in bytes.
const MAX_BYTES: u64 = artifact_formats::MAX_SENT_BYTES;

const PROCESS_ATTEMPTS: u32 = 6;

/// The area.
pub fn area() -> Area {
    let area = Area::new("uploads", env!("CARGO_PKG_VERSION"))
        .summary("Content that is brought in, scanned, unpacked and recognised")
        .uses(&[Capability::Crypto, Capability::Links, Capability::Malware])
        .blobs_readable_by(&["*"])
        .collection(
            Collection::of::<Upload>()
                .summary("Where each upload stands, and the name of its content among the blobs")
                .text("validation_stage")
                .text("content_sha256")
                .text("repository_id")
                .text("format")
                .text("purpose")
                .index(&["repository_id", "validation_stage", "format"])
                .index(&["content_sha256"])
                .index(&["validation_stage"])
                .readable_by(&["*"]),
        )
        .event::<UploadReady>("The content of an upload was accepted and can be read")
        .event::<UploadRejected>("The content of an upload was refused")
        .job::<Process>(Lane::Ingest, PROCESS_ATTEMPTS, 120_000, process::run)
        .job::<Expire>(Lane::Maintenance, 20, 10_000, expire::run);
    routes(area)
}

const UPLOADS: &str = "/v1/workspaces/{workspace_id}/uploads";
const UPLOAD: &str = "/v1/workspaces/{workspace_id}/uploads/{upload_id}";
const COMPLETE: &str = "/v1/workspaces/{workspace_id}/uploads/{upload_id}/complete";

fn routes(area: Area) -> Area {
    area.route(
        post("create_upload", UPLOADS)
            .summary("Announce an upload")
            .description(intake::DESCRIPTION)
            .handler(intake::create),
    )
    .route(get("list_uploads", UPLOADS).summary("List uploads, newest first").handler(upload::list))
    .route(
        get("get_upload", UPLOAD)
            .summary("Read where an upload stands")
            .description(upload::DESCRIPTION)
            .in_contract()
            .handler(upload::show),
    )
    .route(
        put(intake::PUT_CONTENT, "/v1/uploads/{upload_id}/content")
            .summary("Send an upload's content")
            .description(
                "The URL is `upload_url` as the upload gave it, and needs no session. The content \
                 must have the length that was announced, and the digest where one was. Until the \
                 upload is completed it can be sent again.",
            )
            .signed_link("signature", LinkHolder::Bearer)
            .max_body_bytes(MAX_BYTES)
            .rate(RateClass::Heavy)
            .problems(&["length_mismatch", "digest_mismatch", "upload_closed"])
            .handler(intake::put_content),
    )
    .route(
        post("complete_upload", COMPLETE)
            .summary("Have an upload's content looked at")
            .description("Completing again changes nothing.")
            .problems(&["content_missing", "upload_closed"])
            .handler(intake::complete),
    )
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
