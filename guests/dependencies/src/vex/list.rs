//! The list of VEX statements.

use area_sdk::prelude::*;

use super::document::{ListedStatement, StatementMatches};
use super::statement::VexState;
use crate::inventory::LongCursorPaging;
use crate::text::advisory_key;

/// Text for the OpenAPI document: which VEX statements are imported and applied.
pub(crate) const DESCRIPTION: &str = "Statements of CycloneDX documents (1.4 to 1.7) about \
    advisories and components: those inside SBOMs, and those of VEX documents, which have \
    `vulnerabilities` and no `components`. OpenVEX and CSAF are refused at upload. Audits import \
    the statements. Of each subject, in a repository's branch, the newest document counts; it \
    replaces the statements of the one before, also if its `vulnerabilities` are empty.\n\n\
    `not_affected`, `false_positive`, `resolved` and `resolved_with_pedigree` end the match of \
    the advisory (aliases included); the dependency's `limitations` name the statement. \
    `exploitable`, and `affected` for a vulnerability without analysis, add a match, with \
    `match_basis` `scanner_reported`. `in_triage` changes nothing. If documents contradict each \
    other, the newest counts.\n\n\
    `reference` is `affects[].ref`: the product itself, a component's `bom-ref` in the SBOM of \
    the same subject, a purl (which covers every component with the version and the qualifiers \
    that it has), or a BOM-Link, which only means the SBOM of that serial number and version. A \
    statement on another version of the product does not apply. `affects[].versions` are versions \
    and `vers` ranges; a range that cannot be evaluated ends no match. `matches` lists the \
    components of the latest inventory that the reference names; a statement without matches is \
    also in the audit's warnings.";

/// Query parameters that filter the list of VEX statements.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Filters")]
pub(crate) struct VexStatementFilters {
    /// Only VEX statements from documents of this repository.
    repository_id: Option<Uuid>,
    /// Only VEX statements with this text in the reference, or in a matched component's name or
    /// purl, ignoring case.
    #[schemars(length(max = 200))]
    component: Option<String>,
    /// Only VEX statements about this advisory: an id or alias in the statement.
    #[schemars(length(max = 200))]
    advisory: Option<String>,
}

/// A VEX statement, as the list returns it, with its matches and its document.
#[derive(Serialize, JsonSchema)]
pub(crate) struct VexStatement {
    id: Uuid,
    repository_id: Uuid,
    branch_ref: Option<String>,
    advisory_id: String,
    /// Other ids of the advisory in the VEX document (`references[].id`).
    aliases: Vec<String>,
    state: VexState,
    justification: Option<String>,
    detail: Option<String>,
    /// Reference to a component or product, as written in the document (`affects[].ref`).
    reference: String,
    matches: StatementMatches,
    /// Time at which the upload of the statement's document was ready.
    stated_at: Timestamp,
    document: VexDocument,
}

/// Document that contains a VEX statement, as the list returns it.
#[derive(Serialize, JsonSchema)]
struct VexDocument {
    filename: String,
    upload_id: Uuid,
    artifact_sha256: String,
    serial_number: Option<Uuid>,
    /// Key of the product that the document describes; null if it names none.
    subject: Option<String>,
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(filters): Params<VexStatementFilters>,
    paging: LongCursorPaging,
) -> Result<Page<VexStatement>> {
    let advisory = filters.advisory.map(|id| format!("\n{}\n", advisory_key(&id)));
    let some = ctx
        .documents::<ListedStatement>()
        .query()
        .equals_if("repository_id", filters.repository_id)
        .contains_if(&["component_text"], filters.component.as_deref())
        .contains_if(&["advisory_text"], advisory.as_deref());
    let page = some.descending("stated_at").paging(paging).page()?;
    Ok(page.map(VexStatement::from))
}

impl From<Stored<ListedStatement>> for VexStatement {
    fn from(stored: Stored<ListedStatement>) -> Self {
        let id = stored.uuid();
        let value = stored.value;
        Self {
            id,
            repository_id: value.repository_id,
            branch_ref: value.branch_ref,
            advisory_id: value.advisory_id,
            aliases: value.aliases,
            state: value.state,
            justification: value.justification,
            detail: value.detail,
            reference: value.reference,
            matches: value.matches,
            stated_at: value.stated_at,
            document: VexDocument {
                filename: value.filename,
                upload_id: value.upload_id,
                artifact_sha256: value.artifact_sha256,
                serial_number: value.serial,
                subject: value.subject,
            },
        }
    }
}
