//! Address of a client: that of its connection, or the one that trusted proxies report.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Once;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};

use super::listen::PeerAddress;
use assurance_service::app::App;

/// Returns the IP address of the client: of its connection, or as trusted proxies report it.
pub(super) fn address_of(parts: &Parts, app: &App) -> IpAddr {
    let peer = parts.extensions.get::<PeerAddress>().map(|peer| peer.0.ip().to_canonical());
    let peer = peer.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    client_address(peer, &parts.headers, &app.config.api.trusted_proxies)
}

/// Returns the last address in `X-Forwarded-For` that is not a trusted proxy. Proxies append
/// addresses, and only those that a trusted proxy appended are reliable.
fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &[String]) -> IpAddr {
    let mut address = peer;
    let forwarded = headers.get_all("x-forwarded-for").iter();
    let listed: Vec<&str> = forwarded
        .filter_map(|value: &HeaderValue| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .collect();
    for hop in listed.iter().rev() {
        if !is_trusted(address, trusted) {
            break;
        }
        let Some(before) = address_in(hop.trim()) else {
            warn_once(address, hop);
            break;
        };
        address = before.to_canonical();
    }
    address
}

/// Returns the IP address in an entry of `X-Forwarded-For`. Some proxies append a port, and IPv6 is
/// then in brackets.
fn address_in(hop: &str) -> Option<IpAddr> {
    let bare = hop.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(hop);
    bare.parse().or_else(|_| hop.parse::<SocketAddr>().map(|address| address.ip())).ok()
}

/// Logs the first entry of `X-Forwarded-For` in this process that cannot be read: all clients
/// behind that proxy share its address and its limits.
fn warn_once(proxy: IpAddr, hop: &str) {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        tracing::warn!(%proxy, entry = ?hop, "X-Forwarded-For of a trusted proxy has no address");
    });
}

/// Returns whether an address is a trusted proxy, or in a trusted network.
pub(super) fn is_trusted(address: IpAddr, trusted: &[String]) -> bool {
    trusted.iter().any(|known| match known.parse::<ipnet::IpNet>() {
        Ok(network) => network.contains(&address),
        Err(_) => known.parse() == Ok(address),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(peer: &str, forwarded: &'static str, trusted: &[&str]) -> String {
        let name = axum::http::HeaderName::from_static("x-forwarded-for");
        let headers = HeaderMap::from_iter([(name, HeaderValue::from_static(forwarded))]);
        let trusted: Vec<String> = trusted.iter().map(ToString::to_string).collect();
        client_address(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        assert_eq!(from("192.0.2.9", "198.51.100.1", &[]), "192.0.2.9");
        assert_eq!(from("10.0.0.1", "198.51.100.1", &["10.0.0.0/8"]), "198.51.100.1");
        let spoofed = "203.0.113.5, 198.51.100.1, 10.0.0.2";
        assert_eq!(from("10.0.0.1", spoofed, &["10.0.0.0/8"]), "198.51.100.1");
        assert_eq!(from("10.0.0.1", "nonsense", &["10.0.0.1"]), "10.0.0.1");
    }

    #[test]
    fn an_entry_may_have_a_port() {
        for (entry, address) in [
            ("203.0.113.7:51234", "203.0.113.7"),
            ("[2001:db8::1]:443", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("[::ffff:203.0.113.7]:1", "203.0.113.7"),
        ] {
            assert_eq!(from("10.0.0.1", entry, &["10.0.0.1"]), address, "{entry}");
        }
    }
}
