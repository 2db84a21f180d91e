//! VEX statements that may concern some components, with the SBOMs of these components.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};

use super::document::{ImportedSbom, StatementChunk, StatementOrigin, branch_key};
use super::index::{ComponentMentionInSbom, IndexedStatementChunk};
use super::statement::Statement;
use super::versions::VersionApplicability;
use crate::documents::{KEYS, count_by_key};
use crate::inventory::component::{ComponentMention, StoredComponent};

/// Maximum number of [`StatementChunk`]s in memory for one batch of components, unless a single
/// component has more.
const MOST_CHUNKS: usize = 300;
/// Number of [`StatementChunk`]s in one page of a query; each may have 100 statements.
const PAGE: u32 = 50;

/// VEX statements that may concern some components, with the SBOMs of these components.
#[derive(Default)]
pub(crate) struct VexStatementIndex {
    /// SBOMs that the audits of the components imported, by document id.
    sboms: BTreeMap<String, ImportedSbom>,
    /// Chunks of VEX statements by target key (a branch, or the serial number of an SBOM).
    targets: BTreeMap<String, Vec<IndexedStatementChunk>>,
    /// Number of documents that were read to build this index.
    pub(crate) read: usize,
}

/// A VEX statement that concerns a component or its product.
#[derive(Clone)]
pub(crate) struct RelevantStatement<'a> {
    pub(crate) origin: &'a StatementOrigin,
    /// Index of the VEX statement in its document.
    pub(crate) place: usize,
    pub(crate) statement: &'a Statement,
    /// Whether the VEX statement applies to the component's version. `No` if it concerns the
    /// component but not this version.
    pub(crate) holds: VersionApplicability,
    /// Whether the VEX statement is about the product of an SBOM as a whole.
    pub(crate) is_product: bool,
}

impl VexStatementIndex {
    /// Loads the VEX statements that may concern the first of these components, as many as fit into
    /// memory. Returns the number of components whose statements are loaded.
    pub(crate) fn load(
        scope: &Scope,
        components: &[&StoredComponent],
    ) -> Result<(Self, usize), DocumentError> {
        let mut context = Self::default();
        context.load_sboms(scope, components.iter().map(|component| component.audit_id))?;
        let keys: Vec<Vec<String>> =
            components.iter().map(|component| context.target_keys(component)).collect();
        let all = keys.iter().flatten().map(String::as_str);
        let counts = count_by_key::<StatementChunk>(scope, "target_key", all)?;
        let (mut budget, mut wanted, mut fits) = (MOST_CHUNKS, BTreeSet::new(), 0);
        for keys in &keys {
            let new: BTreeSet<&String> =
                keys.iter().filter(|key| counts.contains_key(*key)).collect();
            let cost = new.difference(&wanted).filter_map(|key| counts.get(*key)).sum::<usize>();
            if cost > budget && fits > 0 {
                break;
            }
            budget = budget.saturating_sub(cost);
            wanted.extend(new);
            fits += 1;
        }
        context.load_chunks(scope, wanted)?;
        Ok((context, fits))
    }

    /// Returns an index of the VEX statements in these chunks, whichever components they concern.
    pub(crate) fn of_chunks(chunks: Vec<StatementChunk>) -> Self {
        let mut context = Self::default();
        chunks.into_iter().for_each(|chunk| context.add(chunk));
        context
    }

    fn add(&mut self, chunk: StatementChunk) {
        let key = chunk.target_key.clone();
        self.targets.entry(key).or_default().push(IndexedStatementChunk::of(chunk));
    }

    /// Loads the SBOMs that these audits imported into the index.
    pub(crate) fn load_sboms(
        &mut self,
        scope: &Scope,
        audits: impl Iterator<Item = Uuid>,
    ) -> Result<(), DocumentError> {
        let audits: Vec<Uuid> = audits.collect::<BTreeSet<_>>().into_iter().collect();
        for audits in audits.chunks(KEYS) {
            let sboms = scope.documents::<ImportedSbom>().query();
            let sboms = sboms.one_of("audit_id", audits.iter().copied());
            for sbom in sboms.ascending("audit_id").limit(500).all() {
                let sbom = sbom?;
                self.read += 1;
                self.sboms.insert(sbom.id, sbom.value);
            }
        }
        Ok(())
    }

