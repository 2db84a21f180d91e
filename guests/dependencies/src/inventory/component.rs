//! Stored components: one document for each package of a repository's branch in each audit.
//! `latest` marks the components of the branch's latest audit with an SBOM. Members by which lists
//! filter or sort are at the top level, so that every list uses an index.

use area_sdk::prelude::*;

use crate::ecosystem::Package;
use crate::matching::AdvisoryMatch;
use crate::osv::SeverityBand;
use crate::purl::Purl;
use crate::sbom::{Component, Format, Scope, add_new, merge_versions};
use crate::text::bounded;
use crate::vex::VexState;

/// Maximum number of advisories that a component stores and that lists return with it.
pub(crate) const SHOWN: usize = 50;

/// A package of an audit's SBOMs as stored, with the advisories that affect it.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredComponent {
    pub(crate) latest: bool,
    pub(crate) repository_id: Uuid,
    pub(crate) branch_ref: Option<String>,
    pub(crate) audit_id: Uuid,
    pub(crate) name: String,
    pub(crate) ecosystem: Option<String>,
    pub(crate) version: Option<String>,
    /// Whether the tool that created the component's SBOM keeps upper case in paths of Go modules.
    #[serde(default)]
    pub(crate) case_known: bool,
    /// Name and purl of the component, for the filter `q`.
    #[schemars(extend("x-searched" = {"by": "name", "unless": ["repository_id", "audit_id"]}))]
    pub(crate) search_text: String,
    /// Key that the component shares with the advisory entries of its package; null without a purl.
    pub(crate) package_key: Option<String>,
    /// Identity of the package in the repository's branch, equal in all audits: a lower-case hex
    /// SHA-256.
    pub(crate) identity: String,
    pub(crate) purl: Option<String>,
    /// Source package of a distribution's package, if the SBOM names it outside of the purl;
    /// otherwise `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source_package: Option<String>,
    /// Whether advisories for the component name source packages, while the SBOM names none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) source_unknown: bool,
    pub(crate) commit_sha: Option<String>,
    pub(crate) component_ref: Option<String>,
    pub(crate) dependencies: Vec<String>,
    pub(crate) direct: bool,
    pub(crate) scope: Option<Scope>,
    pub(crate) source_scope: SourceSbom,
    /// Lower-case hex SHA-256 of the SBOM that contains the component.
    pub(crate) artifact_sha256: String,
    /// `sha256:` and the digest of the image or file that the component's SBOM describes.
    pub(crate) subject_digest: Option<String>,
    pub(crate) scanner_run_id: Uuid,
    pub(crate) observed_at: Timestamp,
    pub(crate) reported: Vec<ReportedAdvisory>,
    /// Limitations of the SBOM that concern this component.
    pub(crate) limitations: Vec<String>,
    /// Limitations about advisories that could not be compared with the component.
    pub(crate) open_questions: Vec<String>,
    /// All advisories that affect the component, or the most severe ones; see `advisory_count`.
    pub(crate) advisories: Vec<AdvisoryMatch>,
    /// Keys of all names of the advisories that affect the component, sorted, for queries. Empty if
    /// `advisories` has only some of them.
    pub(crate) advisory_keys: Vec<String>,
    /// Ids of advisories that do not affect the component according to a VEX statement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ended: Vec<String>,
    /// Further mentions of the component's package, in the same SBOM and in others of the audit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) other_mentions: Vec<ComponentMention>,
    /// Number of all advisories that affect the component, if `advisories` has only some; the
    /// component's stored matches then contain all. `None` if `advisories` has all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) advisory_count: Option<usize>,
    /// Whether the import still stores matches of the component in further steps.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) unfinished: bool,
    /// Number of times that an assessment of the component in several steps was requested; `None`
    /// if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) revision: Option<u64>,
}

/// A mention of a component in an SBOM of the audit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Mention")]
pub(crate) struct ComponentMention {
    pub(crate) artifact_sha256: String,
    /// Reference of the component in this SBOM; `None` if the mention has none, or it was not
    /// stored.
    pub(crate) reference: Option<String>,
}

document!(StoredComponent, "components");

