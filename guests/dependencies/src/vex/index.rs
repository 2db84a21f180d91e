//! Index of a chunk of VEX statements by their references. Finds the statements that concern a
//! component, or an SBOM as a whole.

use std::collections::{BTreeMap, BTreeSet};

use super::context::{RelevantStatement, VexStatementIndex};
use super::document::{ImportedSbom, StatementChunk};
use super::statement::{Target, covers};
use super::versions::VersionApplicability;
use crate::ecosystem;
use crate::inventory::component::{ComponentMention, StoredComponent};
use crate::purl::Purl;
use crate::sbom::SbomSubject;

/// A mention of a component in an SBOM, with everything by which a VEX statement can name it.
pub(super) struct ComponentMentionInSbom<'a> {
    pub(super) component: &'a StoredComponent,
    pub(super) mention: &'a ComponentMention,
    pub(super) sbom: &'a ImportedSbom,
    /// Purl of the component; for a Go module with its whole path, then as in the SBOM if that has
    /// the end of the path as subpath. Empty if the component has no purl.
    pub(super) purls: Vec<Purl>,
}

impl ComponentMentionInSbom<'_> {
    /// Returns the purls by which a VEX statement can name a component; see [`Self::purls`].
    pub(super) fn purls_of(component: &StoredComponent) -> Vec<Purl> {
        let purl = component.purl.as_deref().and_then(|purl| Purl::parse(purl).ok());
        let Some(purl) = purl else { return Vec::new() };
        let module = ecosystem::module_purl(&purl, &component.name, component.version.as_deref());
        let as_written = (module != purl).then_some(purl);
        std::iter::once(module).chain(as_written).collect()
    }
}

/// A chunk of VEX statements, indexed by reference.
pub(super) struct IndexedStatementChunk {
    chunk: StatementChunk,
    by_reference: BTreeMap<String, Vec<usize>>,
    /// Indexes of the statements whose reference is a purl, each with that purl, by the purl's
    /// package (without version).
    by_package: BTreeMap<String, Vec<(Purl, usize)>>,
    products: Vec<usize>,
}

impl IndexedStatementChunk {
    pub(super) fn of(chunk: StatementChunk) -> Self {
        let mut new = Self {
            by_reference: BTreeMap::new(),
            by_package: BTreeMap::new(),
            products: Vec::new(),
            chunk,
        };
        for (at, (_, statement)) in new.chunk.statements.iter().enumerate() {
            let reference = match &statement.target {
                Target::Component(reference) => reference,
                Target::Link { element: Some(element), .. } => element,
                Target::Product | Target::Link { element: None, .. } => {
                    new.products.push(at);
                    continue;
                }
            };
            new.by_reference.entry(reference.clone()).or_default().push(at);
            if let Ok(purl) = Purl::parse(reference) {
                let purl = ecosystem::module_purl(&purl, "", purl.version.as_deref());
                new.by_package.entry(purl.package().to_string()).or_default().push((purl, at));
            }
        }
        new
    }

