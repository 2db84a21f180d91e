//! The head of every request, before anybody looks at it.

use axum::http::{HeaderMap, HeaderValue, header};

/// Takes back what a client says against an answer sent as it is
/// (`identity;q=0`, `*;q=0`). HTTP lets a server disregard that, and the codings
/// it does want are still chosen from. To refuse instead is no use: the coding
/// is chosen when the request has had its effect.
pub(super) fn allow_identity(headers: &mut HeaderMap) {
    let lists = headers.get_all(header::ACCEPT_ENCODING).iter();
    let codings: Vec<&str> =
        lists.filter_map(|list| list.to_str().ok()).flat_map(|list| list.split(',')).collect();
    let kept: Vec<&str> =
        codings.iter().copied().filter(|coding| !refuses_identity(coding)).collect();
    if kept.len() == codings.len() {
        return;
    }
    let kept = HeaderValue::from_str(&kept.join(","));
    headers.remove(header::ACCEPT_ENCODING);
    if let Ok(kept) = kept {
        headers.insert(header::ACCEPT_ENCODING, kept);
    }
}

fn refuses_identity(coding: &str) -> bool {
    let Some((coding, weight)) = coding.split_once(';') else { return false };
    let coding = coding.trim();
    let weight = weight.trim().strip_prefix(['q', 'Q']).and_then(|rest| rest.strip_prefix('='));
    (coding == "*" || coding.eq_ignore_ascii_case("identity"))
        && weight.is_some_and(|weight| weight.bytes().all(|byte| matches!(byte, b'0' | b'.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepting(lists: &[&'static str]) -> HeaderMap {
        let lists = lists.iter().map(|list| HeaderValue::from_static(list));
        lists.fold(HeaderMap::new(), |mut map, list| {
            map.append(header::ACCEPT_ENCODING, list);
            map
        })
    }

    #[test]
    fn nobody_can_refuse_an_answer_as_it_is() {
        let kept = |values: &[&'static str]| {
            let mut map = accepting(values);
            allow_identity(&mut map);
            let lists = map.get_all("accept-encoding").iter().map(|list| list.to_str().unwrap());
            lists.collect::<Vec<_>>().join("|")
        };
        assert_eq!(kept(&["gzip, br;q=0.5", "*"]), "gzip, br;q=0.5|*");
        assert_eq!(kept(&["identity;q=0"]), "");
        assert_eq!(kept(&["Identity ; Q=0.000", "*;q=0"]), "");
        assert_eq!(kept(&["gzip;q=0.8, *;q=0"]), "gzip;q=0.8");
        assert_eq!(kept(&["identity;q=0, *;q=0.5"]), " *;q=0.5");
    }
}
