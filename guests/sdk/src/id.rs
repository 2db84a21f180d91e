//! Generates ids within a call: UUIDv7 from the call's time and seed. A call that runs again
//! generates the same ids.

use std::cell::Cell;

use uuid::{Builder, Uuid};

use crate::time::Timestamp;

/// Deterministic generator of ids and random numbers (xoroshiro128++ by Blackman and Vigna). Not
/// for secrets.
#[derive(Debug)]
pub(crate) struct IdGenerator {
    state: Cell<(u64, u64)>,
    made: Cell<u16>,
}

impl IdGenerator {
    pub(crate) fn new((a, b): (u64, u64)) -> Self {
        // The all-zero state is the generator's only fixed point.
        Self { state: Cell::new((a, b | u64::from(a == 0 && b == 0))), made: Cell::new(0) }
    }

    pub(crate) fn next_u64(&self) -> u64 {
        let (a, b) = self.state.get();
        let mixed = a.wrapping_add(b).rotate_left(17).wrapping_add(a);
        let b = b ^ a;
        self.state.set((a.rotate_left(49) ^ b ^ (b << 21), b.rotate_left(28)));
        mixed
    }

    /// Returns an id that sorts by the call's time in microseconds, then by the number of ids
    /// generated in the call (RFC 9562, section 6.2, methods 3 and 1).
    pub(crate) fn next_id(&self, now: Timestamp) -> Uuid {
        let micros = u64::try_from(now.0).unwrap_or(0);
        let (ms, fraction) = (micros / 1000, (micros % 1000) * 4096 / 1000);
        let made = self.made.get();
        self.made.set(made.wrapping_add(1));

        let mut bytes = [0; 10];
        bytes[..2].copy_from_slice(&u16::try_from(fraction).unwrap_or(0).to_be_bytes());
        // 14 bits of counter under the two variant bits, then 48 random bits.
        bytes[2..].copy_from_slice(&(self.next_u64() & 0xffff_ffff_ffff).to_be_bytes());
        bytes[2..4].copy_from_slice(&(made & 0x3fff).to_be_bytes());
        Builder::from_unix_timestamp_millis(ms, &bytes).into_uuid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_version_7_and_ascend_within_a_call() {
        let ids = IdGenerator::new((1, 2));
        let now = Timestamp(1_790_000_000_123_456);
        let made: Vec<Uuid> = (0..100).map(|_| ids.next_id(now)).collect();
        assert!(made.iter().all(|id| id.get_version_num() == 7));
        assert!(made.is_sorted());
        assert!(ids.next_id(Timestamp(now.0 + 1)) > made[99]);
        assert_ne!(IdGenerator::new((0, 0)).next_u64(), 0_u64.wrapping_sub(1));
    }

    #[test]
    fn the_same_seed_makes_the_same_ids() {
        let now = Timestamp(0);
        assert_eq!(IdGenerator::new((7, 9)).next_id(now), IdGenerator::new((7, 9)).next_id(now));
        assert_ne!(IdGenerator::new((7, 9)).next_id(now), IdGenerator::new((7, 8)).next_id(now));
    }
}
