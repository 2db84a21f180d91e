//! How often somebody may ask: per session, per workspace and, for sign-in,
//! per address; in a fleet, of all nodes together. How many sessions an address
//! may guess, and how many pages it may have, each node decides alone.

mod fleet;
mod gate;

use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::str::FromStr;

pub use fleet::share_rates;
use gate::Gate;

use crate::config::Rates;
use crate::domain::id::{SessionId, WorkspaceId};
use crate::domain::manifest::RateClass;

/// One rule: so many units, all regained within so many seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// As clients read it.
    pub name: &'static str,
    /// Units that can be used at once.
    pub quota: u32,
    /// Seconds in which all are regained.
    pub window_s: u64,
}

/// Where somebody stands under one policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// The rule.
    pub policy: Policy,
    /// Units left.
    pub remaining: u32,
    /// Seconds until all are regained.
    pub reset_s: u64,
}

/// Refused; the wait until the same request would pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spent {
    /// Nothing is left there.
    pub standing: Standing,
    /// Seconds.
    pub retry_after_s: u64,
}

/// The service's rate limits; without any where they are switched off.
#[derive(Debug)]
pub struct Limiter {
    gates: Option<Gates>,
    shared: bool,
    light: NonZeroU32,
    standard: NonZeroU32,
    heavy: NonZeroU32,
}

#[derive(Debug)]
struct Gates {
    session: Gate<SessionId>,
    workspace: Gate<WorkspaceId>,
    sign_in: Gate<IpAddr>,
    guess: Gate<IpAddr>,
    page: Gate<IpAddr>,
}

impl Gates {
    fn new(rates: &Rates, shared: bool) -> Self {
        let (session, workspace) = (rates.session_per_minute, rates.workspace_per_minute);
        let (sign_in, guess) = (rates.sign_in_per_minute, rates.unknown_sessions_per_minute);
        Self {
            session: Gate::new("session", rates.session_burst, session, shared),
            workspace: Gate::new("workspace", rates.workspace_burst, workspace, shared),
            sign_in: Gate::new("sign-in", sign_in, sign_in, shared),
            guess: Gate::new("unknown-session", guess, guess, false),
            page: Gate::new("page", rates.pages_per_minute, rates.pages_per_minute, false),
        }
    }
}

impl Limiter {
    /// Limits as configured; `shared` with other nodes, or this one's alone.
    #[must_use]
    pub fn new(rates: &Rates, shared: bool) -> Self {
        Self {
            gates: rates.enabled.then(|| Gates::new(rates, shared)),
            shared: shared && rates.enabled,
            light: at_least_one(rates.light_units),
            standard: at_least_one(rates.standard_units),
            heavy: at_least_one(rates.heavy_units),
        }
    }

    /// Takes a request's units from its session.
    ///
    /// # Errors
    /// Too few are left; none were taken.
    pub fn session(&self, key: SessionId, class: RateClass) -> Result<Option<Standing>, Spent> {
        let gate = self.gates.as_ref().map(|gates| &gates.session);
        gate.map(|gate| gate.take(&key, self.units(class))).transpose()
    }

    /// Takes a request's units from its workspace.
    ///
    /// # Errors
    /// Too few are left; none were taken.
    pub fn workspace(&self, key: WorkspaceId, class: RateClass) -> Result<Option<Standing>, Spent> {
        let gate = self.gates.as_ref().map(|gates| &gates.workspace);
        gate.map(|gate| gate.take(&key, self.units(class))).transpose()
    }

    /// Takes one attempt from an address that wants to sign in.
    ///
    /// # Errors
    /// Too few are left.
    pub fn sign_in(&self, address: IpAddr) -> Result<Option<Standing>, Spent> {
        let gate = self.gates.as_ref().map(|gates| &gates.sign_in);
        gate.map(|gate| gate.take(&network_of(address), NonZeroU32::MIN)).transpose()
    }

    /// Whether an address may ask with a session that is not known here.
    ///
    /// # Errors
    /// Too many of its sessions were nobody's.
    pub fn may_guess(&self, address: IpAddr) -> Result<(), Spent> {
        let gate = self.gates.as_ref().map(|gates| &gates.guess);
        gate.map_or(Ok(()), |gate| gate.look(&network_of(address)))
    }

    /// An address asked with a session that is nobody's.
    pub fn guessed(&self, address: IpAddr) {
        if let Some(gates) = &self.gates {
            gates.guess.owe(&network_of(address), 1);
        }
    }

    /// Takes one page that an address asks for.
    ///
    /// # Errors
    /// It has had too many.
    pub fn page(&self, address: IpAddr) -> Result<Option<Standing>, Spent> {
        let gate = self.gates.as_ref().map(|gates| &gates.page);
        gate.map(|gate| gate.take(&network_of(address), NonZeroU32::MIN)).transpose()
    }

    /// Where a session stands; takes nothing.
    #[must_use]
    pub fn session_standing(&self, key: SessionId) -> Option<Standing> {
        self.gates.as_ref().map(|gates| gates.session.standing_of(&key))
    }

    /// Where an address stands that wants to sign in; takes nothing.
    #[must_use]
    pub fn sign_in_standing(&self, address: IpAddr) -> Option<Standing> {
        self.gates.as_ref().map(|gates| gates.sign_in.standing_of(&network_of(address)))
    }

    /// Forgets whoever has regained everything.
    pub fn forget_idle(&self) {
        if let Some(gates) = &self.gates {
            gates.session.forget_idle();
            gates.workspace.forget_idle();
            gates.sign_in.forget_idle();
            gates.guess.forget_idle();
            gates.page.forget_idle();
        }
    }