    fn found(
        &self,
        at: usize,
        holds: VersionApplicability,
        is_product: bool,
    ) -> Option<RelevantStatement<'_>> {
        let (place, statement) = self.chunk.statements.get(at)?;
        Some(RelevantStatement {
            origin: &self.chunk.origin,
            place: *place,
            statement,
            holds,
            is_product,
        })
    }

    /// Returns the VEX statements of this chunk that concern a mention of a component, including
    /// those on the whole product.
    pub(super) fn applicable<'a>(
        &'a self,
        named: &ComponentMentionInSbom<'_>,
        context: &VexStatementIndex,
    ) -> Vec<RelevantStatement<'a>> {
        let mut found = self.on_product(named.sbom);
        let mut seen = BTreeSet::new();
        let references = named.mention.reference.iter();
        let exact = references.filter_map(|reference| self.by_reference.get(reference)).flatten();
        for &at in exact.filter(|at| self.is_reference_of(**at, named.sbom)) {
            seen.insert(at);
        }
        seen.extend(self.naming_purl(named).filter(|at| self.is_purl_for(*at, named, context)));
        for at in seen {
            let Some((_, statement)) = self.chunk.statements.get(at) else { continue };
            let holds = match self.has_other_version(named.sbom) {
                true if !matches!(statement.target, Target::Link { .. }) => {
                    VersionApplicability::No
                }
                _ => statement.holds_for(named.component.version.as_deref()),
            };
            found.extend(self.found(at, holds, false));
        }
        found
    }

    /// Returns the indexes of the VEX statements whose purl covers the component's.
    fn naming_purl(&self, named: &ComponentMentionInSbom<'_>) -> impl Iterator<Item = usize> {
        named.purls.iter().enumerate().flat_map(move |(form, purl)| {
            let stated = self.by_package.get(&purl.package().to_string()).into_iter().flatten();
            // A purl without the subpath that ends the path of a module is of another module.
            let covering = stated.filter(move |(stated, _)| {
                covers(stated, purl) && (form == 0 || stated.subpath.is_some())
            });
            covering.map(|(_, at)| *at)
        })
    }

    /// Returns the VEX statements of this chunk that concern the product of an SBOM as a whole.
    pub(super) fn on_product<'a>(&'a self, sbom: &ImportedSbom) -> Vec<RelevantStatement<'a>> {
        let subject = sbom.subject.as_ref();
        let roots = subject.into_iter().flat_map(|subject| &subject.references);
        let by_root = roots.filter_map(|root| self.by_reference.get(root)).flatten();
        let products = self.products.iter().chain(by_root).collect::<BTreeSet<_>>();
        let version = subject.and_then(|subject| subject.version.as_deref());
        let one = |at: &usize| {
            let (_, statement) = self.chunk.statements.get(*at)?;
            let names_it = match &statement.target {
                Target::Link { serial, version, .. } => sbom.is_linked(*serial, *version),
                Target::Product | Target::Component(_) => sbom.is_of(&self.chunk.origin),
            };
            let is_other = statement.versions.is_empty()
                && statement.target == Target::Product
                && self.has_other_version(sbom);
            let holds = if is_other {
                VersionApplicability::No
            } else {
                statement.holds_for_product(version)
            };
            names_it.then(|| self.found(*at, holds, true)).flatten()
        };
        products.into_iter().filter_map(one).collect()
    }

    /// Whether the reference of the VEX statement at index `at` refers to an element of this SBOM.
    fn is_reference_of(&self, at: usize, sbom: &ImportedSbom) -> bool {
        let origin = &self.chunk.origin;
        match self.chunk.statements.get(at).map(|(_, statement)| &statement.target) {
            Some(Target::Link { serial, version, .. }) => sbom.is_linked(*serial, *version),
            Some(Target::Component(_)) => {
                let names_none = origin.subject.as_ref().is_none_or(|subject| subject.is_weak);
                sbom.is_of(origin) || (names_none && sbom.is_only)
            }
            Some(Target::Product) | None => false,
        }
    }

    /// Whether the purl in the VEX statement at index `at` refers to components of this SBOM. If
    /// the inventory has the product of the statement's document, only to that product's
    /// components; otherwise to all.
    fn is_purl_for(
        &self,
        at: usize,
        named: &ComponentMentionInSbom<'_>,
        context: &VexStatementIndex,
    ) -> bool {
        let origin = &self.chunk.origin;
        match self.chunk.statements.get(at).map(|(_, statement)| &statement.target) {
            Some(Target::Link { serial, version, .. }) => named.sbom.is_linked(*serial, *version),
            Some(Target::Component(_)) => {
                named.sbom.is_of(origin) || !context.has_subject(origin, named.component.audit_id)
            }
            Some(Target::Product) | None => false,
        }
    }

    /// Whether the VEX statements of this chunk are about another version of the SBOM's subject.
    fn has_other_version(&self, sbom: &ImportedSbom) -> bool {
        let version =
            |subject: Option<&'_ SbomSubject>| subject.and_then(|subject| subject.version.clone());
        let origin = &self.chunk.origin;
        match (version(origin.subject.as_ref()), version(sbom.subject.as_ref())) {
            (Some(ours), Some(theirs)) => sbom.is_of(origin) && ours != theirs,
            _ => false,
        }
    }
}
