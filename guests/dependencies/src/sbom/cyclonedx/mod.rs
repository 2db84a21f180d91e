//! Parser of CycloneDX 1.2 to 1.7 documents in JSON.

mod licenses;
mod model;
mod properties;
mod ratings;
mod vulnerabilities;

use std::borrow::Cow;

use area_sdk::text::name;

use self::model::{Bom, ComponentItem, ComponentType, Tools};
use super::bill::{DependencyEdges, PackageMention, ParsedSbom, Sbom};
use super::identity::bounded;
use super::subject::SbomSubject;
use super::{Format, Scope};
use crate::purl::Purl;
use crate::reading::{ImportFailure, UnparsedDocument};

pub(super) fn read(source: UnparsedDocument<'_>) -> Result<Sbom<'_>, ImportFailure> {
    let mut bom: Bom<'_> = source.json()?;
    bom.check()?;
    let mut root = bom.metadata.component.take();
    // Parts of the subject are its components.
    let parts = root.as_mut().map(|root| std::mem::take(&mut root.components.0));
    let mut mentions = Vec::new();
    flatten(parts.unwrap_or_default(), &mut mentions);
    if let Some(components) = &mut bom.components {
        flatten(std::mem::take(&mut components.0), &mut mentions);
    }
    let all = mentions.len();
    mentions.retain(|mention| !mention.name.trim().is_empty());
    let unnamed = all - mentions.len();
    let warning = format!("{unnamed} components without a name were skipped.");

    let tool = tool(&bom.metadata.tools);
    let subject = root.as_deref().map(subject).filter(|subject| !subject.key.is_empty());
    let roots = root.map(|root| roots(*root)).unwrap_or_default();
    let mut sbom = Sbom::new(ParsedSbom {
        format: Format::CycloneDx,
        spec_version: name(&bom.spec_version),
        serial: bom.serial_number.as_ref().map(|serial| (serial.0, bom.version())),
        subject,
        roots: roots.clone(),
        tool: tool.clone(),
        created_at: bom.metadata.timestamp,
        mentions,
        edges: edges(&mut bom),
        warnings: (unnamed > 0).then_some(warning).into_iter().collect(),
    });
    sbom.is_vex = sbom.is_empty() && bom.is_vex();
    vulnerabilities::report(&bom, &roots, tool.as_ref(), &mut sbom);
    Ok(sbom)
}

/// Appends components and the components nested in them to `into`, in the order of the SBOM.
fn flatten<'a>(components: Vec<ComponentItem<'a>>, into: &mut Vec<PackageMention<'a>>) {
    let mut waiting = vec![components.into_iter()];
    while let Some(list) = waiting.last_mut() {
        match list.next() {
            Some(mut item) => {
                let inner = std::mem::take(&mut item.components.0);
                into.push(mention(item));
                waiting.push(inner.into_iter());
            }
            None => {
                waiting.pop();
            }
        }
    }
}

fn mention(item: ComponentItem<'_>) -> PackageMention<'_> {
    let source_package = item.properties.source_package();
    let reference = item.bom_ref.map(|reference| reference.0);
    PackageMention {
        is_package: is_package(item.kind),
        reference: reference.or_else(|| item.purl.clone()),
        group: item.group,
        name: item.name,
        version: item.version,
        purl: item.purl,
        further_purls: Vec::new(),
        source_package,
        // The standard says: "If not specified, required should be assumed."
        scope: Some(item.scope.unwrap_or(Scope::Required)),
    }
}

fn is_package(component: ComponentType) -> bool {
    !matches!(
        component,
        ComponentType::Container
            | ComponentType::CryptographicAsset
            | ComponentType::Data
            | ComponentType::Device
            | ComponentType::File
            | ComponentType::MachineLearningModel
            | ComponentType::OperatingSystem
    )
}

fn edges<'a>(bom: &mut Bom<'a>) -> DependencyEdges<'a> {
    let mut edges = DependencyEdges::default();
    for dependency in std::mem::take(&mut bom.dependencies.0) {
        let on = dependency.depends_on.0.into_iter().map(|reference| reference.0);
        edges.or_insert(dependency.reference.0, Vec::new()).extend(on);
    }
    edges
}

/// Returns the references of the document's subject, one of which may occur in the dependency
/// graph.
fn roots(root: ComponentItem<'_>) -> Vec<Cow<'_, str>> {
    root.bom_ref.map(|reference| reference.0).into_iter().chain(root.purl).collect()
}

fn subject(root: &ComponentItem<'_>) -> SbomSubject {
    let purl = root.purl.as_deref().and_then(|purl| Purl::parse(purl).ok());
    let name = [root.group.as_deref(), Some(&root.name)].into_iter().flatten();
    let name = name.filter(|part| !part.trim().is_empty()).collect::<Vec<_>>().join("/");
    let versions =
        [purl.as_ref().and_then(|purl| purl.version.as_deref()), root.version.as_deref()];
    let mut versions = versions.into_iter().flatten().filter(|version| !version.is_empty());
    let digest = versions.clone().find(|version| version.starts_with("sha256:"));
    let references = root.bom_ref.iter().map(|reference| &reference.0).chain(&root.purl);
    let key: &str = match root.kind {
        ComponentType::Container => SbomSubject::image_name(&name),
        _ => &name,
    };
    SbomSubject {
        key: purl.as_ref().map_or(bounded(key), |purl| purl.package().to_string()),
        is_weak: purl.is_none()
            && (root.kind == ComponentType::File || SbomSubject::is_place(&name)),
        version: versions.next().map(bounded),
        digest: digest.map(|digest| bounded(digest).to_lowercase()).or_else(|| root.sha256()),
        references: references.map(|reference| bounded(reference)).collect(),
        name: bounded(&name),
    }
}

fn tool(tools: &Tools<'_>) -> Option<String> {
    let first = match tools {
        Tools::Listed(tools) => tools.first(),
        Tools::Grouped { components, services } => components.first().or(services.first()),
    }?;
    let words = [first.name.as_deref(), first.version.as_deref()];
    let words: Vec<&str> = words.into_iter().flatten().filter(|word| !word.is_empty()).collect();
    (!words.is_empty()).then(|| bounded(&words.join(" ")))
}
