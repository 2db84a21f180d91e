//! Converts SARIF `artifactLocation`s to paths within the repository: resolves `uriBaseId`, decodes
//! percent-encoding, normalizes dots and separators, and makes absolute paths relative to the root
//! of the repository if the run names it.

use std::collections::{BTreeMap, BTreeSet};

use percent_encoding::percent_decode_str;

use super::model::{Artifact, ArtifactLocation, Run};
use crate::text::clean;

/// Maximum size of the stored path of a finding's location, in bytes.
const MOST_BYTES: usize = 1000;
/// Maximum number of nested `uriBaseId`s that are resolved; the limit also ends cycles.
const MOST_BASES: usize = 16;
/// Name of the base URI that most tools give to the root of the sources.
const SOURCE_ROOT: &str = "%SRCROOT%";

/// `originalUriBaseIds` and `artifacts` of a run, with which artifact locations are resolved.
pub(super) struct ArtifactLocationResolver<'a> {
    bases: Option<&'a BTreeMap<String, ArtifactLocation>>,
    artifacts: &'a [Artifact],
    /// Absolute paths of folders that may be the root of the scanned repository, most certain
    /// first.
    roots: Vec<String>,
}

impl<'a> ArtifactLocationResolver<'a> {
    pub(super) fn of(run: &'a Run<'_>) -> Self {
        let bases = run.original_uri_base_ids.as_ref();
        let artifacts = run.artifacts.as_deref().unwrap_or_default();
        let places = Self { bases, artifacts, roots: Vec::new() };
        Self { roots: places.roots(run), ..places }
    }

    /// Returns the folders that may be the root of the repository: those to which
    /// `versionControlProvenance` maps repositories (SARIF 3.23.9), then the bases, outermost
    /// first, then the working directories of the tool (3.20.19).
    fn roots(&self, run: &Run<'_>) -> Vec<String> {
        let repositories = run.version_control_provenance.iter().flatten();
        let mapped = repositories.filter_map(|one| self.folder(one.mapped_to.as_ref()?));
        let bases = self.bases.into_iter().flatten();
        let bases = bases.filter_map(|(id, base)| Some((id != SOURCE_ROOT, self.folder(base)?)));
        let mut bases: Vec<(bool, String)> = bases.collect();
        bases.sort_by_key(|(is_other, folder)| (*is_other, folder.len()));
        let invocations = run.invocations.iter().flatten();
        let working = invocations.filter_map(|one| self.folder(one.working_directory.as_ref()?));
        let all = mapped.chain(bases.into_iter().map(|(_, folder)| folder)).chain(working);
        let mut seen = BTreeSet::new();
        all.filter(|folder| seen.insert(folder.clone())).collect()
    }

    /// Returns the absolute path of a folder or file in the run, with its bases resolved; `None` if
    /// it has none.
    fn folder(&self, location: &ArtifactLocation) -> Option<String> {
        let (mut below, mut next) = (String::new(), location);
        for _ in 0..MOST_BASES {
            if let Some(uri) = next.uri.as_deref().map(decoded).filter(|uri| !uri.is_empty()) {
                below = format!("{}/{below}", absolute(&uri).unwrap_or(uri));
                let folder = with_upper_drive(normal(&below));
                if is_absolute(&folder) {
                    return Some(folder);
                }
            }
            next = self.bases?.get(next.uri_base_id.as_deref()?)?;
        }
        None
    }

    /// Returns the path of an artifact location within the repository; `None` if the location has
    /// no URI. A relative path below an absolute base becomes relative to the first root that
    /// contains it, because files below different bases are different files.
    pub(super) fn path(&self, location: &ArtifactLocation) -> Option<String> {
        let path = self.resolve(location, |absolute| absolute)?;
        if is_absolute(&path) {
            return Some(self.below_a_root(&path).unwrap_or(path));
        }
        let whole = self.listed(location).filter(|_| !is_web(&path));
        let whole = whole.and_then(|location| self.folder(location));
        let within = whole.and_then(|whole| self.below_a_root(&whole));
        Some(within.unwrap_or(path))
    }

    /// Returns the path that older versions of this area gave an artifact location. Former
    /// identities of findings contain it.
    pub(super) fn former_path(&self, location: &ArtifactLocation) -> Option<String> {
        self.resolve(location, |absolute| self.below_a_base(&absolute))
    }

