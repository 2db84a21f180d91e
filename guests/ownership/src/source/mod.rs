//! Ownership rules of an audit: `intake` handles events of audits, `choice` selects the CODEOWNERS
//! file, `import` parses it.

mod choice;
pub(crate) mod import;
pub(crate) mod intake;

use area_sdk::prelude::*;
use area_sdk::{BlobError, Scope};

use crate::codeowners::{Codeowners, Dialect, MOST_BYTES, parse};

/// Text for the OpenAPI document: how audits import CODEOWNERS files.
pub(crate) const DESCRIPTION: &str = "Of its uploads, an audit takes the CODEOWNERS files of the \
    newest one's commit, or those of the hour before it if a commit is unknown, and of these the \
    one its host reads: GitHub looks at `.github/`, the root and `docs/`, GitLab at the root, \
    `docs/` and `.gitlab/`; files that are not called CODEOWNERS come last. A warning names the \
    files that are not read. The dialect follows from the place, else from the repository's \
    `provider`, else from the content, with a warning: a file with sections, exclusions or roles \
    is GitLab's. Other dialects, such as Bitbucket's, are not supported.\n\n\
    GitHub's dialect: the last rule that matches a path decides. GitLab's: in each section the \
    last one, `!` excludes for good within its section, and owners of optional sections come \
    last. A rule without owners leaves what it matches unowned, but in a GitLab section with \
    default owners a rule of a pattern alone has those. Syntax that a dialect does not have is \
    skipped with a warning.\n\n\
    `source_status` is `available`, `missing` (the audit had no such file), `unsupported` (an \
    OWNERS file of Kubernetes) or `invalid` (see `errors`). `paths` and `unowned` count the \
    newest path list, one path a line, quoted as git does or not; without one, the paths of the \
    repository's findings, and rules without a match are not reported then.";

/// A file that an audit imports.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Input")]
pub(crate) struct AuditInput {
    pub(crate) upload_id: Uuid,
    /// Name of the blob with the file's content in the area `uploads`.
    pub(crate) blob: String,
    pub(crate) filename: String,
    pub(crate) content_sha256: String,
}

impl AuditInput {
    /// Returns the name of this area's own blob with a copy of the input's content.
    fn copy(&self) -> String {
        format!("codeowners/{}", self.content_sha256)
    }
}

/// State of the import of an audit's CODEOWNERS rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "SourceState")]
pub(crate) enum SourceImportPhase {
    /// The import of the rules waits for paths of findings, or is running.
    Importing,
    /// The import of the rules has ended.
    Imported,
}

/// Availability of an audit's CODEOWNERS rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "SourceStatus")]
pub(crate) enum SourceAvailability {
    /// The CODEOWNERS file was parsed; rules are available.
    Available,
    /// The audit has no CODEOWNERS file.
    Missing,
    /// The file is an `OWNERS` file of Kubernetes, whose format is not supported.
    Unsupported,
    /// The CODEOWNERS file cannot be read or parsed.
    Invalid,
}

/// Reason why a file was not imported.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ImportError {
    upload_id: Uuid,
    code: String,
    /// Description of the error and how to fix it.
    detail: String,
}

/// The CODEOWNERS file of an audit and the state of its import; the document's id is the audit's.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Source")]
pub(crate) struct StoredSource {
    pub(crate) repository_id: Uuid,
    pub(crate) branch_ref: Option<String>,
    pub(crate) commit_sha: Option<String>,
    pub(crate) state: SourceImportPhase,
    /// Whether the control room has imported the audit's findings.
    #[serde(default)]
    findings_imported: bool,
    code_owners: Option<AuditInput>,
    path_list: Option<AuditInput>,
    /// Dialect that the file's location or the hosting service implies; after the import, the
    /// dialect in which the file was parsed.
    dialect: Option<Dialect>,
    pub(crate) source_status: SourceAvailability,
    rules: u64,
    paths: u64,
    unowned: u64,
    pub(crate) warnings: Vec<String>,
    errors: Vec<ImportError>,
    imported_at: Option<Timestamp>,
}

document!(StoredSource, "sources");

impl StoredSource {
    /// Returns the path of the CODEOWNERS file, as the client named it in the upload.
    pub(crate) fn path(&self) -> Option<&str> {
        self.code_owners.as_ref().map(|input| input.filename.as_str())
    }

    pub(crate) fn sha256(&self) -> Option<&str> {
        self.code_owners.as_ref().map(|input| input.content_sha256.as_str())
    }

    /// Returns the parsed rules of an imported CODEOWNERS file; `None` if there are none.
    pub(crate) fn rules(&self, scope: &Scope) -> Result<Option<Codeowners>, BlobError> {
        let readable = self.source_status == SourceAvailability::Available;
        let Some(input) = self.code_owners.as_ref().filter(|_| readable) else { return Ok(None) };
        let content = scope.blobs().read_all(&input.copy(), MOST_BYTES)?;
        Ok(parse(&content, self.dialect).ok())
    }
}

/// The CODEOWNERS file of an audit and the result of its import.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OwnershipSource")]
pub(crate) struct SourceView {
    audit_id: Uuid,
    repository_id: Uuid,
    branch_ref: Option<String>,
    commit_sha: Option<String>,
    state: SourceImportPhase,
    source_status: SourceAvailability,
    source_path: Option<String>,
    source_sha256: Option<String>,
    dialect: Option<Dialect>,
    rules: u64,
    paths: u64,
    unowned: u64,
    warnings: Vec<String>,
    errors: Vec<ImportError>,
    imported_at: Option<Timestamp>,
}

impl From<Stored<StoredSource>> for SourceView {
    fn from(stored: Stored<StoredSource>) -> Self {
        let audit_id = stored.uuid();
        let source = stored.value;
        Self {
            audit_id,
            repository_id: source.repository_id,
            state: source.state,
            source_status: source.source_status,
            source_path: source.path().map(ToOwned::to_owned),
            source_sha256: source.sha256().map(ToOwned::to_owned),
            branch_ref: source.branch_ref,
            commit_sha: source.commit_sha,
            dialect: source.dialect,
            rules: source.rules,
            paths: source.paths,
            unowned: source.unowned,
            warnings: source.warnings,
            errors: source.errors,
            imported_at: source.imported_at,
        }
    }
}

/// Query parameters that filter the list of ownership sources.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    repository_id: Option<Uuid>,
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
    paging: Paging,
) -> Result<Page<SourceView>> {
    let all =
        ctx.documents::<StoredSource>().query().equals_if("repository_id", params.repository_id);
    Ok(all.paging(paging).page()?.map(SourceView::from))
}
