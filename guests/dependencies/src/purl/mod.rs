//! Package URLs (ECMA-427): parsing and the canonical form. Mentions of a package with equal
//! canonical purls are one component.
//!
//! [`Purl::parse`] returns canonical purls: their parts are decoded and normalized by the rules of
//! their type, and `Display` writes the canonical text.

mod types;

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Characters that are percent-encoded in a canonical purl.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_').remove(b'~').remove(b':');

/// Maximum size of a purl, in bytes.
const MAX_CHARACTERS: usize = 4_000;

/// A canonical purl: a package, optionally with a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Purl {
    /// Type of the purl: `maven`, `npm`, …
    pub(crate) kind: String,
    /// Namespace of the package; its segments are separated by `/`.
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) qualifiers: BTreeMap<String, String>,
    pub(crate) subpath: Option<String>,
}

/// Reason why a text is not a valid purl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PurlError(pub(crate) &'static str);

type PurlResult<T> = Result<T, PurlError>;

impl Purl {
    /// Parses a purl and converts it to the canonical form.
    pub(crate) fn parse(text: &str) -> PurlResult<Self> {
        if text.len() > MAX_CHARACTERS {
            return Err(PurlError("a purl has at most 4000 characters"));
        }
        let Some(("pkg", rest)) = text.split_once(':') else {
            return Err(PurlError("a purl begins with `pkg:`"));
        };
        let (rest, subpath) = cut_last(rest, '#');
        let (rest, qualifiers) = cut_last(rest, '?');
        let Some((kind, path)) = rest.trim_start_matches('/').split_once('/') else {
            return Err(PurlError("a purl names a type and a package"));
        };
        // An `@` at the beginning of a segment that is not the last belongs to an npm scope. In a
        // version, some libraries leave `/` as it is.
        let is_scope = |before: &str, after: &str| {
            (before.is_empty() || before.ends_with('/')) && after.contains('/')
        };
        let (path, version) = match path.rsplit_once('@') {
            Some((path, version)) if !is_scope(path, version) => (path, Some(version)),
            _ => (path, None),
        };
        let (namespace, name) = path.rsplit_once('/').unwrap_or(("", path));
        Self::build(Self {
            kind: kind.to_owned(),
            namespace: Some(segments(namespace, |_| true)?),
            name: decoded(name)?,
            version: version.map(decoded).transpose()?,
            qualifiers: qualifiers.map(read_qualifiers).transpose()?.unwrap_or_default(),
            subpath: subpath.map(|path| segments(path, |s| s != "." && s != "..")).transpose()?,
        })
    }

    /// Returns the canonical form of a purl whose parts are decoded, but not normalized. Fails if
    /// they break a rule of the purl's type.
    fn build(parts: Self) -> PurlResult<Self> {
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let mut purl = Self {
            kind: kind(&parts.kind)?,
            namespace: given(parts.namespace),
            name: parts.name,
            version: given(parts.version),
            qualifiers: canonical_qualifiers(parts.qualifiers)?,
            subpath: given(parts.subpath),
        };
        if purl.name.is_empty() {
            return Err(PurlError("a purl names a package"));
        }
        types::apply(&mut purl)?;
        Ok(purl)
    }

    /// Returns the value of the purl's qualifier with this key; `None` if the purl does not have
    /// it.
    pub(crate) fn qualifier(&self, key: &str) -> Option<&str> {
        self.qualifiers.get(key).map(String::as_str)
    }

    /// Returns the purl without version, qualifiers and subpath.
    pub(crate) fn package(&self) -> Self {
        Self { version: None, qualifiers: BTreeMap::new(), subpath: None, ..self.clone() }
    }
}

impl fmt::Display for Purl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pkg:{}/", self.kind)?;
        for segment in self.namespace.iter().flat_map(|namespace| namespace.split('/')) {
            write!(f, "{}/", encoded(segment))?;
        }
        write_path(f, &self.name, types::name_is_a_path(&self.kind))?;
        if let Some(version) = &self.version {
            write!(f, "@{}", encoded(version))?;
        }
        for (at, (key, value)) in self.qualifiers.iter().enumerate() {
            let mark = if at == 0 { '?' } else { '&' };
            write!(f, "{mark}{key}={}", encoded(value))?;
        }
        if let Some(subpath) = &self.subpath {
            f.write_char('#')?;
            write_path(f, subpath, true)?;
        }
        Ok(())
    }
}

fn encoded(text: &str) -> impl fmt::Display {
    utf8_percent_encode(text, ENCODED)
}

fn write_path(f: &mut fmt::Formatter<'_>, path: &str, keep_slashes: bool) -> fmt::Result {
    if !keep_slashes {
        return write!(f, "{}", encoded(path));
    }
    for (at, segment) in path.split('/').enumerate() {
        let slash = if at == 0 { "" } else { "/" };
        write!(f, "{slash}{}", encoded(segment))?;
    }
    Ok(())
}

fn cut_last(text: &str, mark: char) -> (&str, Option<&str>) {
    text.rsplit_once(mark).map_or((text, None), |(before, after)| (before, Some(after)))
}

fn decoded(text: &str) -> PurlResult<String> {
    let decoded = percent_decode_str(text).decode_utf8();
    let decoded = decoded.map_err(|_| PurlError("what is percent-encoded must be UTF-8"))?;
    if decoded.contains('\0') {
        return Err(PurlError("a purl has no U+0000"));
    }
    Ok(decoded.into_owned())
}

/// Returns the percent-decoded segments of a path, joined by `/`, without empty ones and those that
/// `keep` refuses.
fn segments(path: &str, keep: impl Fn(&str) -> bool) -> PurlResult<String> {
    let mut joined = String::with_capacity(path.len());
    for segment in path.split('/').filter(|segment| !segment.is_empty() && keep(segment)) {
        let segment = decoded(segment)?;
        if segment.contains('/') {
            return Err(PurlError("a segment contains no encoded `/`"));
        }
        if !joined.is_empty() {
            joined.push('/');
        }
        joined.push_str(&segment);
    }
    Ok(joined)
}

fn kind(text: &str) -> PurlResult<String> {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
    let good = text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(letter);
    good.then(|| text.to_ascii_lowercase())
        .ok_or(PurlError("a type is ASCII letters, digits, `.`, `-` and `+`, a letter first"))
}

fn read_qualifiers(text: &str) -> PurlResult<BTreeMap<String, String>> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let pair = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        Ok((key.to_owned(), decoded(value)?))
    };
    pairs.map(pair).collect()
}

fn canonical_qualifiers(given: BTreeMap<String, String>) -> PurlResult<BTreeMap<String, String>> {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let mut qualifiers = BTreeMap::new();
    for (key, value) in given {
        if !key.starts_with(|c: char| c.is_ascii_alphabetic()) || !key.chars().all(letter) {
            return Err(PurlError(
                "a qualifier's key is ASCII letters, digits, `.`, `-` and `_`, a letter first",
            ));
        }
        if !value.is_empty() {
            qualifiers.insert(key.to_ascii_lowercase(), value);
        }
    }
    Ok(qualifiers)
}

#[cfg(test)]
mod tests;
