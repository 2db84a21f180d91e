//! Paths of Go modules: their letter case, and their last part in the subpath of a purl.
//!
//! Go modules and their advisories are case-sensitive. But canonical purls are in lower case, and
//! some scanners write only lower case, so a path in lower case may stand for another spelling.

use crate::purl::Purl;

/// Result of comparing the spelling of a component's name with that in an advisory. Both have the
/// same package key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpellingMatch {
    /// The spellings are equal, or the component is not a Go module: equal package keys suffice.
    Same,
    /// The spellings differ in case, but the component's scanner may have changed the case.
    Unknown,
    /// The spellings differ in case, so the component is another Go module.
    Different,
}

impl SpellingMatch {
    /// Compares the component's name (`ours`) with the advisory's (`theirs`). `case_known` is true
    /// if the component's scanner keeps upper case in paths of Go modules.
    pub(crate) fn of(ecosystem: &str, ours: &str, theirs: &str, case_known: bool) -> Self {
        match () {
            () if ecosystem != "Go" || ours == theirs => Self::Same,
            () if case_known || has_upper_case(ours) => Self::Different,
            () => Self::Unknown,
        }
    }
}

/// Relation of the subpath in a purl to a Go module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubpathMeaning {
    /// The subpath is the end of the module's path, as Syft wrote it from 2024 to 2025:
    /// `pgx@v5.5.0#v5`.
    Module,
    /// The subpath names a package within the module.
    Package,
    /// The subpath may be the end of the module's path or name a package within the module.
    Unknown,
}

impl SubpathMeaning {
    /// Returns the meaning of a purl's subpath for the component with this name and version. `None`
    /// without a subpath, and for packages other than Go modules.
    pub(crate) fn of(purl: &Purl, name: &str, version: Option<&str>) -> Option<Self> {
        let subpath = purl.subpath.as_deref().filter(|_| purl.kind == "golang")?;
        let (path, name) = (super::name_of(purl), name.trim().to_lowercase());
        Some(match () {
            // cyclonedx-gomod names such a component by the package's import path.
            () if purl.qualifier("type") == Some("package") => Self::Package,
            () if name == format!("{path}/{subpath}").to_lowercase() => Self::Module,
            () if is_major(subpath, version) => Self::Module,
            () if name == path => Self::Package,
            () => Self::Unknown,
        })
    }
}

/// Whether a text is the major version at the end of a Go module's path: `v5` for version `v5.5.0`.
/// Paths have none for the major versions 0 and 1.
fn is_major(text: &str, version: Option<&str>) -> bool {
    let major = version.and_then(|version| version.trim_start_matches('v').split('.').next());
    let number = text.strip_prefix('v').filter(|number| !matches!(*number, "" | "0" | "1"));
    number.is_some() && number == major
}

/// Returns the path of a Go module with the upper case in the SBOM: from the purl as written, or
/// from the component's name; in lower case if neither has any. `None` for packages other than Go
/// modules.
pub(crate) fn go_path(
    purl: &Purl,
    written: &str,
    name: &str,
    version: Option<&str>,
) -> Option<String> {
    if purl.kind != "golang" {
        return None;
    }
    let is_module = SubpathMeaning::of(purl, name, version) == Some(SubpathMeaning::Module);
    let subpath = purl.subpath.as_deref().filter(|_| is_module);
    let whole = |path: String| match subpath {
        Some(subpath) => format!("{path}/{subpath}"),
        None => path,
    };
    let canonical = whole(super::name_of(purl)).to_lowercase();
    let same = |path: &String| path.to_lowercase() == canonical && *path != canonical;
    let as_written = path_as_written(written).map(whole).filter(same);
    let as_named = Some(name.trim().to_owned()).filter(same);
    // In a purl with a subpath, only the subpath may have kept its case.
    let found = if is_module { as_named.or(as_written) } else { as_written.or(as_named) };
    Some(found.unwrap_or(canonical))
}

/// Returns the purl of a Go module with the module's whole path, if the subpath is the end of that
/// path; other purls unchanged.
pub(crate) fn module_purl(purl: &Purl, name: &str, version: Option<&str>) -> Purl {
    let subpath = match SubpathMeaning::of(purl, name, version) {
        Some(SubpathMeaning::Module) => purl.subpath.as_deref(),
        _ => None,
    };
    let Some(subpath) = subpath else { return purl.clone() };
    let path = format!("{}/{subpath}", super::name_of(purl)).to_lowercase();
    let (namespace, name) = path.rsplit_once('/').unwrap_or(("", path.as_str()));
    let (namespace, name) = (Some(namespace.to_owned()), name.to_owned());
    Purl { namespace, name, subpath: None, ..purl.clone() }
}

/// Whether a text has upper-case letters.
pub(crate) fn has_upper_case(text: &str) -> bool {
    text.chars().any(char::is_uppercase)
}

