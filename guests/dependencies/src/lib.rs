//! The dependency inventory (operation 16): packages of repositories, advisories that affect them,
//! and their deployments.
//!
//! SBOMs are imported with audits (`ingest`), advisories from requests, uploads and evidence
//! (`advisories`), deployments from evidence (`deployments`). `matching` compares components with
//! advisories when either changes (`reevaluate`).

mod advisories;
mod artifacts;
mod budget;
mod deployments;
mod documents;
mod ecosystem;
mod evidence;
#[cfg(not(target_arch = "wasm32"))]
pub mod fuzzing;
mod ingest;
mod inventory;
mod large;
mod matching;
mod osv;
mod purl;
mod reading;
mod reevaluate;
mod sbom;
mod text;
mod versions;
mod vex;

use area_sdk::RateClass;
use area_sdk::prelude::*;
use area_shared::evidence::{ENVELOPE_ACCEPTED, EvidenceConsumer};
use area_shared::uploads::UploadReady;

use advisories::document::{AdvisoriesWithName, AffectedPackage, StoredAdvisory};
use advisories::import::AdvisoryImported;
use advisories::mentions::{
    self, AdvisoryMentionBackfillJob, MentionIndexCompletion, RelatedAdvisoryMention,
};
use artifacts::StoredFileSummary;
use deployments::document::{
    DeploymentEvidenceLink, DeploymentRecorded, LatestCommitAudit, StoredDeployment,
};
use evidence::{DependencyEvidenceConsumer, OsvImportJob};
use ingest::{BranchInventoryHead, DependenciesImportedEvent, DependencyImportJob, StoredImport};
use inventory::alerts::PackagesBecameVulnerable;
use inventory::component::StoredComponent;
use inventory::matches::StoredMatch;
use large::rescan::{self, LargeReassessmentJob};
use large::{PackageAdvisoryRevision, VulnerabilityChunk};
use reevaluate::ReevaluationJob;
use vex::document::{ImportedSbom, ListedStatement, StatementChunk, StoredVexSource};

/// Declares the area.
pub fn area() -> Area {
    let area = Area::new("dependencies", env!("CARGO_PKG_VERSION"))
        .summary("Dependencies, advisories and deployments")
        .uses(&[Capability::Crypto, Capability::Blobs]);
    let area = statement_collections(deployment_collections(component_collections(area)));
    routes(work(advisory_collections(area)))
}

fn component_collections(area: Area) -> Area {
    area.collections([
        Collection::of::<StoredComponent>()
            .summary("Packages of repositories' branches, audit by audit")
            .fields(&["search_text"])
            // One index for each filter, in the order of the list. With history, the database
            // merges a page from both values of `latest`.
            .index(&["latest", "name", "ecosystem", "version"])
            .index(&["latest", "repository_id", "name", "ecosystem", "version"])
            .index(&["latest", "repository_id", "branch_ref", "name", "ecosystem", "version"])
            .index(&["latest", "branch_ref", "name", "ecosystem", "version"])
            .index(&["audit_id", "name", "ecosystem", "version"])
            .index(&["latest", "package_key"])
            .readable_by(&["*"]),
        Collection::of::<StoredMatch>()
            .summary("Components under each name of each of their advisories")
            .fields(&["identity", "branch_ref", "search_text"])
            .index(&["advisory_key", "latest", "name", "ecosystem", "version"])
            .index(&["advisory_key", "latest", "repository_id", "name", "ecosystem", "version"])
            .index(&["audit_id", "name"])
            .index(&["component_id", "advisory_key"])
            .readable_by(&["*"]),
        Collection::of::<BranchInventoryHead>()
            .summary("The audit of each branch's inventory, and its number of components")
            .fields(&["components"])
            .readable_by(&["assistant", "context"]),
        Collection::of::<StoredImport>()
            .summary("Imports that have not ended, failed, or left files out")
            .index(&["repository_id", "branch_ref"]),
        Collection::of::<PackageAdvisoryRevision>()
            .summary("How often packages with many advisories have changed"),
        Collection::of::<VulnerabilityChunk>()
            .summary("Matches of an assessment that takes several steps"),
        Collection::of::<StoredFileSummary>().summary("Results of reading files, by their SHA-256"),
    ])
}

fn advisory_collections(area: Area) -> Area {
    area.collections([
        Collection::of::<StoredAdvisory>()
            .summary("Advisories; the id is the advisory's")
            .index(&["modified"])
            .index(&["severity", "modified"])
            .readable_by(&["*"]),
        Collection::of::<AffectedPackage>()
            .summary("Packages that advisories affect")
            .index(&["package_key"]),
        Collection::of::<AdvisoriesWithName>()
            .summary("Ids and aliases, and the advisories they name"),
        Collection::of::<RelatedAdvisoryMention>()
            .summary("Names in advisories' `upstream` and `related`")
            .index(&["name_key"]),
        Collection::of::<MentionIndexCompletion>()
            .summary("Whether the mentions of all advisories are indexed"),
    ])
}

