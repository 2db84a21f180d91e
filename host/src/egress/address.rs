//! Which addresses are the public Internet.
//!
//! The list is the IANA special-purpose registries' (RFC 6890 and its
//! updates), read the strict way: what is not plainly global unicast is not
//! public, and an IPv6 form that carries an IPv4 address is not sent to at all.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Anyone may send there.
    Public,
    /// This machine; only with the development switch.
    Loopback,
    /// Never; the word says what it is.
    Forbidden(&'static str),
}

/// Is this a public unicast address?
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    reach(address) == Reach::Public
}

/// Classes an address.
#[must_use]
pub(super) fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_v4(address),
        IpAddr::V6(address) => reach_v6(address),
    }
}

/// Network, bits of its prefix, what it is; the first that holds an address.
const FORBIDDEN_V4: [(Ipv4Addr, u32, &str); 17] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, "this network"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "private"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "carrier-grade NAT"),
    (Ipv4Addr::new(168, 63, 129, 16), 32, "cloud metadata"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local or cloud metadata"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "private"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "protocol assignment"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "documentation"),
    (Ipv4Addr::new(192, 31, 196, 0), 24, "AS112"),
    (Ipv4Addr::new(192, 52, 193, 0), 24, "multicast tunnelling"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "6to4 relay"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "private"),
    (Ipv4Addr::new(192, 175, 48, 0), 24, "AS112"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "benchmarking"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "documentation"),
    // Multicast, reserved and broadcast in one.
    (Ipv4Addr::new(224, 0, 0, 0), 3, "multicast or reserved"),
];

fn reach_v4(address: Ipv4Addr) -> Reach {
    if address.is_loopback() {
        return Reach::Loopback;
    }
    let bits = address.to_bits();
    FORBIDDEN_V4
        .iter()
        .find(|(network, prefix, _)| (bits ^ network.to_bits()) >> (32 - prefix) == 0)
        .map_or(Reach::Public, |(_, _, what)| Reach::Forbidden(what))
}

/// Named only to say what it is: everything outside 2000::/3 is refused.
const FORBIDDEN_V6: [(Ipv6Addr, u32, &str); 16] = [
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, "an IPv4-mapped form"),
    (Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96, "an IPv4-translated form"),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0, 0, 0), 96, "unspecified or an IPv4-compatible form"),
    (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96, "a NAT64 form"),
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, "a NAT64 form"),
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0), 64, "discard-only"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, "Teredo"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "protocol assignment"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "documentation"),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "6to4"),
    (Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48, "AS112"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "documentation"),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, "unique-local"),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, "link-local"),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, "site-local"),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, "multicast"),
];

fn reach_v6(address: Ipv6Addr) -> Reach {
    if address.is_loopback() {
        return Reach::Loopback;
    }
    let bits = address.to_bits();
    let within = |network: Ipv6Addr, prefix: u32| (bits ^ network.to_bits()) >> (128 - prefix) == 0;
    if let Some((_, _, what)) =
        FORBIDDEN_V6.iter().find(|(network, prefix, _)| within(*network, *prefix))
    {
        return Reach::Forbidden(what);
    }
    // ISATAP hides an IPv4 address in the last 64 bits, under any prefix.
    if matches!((bits >> 32) as u32 & 0xfdff_ffff, 0x0000_5efe) {
        return Reach::Forbidden("an ISATAP form");
    }
    if within(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3) {
        Reach::Public
    } else {
        Reach::Forbidden("reserved")
    }
}