    fn load_chunks(&mut self, scope: &Scope, keys: BTreeSet<&String>) -> Result<(), DocumentError> {
        let keys: Vec<&String> = keys.into_iter().collect();
        for keys in keys.chunks(KEYS) {
            let chunks = scope.documents::<StatementChunk>().query();
            let chunks = chunks.one_of("target_key", keys.iter().copied());
            for chunk in chunks.ascending("target_key").limit(PAGE).all() {
                self.read += 1;
                self.add(chunk?.value);
            }
        }
        Ok(())
    }

    /// Returns the imported SBOM with this SHA-256, which mentions the component; derived from the
    /// component if the SBOM is not stored.
    pub(super) fn sbom<'a>(
        &'a self,
        component: &StoredComponent,
        artifact_sha256: &str,
    ) -> Cow<'a, ImportedSbom> {
        let id = ImportedSbom::id(component.audit_id, artifact_sha256);
        match self.sboms.get(&id) {
            Some(sbom) => Cow::Borrowed(sbom),
            None => Cow::Owned(ImportedSbom::of_component(component, artifact_sha256)),
        }
    }

    /// Returns the target keys of the chunks whose VEX statements may concern a component: its
    /// branch, and the serial numbers of its SBOMs.
    fn target_keys(&self, component: &StoredComponent) -> Vec<String> {
        let branch = branch_key(component.repository_id, component.branch_ref.as_deref());
        let serials: BTreeSet<String> = component
            .mentions()
            .filter_map(|mention| self.sbom(component, &mention.artifact_sha256).serial_key())
            .collect();
        std::iter::once(branch).chain(serials).collect()
    }

    /// Returns the VEX statements that concern a mention of a component.
    pub(super) fn applicable<'a>(
        &'a self,
        component: &StoredComponent,
        mention: &ComponentMention,
    ) -> Vec<RelevantStatement<'a>> {
        if self.targets.is_empty() {
            return Vec::new();
        }
        let sbom = self.sbom(component, &mention.artifact_sha256);
        let purls = ComponentMentionInSbom::purls_of(component);
        let named = ComponentMentionInSbom { component, mention, sbom: &sbom, purls };
        let branch = branch_key(component.repository_id, component.branch_ref.as_deref());
        self.chunks(branch, &sbom).flat_map(|chunk| chunk.applicable(&named, self)).collect()
    }

    /// Returns the VEX statements that concern any mention of a component.
    pub(crate) fn all_applicable<'a>(
        &'a self,
        component: &StoredComponent,
    ) -> Vec<RelevantStatement<'a>> {
        component.mentions().flat_map(|mention| self.applicable(component, &mention)).collect()
    }

    /// Returns those of an audit's SBOMs that were loaded into the index.
    pub(crate) fn sboms_of(&self, audit_id: Uuid) -> impl Iterator<Item = &ImportedSbom> {
        let from = ImportedSbom::id(audit_id, "");
        let sboms = self.sboms.range(from..).map(|(_, sbom)| sbom);
        sboms.take_while(move |sbom| sbom.audit_id == audit_id)
    }

    /// Returns the VEX statements that concern the product of an SBOM as a whole.
    pub(crate) fn on_product<'a>(&'a self, sbom: &ImportedSbom) -> Vec<RelevantStatement<'a>> {
        let branch = branch_key(sbom.repository_id, sbom.branch_ref.as_deref());
        self.chunks(branch, sbom).flat_map(|chunk| chunk.on_product(sbom)).collect()
    }

    /// Returns the chunks of VEX statements about the inventory of a branch, and of those that link
    /// to an SBOM.
    fn chunks<'a>(
        &'a self,
        branch_key: String,
        sbom: &ImportedSbom,
    ) -> impl Iterator<Item = &'a IndexedStatementChunk> + use<'a> {
        let keys = std::iter::once(branch_key).chain(sbom.serial_key());
        keys.filter_map(move |key| self.targets.get(&key)).flatten()
    }

    /// Whether an audit imported an SBOM with the same subject as the VEX statements' document.
    pub(super) fn has_subject(&self, origin: &StatementOrigin, audit_id: Uuid) -> bool {
        self.sboms_of(audit_id).any(|sbom| sbom.is_of(origin))
    }
}