fn deployment_collections(area: Area) -> Area {
    area.collections([
        Collection::of::<StoredDeployment>()
            .summary("Deployments")
            .fields(&["environment"])
            .index(&["current", "slot"])
            .index(&["current", "slot", "observed_at"])
            .index(&["current", "commit_key", "observed_at"])
            .index(&["current", "image_digest", "observed_at"])
            .index(&["current", "observed_at"])
            .index(&["observed_at"])
            .index(&["repository_id", "observed_at"])
            .index(&["service_id", "observed_at"])
            .readable_by(&["*"]),
        Collection::of::<DeploymentEvidenceLink>()
            .summary("The deployment of each evidence record"),
        Collection::of::<LatestCommitAudit>().summary("The latest audit of each deployed commit"),
    ])
}

fn statement_collections(area: Area) -> Area {
    area.collections([
        Collection::of::<ImportedSbom>()
            .summary("SBOMs that audits imported")
            .index(&["audit_id"])
            .index(&["serial"]),
        Collection::of::<StoredVexSource>()
            .summary("The newest document of each subject that makes VEX statements")
            .index(&["branch_key"]),
        Collection::of::<StatementChunk>()
            .summary("VEX statements by target, for matching")
            .index(&["target_key"]),
        Collection::of::<ListedStatement>()
            .summary("VEX statements with their matches")
            .fields(&["component_text", "advisory_text"])
            .index(&["stated_at"])
            .index(&["repository_id", "stated_at"])
            .index(&["source_id"])
            .readable_by(&["*"]),
    ])
}

fn work(area: Area) -> Area {
    area.event::<AdvisoryImported>("A new advisory, or a newer version of one, was imported")
        .event::<PackagesBecameVulnerable>("Packages are newly affected by an advisory")
        .event::<DeploymentRecorded>("Evidence shows a new deployment")
        .event::<DependenciesImportedEvent>("The dependencies of an audit are imported")
        .on("audit.started", ingest::take)
        .on(ENVELOPE_ACCEPTED, evidence::accepted)
        .on(UploadReady::NAME, evidence::ready)
        .job::<DependencyImportJob>(Lane::Ingest, ingest::ATTEMPTS, 30_000, ingest::run)
        .job::<OsvImportJob>(Lane::Ingest, 10, 30_000, evidence::import_advisories)
        .job(Lane::Ingest, 10, 15_000, DependencyEvidenceConsumer::run)
        .job::<ReevaluationJob>(Lane::Ingest, 10, 15_000, reevaluate::run)
        .job::<AdvisoryMentionBackfillJob>(Lane::Maintenance, 10, 30_000, mentions::index)
        .job::<LargeReassessmentJob>(Lane::Ingest, 10, 30_000, rescan::run)
}

const COMPONENT_ADVISORIES: &str =
    "/v1/workspaces/{workspace_id}/dependencies/components/{component_id}/advisories";
const ADVISORIES: &str = "/v1/workspaces/{workspace_id}/advisories";

fn routes(area: Area) -> Area {
    area.routes([
        get("list_dependencies", "/v1/workspaces/{workspace_id}/dependencies")
            .summary("List the dependencies of the workspace's repositories")
            .description(inventory::list::DESCRIPTION)
            .in_contract()
            .example(include_str!("../examples/list_dependencies.json"))
            .handler(inventory::list::list),
        get("list_component_advisories", COMPONENT_ADVISORIES)
            .summary("List all advisories of a dependency")
            .description(inventory::advisories::DESCRIPTION)
            .example(include_str!("../examples/list_component_advisories.json"))
            .handler(inventory::advisories::list),
        post("import_advisories", ADVISORIES)
            .summary("Import advisories in the OSV format")
            .description(advisories::routes::DESCRIPTION)
            .max_body_bytes(8 << 20)
            .rate(RateClass::Heavy)
            .deadline_ms(10_000)
            .example(include_str!("../examples/import_advisories.json"))
            .handler(advisories::routes::import),
        get("list_advisories", ADVISORIES)
            .summary("List advisories, latest modified first")
            .description(
                "One page of advisories that were imported into this workspace. `severity` \
                 selects advisories.",
            )
            .example(include_str!("../examples/list_advisories.json"))
            .handler(advisories::routes::list),
        get("get_advisory", "/v1/workspaces/{workspace_id}/advisories/{advisory_id}")
            .summary("Read an advisory, by its id or an alias")
            .description("With its affected packages and version ranges, as they were imported.")
            .example(include_str!("../examples/get_advisory.json"))
            .handler(advisories::routes::show),
        get("list_vex_statements", "/v1/workspaces/{workspace_id}/vex-statements")
            .summary("List VEX statements, newest document first")
            .description(vex::list::DESCRIPTION)
            .example(include_str!("../examples/list_vex_statements.json"))
            .handler(vex::list::list),
        get("list_deployments", "/v1/workspaces/{workspace_id}/deployments")
            .summary("List deployments, latest evidence first")
            .description(deployments::said::DESCRIPTION)
            .example(include_str!("../examples/list_deployments.json"))
            .handler(deployments::list::list),
    ])
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