    /// Whether other nodes are told, and tell, what was let through.
    fn is_shared(&self) -> bool {
        self.shared
    }

    /// Units let through since this was last asked, by whom they were for.
    fn untold(&self) -> Vec<(String, i64)> {
        let Some(gates) = &self.gates else { return Vec::new() };
        let sessions = gates.session.untold().into_iter();
        let workspaces = gates.workspace.untold().into_iter();
        let addresses = gates.sign_in.untold().into_iter();
        let mut told: Vec<_> = sessions.map(|(id, n)| (format!("session {id}"), n)).collect();
        told.extend(workspaces.map(|(id, n)| (format!("workspace {id}"), n)));
        told.extend(addresses.map(|(address, n)| (format!("address {address}"), n)));
        told
    }

    /// Other nodes let so many units through for somebody.
    fn used_elsewhere(&self, key: &str, units: u64) {
        let (Some(gates), Some((kind, who))) = (&self.gates, key.split_once(' ')) else { return };
        match kind {
            "session" => owe(&gates.session, who, units),
            "workspace" => owe(&gates.workspace, who, units),
            "address" => owe(&gates.sign_in, who, units),
            _ => {}
        }
    }

    fn units(&self, class: RateClass) -> NonZeroU32 {
        match class {
            RateClass::Light => self.light,
            RateClass::Standard => self.standard,
            RateClass::Heavy => self.heavy,
        }
    }
}

/// A key of another version of the service is nobody here.
fn owe<K: FromStr + Hash + Eq + Clone>(gate: &Gate<K>, who: &str, units: u64) {
    if let Ok(key) = who.parse() {
        gate.owe(&key, units);
    }
}

/// One person usually has a whole /64 of IPv6.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((u128::from(v6) & !u128::from(u64::MAX)).into()),
        v4 @ IpAddr::V4(_) => v4,
    }
}

fn at_least_one(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(burst: u32, per_minute: u32) -> Limiter {
        let rates = Rates::default();
        let rates = Rates { session_burst: burst, session_per_minute: per_minute, ..rates };
        Limiter::new(&rates, true)
    }

    #[test]
    fn heavy_requests_use_more_and_refusals_say_how_long() {
        let limiter = limiter(20, 60);
        let session = SessionId::new();
        let standing = limiter.session(session, RateClass::Standard).unwrap().unwrap();
        assert_eq!(standing.policy, Policy { name: "session", quota: 20, window_s: 20 });
        assert_eq!((standing.remaining, standing.reset_s), (18, 2));
        let spent = limiter.session(session, RateClass::Heavy).unwrap_err();
        assert_eq!(spent.retry_after_s, 2);
        assert!(limiter.session(SessionId::new(), RateClass::Heavy).is_ok());
    }

    #[test]
    fn a_request_heavier_than_the_quota_passes_when_all_is_left() {
        let limiter = limiter(5, 60);
        assert!(limiter.session(SessionId::new(), RateClass::Heavy).is_ok());
    }

    #[test]
    fn who_guesses_too_often_waits_and_who_does_not_guess_does_not() {
        let rates = Rates { unknown_sessions_per_minute: 3, ..Rates::default() };
        let limiter = Limiter::new(&rates, false);
        let (guesser, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        for _ in 0..3 {
            assert_eq!(limiter.may_guess(guesser), Ok(()));
            assert_eq!(limiter.may_guess(guesser), Ok(()), "to look costs nothing");
            limiter.guessed(guesser);
        }
        let spent = limiter.may_guess(guesser).unwrap_err();
        assert!((1..=20).contains(&spent.retry_after_s), "{spent:?}");
        assert_eq!(limiter.may_guess(other), Ok(()));
    }

    #[test]
    fn switched_off_there_is_nothing_to_tell() {
        let limiter = Limiter::new(&Rates { enabled: false, ..Rates::default() }, true);
        assert_eq!(limiter.session(SessionId::new(), RateClass::Heavy), Ok(None));
    }

    #[test]
    fn what_one_node_tells_another_owes() {
        let (here, there) = (limiter(20, 60), limiter(20, 60));
        let (session, workspace) = (SessionId::new(), WorkspaceId::new());
        let address = IpAddr::from([192, 0, 2, 1]);
        for _ in 0..5 {
            here.session(session, RateClass::Standard).unwrap();
            here.workspace(workspace, RateClass::Standard).unwrap();
            here.sign_in(address).unwrap();
        }
        for (key, units) in here.untold() {
            there.used_elsewhere(&key, units.unsigned_abs());
        }
        there.used_elsewhere("planet earth", 1);
        let session = there.session(session, RateClass::Standard).unwrap().unwrap();
        assert_eq!(session.remaining, 8);
        let workspace = there.workspace(workspace, RateClass::Standard).unwrap().unwrap();
        assert_eq!(workspace.remaining, workspace.policy.quota - 12);
        let address = there.sign_in(address).unwrap().unwrap();
        assert_eq!(address.remaining, address.policy.quota - 6);
    }

    #[test]
    fn neighbours_in_one_ipv6_network_share_a_limit() {
        let one = network_of("2001:db8::1".parse().unwrap());
        assert_eq!(one, network_of("2001:db8::2".parse().unwrap()));
        assert_ne!(one, network_of("2001:db8:0:1::1".parse().unwrap()));
        assert_eq!(
            network_of("::ffff:192.0.2.1".parse().unwrap()),
            "192.0.2.1".parse::<IpAddr>().unwrap()
        );
    }
}