    /// Returns the path of an artifact location; `None` without a URI. `of_file` converts the path
    /// of a `file:` URI.
    fn resolve(
        &self,
        location: &ArtifactLocation,
        of_file: impl FnOnce(String) -> String,
    ) -> Option<String> {
        let location = self.listed(location)?;
        let uri = location.uri.as_deref().map(str::trim).filter(|uri| !uri.is_empty())?;
        if is_web(uri) {
            return Some(clean(uri, MOST_BYTES));
        }
        let uri = decoded(uri);
        let path = match absolute(&uri) {
            Some(path) => of_file(path),
            None => self.below_root(uri, location.uri_base_id.as_deref()),
        };
        let path = normal(&path);
        (!path.is_empty()).then_some(path)
    }

    /// Returns the artifact location that has the URI: the given one, or that of the artifact to
    /// which its index refers.
    fn listed<'l>(&'l self, location: &'l ArtifactLocation) -> Option<&'l ArtifactLocation> {
        if location.uri.is_some() {
            return Some(location);
        }
        self.artifacts.get(usize::try_from(location.index?).ok()?)?.location.as_ref()
    }

    /// Returns a relative URI as a path relative to its outermost base, because the folder in which
    /// a machine checked out the repository does not belong to the finding.
    fn below_root(&self, uri: String, base_id: Option<&str>) -> String {
        let mut path = uri;
        let mut next = base_id;
        for _ in 0..MOST_BASES {
            let Some(base) = next.and_then(|id| self.bases?.get(id)) else { break };
            let Some(prefix) = base.uri.as_deref().map(decoded) else { break };
            if absolute(&prefix).is_some() || prefix.starts_with('/') {
                break;
            }
            path = format!("{}/{path}", prefix.trim_end_matches('/'));
            next = base.uri_base_id.as_deref();
        }
        path
    }

    /// Returns an absolute path relative to the first root that contains it; `None` if none does.
    fn below_a_root(&self, absolute_path: &str) -> Option<String> {
        let path = with_upper_drive(absolute_path.to_owned());
        let below = |root: &String| match path.strip_prefix(root.as_str())? {
            "" => Some("."),
            rest => rest.strip_prefix('/'),
        };
        self.roots.iter().find_map(below).map(ToOwned::to_owned)
    }

    /// Removes the longest of the run's base URIs that an absolute path begins with.
    fn below_a_base(&self, absolute_path: &str) -> String {
        let bases = self.bases.into_iter().flat_map(BTreeMap::values);
        let roots = bases.filter_map(|base| absolute(&decoded(base.uri.as_deref()?)));
        let within = roots
            .filter(|root| root.ends_with('/'))
            .filter_map(|root| absolute_path.strip_prefix(root.as_str()))
            .min_by_key(|rest| rest.len());
        within.unwrap_or(absolute_path).to_owned()
    }
}

/// Whether a normalized path begins with a slash or a drive.
pub(crate) fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || has_drive(path)
}

fn has_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [letter, b':', b'/', ..] if letter.is_ascii_alphabetic())
}

fn with_upper_drive(mut path: String) -> String {
    if has_drive(&path) {
        path[..1].make_ascii_uppercase();
    }
    path
}

fn is_web(uri: &str) -> bool {
    uri.starts_with("http://") || uri.starts_with("https://")
}

/// Decodes the percent-encoding of a URI, once, before any comparison.
fn decoded(uri: &str) -> String {
    percent_decode_str(uri.trim()).decode_utf8_lossy().into_owned()
}

/// Returns the absolute path of a `file:` URI without the host name; `None` for any other URI. A
/// drive letter is converted to upper case.
fn absolute(uri: &str) -> Option<String> {
    let scheme = uri.get(..5)?;
    let rest = scheme.eq_ignore_ascii_case("file:").then(|| &uri[5..])?;
    let Some(rest) = rest.strip_prefix("//") else { return Some(rest.to_owned()) };
    let path = rest.find('/').map_or("", |at| &rest[at..]);
    match path.as_bytes() {
        [b'/', letter, b':', ..] if letter.is_ascii_alphabetic() => {
            let drive = char::from(letter.to_ascii_uppercase());
            Some(format!("{drive}{}", &path[2..]))
        }
        _ => Some(path.to_owned()),
    }
}

