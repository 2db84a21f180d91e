//! Public keys of producers, and verification of signatures.

use area_sdk::prelude::*;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use curve25519_dalek::edwards::CompressedEdwardsY;

use crate::envelope::EnvelopeSignature;
use crate::producers::Producer;

/// Maximum number of active keys of a workspace. All of them may be tried for one signature.
const MOST_KEYS: u32 = 100;

/// Bytes before the 32 bytes of an Ed25519 key in a `SubjectPublicKeyInfo` (RFC 8410).
const SPKI_HEAD: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// State of a producer's public key.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeyState {
    /// The key verifies signatures.
    Active,
    /// The key verifies no new signatures.
    Revoked,
}

/// A stored public key of a producer.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct ProducerKey {
    pub(crate) producer_id: Uuid,
    pub(crate) key_id: String,
    /// Ed25519 public key: standard base64 of its 32 bytes.
    public_key: String,
    state: KeyState,
    revoked_at: Option<Timestamp>,
}

document!(ProducerKey, "keys");

/// A public key of a producer.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ProducerKey")]
pub(crate) struct KeyView {
    id: Uuid,
    producer_id: Uuid,
    /// Id of the key, for `signature.key_id` of envelopes.
    key_id: String,
    /// Ed25519 public key: standard base64 of its 32 bytes.
    public_key: String,
    state: KeyState,
    created_at: Timestamp,
    revoked_at: Option<Timestamp>,
}

impl From<Stored<ProducerKey>> for KeyView {
    fn from(key: Stored<ProducerKey>) -> Self {
        Self {
            id: key.uuid(),
            created_at: key.created_at,
            producer_id: key.value.producer_id,
            key_id: key.value.key_id,
            public_key: key.value.public_key,
            state: key.value.state,
            revoked_at: key.value.revoked_at,
        }
    }
}

/// Decodes standard or URL-safe base64, padded or not.
fn base64(text: &str) -> Option<Vec<u8>> {
    const ENGINE: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    ENGINE.decode(text.replace('-', "+").replace('_', "/")).ok()
}

/// Returns the 32 bytes of an Ed25519 public key: from base64 of the raw bytes or of the
/// `SubjectPublicKeyInfo`, or from PEM.
fn public_key(text: &str) -> Option<[u8; 32]> {
    let inner = text
        .trim()
        .strip_prefix("-----BEGIN PUBLIC KEY-----")
        .and_then(|rest| rest.strip_suffix("-----END PUBLIC KEY-----"))
        .map(|inner| inner.split_whitespace().collect::<String>());
    let bytes = base64(inner.as_deref().unwrap_or(text.trim()))?;
    let key = if bytes.len() == 44 { bytes.strip_prefix(&SPKI_HEAD)? } else { &bytes };
    key.try_into().ok()
}

/// Whether the bytes are a usable Ed25519 key. Refuses bytes that are no point of the curve, points
/// of small order (for which anyone can create signatures), and non-canonical encodings of a point.
fn verifies_something(key: [u8; 32]) -> bool {
    let point = CompressedEdwardsY(key).decompress();
    point.is_some_and(|point| !point.is_small_order() && point.compress().0 == key)
}

/// Returns the active key that verifies the signature of the message. Tries the key named in the
/// signature first.
pub(crate) fn verifying(
    ctx: &Ctx,
    signature: &EnvelopeSignature,
    message: &[u8],
) -> Result<Option<ProducerKey>> {
    let Some(value) = base64(&signature.value).filter(|value| value.len() == 64) else {
        return Ok(None);
    };
    let active = ctx.documents::<ProducerKey>().query().equals("state", "active");
    let mut keys = active.limit(MOST_KEYS).list()?;
    keys.sort_by_key(|key| key.key_id != signature.key_id);
    let verifies = |key: &Stored<ProducerKey>| {
        base64(&key.public_key).is_some_and(|key| ctx.ed25519_verify(&key, message, &value))
    };
    Ok(keys.into_iter().find(verifies).map(|key| key.value))
}

/// A request to add a public key of a producer.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewKey {
    /// Ed25519 public key: base64 of the 32 raw bytes or of the `SubjectPublicKeyInfo`, or PEM.
    #[schemars(length(min = 1, max = 1000))]
    public_key: String,
    /// Id of the key in `signature.key_id`; by default the first 16 hexadecimal digits of the
    /// SHA-256 of the 32 bytes.
    #[schemars(length(min = 1, max = 200))]
    key_id: Option<String>,
}

