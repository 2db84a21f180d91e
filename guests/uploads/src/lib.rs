//! Uploads (operation 20): content from users and pipelines, and the checks before other areas read
//! it. The client announces an upload and sends its content to a signed URL. A job then scans the
//! content for malware, unpacks it within limits, and detects its format.

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
use area_shared::queue::JobCancelled;

use expire::ExpireUploadJob;
use process::CheckUploadJob;
use upload::{Upload, UploadReady, UploadRejected};

/// Maximum size of the content as sent, in bytes.
const MAX_BYTES: u64 = artifact_formats::MAX_SENT_BYTES;

const PROCESS_ATTEMPTS: u32 = 12;

/// Declares the area `uploads`: its operations, collection, events and jobs.
pub fn area() -> Area {
    let area = Area::new("uploads", env!("CARGO_PKG_VERSION"))
        .summary("Uploaded content: scanned, unpacked, and its format detected")
        .uses(&[Capability::Crypto, Capability::Links, Capability::Malware])
        .blobs_readable_by(&["*"])
        .collection(
            Collection::of::<Upload>()
                .summary("Uploads with their stage and the name of their content's blob")
                .fields(&["purpose"])
                .index(&["repository_id", "validation_stage", "format"])
                .index(&["content_sha256"])
                .index(&["validation_stage"])
                .readable_by(&["*"]),
        )
        .event::<UploadReady>("The content of an upload was accepted and can be read")
        .event::<UploadRejected>("The content of an upload was refused")
        .job::<CheckUploadJob>(Lane::Ingest, PROCESS_ATTEMPTS, 120_000, process::run)
        .job::<ExpireUploadJob>(Lane::Maintenance, expire::EXPIRY_ATTEMPTS, 10_000, expire::run)
        .on(JobCancelled::NAME, expire::job_cancelled);
    routes(area)
}

const UPLOADS: &str = "/v1/workspaces/{workspace_id}/uploads";
const UPLOAD: &str = "/v1/workspaces/{workspace_id}/uploads/{upload_id}";
const COMPLETE: &str = "/v1/workspaces/{workspace_id}/uploads/{upload_id}/complete";

fn routes(area: Area) -> Area {
    area.routes([
        post("create_upload", UPLOADS)
            .summary("Announce an upload")
            .description(intake::DESCRIPTION)
            .example(include_str!("../examples/create_upload.json"))
            .handler(intake::create),
        get("list_uploads", UPLOADS)
            .summary("List uploads, newest first")
            .description("One page. Stage, repository and purpose select uploads.")
            .example(include_str!("../examples/list_uploads.json"))
            .handler(upload::list),
        get("get_upload", UPLOAD)
            .summary("Read an upload and its stage")
            .description(upload::DESCRIPTION)
            .in_contract()
            .example(include_str!("../examples/get_upload.json"))
            .handler(upload::show),
        put(intake::PUT_CONTENT, "/v1/uploads/{upload_id}/content")
            .summary("Send an upload's content")
            .description(
                "The URL is the upload's `upload_url` and needs no session. The content must have \
                the announced length and, if announced, the digest. Until the upload is completed \
                it can be sent again.",
            )
            .signed_link("signature", LinkHolder::Bearer)
            .max_body_bytes(MAX_BYTES)
            .rate(RateClass::Heavy)
            .problems(&["length_mismatch", "digest_mismatch", "upload_closed"])
            .example(include_str!("../examples/put_upload_content.json"))
            .handler(intake::put_content),
        post("complete_upload", COMPLETE)
            .summary("Complete an upload and check its content")
            .description("Completing again changes nothing.")
            .problems(&["content_missing", "upload_closed"])
            .example(include_str!("../examples/complete_upload.json"))
            .handler(intake::complete),
    ])
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
