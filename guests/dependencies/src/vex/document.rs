//! Stored VEX documents and statements.
//!
//! An [`ImportedSbom`] identifies the SBOM of a component. A [`StatementSource`] is the newest
//! document of a subject with statements, in a repository's branch. Its statements are stored
//! twice: in [`StatementChunk`]s, with which components are matched, and one by one for the list.

use area_sdk::prelude::*;

use super::statement::{State, Statement};
use crate::inventory::component::StoredComponent;
use crate::sbom::ReassessmentTarget;
use crate::text::bounded;

/// Maximum size of the texts that filters of the list search, in bytes.
const MAX_TEXT: usize = 4_600;

/// The newest document with VEX statements about a subject, in a repository's branch.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StatementSource {
    /// Key of the branch for which the document was imported; see [`branch_key`].
    pub(crate) branch_key: String,
    /// Id of the audit that stored the document.
    pub(crate) audit_id: Uuid,
    /// Whether the document is an SBOM, that is, has components.
    pub(crate) is_sbom: bool,
    pub(crate) origin: Origin,
    /// Number of the document's [`StatementChunk`]s.
    pub(crate) chunks: usize,
    /// Serial numbers of other documents to which BOM-Links in the statements refer.
    pub(crate) links: Vec<String>,
    /// Serial numbers to which the statements of the former document referred. Kept until the
    /// components of those documents were matched again.
    pub(crate) former_links: Vec<String>,
    /// Whether the inventories that the statements concern were matched with them.
    pub(crate) is_applied: bool,
}

document!(StatementSource, "statement_sources");

/// Document that contains a VEX statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Origin {
    /// Document id of the [`StatementSource`].
    pub(crate) source_id: String,
    pub(crate) repository_id: Uuid,
    pub(crate) branch_ref: Option<String>,
    pub(crate) upload_id: Uuid,
    pub(crate) filename: String,
    pub(crate) artifact_sha256: String,
    pub(crate) serial: Option<Uuid>,
    /// Product that the document describes; `None` if it names none.
    pub(crate) subject: Option<ReassessmentTarget>,
    /// Key of the subject; includes the filename if that key does not identify the subject.
    pub(crate) stream: String,
    pub(crate) tool: Option<String>,
    /// Time at which the document's upload was ready. Of two documents, that with the later time is
    /// newer.
    pub(crate) stated_at: Timestamp,
}

/// A chunk of a document's VEX statements, which all concern the same inventories.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StatementChunk {
    /// Key of the branch whose inventory the statements concern, or key of the SBOM to which they
    /// link; see [`branch_key`] and [`serial_key`].
    pub(crate) target_key: String,
    pub(crate) origin: Origin,
    /// Statements, each with its index in the document.
    pub(crate) statements: Vec<(usize, Statement)>,
}

document!(StatementChunk, "statement_chunks");

/// Returns the key of VEX statements that concern the inventory of a branch.
pub(crate) fn branch_key(repository_id: Uuid, branch_ref: Option<&str>) -> String {
    let branch = bounded(branch_ref.unwrap_or_default(), 500);
    format!("branch\n{repository_id}\n{branch}")
}

/// Returns the key of VEX statements that link to the SBOM with this serial number.
pub(crate) fn serial_key(serial: Uuid) -> String {
    format!("serial\n{serial}")
}

/// A VEX statement as stored for the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ListedStatement {
    pub(crate) repository_id: Uuid,
    pub(crate) branch_ref: Option<String>,
    pub(crate) stated_at: Timestamp,
    pub(crate) source_id: String,
    pub(crate) advisory_id: String,
    pub(crate) aliases: Vec<String>,
    pub(crate) state: State,
    pub(crate) justification: Option<String>,
    pub(crate) detail: Option<String>,
    pub(crate) reference: String,
    pub(crate) filename: String,
    pub(crate) upload_id: Uuid,
    pub(crate) artifact_sha256: String,
    pub(crate) serial: Option<Uuid>,
    pub(crate) subject: Option<String>,
    pub(crate) matches: Matches,
    /// Keys of the advisory's names, one on each line, for the filter `advisory`.
    pub(crate) advisory_text: String,
    /// The statement's reference, and names and purls of the matched components, for the filter
    /// `component`.
    pub(crate) component_text: String,
}