/// Normalizes the path of a file: forward slashes, no `.` and `..`, no empty segments.
fn normal(path: &str) -> String {
    if is_web(path) {
        return clean(path, MOST_BYTES);
    }
    let path = path.replace('\\', "/");
    let root = if path.starts_with('/') { "/" } else { "" };
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/').map(str::trim) {
        match segment {
            "" | "." => {}
            ".." if segments.last().is_some_and(|last| *last != "..") => {
                segments.pop();
            }
            ".." if !root.is_empty() => {}
            segment => segments.push(segment),
        }
    }
    let path = if segments.is_empty() { ".".to_owned() } else { segments.join("/") };
    clean(&format!("{root}{path}"), MOST_BYTES)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(location: serde_json::Value, bases: serde_json::Value) -> Option<String> {
        let location: ArtifactLocation = serde_json::from_value(location).expect("a location");
        let mut run = json!({ "artifacts": [{ "location": { "uri": "listed.c" } }] });
        run["originalUriBaseIds"] = bases;
        let run = run.to_string();
        let run: Run<'_> = serde_json::from_str(&run).expect("a run");
        ArtifactLocationResolver::of(&run).path(&location)
    }

    fn plain(uri: &str) -> String {
        path(json!({ "uri": uri }), json!({})).expect("a path")
    }

    #[test]
    fn paths_are_made_plain() {
        assert_eq!(plain("./src//a%20b/../c.rs"), "src/c.rs");
        assert_eq!(plain("src\\main\\A.java"), "src/main/A.java");
        assert_eq!(plain("../x"), "../x");
        assert_eq!(plain("a/../../x"), "../x");
        assert_eq!(plain("file:///C:/code/file1.c"), "C:/code/file1.c");
        assert_eq!(plain("file:///home/../a.c"), "/a.c");
        assert_eq!(plain("file:///c%3A/code/file1.c"), "C:/code/file1.c");
        assert_eq!(plain("100%2525.c"), "100%25.c");
        assert_eq!(plain("file://host/share/a.c"), "/share/a.c");
        assert_eq!(plain("https://example.org/a%20b"), "https://example.org/a%20b");
        assert_eq!(plain("not a valid URI"), "not a valid URI");
        assert_eq!(plain("a%00b%zz"), "a b%zz");
        assert_eq!(plain("."), ".");
        assert_eq!(plain("%"), "%");
        assert_eq!(plain("żółć/ą"), "żółć/ą");
    }

    #[test]
    fn base_ids_lead_to_the_root_of_the_sources() {
        let bases = json!({
            "REPO": { "description": { "text": "no uri" } },
            "SRC": { "uri": " src/", "uriBaseId": "ROOT" },
            "ROOT": { "uri": "file:///builds/acme/" },
            "LOGS": { "uri": "file:///C:/logs/" },
            "RING": { "uri": "r/", "uriBaseId": "RING" },
        });
        let below =
            |uri: &str, id: &str| path(json!({ "uri": uri, "uriBaseId": id }), bases.clone());
        assert_eq!(below("io/kb.c", "SRC").as_deref(), Some("src/io/kb.c"));
        assert_eq!(below("README.md", "REPO").as_deref(), Some("README.md"));
        assert_eq!(below("a.log", "LOGS").as_deref(), Some("a.log"));
        assert_eq!(below("a.c", "%SRCROOT%").as_deref(), Some("a.c"));
        assert!(below("a.c", "RING").is_some_and(|path| path.starts_with("r/r/")));
        let absolute = path(json!({ "uri": "file:///builds/acme/src/a.c" }), bases.clone());
        assert_eq!(absolute.as_deref(), Some("src/a.c"));
        let drive = path(json!({ "uri": "file:///c%3a/logs/a.log" }), bases.clone());
        assert_eq!(drive.as_deref(), Some("a.log"));
        let spaced = json!({ "ROOT": { "uri": "file:///home/my work/" } });
        let absolute = path(json!({ "uri": "file:///home/my%20work/a.c" }), spaced);
        assert_eq!(absolute.as_deref(), Some("a.c"));
    }

    #[test]
    fn absolute_paths_become_relative_to_the_root_of_the_repository() {
        let mapped = |to| json!({ "versionControlProvenance": [{ "mappedTo": to }] });
        let bases = |bases| json!({ "originalUriBaseIds": bases });
        let working = |uri| json!({ "invocations": [{ "workingDirectory": { "uri": uri } }] });
        let nested = json!({
            "versionControlProvenance": [{ "mappedTo": { "uriBaseId": "APP" } }],
            "originalUriBaseIds": {
                "APP": { "uri": "app", "uriBaseId": "HOME" }, "HOME": { "uri": "file:///home" },
            },
        });
        let several = bases(json!({
            "A": { "uri": "file:///b/acme/src/" }, "B": { "uri": "file:///b/acme/" },
        }));
        let named = bases(json!({
            "A": { "uri": "file:///b/" }, "%SRCROOT%": { "uri": "file:///b/acme/" },
        }));
        let both = json!({
            "versionControlProvenance": [{ "mappedTo": { "uri": "file:///home/ci" } }],
            "invocations": [{ "workingDirectory": { "uri": "file:///home/ci/src" } }],
        });
        for (run, uri, expected) in [
            (mapped(json!({ "uri": "file:///home/ci/app/" })), "file:///home/ci/app/a.c", "a.c"),
            (mapped(json!({ "uri": "file:///home/ci" })), "/home/ci/src/a.c", "src/a.c"),
            (mapped(json!({ "uri": "file:///home/c" })), "/home/ci/a.c", "/home/ci/a.c"),
            (mapped(json!({ "uriBaseId": "GONE" })), "/home/ci/a.c", "/home/ci/a.c"),
            (nested, "/home/app/a.c", "a.c"),
            (several.clone(), "/b/acme/src/a.c", "src/a.c"),
            (several, "file:///b/acme/src/a.c", "src/a.c"),
            (named, "/b/acme/src/a.c", "src/a.c"),
            (working("file:///c:/code"), "C:\\code\\src\\a.c", "src/a.c"),
            (working("file:///home/ci"), "file:///home/ci/../x/a.c", "/home/x/a.c"),
            (working("file:///"), "/usr/bin/a", "/usr/bin/a"),
            (working("file:///home/ci"), "home/ci/a.c", "home/ci/a.c"),
            (both, "/home/ci/src/a.c", "src/a.c"),
            (working("file:///home/ci"), "file:///home/ci/", "."),
        ] {
            let run = run.to_string();
            let run: Run<'_> = serde_json::from_str(&run).expect("a run");
            let location = json!({ "uri": uri });
            let location = serde_json::from_value(location).expect("a location");
            let path = ArtifactLocationResolver::of(&run).path(&location);
            assert_eq!(path.as_deref(), Some(expected), "{uri}");
        }
    }

    #[test]
    fn paths_below_absolute_bases_are_relative_to_the_root_of_the_repository() {
        let mapped = |mut run: serde_json::Value, to: serde_json::Value| {
            run["versionControlProvenance"] = json!([{ "mappedTo": to }]);
            run
        };
        let bases = |bases| json!({ "originalUriBaseIds": bases });
        let two = bases(json!({
            "FRONT": { "uri": "file:///ci/repo/front/" }, "BACK": { "uri": "file:///ci/repo/back" },
        }));
        let repository = mapped(two.clone(), json!({ "uri": "file:///ci/repo/" }));
        let elsewhere = mapped(two.clone(), json!({ "uri": "file:///other/" }));
        let named = bases(json!({
            "REPO": { "uri": "file:///home/ci/repo/" },
            "SRC": { "uri": "file:///home/ci/repo/src/" },
        }));
        let named = mapped(named, json!({ "uriBaseId": "REPO" }));
        let wide = bases(json!({ "%SRCROOT%": { "uri": "file:///builds/" } }));
        let wide = mapped(wide, json!({ "uri": "file:///builds/acme/" }));
        let drive = bases(json!({
            "%SRCROOT%": { "uri": "file:///C:/agent/_work/1/s/" },
            "SOLUTION": { "uri": "file:///c:/agent/_work/1/s/backend/" },
        }));
        let of_disk = bases(json!({ "ROOTPATH": { "uri": "file:///" } }));
        for (run, uri, base, expected) in [
            (repository.clone(), "main.c", "FRONT", "front/main.c"),
            (repository.clone(), "main.c", "BACK", "back/main.c"),
            (repository, "../main.c", "BACK", "main.c"),
            (elsewhere, "main.c", "FRONT", "main.c"),
            (two, "../main.c", "FRONT", "../main.c"),
            (named, "a.c", "SRC", "src/a.c"),
            (wide, "acme/src/a.c", "%SRCROOT%", "src/a.c"),
            (drive, "app/Foo.cs", "SOLUTION", "backend/app/Foo.cs"),
            (of_disk, "etc/a.conf", "ROOTPATH", "etc/a.conf"),
        ] {
            let run = run.to_string();
            let run: Run<'_> = serde_json::from_str(&run).expect("a run");
            let location = json!({ "uri": uri, "uriBaseId": base });
            let location = serde_json::from_value(location).expect("a location");
            let places = ArtifactLocationResolver::of(&run);
            assert_eq!(places.path(&location).as_deref(), Some(expected), "{uri} {base}");
            assert_eq!(places.former_path(&location).as_deref(), Some(uri), "{uri} {base}");
        }
    }

    #[test]
    fn a_location_may_be_listed_with_the_artifacts() {
        assert_eq!(path(json!({ "index": 0 }), json!({})).as_deref(), Some("listed.c"));
        for location in
            [json!({ "index": 1 }), json!({ "index": -1 }), json!({}), json!({ "uri": "" })]
        {
            assert_eq!(path(location, json!({})), None);
        }
    }
}