/// Returns namespace and name of a purl as written: percent-decoded, but with the original case.
fn path_as_written(purl: &str) -> Option<String> {
    let (_, rest) = purl.trim().split_once(':')?;
    let (_, path) = rest.trim_start_matches('/').split_once('/')?;
    let generic = Purl::parse(&format!("pkg:generic/{path}")).ok()?;
    Some(super::name_of(&generic))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(written: &str, name: &str) -> Option<String> {
        let purl = Purl::parse(written).expect("a purl");
        go_path(&purl, written, name, purl.version.as_deref())
    }

    #[test]
    fn a_subpath_belongs_to_the_path_if_name_or_version_say_so() {
        use SubpathMeaning::{Module, Package, Unknown};
        let vault = "pkg:golang/github.com/hashicorp/vault@v0.9.0#api/auth";
        let azure = "pkg:golang/github.com/azure/sdk@v1.0.0#sdk/Core";
        let package = "pkg:golang/example.com/a@v1.0.0?type=package#b";
        for (written, name, meaning, expected) in [
            ("pkg:golang/a.b/pgx@v5.5.0#v5", "a.b/pgx/v5", Module, "a.b/pgx/v5"),
            ("pkg:golang/a.b/pgx@v5.5.0#v5", "", Module, "a.b/pgx/v5"),
            ("pkg:golang/a.b/pgx@v5.5.0#v4", "", Unknown, "a.b/pgx"),
            ("pkg:golang/a.b/pgx@v5.5.0#v", "", Unknown, "a.b/pgx"),
            ("pkg:golang/a.b/pgx@v1.5.0#v1", "", Unknown, "a.b/pgx"),
            ("pkg:golang/a.b/pgx#v5", "", Unknown, "a.b/pgx"),
            (
                vault,
                "github.com/hashicorp/vault/api/auth",
                Module,
                "github.com/hashicorp/vault/api/auth",
            ),
            (vault, "vault", Unknown, "github.com/hashicorp/vault"),
            (vault, "github.com/hashicorp/vault", Package, "github.com/hashicorp/vault"),
            (azure, "github.com/Azure/sdk/sdk/Core", Module, "github.com/Azure/sdk/sdk/Core"),
            (package, "example.com/a/b", Package, "example.com/a"),
        ] {
            let purl = Purl::parse(written).expect("a purl");
            let found = SubpathMeaning::of(&purl, name, purl.version.as_deref());
            assert_eq!(found, Some(meaning), "{written} {name}");
            assert_eq!(path(written, name).as_deref(), Some(expected), "{written} {name}");
        }
        let purl = Purl::parse("pkg:npm/a@1#v1").expect("a purl");
        assert_eq!(SubpathMeaning::of(&purl, "a/v1", None), None);
    }

    #[test]
    fn the_purl_of_a_module_has_its_whole_path() {
        for (written, name, expected) in [
            ("pkg:golang/a.b/pgx@v5.5.0#v5", "", "pkg:golang/a.b/pgx/v5@v5.5.0"),
            ("pkg:golang/a.b/c@v1#X/Y", "a.b/c/x/y", "pkg:golang/a.b/c/x/y@v1"),
            ("pkg:golang/a.b/c@v1#x", "a.b/c", "pkg:golang/a.b/c@v1#x"),
            ("pkg:golang/a.b/c@v1", "a.b/c", "pkg:golang/a.b/c@v1"),
            ("pkg:npm/a@5.0#v5", "a", "pkg:npm/a@5.0#v5"),
        ] {
            let purl = Purl::parse(written).expect("a purl");
            let found = module_purl(&purl, name, purl.version.as_deref());
            assert_eq!(found.to_string(), expected, "{name}");
        }
    }

    #[test]
    fn upper_case_comes_from_the_purl_or_the_name() {
        for (written, name, expected) in [
            ("pkg:golang/github.com/0xJacky/Nginx-UI@v2", "x", "github.com/0xJacky/Nginx-UI"),
            ("pkg:golang/github.com/a%2Eb/C@v2?x=Y#Z", "x", "github.com/a.b/C"),
            ("pkg:golang/github.com/azure/x@v1", "github.com/Azure/x", "github.com/Azure/x"),
            ("pkg:golang/github.com/azure/x@v1", "Azure", "github.com/azure/x"),
            ("pkg:GOLANG/Example.com@v1", "", "Example.com"),
        ] {
            assert_eq!(path(written, name).as_deref(), Some(expected), "{written}");
        }
        assert_eq!(path("pkg:npm/JSONStream@1", "JSONStream"), None);
    }

    #[test]
    fn only_a_path_in_lower_case_may_stand_for_another() {
        let of = |ours, theirs, known| SpellingMatch::of("Go", ours, theirs, known);
        assert_eq!(of("a/B", "a/B", true), SpellingMatch::Same);
        assert_eq!(of("a/b", "a/b", false), SpellingMatch::Same);
        assert_eq!(of("a/B", "a/b", false), SpellingMatch::Different);
        assert_eq!(of("a/b", "a/B", false), SpellingMatch::Unknown);
        assert_eq!(of("a/b", "a/B", true), SpellingMatch::Different);
        assert_eq!(SpellingMatch::of("npm", "a", "A", true), SpellingMatch::Same);
    }
}