impl ListedStatement {
    pub(crate) fn new(origin: &Origin, statement: &Statement, matches: Matches) -> Self {
        let names = statement.names().fold(String::from("\n"), |text, name| text + &name + "\n");
        let components = matches.components.iter();
        let components = components.flat_map(|one| [Some(&one.name), one.purl.as_ref()]).flatten();
        let component_text =
            components.fold(statement.reference.clone(), |text, name| text + "\n" + name);
        Self {
            repository_id: origin.repository_id,
            branch_ref: origin.branch_ref.clone(),
            stated_at: origin.stated_at,
            source_id: origin.source_id.clone(),
            advisory_id: statement.advisory_id.clone(),
            aliases: statement.aliases.clone(),
            state: statement.state,
            justification: statement.justification.clone(),
            detail: statement.detail.clone(),
            reference: statement.reference.clone(),
            filename: origin.filename.clone(),
            upload_id: origin.upload_id,
            artifact_sha256: origin.artifact_sha256.clone(),
            serial: origin.serial,
            subject: origin.subject.as_ref().map(|subject| subject.key.clone()),
            matches,
            advisory_text: bounded(&names, MAX_TEXT),
            component_text: bounded(&component_text, MAX_TEXT),
        }
    }
}

document!(ListedStatement, "vex_statements");

/// Components and products that a statement's reference matches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Matches {
    /// Number of components that the reference matches.
    pub(crate) component_count: usize,
    /// The first of the matched components.
    pub(crate) components: Vec<MatchedComponent>,
    /// Whether the reference matches a product: the subject of an SBOM as a whole.
    pub(crate) is_product: bool,
    /// Reason why the statement matches nothing; null if it is not known.
    pub(crate) reason: Option<String>,
}

impl Matches {
    pub(crate) fn is_empty(&self) -> bool {
        self.component_count == 0 && !self.is_product
    }
}

/// A component that a statement's reference matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct MatchedComponent {
    /// Id of the dependency; null if the statement is about its own document.
    pub(crate) id: Option<Uuid>,
    /// Name and version of the component.
    pub(crate) name: String,
    pub(crate) purl: Option<String>,
}

/// An SBOM that an audit imported, with the properties that are needed to resolve references of VEX
/// statements.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ImportedSbom {
    pub(crate) audit_id: Uuid,
    pub(crate) repository_id: Uuid,
    pub(crate) branch_ref: Option<String>,
    pub(crate) artifact_sha256: String,
    pub(crate) filename: String,
    pub(crate) ready_at: Timestamp,
    /// CycloneDX serial number; empty without one.
    pub(crate) serial: String,
    /// Version of the document under its serial number.
    pub(crate) version: u64,
    pub(crate) subject: Option<ReassessmentTarget>,
    pub(crate) stream: String,
    pub(crate) components: usize,
    /// Whether the audit imported no other SBOM.
    pub(crate) is_only: bool,
}

document!(ImportedSbom, "imported_sboms");

impl ImportedSbom {
    /// Returns the document id of an imported SBOM.
    pub(crate) fn id(audit_id: Uuid, artifact_sha256: &str) -> String {
        format!("{audit_id}/{artifact_sha256}")
    }

    pub(super) fn serial_key(&self) -> Option<String> {
        self.serial.parse().ok().map(serial_key)
    }

    pub(super) fn is_linked(&self, serial: Uuid, version: u64) -> bool {
        self.serial == serial.to_string() && self.version == version
    }

    /// Whether the SBOM certainly has the same subject as the document of these statements.
    pub(super) fn is_of(&self, origin: &Origin) -> bool {
        let same = match (&self.subject, &origin.subject) {
            (Some(ours), Some(theirs)) => ours.is(theirs),
            _ => false,
        };
        same || self.stream == origin.stream
    }

    /// Builds the SBOM from the members of a component that an older version imported.
    pub(super) fn of_component(component: &StoredComponent, artifact_sha256: &str) -> Self {
        let source = &component.source_scope;
        let key = source.subject.clone().filter(|key| key != ".");
        let subject = key.map(|key| ReassessmentTarget {
            name: key.clone(),
            key,
            version: None,
            references: Vec::new(),
            is_weak: false,
            digest: None,
        });
        let stream = subject.as_ref().map(|subject| subject.key.clone());
        Self {
            audit_id: component.audit_id,
            repository_id: component.repository_id,
            branch_ref: component.branch_ref.clone(),
            artifact_sha256: artifact_sha256.to_owned(),
            filename: source.filename.clone(),
            ready_at: component.observed_at,
            serial: String::new(),
            version: 1,
            stream: stream.unwrap_or_else(|| format!("\n{}", source.filename)),
            subject,
            components: 0,
            is_only: false,
        }
    }
}
