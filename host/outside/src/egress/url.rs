//! Checks of a URL before its host name is resolved.

use std::net::IpAddr;

use ::url::{Host, Url};

use super::UrlRefusal;
use super::address::{AddressClass, reach};

/// Maximum length of a URL, in bytes.
const MAX_URL_BYTES: usize = 2_048;

/// Ports of text-based protocols whose servers might interpret a request as
/// mail or commands (from the Fetch standard's list of bad ports).
const OTHER_PROTOCOLS: [u16; 22] = [
    20, 21, 22, 23, 25, 53, 69, 110, 119, 139, 143, 161, 389, 465, 514, 563, 587, 636, 993, 995,
    6667, 6697,
];

/// Names that never belong to a host on the public Internet (RFC 6761, 6762,
/// 8375, 9476, and metadata services of cloud providers).
const LOCAL_NAMES: [&str; 9] = [
    "local",
    "localdomain",
    "internal",
    "intranet",
    "home.arpa",
    "lan",
    "onion",
    "alt",
    "metadata",
];

/// Parses a URL and checks that requests may be sent to it. The WHATWG parser
/// recognizes unusual spellings of addresses (octal, hexadecimal, one number)
/// as addresses.
pub(super) fn checked(text: &str, allow_loopback: bool) -> Result<Url, UrlRefusal> {
    if text.len() > MAX_URL_BYTES {
        return refused(format!("the URL is longer than {MAX_URL_BYTES} bytes"));
    }
    let url = Url::parse(text).map_err(|error| UrlRefusal(format!("not a URL: {error}")))?;
    let written = authority(text, url.scheme());
    let names_user = !url.username().is_empty() || url.password().is_some();
    if names_user || written.is_some_and(|authority| authority.contains('@')) {
        return refused("the URL must not contain a user name or password");
    }
    match url.port() {
        Some(0) => return refused("port 0 is not a valid port"),
        Some(port) if OTHER_PROTOCOLS.contains(&port) => {
            return refused(format!("port {port} belongs to another protocol than https"));
        }
        _ => {}
    }
    let loopback = match url.host() {
        None => return refused("the URL has no host"),
        Some(Host::Ipv4(address)) => literal(IpAddr::V4(address), allow_loopback)?,
        Some(Host::Ipv6(address)) => literal(IpAddr::V6(address), allow_loopback)?,
        Some(Host::Domain(name)) => domain(name, allow_loopback)?,
    };
    match url.scheme() {
        "https" => {}
        "http" if loopback => {}
        other => return refused(format!("only https URLs are allowed, not {other}")),
    }
    match written {
        None | Some("") => refused("a URL is written https://, then the host"),
        Some(_) => Ok(url),
    }
}

/// Returns a URL's authority (host and port) as it is written; `None` without
/// `://`. The parser accepts too few slashes, backslashes, and an empty user
/// name. A person who reads such a URL would see another host, so these forms
/// are rejected.
fn authority<'t>(text: &'t str, scheme: &str) -> Option<&'t str> {
    let rest = text.get(scheme.len()..)?.strip_prefix("://")?;
    rest.split(['/', '\\', '?', '#']).next()
}

/// Checks that requests may be sent to an IP address. Returns whether it is a
/// loopback address.
pub(super) fn literal(address: IpAddr, allow_loopback: bool) -> Result<bool, UrlRefusal> {
    match reach(address) {
        AddressClass::Public => Ok(false),
        AddressClass::Loopback if allow_loopback => Ok(true),
        AddressClass::Loopback => refused(format!("{address} is a loopback address")),
        AddressClass::Forbidden(what) => refused(format!("{address} is not public ({what})")),
    }
}

fn domain(name: &str, allow_loopback: bool) -> Result<bool, UrlRefusal> {
    let name = name.trim_end_matches('.');
    let within = |zone: &str| {
        name == zone || name.strip_suffix(zone).is_some_and(|before| before.ends_with('.'))
    };
    if within("localhost") {
        return if allow_loopback {
            Ok(true)
        } else {
            refused(format!("{name} is a loopback name"))
        };
    }
    if name.is_empty() || !name.contains('.') || LOCAL_NAMES.iter().any(|zone| within(zone)) {
        return refused(format!("{name:?} is not a host name of the public Internet"));
    }
    Ok(false)
}

