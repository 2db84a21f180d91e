//! The rules of purl types (namespace, letter case, qualifiers), from the type definitions of the
//! purl specification.

use super::{Purl, PurlError, PurlResult};

/// Whether purls of a type have a namespace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NamespaceRule {
    Optional,
    Required,
    Prohibited,
}

struct PurlTypeRules {
    kind: &'static str,
    namespace: NamespaceRule,
    lower_namespace: bool,
    lower_name: bool,
    lower_version: bool,
    qualifier: Option<&'static str>,
}

const fn rules(kind: &'static str) -> PurlTypeRules {
    PurlTypeRules {
        kind,
        namespace: NamespaceRule::Optional,
        lower_namespace: false,
        lower_name: false,
        lower_version: false,
        qualifier: None,
    }
}

impl PurlTypeRules {
    const fn required(mut self) -> Self {
        self.namespace = NamespaceRule::Required;
        self
    }

    const fn prohibited(mut self) -> Self {
        self.namespace = NamespaceRule::Prohibited;
        self
    }

    const fn lower_namespace(mut self) -> Self {
        self.lower_namespace = true;
        self
    }

    const fn lower_name(mut self) -> Self {
        self.lower_name = true;
        self
    }

    const fn lower_version(mut self) -> Self {
        self.lower_version = true;
        self
    }

    const fn qualifier(mut self, key: &'static str) -> Self {
        self.qualifier = Some(key);
        self
    }
}

/// Purl types that have more than the general rules, with these rules.
static RULES: &[PurlTypeRules] = &[
    rules("alpm").lower_namespace().lower_name(),
    rules("apk").lower_namespace().lower_name(),
    rules("bazel").prohibited(),
    rules("bitbucket").lower_namespace().lower_name(),
    rules("bitnami").prohibited().lower_name(),
    rules("brew").lower_namespace().lower_name(),
    rules("cargo").prohibited(),
    rules("chrome-extension").prohibited(),
    rules("cocoapods").prohibited(),
    rules("composer").required().lower_namespace().lower_name(),
    rules("conda").prohibited(),
    rules("cran").prohibited(),
    rules("deb").lower_namespace().lower_name(),
    rules("gem").prohibited(),
    rules("github").lower_namespace().lower_name(),
    rules("golang").lower_namespace().lower_name(),
    rules("hackage").prohibited(),
    rules("hex").lower_namespace().lower_name(),
    rules("huggingface").lower_version(),
    rules("julia").prohibited().qualifier("uuid"),
    rules("luarocks").lower_namespace().lower_name(),
    rules("mlflow").prohibited(),
    rules("npm").lower_namespace().lower_name(),
    rules("nuget").prohibited(),
    rules("oci").prohibited().lower_name(),
    rules("opam").prohibited(),
    rules("otp").prohibited().lower_name(),
    rules("pub").prohibited().lower_name(),
    rules("pypi").prohibited().lower_name(),
    rules("qpkg").lower_namespace(),
    rules("rpm").lower_namespace(),
    rules("swift").required(),
    rules("vcpkg").prohibited().lower_name(),
    rules("vscode-extension").required().lower_namespace().lower_name(),
];

/// Whether the names of a type's purls may contain `/`. In a `git` purl, only the host is the
/// namespace.
pub(super) fn name_is_a_path(kind: &str) -> bool {
    kind == "git"
}

/// Checks and normalizes a purl by the rules of its type.
pub(super) fn apply(purl: &mut Purl) -> PurlResult<()> {
    if let Some(rules) = RULES.iter().find(|rules| rules.kind == purl.kind) {
        match (rules.namespace, &purl.namespace) {
            (NamespaceRule::Required, None) => {
                return Err(PurlError("this type needs a namespace"));
            }
            (NamespaceRule::Prohibited, Some(_)) => {
                return Err(PurlError("this type has no namespace"));
            }
            _ => {}
        }
        if rules.qualifier.is_some_and(|key| !purl.qualifiers.contains_key(key)) {
            return Err(PurlError("this type needs a qualifier that is missing"));
        }
        lower(rules.lower_name, &mut purl.name);
        for (wanted, part) in
            [(rules.lower_namespace, &mut purl.namespace), (rules.lower_version, &mut purl.version)]
        {
            if let Some(part) = part {
                lower(wanted, part);
            }
        }
    }
    apply_special(purl)
}

fn lower(wanted: bool, text: &mut String) {
    if wanted && text.chars().any(char::is_uppercase) {
        *text = text.to_lowercase();
    }
}

/// Applies the purl rules that only one type has.
fn apply_special(purl: &mut Purl) -> PurlResult<()> {
    match purl.kind.as_str() {
        "pypi" => purl.name = purl.name.replace('_', "-"),
        "mlflow" => {
            let databricks =
                purl.qualifier("repository_url").is_some_and(|url| url.contains("databricks"));
            lower(databricks, &mut purl.name);
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
    let wanted = purl.namespace.as_deref().is_some_and(folds);
    lower(wanted, &mut purl.name);
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
