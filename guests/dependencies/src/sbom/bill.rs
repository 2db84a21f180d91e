//! A parsed SBOM: mentions of packages, their dependencies, and the components that result from
//! merging mentions.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use area_sdk::prelude::*;

use super::identity;
use super::references::ReferenceMap;
use super::subject::SbomSubject;
use super::{Component, Format, ReportedVulnerability, Scope};
use crate::ecosystem;
use crate::text::counted;
use crate::vex::{Statement, VersionApplicability, VexState};

/// Maximum number of dependencies stored with one component.
const MAX_DEPENDENCIES: usize = 1_000;
/// Maximum number of references to further mentions that are stored with one component.
const MAX_REFERENCES: usize = 100;
/// Maximum number of purls that one warning lists.
const MOST_LISTED: usize = 3;

/// A parsed SBOM.
#[derive(Debug)]
pub(crate) struct Sbom<'a> {
    pub(crate) format: Format,
    pub(crate) spec_version: String,
    /// CycloneDX serial number, and version of the document under that number; `None` for SPDX and
    /// for documents without one.
    pub(crate) serial: Option<(Uuid, u64)>,
    /// Product that the SBOM describes; `None` if the file does not name it.
    pub(crate) subject: Option<SbomSubject>,
    /// Tool that created the SBOM, with its version: `syft 1.2.3`.
    pub(crate) tool: Option<String>,
    pub(crate) created_at: Option<Timestamp>,
    pub(crate) graph: GraphCompleteness,
    /// Whether the path of some Go module in the SBOM has upper-case letters, which proves that the
    /// tool that created the SBOM keeps case.
    pub(crate) case_known: bool,
    /// Whether the SBOM names the source package of at least one package.
    names_sources: bool,
    /// Warnings about content of the SBOM that is ignored.
    pub(crate) warnings: Vec<String>,
    /// Whether the SBOM file is a VEX document: it has `vulnerabilities`, even if empty, and no
    /// components.
    pub(crate) is_vex: bool,
    /// VEX statements in the document, in the order of the file.
    pub(crate) statements: Vec<Statement>,
    mentions: Vec<PackageMention<'a>>,
    /// Index in `mentions` by the mention's reference and by its purl.
    references: ReferenceMap<'a, usize>,
    edges: DependencyEdges<'a>,
    /// References of the direct dependencies of the product that the SBOM describes.
    direct: ReferenceMap<'a, ()>,
    /// Vulnerabilities that the SBOM reports for a mention, by index in `mentions`.
    reported: BTreeMap<usize, Vec<ReportedVulnerability>>,
    /// Limitations about reported vulnerabilities that are only assumed to affect a version, by
    /// index of the mention in `mentions`.
    assumed: BTreeMap<usize, Vec<String>>,
    /// For each component, the index in `mentions` of its first mention.
    firsts: Vec<usize>,
    /// Indexes in `mentions` of a component's further mentions, by index of the component.
    others: BTreeMap<usize, Vec<usize>>,
    /// Index of the component to which a further mention belongs, by index in `mentions`. First
    /// mentions are not included.
    repeats: BTreeMap<usize, usize>,
}

/// Completeness of the dependency graph in an SBOM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GraphCompleteness {
    /// The SBOM has no dependencies.
    Absent,
    /// The SBOM has dependencies, but not those of the product that it describes. In CycloneDX, the
    /// product may have a node without dependencies although the SBOM has components: tools write
    /// that if they do not know them.
    Rootless,
    /// The SBOM has dependencies, including those of the product that it describes.
    Rooted,
}

impl GraphCompleteness {
    /// Returns the completeness of an SBOM's graph. `of_product` has the dependencies in each node
    /// of the product that the SBOM describes.
    fn of(found: &ParsedSbom<'_>, of_product: &[&Vec<Cow<'_, str>>]) -> Self {
        // SPDX has the explicit `NONE` for a product without dependencies.
        let may_be_empty = found.format == Format::Spdx || found.mentions.is_empty();
        let knows_some = of_product.iter().any(|on| may_be_empty || !on.is_empty());
        match (found.edges.is_empty(), knows_some) {
            (true, _) => Self::Absent,
            (false, false) => Self::Rootless,
            (false, true) => Self::Rooted,
        }
    }
}

