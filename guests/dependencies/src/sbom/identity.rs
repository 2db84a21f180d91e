//! Identity of a component: its canonical purl; without a purl, its name and version.

use std::borrow::Cow;

use super::Component;
use super::bill::PackageMention;
use crate::ecosystem::{self, Package, SubpathMeaning};
use crate::purl::Purl;
use crate::text;

/// Maximum number of further purls of a package that its limitation names.
const MOST_LISTED: usize = 3;

const UNKNOWN_SUBPATH: &str = "The name of this Go module does not say whether the purl's subpath \
                               belongs to the module's path, so advisories are matched without \
                               the subpath.";

const UNKNOWN_DISTRIBUTION: &str = "The purl is of a distribution without an ecosystem in the OSV \
                                    schema, or does not name it, so no advisories are matched by \
                                    version.";

const UNKNOWN_TYPE: &str = "The OSV schema has no ecosystem for the type of the purl, so only \
                            advisories that list exactly this version are matched.";

const NO_GROUP: &str = "The purl of this Maven package has no group, so no advisories are matched \
                        by version.";

/// Returns the identity of a component within a repository's branch. Go modules whose paths differ
/// only in case have different identities, although their canonical purls are equal.
pub(crate) fn identify(purl: Option<&Purl>, name: &str, version: Option<&str>) -> String {
    match purl {
        Some(purl) if purl.kind == "golang" && ecosystem::has_upper_case(name) => {
            format!("{purl}\n{name}")
        }
        Some(purl) => purl.to_string(),
        None => format!("{name}@{}", version.unwrap_or_default()),
    }
}

/// Sets the component's version from another mention if it has none. Returns a limitation if the
/// versions differ, which is possible only if the purl has no version.
pub(crate) fn merge_versions(ours: &mut Option<String>, theirs: Option<String>) -> Option<String> {
    let theirs = theirs?;
    let ours = ours.get_or_insert_with(|| theirs.clone());
    (*ours != theirs).then(|| {
        format!(
            "The purl has no version, and several versions are given for it; only {ours:?} is \
             compared with advisories."
        )
    })
}

/// Appends those items of `from` that `to` does not have.
pub(crate) fn add_new<T: PartialEq>(to: &mut Vec<T>, from: Vec<T>) {
    for item in from {
        if !to.contains(&item) {
            to.push(item);
        }
    }
}

impl PackageMention<'_> {
    /// Returns the purl of the mentioned package; `None` if the mention has no valid purl.
    pub(super) fn parsed_purl(&self) -> Option<Purl> {
        Purl::parse(self.purl.as_deref()?.trim()).ok()
    }

    /// Returns the mention's version in the SBOM; without one, the version in its purl.
    pub(super) fn version(&self) -> Option<Cow<'_, str>> {
        let written = self.version.as_deref().filter(|version| !version.is_empty());
        written.map(Cow::Borrowed).or_else(|| self.parsed_purl()?.version.map(Cow::Owned))
    }

    /// Returns a component with name, version, purl and the limitations of these.
    pub(super) fn component(&self) -> Component {
        let mut limitations = Vec::new();
        let written = self.purl.as_deref().unwrap_or_default();
        let purl = Some(written.trim()).filter(|purl| !purl.is_empty()).map(Purl::parse);
        if let Some(Err(why)) = &purl {
            limitations.push(format!("The purl in the SBOM is not used: {}.", why.0));
        }
        let purl = purl.and_then(Result::ok);
        if purl.is_none() {
            let limitation = "Without a purl, no advisories are matched by version.";
            limitations.push(limitation.to_owned());
        }
        let unmatchable = purl.as_ref().and_then(|purl| self.unmatchable(purl));
        limitations.extend(unmatchable.map(ToOwned::to_owned));
        let given = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(bounded);
        let of_purl = purl.as_ref().and_then(|purl| given(purl.version.as_deref()));
        let version = of_purl.or_else(|| given(self.version.as_deref()));
        let name = purl.as_ref().map(|purl| {
            let (name, version) = (self.full_name(), version.as_deref());
            if SubpathMeaning::of(purl, &name, version) == Some(SubpathMeaning::Unknown) {
                limitations.push(UNKNOWN_SUBPATH.to_owned());
            }
            let go_path = ecosystem::go_path(purl, written, &name, version);
            go_path.unwrap_or_else(|| ecosystem::name_of(purl))
        });
        Component {
            name: bounded(&name.unwrap_or_else(|| self.full_name())),
            has_all_references: true,
            version,
            purl,
            limitations,
            ..Component::default()
        }
    }

    /// Returns the limitation of a package whose purl has no ecosystem in OSV, or no group in Maven;
    /// `None` for other purls, and for a component that is not a package.
    fn unmatchable(&self, purl: &Purl) -> Option<&'static str> {
        let is_known = || ecosystem::scheme(&ecosystem::ecosystem_of(purl)).is_some();
        match purl.kind.as_str() {
            "maven" if purl.namespace.is_none() => Some(NO_GROUP),
            _ if is_known() => None,
            "apk" | "deb" | "rpm" => Some(UNKNOWN_DISTRIBUTION),
            // Purls of images.
            "docker" | "oci" => None,
            _ => self.is_package.then_some(UNKNOWN_TYPE),
        }
    }

    /// Returns the purl of a package with such a limitation, without version; `None` for other
    /// components.
    pub(super) fn unmatchable_purl(&self) -> Option<String> {
        let purl = self.parsed_purl().filter(|purl| self.unmatchable(purl).is_some())?;
        Some(bounded(&purl.package().to_string()))
    }

    /// Returns the limitation that names further purls of the package, with which advisories are
    /// not compared; `None` if there are none, or only other spellings of the first.
    pub(super) fn further_purls_limitation(&self) -> Option<String> {
        let first = self.parsed_purl().as_ref().map(Package::of_purl);
        let is_first = |purl: &str| {
            let other = Purl::parse(purl.trim()).ok().as_ref().map(Package::of_purl);
            other.is_some() && other == first
        };
        let others = self.further_purls.iter().filter(|purl| !is_first(purl));
        let others: Vec<String> = others.map(|purl| bounded(purl)).collect();
        let listed = (!others.is_empty()).then(|| text::listed(others.iter(), MOST_LISTED))?;
        Some(format!(
            "The SBOM gives further purls of this package, which are not compared with advisories: \
             {listed}."
        ))
    }

    /// Returns the identity of the component, which all its mentions share.
    pub(super) fn identity(&self) -> String {
        let component = self.component();
        identify(component.purl.as_ref(), &component.name, component.version.as_deref())
    }

    /// Whether this is a Go module whose path has upper-case letters.
    pub(super) fn shows_case(&self) -> bool {
        let component = self.component();
        component.purl.is_some_and(|purl| purl.kind == "golang")
            && ecosystem::has_upper_case(&component.name)
    }

    /// Whether the mention names the source package of a distribution's package.
    pub(super) fn names_source(&self) -> bool {
        self.source_package.is_some()
            || self.parsed_purl().is_some_and(|purl| ecosystem::has_source(&purl))
    }

    fn full_name(&self) -> String {
        match self.group.as_deref().filter(|group| !group.is_empty()) {
            Some(group) => format!("{group}/{}", self.name),
            None => self.name.clone().into_owned(),
        }
    }
}

/// Maximum size of a name, version or reference in an index, in bytes.
const MAX_BYTES: usize = 500;

/// Truncates a text to the maximum size in indexes.
pub(super) fn bounded(text: &str) -> String {
    text::bounded(text, MAX_BYTES)
}