/// The SBOM that contains a component, with its format, tool and file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SourceScope")]
pub(crate) struct SourceSbom {
    pub(crate) format: Format,
    pub(crate) spec_version: String,
    /// Key of the product that the SBOM describes: its purl without version, or its name.
    pub(crate) subject: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) filename: String,
    pub(crate) upload_id: Uuid,
}

/// A vulnerability that a scanner or SBOM reports for a component.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ReportedAdvisory {
    pub(crate) advisory_id: String,
    pub(crate) aliases: Vec<String>,
    pub(crate) source_tool: String,
    /// Lower-case hex SHA-256 of the document that reports the vulnerability for the component.
    pub(crate) artifact_sha256: String,
    /// The state in the VEX statement about the vulnerability in the SBOM; `None` if the SBOM only
    /// reports the vulnerability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<VexState>,
    /// The state and its justification, if a VEX statement in the SBOM ends the match; otherwise
    /// `None`.
    pub(crate) dismissed: Option<String>,
    /// Severity of the vulnerability in the document that reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) severity: Option<SeverityBand>,
}

impl ReportedAdvisory {
    /// Returns the state of the VEX statement about the vulnerability. Documents of older versions
    /// only have `dismissed`.
    pub(crate) fn stated(&self) -> Option<VexState> {
        self.state.or(self.dismissed.as_ref().map(|_| VexState::NotAffected))
    }

    /// Whether the report adds a vulnerability to the component: no VEX statement in the SBOM ends
    /// its match.
    pub(crate) fn is_open(&self) -> bool {
        !self.stated().is_some_and(VexState::ends)
    }
}

/// Properties that all components of an imported SBOM share: audit, repository, commit, SBOM file.
#[derive(Clone, Debug)]
pub(crate) struct SbomImportProperties {
    pub(crate) latest: bool,
    pub(crate) repository_id: Uuid,
    pub(crate) branch_ref: Option<String>,
    pub(crate) commit_sha: Option<String>,
    pub(crate) audit_id: Uuid,
    pub(crate) scanner_run_id: Uuid,
    pub(crate) artifact_sha256: String,
    pub(crate) subject_digest: Option<String>,
    pub(crate) observed_at: Timestamp,
    pub(crate) source_scope: SourceSbom,
    /// Whether the tool that created the SBOM keeps upper case in paths of Go modules.
    pub(crate) case_known: bool,
    /// Limitations that concern all components of the SBOM.
    pub(crate) limitations: Vec<String>,
}

impl StoredComponent {
    /// Creates a component of an imported SBOM. The caller adds the advisories.
    pub(crate) fn new(run: &SbomImportProperties, component: Component, identity: String) -> Self {
        let source = component.source_package.as_deref();
        let package = component.purl.as_ref();
        let package = package.map(|purl| Package::of_component(purl, &component.name, source));
        let purl = component.purl.as_ref().map(ToString::to_string);
        let reported = component.reported.into_iter().map(|reported| ReportedAdvisory {
            advisory_id: reported.id,
            aliases: reported.aliases,
            source_tool: reported.tool.unwrap_or_else(|| "sbom".to_owned()),
            artifact_sha256: run.artifact_sha256.clone(),
            dismissed: reported
                .state
                .filter(|state| state.ends())
                .map(|state| state.verdict(reported.justification.as_deref())),
            state: reported.state,
            severity: reported.severity,
        });
        let beyond = (!component.has_all_references).then_some(None);
        let other_mentions = component.other_references.into_iter().chain(beyond);
        let other_mentions = other_mentions.map(|reference| ComponentMention {
            artifact_sha256: run.artifact_sha256.clone(),
            reference,
        });
        Self {
            latest: run.latest,
            repository_id: run.repository_id,
            branch_ref: run.branch_ref.clone(),
            audit_id: run.audit_id,
            search_text: search_text(&component.name, purl.as_deref()),
            name: component.name,
            ecosystem: package.as_ref().map(|package| package.ecosystem.clone().into_owned()),
            version: component.version,
            case_known: run.case_known,
            package_key: package.as_ref().map(Package::key),
            identity,
            purl,
            source_package: component.source_package,
            source_unknown: component.source_unknown,
            commit_sha: run.commit_sha.clone(),
            component_ref: component.reference,
            dependencies: component.dependencies,
            direct: component.direct,
            scope: component.scope,
            source_scope: run.source_scope.clone(),
            artifact_sha256: run.artifact_sha256.clone(),
            subject_digest: run.subject_digest.clone(),
            scanner_run_id: run.scanner_run_id,
            observed_at: run.observed_at,
            reported: reported.collect(),
            limitations: run.limitations.iter().cloned().chain(component.limitations).collect(),
            open_questions: Vec::new(),
            advisories: Vec::new(),
            advisory_keys: Vec::new(),
            ended: Vec::new(),
            other_mentions: other_mentions.collect(),
            advisory_count: None,
            unfinished: false,
            revision: None,
        }
    }