/// One mention of a package in an SBOM; several mentions may be one component.
#[derive(Debug)]
pub(super) struct PackageMention<'a> {
    /// False for an operating system, container, file, device or data.
    pub(super) is_package: bool,
    pub(super) reference: Option<Cow<'a, str>>,
    pub(super) group: Option<Cow<'a, str>>,
    pub(super) name: Cow<'a, str>,
    pub(super) version: Option<Cow<'a, str>>,
    pub(super) purl: Option<Cow<'a, str>>,
    /// Purls after the first one; the component is not compared with advisories for them.
    pub(super) further_purls: Vec<Cow<'a, str>>,
    /// Source package of the mentioned package, if the SBOM names it outside of the purl.
    pub(super) source_package: Option<String>,
    pub(super) scope: Option<Scope>,
}

/// Dependency graph of an SBOM: references of a package's direct dependencies, by reference of the
/// package.
pub(super) type DependencyEdges<'a> = ReferenceMap<'a, Vec<Cow<'a, str>>>;

/// Content of an SBOM as the parser of its standard (CycloneDX or SPDX) returns it.
pub(super) struct ParsedSbom<'a> {
    pub(super) format: Format,
    pub(super) spec_version: String,
    pub(super) serial: Option<(Uuid, u64)>,
    pub(super) subject: Option<SbomSubject>,
    /// References, in the dependency graph, of the product that the SBOM describes.
    pub(super) roots: Vec<Cow<'a, str>>,
    pub(super) tool: Option<String>,
    pub(super) created_at: Option<Timestamp>,
    pub(super) mentions: Vec<PackageMention<'a>>,
    pub(super) edges: DependencyEdges<'a>,
    pub(super) warnings: Vec<String>,
}

impl<'a> Sbom<'a> {
    pub(super) fn new(found: ParsedSbom<'a>) -> Self {
        let mut references = ReferenceMap::default();
        for (at, mention) in found.mentions.iter().enumerate() {
            if let Some(reference) = &mention.reference {
                references.or_insert(reference.clone(), at);
            }
        }
        // Some tools reference a component by its purl although it has another reference.
        for (at, mention) in found.mentions.iter().enumerate() {
            if let Some(purl) = &mention.purl {
                references.or_insert(purl.clone(), at);
            }
        }
        let (firsts, others) = grouped(&found.mentions);
        let of_component = |(at, places): (&usize, &Vec<usize>)| {
            let at = *at;
            places.iter().map(move |place| (*place, at)).collect::<Vec<_>>()
        };
        let repeats = others.iter().flat_map(of_component).collect();
        let known: Vec<&Vec<Cow<'_, str>>> =
            found.roots.iter().filter_map(|root| found.edges.get(root)).collect();
        let graph = GraphCompleteness::of(&found, &known);
        let mut direct = ReferenceMap::default();
        for reference in known.into_iter().flatten() {
            direct.or_insert(reference.clone(), ());
        }
        Self {
            format: found.format,
            spec_version: found.spec_version,
            serial: found.serial,
            subject: found.subject,
            tool: found.tool,
            created_at: found.created_at,
            graph,
            case_known: found.mentions.iter().any(PackageMention::shows_case),
            names_sources: found.mentions.iter().any(PackageMention::names_source),
            warnings: found.warnings,
            is_vex: false,
            statements: Vec::new(),
            mentions: found.mentions,
            references,
            edges: found.edges,
            direct,
            reported: BTreeMap::new(),
            assumed: BTreeMap::new(),
            firsts,
            others,
            repeats,
        }
    }

