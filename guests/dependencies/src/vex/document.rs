//! VEX documents and statements as they are stored.
//!
//! An [`ImportedSbom`] says which SBOM a component comes from. A
//! [`StatementSource`] is the newest document of a subject, in a repository's
//! branch, that makes statements. Its statements are stored twice: in
//! [`StatementChunk`]s, which matching reads, and one by one, as the operation
//! lists them.

use area_sdk::prelude::*;

use super::statement::{State, Statement};
use crate::inventory::component::StoredComponent;
use crate::sbom::Subject;
use crate::text::bounded;

/// Bytes of the texts that filters look into.
const MAX_TEXT: usize = 4_600;

/// The newest document of a subject that makes statements.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StatementSource {
    /// The branch that the document was imported for.
    pub(crate) branch_key: String,
    /// The audit that stored it.
    pub(crate) audit_id: Uuid,
    /// Whether the document is an SBOM: one with components.
    pub(crate) is_sbom: bool,
    pub(crate) origin: Origin,
    /// How many chunks there are.
    pub(crate) chunks: usize,
    /// Serial numbers of the documents that BOM-Links name.
    pub(crate) links: Vec<String>,
    /// Those that links of the document before named, until they are matched
    /// anew.
    pub(crate) former_links: Vec<String>,
    /// Whether the inventories that it refers to have been matched with it.
    pub(crate) is_applied: bool,
}

impl Document for StatementSource {
    const COLLECTION: &'static str = "statement_sources";
}

/// Where statements come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Origin {
    /// The id of the [`StatementSource`].
    pub(crate) source_id: String,
    pub(crate) repository_id: Uuid,
    pub(crate) branch_ref: Option<String>,
    pub(crate) upload_id: Uuid,
    pub(crate) filename: String,
    pub(crate) artifact_sha256: String,
    pub(crate) serial: Option<Uuid>,
    /// What the document is about; `None` if it does not say.
    pub(crate) subject: Option<Subject>,
    /// The subject's key, with the file's path if the subject is weak.
    pub(crate) stream: String,
    pub(crate) tool: Option<String>,
    /// When the document was ready: of two documents the later one is newer.
    pub(crate) stated_at: Timestamp,
}

/// Some statements of a source that concern the same inventories.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StatementChunk {
    /// The branch whose inventory the statements concern, or the serial number
    /// of the SBOM that they link to.
    pub(crate) target_key: String,
    pub(crate) origin: Origin,
    /// With the place of each in the document.
    pub(crate) statements: Vec<(usize, Statement)>,
}

impl Document for StatementChunk {
    const COLLECTION: &'static str = "statement_chunks";
}

/// The key of statements on a branch's inventory.
pub(crate) fn branch_key(repository_id: Uuid, branch_ref: Option<&str>) -> String {
    let branch = bounded(branch_ref.unwrap_or_default(), 500);
    format!("branch\n{repository_id}\n{branch}")
}

/// The key of statements on the SBOM of a serial number.
pub(crate) fn serial_key(serial: Uuid) -> String {
    format!("serial\n{serial}")
}

/// A statement as the operation lists it.
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
    /// Names of the advisory, each on a line of its own, in upper case.
    pub(crate) advisory_text: String,
    /// The reference and the components it matches.
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

impl Document for ListedStatement {
    const COLLECTION: &'static str = "vex_statements";
}

/// What a statement's reference matches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Matches {
    /// Components that the reference names.
    pub(crate) component_count: usize,
    /// The first of them.
    pub(crate) components: Vec<MatchedComponent>,
    /// Whether the reference names a product that an inventory has as a whole.
    pub(crate) is_product: bool,
    /// Why nothing matches, where more is known than that.
    pub(crate) reason: Option<String>,
}

impl Matches {
    pub(crate) fn is_empty(&self) -> bool {
        self.component_count == 0 && !self.is_product
    }
}

/// A component that a statement's reference names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct MatchedComponent {
    /// The dependency's id; null if the statement is of the SBOM's own.
    pub(crate) id: Option<Uuid>,
    /// Name and version.
    pub(crate) name: String,
    pub(crate) purl: Option<String>,
}

/// An SBOM that an audit imported: what references in statements need to know.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ImportedSbom {
    pub(crate) audit_id: Uuid,
    pub(crate) repository_id: Uuid,
    pub(crate) branch_ref: Option<String>,
    pub(crate) artifact_sha256: String,
    pub(crate) filename: String,
    pub(crate) ready_at: Timestamp,
    /// The serial number; empty if it has none.
    pub(crate) serial: String,
    /// Of the document under its serial number.
    pub(crate) version: u64,
    pub(crate) subject: Option<Subject>,
    pub(crate) stream: String,
    pub(crate) components: usize,
    /// Whether the audit imported no other SBOM.
    pub(crate) is_only: bool,
}

impl Document for ImportedSbom {
    const COLLECTION: &'static str = "imported_sboms";
}

impl ImportedSbom {
    /// The document's id.
    pub(crate) fn id(audit_id: Uuid, artifact_sha256: &str) -> String {
        format!("{audit_id}/{artifact_sha256}")
    }

    pub(super) fn serial_key(&self) -> Option<String> {
        self.serial.parse().ok().map(serial_key)
    }

    pub(super) fn is_linked(&self, serial: Uuid, version: u64) -> bool {
        self.serial == serial.to_string() && self.version == version
    }

    /// Whether it certainly is of what statements are about.
    pub(super) fn is_of(&self, origin: &Origin) -> bool {
        let same = match (&self.subject, &origin.subject) {
            (Some(ours), Some(theirs)) => ours.is(theirs),
            _ => false,
        };
        same || self.stream == origin.stream
    }

    /// As far as a component tells, for those that an earlier version imported.
    pub(super) fn of_component(component: &StoredComponent, artifact_sha256: &str) -> Self {
        let source = &component.source_scope;
        let key = source.subject.clone().filter(|key| key != ".");
        let subject = key.map(|key| Subject {
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
