//! Classifies IP addresses as public or not.
//!
//! The list follows the IANA special-purpose registries (RFC 6890 and its
//! updates), read strictly: an address that is not clearly global unicast is
//! not public. IPv6 addresses that embed an IPv4 address are never allowed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether outgoing requests may be sent to an IP address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressClass {
    /// A public address; requests are always allowed.
    Public,
    /// An address of this machine; requests are allowed only with
    /// `egress.allow_loopback`.
    Loopback,
    /// Requests are never allowed; the text names the kind of address.
    Forbidden(&'static str),
}

/// Returns whether requests may be sent to an address.
pub(super) fn reach(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(address) => reach_v4(address),
        IpAddr::V6(address) => reach_v6(address),
    }
}

/// IPv4 networks to which no request may be sent: network, prefix length in
/// bits, and kind for error messages; the first match counts.
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
    // Multicast, reserved and broadcast together.
    (Ipv4Addr::new(224, 0, 0, 0), 3, "multicast or reserved"),
];

fn reach_v4(address: Ipv4Addr) -> AddressClass {
    if address.is_loopback() {
        return AddressClass::Loopback;
    }
    let bits = address.to_bits();
    FORBIDDEN_V4
        .iter()
        .find(|(network, prefix, _)| (bits ^ network.to_bits()) >> (32 - prefix) == 0)
        .map_or(AddressClass::Public, |(_, _, what)| AddressClass::Forbidden(what))
}

/// IPv6 networks to which no request may be sent: network, prefix length in
/// bits, and kind for error messages; the first match counts. Addresses outside
/// 2000::/3 are refused in any case.
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

fn reach_v6(address: Ipv6Addr) -> AddressClass {
    if address.is_loopback() {
        return AddressClass::Loopback;
    }
    let bits = address.to_bits();
    let within = |network: Ipv6Addr, prefix: u32| (bits ^ network.to_bits()) >> (128 - prefix) == 0;
    if let Some((_, _, what)) =
        FORBIDDEN_V6.iter().find(|(network, prefix, _)| within(*network, *prefix))
    {
        return AddressClass::Forbidden(what);
    }
    // ISATAP embeds an IPv4 address in the last 64 bits, under any prefix.
    if matches!((bits >> 32) as u32 & 0xfdff_ffff, 0x0000_5efe) {
        return AddressClass::Forbidden("an ISATAP form");
    }
    if within(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3) {
        AddressClass::Public
    } else {
        AddressClass::Forbidden("reserved")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> AddressClass {
        reach(text.parse().unwrap())
    }

    #[test]
    fn what_is_not_the_public_internet_is_forbidden() {
        let forbidden = "0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 168.63.129.16 \
            169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.170 192.0.2.1 192.88.99.1 \
            192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 \
            239.255.255.255 240.0.0.1 255.255.255.255 :: ::ffff:127.0.0.1 ::ffff:8.8.8.8 \
            ::ffff:0:8.8.8.8 ::127.0.0.1 64:ff9b::8.8.8.8 64:ff9b:1::1 100::1 2001::1 2001:2::1 \
            2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1::1 2a00::5efe:10.0.0.1 \
            2a00::200:5efe:10.0.0.1 3fff::1 4000::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1";
        for address in forbidden.split(' ') {
            let class = of(address);
            assert!(matches!(class, AddressClass::Forbidden(_)), "{address} {class:?}");
        }
    }

    #[test]
    fn the_edges_of_the_forbidden_networks_are_public() {
        let public = "1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 169.253.255.255 \
            169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 192.169.0.0 \
            198.17.255.255 198.20.0.0 223.255.255.255 2001:200::1 2001:4860:4860::8888 2003::1 \
            2606:4700::1111";
        for address in public.split(' ') {
            assert_eq!(of(address), AddressClass::Public, "{address}");
        }
    }

    #[test]
    fn loopback_is_told_apart() {
        for address in ["127.0.0.1", "127.255.255.255", "::1"] {
            assert_eq!(of(address), AddressClass::Loopback, "{address}");
        }
    }

    proptest! {
        #[test]
        fn a_form_that_carries_an_ipv4_address_is_never_sent_to(bits: u32, low: u64) {
            let [a, b] = [(bits >> 16) as u16, bits as u16];
            let last = |prefix: [u16; 6]| Ipv6Addr::from([
                prefix[0], prefix[1], prefix[2], prefix[3], prefix[4], prefix[5], a, b,
            ]);
            let forms = [
                last([0, 0, 0, 0, 0, 0xffff]),
                last([0, 0, 0, 0, 0xffff, 0]),
                last([0x64, 0xff9b, 0, 0, 0, 0]),
                last([0x64, 0xff9b, 1, 0, 0, 0]),
                Ipv6Addr::from_bits(0x2002 << 112 | u128::from(bits) << 80 | u128::from(low)),
                Ipv6Addr::from_bits(0x2001 << 112 | u128::from(low)),
            ];
            for form in forms {
                prop_assert_ne!(reach_v6(form), AddressClass::Public, "{}", form);
            }
        }

        #[test]
        fn only_global_unicast_is_public(bits: u128) {
            let address = Ipv6Addr::from_bits(bits);
            if bits >> 125 != 1 {
                prop_assert_ne!(reach_v6(address), AddressClass::Public, "{}", address);
            }
        }
    }
}