    /// Adds a reported vulnerability to the component with this reference or purl, if the statement
    /// applies to the component's version. Returns the component's name and version as the only
    /// item; `None` if there is no such component, or if a VEX statement does not apply.
    pub(super) fn report(
        &mut self,
        reference: &str,
        reported: &ReportedVulnerability,
        statement: &Statement,
    ) -> Option<Vec<String>> {
        let place = self.references.get(reference).copied()?;
        // A purl refers to every mention of the package, a `bom-ref` to one mention.
        let all = if reference.starts_with("pkg:") { self.component_of(place) } else { None };
        let places = all.map_or_else(|| vec![place], |at| self.places_of(at).collect());
        let mut holds = false;
        for place in &places {
            let version = self.mentions.get(*place).and_then(PackageMention::version);
            match statement.holds_for(version.as_deref()) {
                VersionApplicability::No => continue,
                VersionApplicability::Assumed(_) if statement.state.ends() => continue,
                VersionApplicability::Yes => {}
                VersionApplicability::Assumed(why) => {
                    self.assumed.entry(*place).or_default().push(format!(
                        "{} is assumed to affect this version: the SBOM gives {why}.",
                        reported.id
                    ));
                }
            }
            holds = true;
            let list = self.reported.entry(*place).or_default();
            if !list.contains(reported) {
                list.push(reported.clone());
            }
        }
        if !holds && reported.state.is_some() {
            return None;
        }
        let mention = self.mentions.get(place)?;
        let version = mention.version.as_deref().map(|version| format!("@{version}"));
        Some(vec![identity::bounded(&format!("{}{}", mention.name, version.unwrap_or_default()))])
    }

    /// Returns the index of the component to which the mention at index `place` belongs.
    fn component_of(&self, place: usize) -> Option<usize> {
        self.firsts.binary_search(&place).ok().or_else(|| self.repeats.get(&place).copied())
    }

    /// Returns the indexes of a component's mentions in `mentions`, first mention first.
    fn places_of(&self, at: usize) -> impl Iterator<Item = usize> {
        let others = self.others.get(&at).into_iter().flatten();
        self.firsts.get(at).into_iter().chain(others).copied()
    }

    /// Returns the warning about packages whose purls have no ecosystem in OSV; `None` if there are
    /// none.
    pub(crate) fn unmatchable_warning(&self) -> Option<String> {
        let firsts = self.firsts.iter().filter_map(|at| self.mentions.get(*at));
        let mut purls = firsts.filter_map(PackageMention::unmatchable_purl);
        let listed: Vec<String> = purls.by_ref().take(MOST_LISTED).collect();
        let beyond = purls.count();
        let more = if beyond > 0 { format!(", and {beyond} more") } else { String::new() };
        let components = counted(listed.len() + beyond, "component");
        let listed = (!listed.is_empty()).then(|| listed.join(", "))?;
        Some(format!(
            "{components} cannot be compared with the ranges of versions in advisories: {listed}{more}."
        ))
    }

    /// Whether the SBOM has no components.
    pub(crate) fn is_empty(&self) -> bool {
        self.firsts.is_empty()
    }

    /// Returns the number of components, each package counted once.
    pub(crate) fn len(&self) -> usize {
        self.firsts.len()
    }

    /// Returns the components with these indexes, in the order of the SBOM. All mentions of a
    /// package are one component.
    pub(crate) fn components(&self, range: Range<usize>) -> Vec<Component> {
        let range = range.start.min(self.len())..range.end.min(self.len());
        range.map(|at| self.component(at)).collect()
    }

    fn component(&self, at: usize) -> Component {
        let first = self.firsts.get(at).copied().unwrap_or_default();
        let mut component = self.of_mention(first);
        for other in self.others.get(&at).into_iter().flatten() {
            component.merge(self.of_mention(*other));
        }
        component.other_references.sort();
        component.other_references.dedup();
        component.bound();
        component
    }

