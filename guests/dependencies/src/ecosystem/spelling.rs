//! Letter case of Go module paths. Go modules and their advisories are case-sensitive. But
//! canonical purls are in lower case, and some scanners write only lower case, so a path in lower
//! case may stand for another spelling.

use crate::purl::Purl;

/// Result of comparing a component's spelling with that of an advisory's package. Both have the
/// same package key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpellingMatch {
    /// The spelling is equal, or the ecosystem ignores case.
    Same,
    /// The spelling differs, but the component's scanner may have changed the case.
    Unknown,
    /// The spelling differs; the component is another Go module.
    Different,
}

impl SpellingMatch {
    /// Compares the component's name (`ours`) with the advisory's (`theirs`). `case_known` is true
    /// if the component's scanner keeps upper case.
    pub(crate) fn of(ecosystem: &str, ours: &str, theirs: &str, case_known: bool) -> Self {
        match () {
            () if ecosystem != "Go" || ours == theirs => Self::Same,
            () if case_known || has_upper_case(ours) => Self::Different,
            () => Self::Unknown,
        }
    }
}

/// Returns the path of a Go module with the case in the SBOM: from the purl as written, otherwise
/// from the component's name, otherwise in lower case. `None` for packages other than Go modules.
pub(crate) fn go_path(purl: &Purl, written: &str, name: &str) -> Option<String> {
    if purl.kind != "golang" {
        return None;
    }
    let canonical = super::name_of(purl);
    let same = |path: &String| path.to_lowercase() == canonical && *path != canonical;
    let as_written = || path_as_written(written).filter(same);
    let as_named = || Some(name.trim().to_owned()).filter(same);
    Some(as_written().or_else(as_named).unwrap_or(canonical))
}

/// Whether a text has upper-case letters.
pub(crate) fn has_upper_case(text: &str) -> bool {
    text.chars().any(char::is_uppercase)
}

/// Returns namespace and name of a purl as written: decoded, but with the original case.
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
        go_path(&Purl::parse(written).expect("a purl"), written, name)
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
