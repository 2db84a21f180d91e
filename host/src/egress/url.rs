//! What can be told of a URL before any name is resolved.

use std::net::IpAddr;

use ::url::{Host, Url};

use super::Refused;
use super::address::{Reach, reach};

/// Longest URL sent to, in bytes.
const MAX_URL_BYTES: usize = 2_048;

/// Names that never mean a host of the public Internet (RFC 6761, 6762, 8375,
/// 9476, and what cloud machines call their metadata service).
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

/// Parses a URL by the WHATWG rules, so that odd spellings of addresses
/// (octal, hexadecimal, one number) are seen as the addresses they are.
pub(super) fn checked(text: &str, allow_loopback: bool) -> Result<Url, Refused> {
    if text.len() > MAX_URL_BYTES {
        return refused(format!("the URL is longer than {MAX_URL_BYTES} bytes"));
    }
    let url = Url::parse(text).map_err(|error| Refused(format!("not a URL: {error}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        return refused("a URL with a user name or password is not sent to");
    }
    if url.port() == Some(0) {
        return refused("port 0 is no port");
    }
    let loopback = match url.host() {
        None => return refused("the URL has no host"),
        Some(Host::Ipv4(address)) => literal(IpAddr::V4(address), allow_loopback)?,
        Some(Host::Ipv6(address)) => literal(IpAddr::V6(address), allow_loopback)?,
        Some(Host::Domain(name)) => domain(name, allow_loopback)?,
    };
    match url.scheme() {
        "https" => Ok(url),
        "http" if loopback => Ok(url),
        other => refused(format!("only https is sent to, not {other}")),
    }
}

/// May this address be sent to; is it a loopback one?
pub(super) fn literal(address: IpAddr, allow_loopback: bool) -> Result<bool, Refused> {
    match reach(address) {
        Reach::Public => Ok(false),
        Reach::Loopback if allow_loopback => Ok(true),
        Reach::Loopback => refused(format!("{address} is a loopback address")),
        Reach::Forbidden(what) => refused(format!("{address} is not public ({what})")),
    }
}

fn domain(name: &str, allow_loopback: bool) -> Result<bool, Refused> {
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
        return refused(format!("{name:?} is no name of the public Internet"));
    }
    Ok(false)
}

fn refused<T>(why: impl Into<String>) -> Result<T, Refused> {
    Err(Refused(why.into()))
}