    fn of_mention(&self, at: usize) -> Component {
        let mention = &self.mentions[at];
        let reference = mention.reference.as_deref();
        let on = reference.and_then(|reference| self.edges.get(reference)).into_iter().flatten();
        let mut named = mention.component();
        named.limitations.extend(self.assumed.get(&at).into_iter().flatten().cloned());
        named.limitations.extend(mention.further_purls_limitation());
        let needs_source = named.purl.as_ref().is_some_and(ecosystem::needs_source);
        Component {
            reference: reference.map(identity::bounded),
            source_package: mention.source_package.as_deref().map(identity::bounded),
            source_unknown: needs_source && !self.names_sources,
            scope: mention.scope,
            direct: reference.is_some_and(|reference| self.direct.get(reference).is_some()),
            dependencies: on.map(|reference| self.name_of(reference)).collect(),
            reported: self.reported.get(&at).cloned().unwrap_or_default(),
            ..named
        }
    }

    /// Returns the canonical purl of the referenced component; without one, the reference itself.
    fn name_of(&self, reference: &str) -> String {
        let mention = self.references.get(reference).and_then(|at| self.mentions.get(*at));
        let purl = mention.and_then(PackageMention::parsed_purl);
        purl.map_or_else(|| identity::bounded(reference), |purl| purl.to_string())
    }
}

/// Returns the index of each component's first mention, and the indexes of its further mentions by
/// component.
fn grouped(mentions: &[PackageMention<'_>]) -> (Vec<usize>, BTreeMap<usize, Vec<usize>>) {
    let mut places = ReferenceMap::default();
    let (mut firsts, mut others) = (Vec::new(), BTreeMap::<usize, Vec<usize>>::new());
    for (at, mention) in mentions.iter().enumerate() {
        let place = *places.or_insert(mention.identity().into(), firsts.len());
        if place == firsts.len() {
            firsts.push(at);
        } else {
            others.entry(place).or_default().push(at);
        }
    }
    (firsts, others)
}

impl Component {
    /// Merges another mention of the same package into this component.
    fn merge(&mut self, mut other: Self) {
        self.direct |= other.direct;
        self.source_package = self.source_package.take().or(other.source_package);
        other.limitations.extend(identity::merge_versions(&mut self.version, other.version.take()));
        self.scope = match (self.scope, other.scope) {
            (Some(ours), Some(theirs)) => Some(ours.min(theirs)),
            (ours, theirs) => ours.or(theirs),
        };
        self.dependencies.extend(other.dependencies);
        if self.other_references.len() < MAX_REFERENCES {
            self.other_references.push(other.reference);
        } else {
            self.has_all_references = false;
        }
        self.keep_common_endings(&mut other.reported);
        identity::add_new(&mut self.reported, other.reported);
        identity::add_new(&mut self.limitations, other.limitations);
    }

    /// Removes VEX statements that would end a match but are not about all mentions of the
    /// component, from this component and from `other`. Adds a limitation for each.
    fn keep_common_endings(&mut self, other: &mut Vec<ReportedVulnerability>) {
        let ends = |reported: &ReportedVulnerability| reported.state.is_some_and(VexState::ends);
        let (ours, theirs) = (self.reported.clone(), other.clone());
        let mut dropped = Vec::new();
        for (list, common) in [(&mut self.reported, &theirs), (other, &ours)] {
            let partial =
                |reported: &ReportedVulnerability| ends(reported) && !common.contains(reported);
            dropped.extend(list.extract_if(.., |reported| partial(reported)));
        }
        for reported in dropped {
            self.limitations.push(format!(
                "The SBOM's statement on {} is of one of several mentions of this package, so it \
                 is not applied.",
                reported.id
            ));
        }
    }

    fn bound(&mut self) {
        self.dependencies.sort();
        self.dependencies.dedup();
        if self.dependencies.len() > MAX_DEPENDENCIES {
            let count = self.dependencies.len();
            self.limitations
                .push(format!("Of {count} dependencies the first {MAX_DEPENDENCIES} are listed."));
            self.dependencies.truncate(MAX_DEPENDENCIES);
        }
    }
}
