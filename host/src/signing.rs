//! Ed25519: the only module that knows ed25519_dalek.