    /// Returns every mention of the component in SBOMs of its audit, the first mention first.
    pub(crate) fn mentions(&self) -> impl Iterator<Item = ComponentMention> {
        let first = ComponentMention {
            artifact_sha256: self.artifact_sha256.clone(),
            reference: self.component_ref.clone(),
        };
        std::iter::once(first).chain(self.other_mentions.iter().cloned())
    }

    /// Merges the same package of another SBOM of the audit into this component. The caller
    /// assesses the result.
    pub(crate) fn merge(&mut self, other: Self) {
        let mentions = other.mentions().collect();
        add_new(&mut self.other_mentions, mentions);
        self.direct |= other.direct;
        self.case_known |= other.case_known;
        self.source_unknown &= other.source_unknown;
        if self.source_package.is_none() && other.source_package.is_some() {
            self.source_package = other.source_package;
            self.package_key = other.package_key;
        }
        self.scope = match (self.scope, other.scope) {
            (Some(ours), Some(theirs)) => Some(ours.min(theirs)),
            (ours, theirs) => ours.or(theirs),
        };
        add_new(&mut self.dependencies, other.dependencies);
        self.dependencies.sort();
        add_new(&mut self.reported, other.reported);
        add_new(&mut self.limitations, other.limitations);
        let limitation = merge_versions(&mut self.version, other.version);
        add_new(&mut self.limitations, limitation.into_iter().collect());
    }

    /// Returns the package in the form in which it is compared with advisories; `None` without a
    /// purl.
    pub(crate) fn package(&self) -> Option<Package> {
        let purl = Purl::parse(self.purl.as_deref()?).ok()?;
        let mut package = Package::of_component(&purl, &self.name, self.source_package.as_deref());
        // If the purl has no version, use the component's.
        package.version = package.version.or_else(|| self.version.clone());
        Some(package)
    }

    /// Returns all limitations of the component: those of its SBOM, and those about its advisories.
    pub(crate) fn all_limitations(&self) -> Vec<String> {
        let limitations = self.limitations.iter().chain(&self.open_questions).cloned();
        limitations.chain(self.more_advisories()).collect()
    }

    /// Returns the number of advisories that affect the component.
    pub(crate) fn count_advisories(&self) -> usize {
        self.advisory_count.unwrap_or(self.advisories.len())
    }

    fn more_advisories(&self) -> Option<String> {
        let all = self.count_advisories();
        (all > SHOWN).then(|| {
            format!(
                "{all} advisories affect this package; the {SHOWN} most severe are listed. GET \
                 /v1/workspaces/{{workspace_id}}/dependencies/components/{{id}}/advisories lists \
                 all."
            )
        })
    }

    /// Removes members of the component that lists of dependencies do not return, to save memory.
    pub(crate) fn slim(&mut self) {
        self.advisory_count = Some(self.count_advisories());
        self.advisories.truncate(SHOWN);
        self.advisories.shrink_to_fit();
        self.advisory_keys = Vec::new();
        self.reported = Vec::new();
    }

    /// Returns the approximate size of the component in memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let texts = |texts: &[String]| texts.iter().map(|text| text.len() + 24).sum::<usize>();
        2_000
            + 300 * (self.advisories.len() + self.reported.len())
            + texts(&self.advisory_keys)
            + texts(&self.dependencies)
            + texts(&self.limitations)
            + texts(&self.open_questions)
            + texts(&self.ended)
            + 120 * self.other_mentions.len()
    }
}

/// Maximum size of a component's `search_text`, in bytes.
const MAX_SEARCH_TEXT: usize = 4_600;

fn search_text(name: &str, purl: Option<&str>) -> String {
    bounded(&format!("{name}\n{}", purl.unwrap_or_default()), MAX_SEARCH_TEXT)
}
