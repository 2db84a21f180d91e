//! The rules of purl types (namespace, letter case, qualifiers), from the type definitions of the
//! purl specification.

use self::NamespaceRule::{Optional, Prohibited, Required};
use self::PurlPart::{Name, Namespace, Version};
use super::{Purl, PurlError, PurlResult};

/// Whether purls of a type have a namespace.
enum NamespaceRule {
    Optional,
    Required,
    Prohibited,
}

/// Part of a purl that some types write in lower case.
enum PurlPart {
    Namespace,
    Name,
    Version,
}

/// Purl types that have more than the general rules, each with the rule for its namespace and the
/// parts that are in lower case.
const RULES: &[(&str, NamespaceRule, &[PurlPart])] = &[
    ("alpm", Optional, &[Namespace, Name]),
    ("apk", Optional, &[Namespace, Name]),
    ("bazel", Prohibited, &[]),
    ("bitbucket", Optional, &[Namespace, Name]),
    ("bitnami", Prohibited, &[Name]),
    ("brew", Optional, &[Namespace, Name]),
    ("cargo", Prohibited, &[]),
    ("chrome-extension", Prohibited, &[]),
    ("cocoapods", Prohibited, &[]),
    ("composer", Required, &[Namespace, Name]),
    ("conda", Prohibited, &[]),
    ("cran", Prohibited, &[]),
    ("deb", Optional, &[Namespace, Name]),
    ("gem", Prohibited, &[]),
    ("github", Optional, &[Namespace, Name]),
    ("golang", Optional, &[Namespace, Name]),
    ("hackage", Prohibited, &[]),
    ("hex", Optional, &[Namespace, Name]),
    ("huggingface", Optional, &[Version]),
    ("julia", Prohibited, &[]),
    ("luarocks", Optional, &[Namespace, Name]),
    ("mlflow", Prohibited, &[]),
    ("npm", Optional, &[Namespace, Name]),
    ("nuget", Prohibited, &[]),
    ("oci", Prohibited, &[Name]),
    ("opam", Prohibited, &[]),
    ("otp", Prohibited, &[Name]),
    ("pub", Prohibited, &[Name]),
    ("pypi", Prohibited, &[Name]),
    ("qpkg", Optional, &[Namespace]),
    ("rpm", Optional, &[Namespace]),
    ("swift", Required, &[]),
    ("vcpkg", Prohibited, &[Name]),
    ("vscode-extension", Required, &[Namespace, Name]),
];

/// Whether the names of a type's purls may contain `/`. In a `git` purl, only the host is the
/// namespace.
pub(super) fn name_is_a_path(kind: &str) -> bool {
    kind == "git"
}

/// Checks and normalizes a purl by the rules of its type.
pub(super) fn apply(purl: &mut Purl) -> PurlResult<()> {
    if let Some((_, namespace, lower_case)) = RULES.iter().find(|(kind, ..)| *kind == purl.kind) {
        match (namespace, &purl.namespace) {
            (Required, None) => return Err(PurlError("this type needs a namespace")),
            (Prohibited, Some(_)) => return Err(PurlError("this type has no namespace")),
            _ => {}
        }
        for part in *lower_case {
            let text = match part {
                Namespace => purl.namespace.as_mut(),
                Name => Some(&mut purl.name),
                Version => purl.version.as_mut(),
            };
            text.into_iter().for_each(lower);
        }
    }
    apply_special(purl)
}

fn lower(text: &mut String) {
    if text.chars().any(char::is_uppercase) {
        *text = text.to_lowercase();
    }
}

/// Applies the purl rules that only one type has.
fn apply_special(purl: &mut Purl) -> PurlResult<()> {
    match purl.kind.as_str() {
        "pypi" => purl.name = purl.name.replace('_', "-"),
        "mlflow"
            if purl.qualifier("repository_url").is_some_and(|url| url.contains("databricks")) =>
        {
            lower(&mut purl.name);
        }
        "julia" if purl.qualifier("uuid").is_none() => {
            return Err(PurlError("this type needs a qualifier that is missing"));
        }
        "cpan" if purl.name.contains("::") => {
            return Err(PurlError("a cpan purl names a distribution, not a module"));
        }
        "git" => split_host(purl),
        "chrome-extension" => return check_chrome_extension(purl),
        _ => {}
    }
    Ok(())
}

fn split_host(purl: &mut Purl) {
    let Some(namespace) = &purl.namespace else { return };
    if let Some((host, path)) = namespace.split_once('/') {
        purl.name = format!("{path}/{}", purl.name);
        purl.namespace = Some(host.to_owned());
    }
    let folds = |host: &str| host.starts_with("github") || host.starts_with("bitbucket");
    if purl.namespace.as_deref().is_some_and(folds) {
        lower(&mut purl.name);
    }
}

fn check_chrome_extension(purl: &Purl) -> PurlResult<()> {
    let good_name =
        purl.name.len() == 32 && purl.name.bytes().all(|byte| (b'a'..=b'p').contains(&byte));
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let good_version = purl
        .version
        .as_ref()
        .is_none_or(|version| version.split('.').count() <= 4 && version.split('.').all(number));
    match (good_name, good_version) {
        (false, _) => Err(PurlError("a Chrome extension's name is 32 letters from a to p")),
        (_, false) => Err(PurlError("a Chrome extension's version is 1 to 4 numbers")),
        _ => Ok(()),
    }
}
