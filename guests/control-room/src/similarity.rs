//! Similarity of two findings: the share of common words in their texts (Jaccard coefficient),
//! computed from sketches that are small enough to be stored with each finding.
//!
//! A sketch has the 64 smallest hashes of a text's words. From it, a signature is computed. The
//! similarity is exact for texts with up to 64 different words, and an estimate for longer ones.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use area_sdk::prelude::*;

/// Maximum number of word hashes in the sketch of a text.
const MOST_WORDS: usize = 64;
/// Number of minimum hashes in the signature of a text. Texts that share 80 % of their words have
/// equal signatures in 40 % of all cases; equal texts always have equal signatures.
const SIGNED_BY: u32 = 4;

/// Sketch of a text: the smallest hashes of its words. Serialized as eight hexadecimal digits for
/// each hash.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct TextFingerprint(Vec<u32>);

impl TextFingerprint {
    /// Returns the sketch of several texts, as if they were one text.
    pub(crate) fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let texts = texts.into_iter().map(str::to_lowercase).collect::<Vec<_>>();
        let words = texts.iter().flat_map(|text| text.split(|c: char| !c.is_alphanumeric()));
        let hashes: BTreeSet<u32> =
            words.filter(|word| !word.is_empty()).map(|word| hash(word.as_bytes())).collect();
        Self(hashes.into_iter().take(MOST_WORDS).collect())
    }

    /// Returns the number of words that both texts have, and the number of words that at least one
    /// has.
    pub(crate) fn overlap(&self, other: &Self) -> WordOverlap {
        let (ours, theirs): (BTreeSet<u32>, BTreeSet<u32>) =
            (self.0.iter().copied().collect(), other.0.iter().copied().collect());
        // Above the largest hash of the smaller sketch, it is unknown which words the text has.
        let all: Vec<u32> = ours.union(&theirs).copied().collect();
        let known = match self.0.len().max(other.0.len()) {
            MOST_WORDS => all.len().min(MOST_WORDS),
            _ => all.len(),
        };
        let shared =
            all[..known].iter().filter(|word| ours.contains(word) && theirs.contains(word));
        WordOverlap { shared: shared.count(), either: known }
    }

    /// Returns a signature that is equal for equal texts and for many similar ones: the minimum
    /// hashes under several hash functions (MinHash).
    pub(crate) fn signature(&self) -> String {
        let mut signature = String::with_capacity(32);
        for mixing in 1..=SIGNED_BY {
            let mixed = self.0.iter().map(|word| mix(word ^ mixing.wrapping_mul(0x9e37_79b9)));
            // Writing to a string never fails.
            let _ = write!(signature, "{:08x}", mixed.min().unwrap_or_default());
        }
        signature
    }
}

/// The sketch of a finding's text, as stored; the document's id is the finding's.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "StoredSketch")]
pub(crate) struct StoredTextFingerprint {
    #[schemars(with = "String", regex(pattern = "^([0-9a-f]{8})*$"))]
    pub(crate) sketch: TextFingerprint,
}

document!(StoredTextFingerprint, "sketches");

/// Number of words that both of two texts have (`shared`), and number of words that at least one
/// has (`either`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WordOverlap {
    pub(crate) shared: usize,
    pub(crate) either: usize,
}

impl WordOverlap {
    /// Returns the share of common words of the two texts in ten-thousandths, rounded.
    pub(crate) fn similarity(self) -> i64 {
        if self.either == 0 {
            return 0;
        }
        let rounded = (self.shared * 20_000 + self.either) / (self.either * 2);
        i64::try_from(rounded).unwrap_or_default()
    }
}

/// Returns the FNV-1a hash, which is equal on every machine and in every version.
pub(crate) fn hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Returns a word's hash, mixed by the finalizer of MurmurHash3.
fn mix(mut word: u32) -> u32 {
    word = (word ^ (word >> 16)).wrapping_mul(0x85eb_ca6b);
    word = (word ^ (word >> 13)).wrapping_mul(0xc2b2_ae35);
    word ^ (word >> 16)
}

impl Serialize for TextFingerprint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut digits = String::with_capacity(self.0.len() * 8);
        for word in &self.0 {
            let _ = write!(digits, "{word:08x}");
        }
        serializer.serialize_str(&digits)
    }
}

impl<'de> Deserialize<'de> for TextFingerprint {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = String::deserialize(deserializer)?;
        let words = digits.as_bytes().chunks(8).map(|word| {
            std::str::from_utf8(word).ok().and_then(|word| u32::from_str_radix(word, 16).ok())
        });
        let words: Option<Vec<u32>> = words.collect();
        words.map(Self).ok_or_else(|| serde::de::Error::custom("not a sketch"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn similarity(a: &str, b: &str) -> i64 {
        TextFingerprint::of([a]).overlap(&TextFingerprint::of([b])).similarity()
    }

    #[test]
    fn likeness_is_the_share_of_words_in_common() {
        assert_eq!(similarity("a b c d e", "e, d! C b A"), 10_000);
        assert_eq!(similarity("a b c d", "a b c d e"), 8_000);
        assert_eq!(similarity("a b c d e", "a b c d f"), 6_667);
        assert_eq!(similarity("", ""), 0);
        assert_eq!(similarity("a", "b"), 0);
    }

    proptest! {
        #[test]
        fn sketches_are_exact_for_short_texts(
            a in prop::collection::btree_set("[a-z]{1,3}", 0..40),
            b in prop::collection::btree_set("[a-z]{1,3}", 0..24),
        ) {
            let text = |words: &BTreeSet<String>| words.iter().cloned().collect::<Vec<_>>().join(" ");
            let overlap = TextFingerprint::of([text(&a).as_str()]).overlap(&TextFingerprint::of([text(&b).as_str()]));
            prop_assert_eq!(overlap.shared, a.intersection(&b).count());
            prop_assert_eq!(overlap.either, a.union(&b).count());
        }

        #[test]
        fn a_sketch_is_read_as_it_was_written_and_is_like_itself(text in ".{0,400}") {
            let sketch = TextFingerprint::of([text.as_str()]);
            let json = serde_json::to_string(&sketch).expect("JSON");
            let read: TextFingerprint = serde_json::from_str(&json).expect("a sketch");
            prop_assert_eq!(&read, &sketch);
            prop_assert_eq!(read.signature(), sketch.signature());
            let overlap = sketch.overlap(&read);
            prop_assert_eq!(overlap.shared, overlap.either);
        }
    }
}