pub(crate) fn create(
    ctx: &Ctx,
    Path(producer_id): Path<Uuid>,
    Body(new): Body<NewKey>,
) -> Result<Created<KeyView>> {
    let producer = ctx.documents::<Producer>().get(producer_id)?;
    if producer.revoked_at.is_some() {
        return Err(Problem::conflict("producer_revoked", "This producer was revoked."));
    }
    let active = ctx.documents::<ProducerKey>().query().equals("state", "active");
    if active.count()? >= u64::from(MOST_KEYS) {
        let detail = "A workspace has at most 100 active keys.";
        return Err(Problem::conflict("too_many_keys", detail).hint("Revoke one."));
    }
    let Some(bytes) = public_key(&new.public_key).filter(|key| verifies_something(*key)) else {
        return Err(Problem::validation("/public_key", "This is not an Ed25519 public key."));
    };
    let named = |bytes| ctx.sha256_hex(bytes)[..16].to_owned();
    let value = ProducerKey {
        producer_id,
        key_id: new.key_id.unwrap_or_else(|| named(&bytes)),
        public_key: base64::engine::general_purpose::STANDARD.encode(bytes),
        state: KeyState::Active,
        revoked_at: None,
    };
    let stored = ctx.documents().create_stored(ctx.new_id(), value)?;
    Ok(Created(stored.into()))
}

pub(crate) fn list(
    ctx: &Ctx,
    Path(producer_id): Path<Uuid>,
    paging: Paging,
) -> Result<Page<KeyView>> {
    ctx.documents::<Producer>().get(producer_id)?;
    let keys = ctx.documents::<ProducerKey>().query().equals("producer_id", producer_id);
    Ok(keys.paging(paging).page()?.map(KeyView::from))
}

fn revoke_one(ctx: &Ctx, key: &mut Stored<ProducerKey>) -> Result<()> {
    if key.state == KeyState::Active {
        key.state = KeyState::Revoked;
        key.revoked_at = Some(ctx.now());
        ctx.documents().replace(key)?;
    }
    Ok(())
}

pub(crate) fn revoke(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<KeyView> {
    let mut key = ctx.documents::<ProducerKey>().get(id)?;
    revoke_one(ctx, &mut key)?;
    Ok(key.into())
}

/// Revokes all keys of a producer.
pub(crate) fn revoke_all(ctx: &Ctx, producer_id: Uuid) -> Result<()> {
    let active = ctx.documents::<ProducerKey>().query().equals("state", "active");
    let keys = active.equals("producer_id", producer_id).limit(MOST_KEYS).list()?;
    keys.into_iter().try_for_each(|mut key| revoke_one(ctx, &mut key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_in_every_form() {
        let raw = [7_u8; 32];
        let standard = base64::engine::general_purpose::STANDARD;
        let spki = standard.encode([&SPKI_HEAD[..], &raw].concat());
        let url_safe = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(raw);
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{spki}\n-----END PUBLIC KEY-----\n");
        for text in [standard.encode(raw), spki, url_safe, pem] {
            assert_eq!(public_key(&text), Some(raw), "{text}");
        }
        for text in ["", "%", &standard.encode([7; 31]), &standard.encode([7; 44])] {
            assert_eq!(public_key(text), None, "{text}");
        }
    }

    #[test]
    fn keys_that_verify_nothing_or_anything_are_told() {
        let encoding = |bytes: &[(usize, u8)], rest: u8| {
            let mut key = [rest; 32];
            bytes.iter().for_each(|(at, byte)| key[*at] = *byte);
            key
        };
        let base_point = encoding(&[(0, 0x58)], 0x66);
        assert!(verifies_something(base_point));
        for (key, what) in [
            (encoding(&[(0, 2)], 0), "no point"),
            (encoding(&[], 0xff), "beyond the field"),
            (encoding(&[(0, 1)], 0), "the identity"),
            (encoding(&[], 0), "of order 4"),
            (encoding(&[(0, 0xec), (31, 0x7f)], 0xff), "of order 2"),
            (encoding(&[(0, 0xee), (31, 0x7f)], 0xff), "the identity, spelt otherwise"),
        ] {
            assert!(!verifies_something(key), "{what}");
        }
    }
}