fn refused<T>(why: impl Into<String>) -> Result<T, UrlRefusal> {
    Err(UrlRefusal(why.into()))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ordinary_https_urls_are_sent_to() {
        for url in [
            "https://example.com/hook?x=1",
            "https://EXAMPLE.com:8443/",
            "https://8.8.8.8/",
            "https://[2606:4700::1111]/",
            "https://bücher.example/",
        ] {
            assert!(checked(url, false).is_ok(), "{url}");
        }
    }

    #[test]
    fn everything_else_is_refused_and_told_why() {
        for (url, told) in [
            ("http://example.com/", "only https"),
            ("ftp://example.com/", "only https"),
            ("file:///etc/passwd", "no host"),
            ("javascript:alert(1)", "no host"),
            ("//example.com", "not a URL"),
            ("https://user@example.com/", "user name"),
            ("https://:secret@example.com/", "user name"),
            ("https://@example.com/", "user name"),
            ("https://:@example.com/", "user name"),
            ("https:example.com/", "written https://"),
            ("https:/example.com/", "written https://"),
            ("https:///example.com/", "written https://"),
            ("https:\\\\example.com/", "written https://"),
            (" https://example.com/", "written https://"),
            ("https://example.com:0/", "port 0"),
            ("https://example.com:22/", "port 22 belongs to another protocol"),
            ("https://example.com:25/", "port 25 belongs to another protocol"),
            ("https://localhost/", "loopback"),
            ("https://a.localhost./", "loopback"),
            ("https://127.0.0.1/", "loopback"),
            ("https://127.1/", "loopback"),
            ("https://2130706433/", "loopback"),
            ("https://0x7f.1/", "loopback"),
            ("https://0177.0.0.01/", "loopback"),
            ("https://①②⑦.0.0.1/", "loopback"),
            ("https://[::1]/", "loopback"),
            ("https://[::ffff:127.0.0.1]/", "not public"),
            ("https://0/", "not public"),
            ("https://169.254.169.254/latest", "not public"),
            ("https://0xa9fea9fe/", "not public"),
            ("https://[fd00:ec2::254]/", "not public"),
            ("https://metadata/", "not a host name"),
            ("https://metadata.google.internal/", "not a host name"),
            ("https://printer.local/", "not a host name"),
            ("https://intranet/", "not a host name"),
            ("https://example.com\u{ff0f}@10.0.0.1/", "user name"),
        ] {
            let refused = checked(url, false).map(|url| url.to_string());
            let why = refused.expect_err(url).0;
            assert!(why.contains(told), "{url}: {why}");
        }
    }

    #[test]
    fn the_development_switch_allows_loopback_and_nothing_more() {
        for url in ["http://127.0.0.1:9/", "http://localhost:9/", "https://[::1]/"] {
            assert!(checked(url, true).is_ok(), "{url}");
        }
        for url in ["http://example.com/", "http://10.0.0.1/", "https://192.168.0.1/"] {
            assert!(checked(url, true).is_err(), "{url}");
        }
    }

    proptest! {
        #[test]
        fn an_address_is_judged_alike_however_it_is_written(bits: u32) {
            let address = Ipv4Addr::from_bits(bits);
            let [a, b, c, d] = address.octets();
            let low = u32::from(c) << 8 | u32::from(d);
            let judged = checked(&format!("https://{address}/"), false).is_ok();
            for text in [
                format!("https://{bits}/"),
                format!("https://{bits:#x}/"),
                format!("https://0{bits:o}/"),
                format!("https://{a:#x}.{b}.{low}/"),
                format!("https://{a}.0{b:o}.{c}.{d:#x}./"),
            ] {
                prop_assert_eq!(checked(&text, false).is_ok(), judged, "{}", text);
            }
            let mapped = format!("https://[::ffff:{address}]/");
            prop_assert!(checked(&mapped, true).is_err());
        }

        #[test]
        fn no_text_is_more_than_refused(text in "\\PC{0,80}") {
            let _ = checked(&text, false);
            let _ = checked(&format!("https://{text}"), true);
        }
    }
}
