//! Stored VEX documents and statements.
//!
//! An [`ImportedSbom`] identifies the SBOM of a component. A [`StoredVexSource`] is the newest
//! document of a subject with statements, in a repository's branch. Its statements are stored
//! twice: in [`StatementChunk`]s, with which components are matched, and one by one for the list.

use area_sdk::prelude::*;

use super::statement::{Statement, VexState};
use crate::inventory::component::StoredComponent;
use crate::sbom::SbomSubject;
use crate::text::bounded;

/// Maximum size of each text that the filters of the list of VEX statements search, in bytes.
const MAX_TEXT: usize = 4_600;

/// The newest document with VEX statements about a subject, of those that audits of a repository's
/// branch imported.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "StatementSource")]
pub(crate) struct StoredVexSource {
    /// Key of the branch whose audit imported the document; see [`branch_key`].
    pub(crate) branch_key: String,
    /// Id of the audit that stored this document's statements.
    pub(crate) audit_id: Uuid,
    /// Whether the document is an SBOM with components, and not only a VEX document.
    pub(crate) is_sbom: bool,
    pub(crate) origin: StatementOrigin,
    /// Number of the document's [`StatementChunk`]s.
    pub(crate) chunks: usize,
    /// Serial numbers of the SBOMs to which BOM-Links in the document's statements refer.
    pub(crate) links: Vec<String>,
    /// Serial numbers of SBOMs to which statements of the document's former version referred. Kept
    /// until the components of those SBOMs were matched again.
    pub(crate) former_links: Vec<String>,
    /// Whether the components that the document's statements concern were matched with them.
    pub(crate) is_applied: bool,
}

document!(StoredVexSource, "statement_sources");

/// Document from which a VEX statement comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Origin")]
pub(crate) struct StatementOrigin {
    /// Id of the [`StoredVexSource`] that stores the document.
    pub(crate) source_id: String,
    pub(crate) repository_id: Uuid,
    pub(crate) branch_ref: Option<String>,
    pub(crate) upload_id: Uuid,
    pub(crate) filename: String,
    pub(crate) artifact_sha256: String,
    pub(crate) serial: Option<Uuid>,
    /// Product that the document describes; `None` if the document names none.
    pub(crate) subject: Option<SbomSubject>,
    /// Key of the document's stream: of its subject, with the filename if that key does not
    /// identify the subject.
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
    pub(crate) origin: StatementOrigin,
    /// VEX statements, each with its index in the document.
    pub(crate) statements: Vec<(usize, Statement)>,
}

document!(StatementChunk, "statement_chunks");

/// Returns the key under which VEX statements about the inventory of a branch are stored.
pub(crate) fn branch_key(repository_id: Uuid, branch_ref: Option<&str>) -> String {
    let branch = bounded(branch_ref.unwrap_or_default(), 500);
    format!("branch\n{repository_id}\n{branch}")
}

/// Returns the key under which VEX statements that link to the SBOM with this serial number are
/// stored.
pub(crate) fn serial_key(serial: Uuid) -> String {
    format!("serial\n{serial}")
}

/// A VEX statement with its matches, as stored for the list of VEX statements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ListedStatement {
    pub(crate) repository_id: Uuid,
    pub(crate) branch_ref: Option<String>,
    pub(crate) stated_at: Timestamp,
    pub(crate) source_id: String,
    pub(crate) advisory_id: String,
    pub(crate) aliases: Vec<String>,
    pub(crate) state: VexState,
    pub(crate) justification: Option<String>,
    pub(crate) detail: Option<String>,
    pub(crate) reference: String,
    pub(crate) filename: String,
    pub(crate) upload_id: Uuid,
    pub(crate) artifact_sha256: String,
    pub(crate) serial: Option<Uuid>,
    pub(crate) subject: Option<String>,
    pub(crate) matches: StatementMatches,
    /// Keys of the names of the statement's advisory, one on each line, for the filter `advisory`.
    pub(crate) advisory_text: String,
    /// The statement's reference, and names and purls of the matched components, for the filter
    /// `component`.
    pub(crate) component_text: String,
}

impl ListedStatement {
    pub(crate) fn new(
        origin: &StatementOrigin,
        statement: &Statement,
        matches: StatementMatches,
    ) -> Self {
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

/// Components and products that the reference of a VEX statement matches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Matches")]
pub(crate) struct StatementMatches {
    /// Number of components that the statement's reference matches.
    pub(crate) component_count: usize,
    /// The first of the components that the statement's reference matches.
    pub(crate) components: Vec<MatchedComponent>,
    /// Whether the statement's reference matches a product: the subject of an SBOM as a whole.
    pub(crate) is_product: bool,
    /// Reason why the statement matches nothing; null if it is not known.
    pub(crate) reason: Option<String>,
}

impl StatementMatches {
    pub(crate) fn is_empty(&self) -> bool {
        self.component_count == 0 && !self.is_product
    }
}

/// A component that the reference of a VEX statement matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct MatchedComponent {
    /// Id of the dependency that is the component; null if the component is in the same SBOM as the
    /// statement.
    pub(crate) id: Option<Uuid>,
    /// Name of the component, with its version: `name@version`.
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
    /// CycloneDX serial number of the SBOM; empty if it has none.
    pub(crate) serial: String,
    /// Version of the SBOM under its serial number.
    pub(crate) version: u64,
    pub(crate) subject: Option<SbomSubject>,
    pub(crate) stream: String,
    pub(crate) components: usize,
    /// Whether this is the only SBOM that the audit imported.
    pub(crate) is_only: bool,
}

document!(ImportedSbom, "imported_sboms");

impl ImportedSbom {
    /// Returns the document id of an SBOM with this SHA-256 that an audit imported.
    pub(crate) fn id(audit_id: Uuid, artifact_sha256: &str) -> String {
        format!("{audit_id}/{artifact_sha256}")
    }

    pub(super) fn serial_key(&self) -> Option<String> {
        self.serial.parse().ok().map(serial_key)
    }

    pub(super) fn is_linked(&self, serial: Uuid, version: u64) -> bool {
        self.serial == serial.to_string() && self.version == version
    }

    /// Whether the SBOM has the same subject as the document of these VEX statements, as far as
    /// that is certain, or the same stream.
    pub(super) fn is_of(&self, origin: &StatementOrigin) -> bool {
        let same = match (&self.subject, &origin.subject) {
            (Some(ours), Some(theirs)) => ours.is(theirs),
            _ => false,
        };
        same || self.stream == origin.stream
    }

    /// Builds the record of an SBOM from one of its components. Used for SBOMs that versions of
    /// this area without these records imported.
    pub(super) fn of_component(component: &StoredComponent, artifact_sha256: &str) -> Self {
        let source = &component.source_scope;
        let key = source.subject.clone().filter(|key| key != ".");
        let subject =
            key.map(|key| SbomSubject { name: key.clone(), key, ..SbomSubject::default() });
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
