//! Compiled components on disk, so that a restart compiles nothing, and so that
//! the hosts of a fleet can hand them to each other.
//!
//! A compiled component is machine code: whoever writes one runs in the host.
//! So the folder is the host's alone, and a file is loaded only if it carries
//! a MAC under a key that only this installation has, over exactly these bytes
//! for exactly this component and engine. The MAC is BLAKE3's: machine code has
//! megabytes, and SHA-256 takes ten milliseconds for them on processors that
//! have no instructions for it.

use std::fs::{self, DirBuilder};
use std::hash::{Hash, Hasher};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

const MAC_BYTES: usize = blake3::OUT_LEN;
/// Of which a MAC is made without a pause: some twenty microseconds.
const CHUNK: usize = 64 << 10;

/// The folder, the key and the engine they are for. What reads or writes a
/// file is to be called where blocking is fine.
#[derive(Clone)]
pub struct Cache {
    dir: PathBuf,
    keyed: blake3::Hasher,
    engine: String,
}

impl Cache {
    /// Makes the folder, for this user alone.
    pub(super) fn open(dir: &Path, key: &[u8; 32], engine: &Engine) -> anyhow::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .and_then(|()| fs::set_permissions(dir, fs::Permissions::from_mode(0o700)))
            .with_context(|| format!("cannot make the folder {}", dir.display()))?;
        let keyed = blake3::Hasher::new_keyed(key);
        Ok(Self { dir: dir.to_owned(), keyed, engine: compatibility(engine) })
    }

    /// What the compiled form of the component with this digest is called. Other
    /// engines and processors have other names for theirs.
    #[must_use]
    pub fn name(&self, digest: &str) -> String {
        format!("{digest}-{}.cwasm", self.engine)
    }

    /// Whether there is a compiled form.
    #[must_use]
    pub fn has(&self, digest: &str) -> bool {
        self.dir.join(self.name(digest)).exists()
    }

    /// The compiled form with its MAC, for another host of this installation.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    pub fn read(&self, digest: &str) -> std::io::Result<Vec<u8>> {
        fs::read(self.dir.join(self.name(digest)))
    }

    /// Keeps what [`Cache::read`] gave another host of this installation.
    ///
    /// # Errors
    /// It is not what that host wrote, or the folder cannot be written.
    pub fn take_in(&self, digest: &str, sealed: &[u8]) -> anyhow::Result<()> {
        let name = self.name(digest);
        anyhow::ensure!(self.unsealed(&name, sealed).is_some(), "{name} was altered");
        self.write(&name, &[sealed])
    }

    /// The compiled form, if it is there and is what this installation wrote.
    pub(super) fn load(&self, engine: &Engine, digest: &str) -> Option<Component> {
        let name = self.name(digest);
        let file = self.read(digest).ok()?;
        let Some(compiled) = self.unsealed(&name, &file) else {
            tracing::warn!(file = %name, "a compiled component was altered, and is not used");
            return None;
        };
        match deserialize(engine, compiled) {
            Ok(component) => Some(component),
            Err(error) => {
                tracing::warn!(file = %name, %error, "a compiled component does not load");
                None
            }
        }
    }

    /// Keeps the compiled form.
    pub(super) fn store(&self, digest: &str, component: &Component) -> anyhow::Result<()> {
        self.store_code(digest, &component.serialize()?)
    }

    /// Keeps what this installation's compiler has just made.
    pub(super) fn store_code(&self, digest: &str, compiled: &[u8]) -> anyhow::Result<()> {
        let name = self.name(digest);
        self.write(&name, &[self.mac(&name, compiled).as_bytes(), compiled])
    }

    /// The file appears whole or not at all.
    fn write(&self, name: &str, parts: &[&[u8]]) -> anyhow::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".").tempfile_in(&self.dir)?;
        for part in parts {
            file.write_all(part)?;
        }
        file.persist(self.dir.join(name))?;
        Ok(())
    }

    /// What is left without its MAC, if that is right.
    fn unsealed<'a>(&self, name: &str, sealed: &'a [u8]) -> Option<&'a [u8]> {
        let (mac, compiled) = sealed.split_first_chunk::<MAC_BYTES>()?;
        // Hashes are compared in constant time.
        (self.mac(name, compiled) == *mac).then_some(compiled)
    }

    /// Over name and content: a file is no use under another's name. All names
    /// are equally long.
    fn mac(&self, name: &str, compiled: &[u8]) -> blake3::Hash {
        let mut mac = self.keyed.clone();
        mac.update(name.as_bytes());
        for chunk in compiled.chunks(CHUNK) {
            mac.update(chunk);
            // However low its priority, a thread keeps its processor for some
            // milliseconds unless it gives way.
            std::thread::yield_now();
        }
        mac.finalize()
    }
}

/// Loads machine code.
#[expect(unsafe_code, reason = "the one place that loads compiled components")]
fn deserialize(engine: &Engine, compiled: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the bytes must have come from wasmtime's own compiler, unaltered.
    // The one caller has just verified a MAC over them that is made only in
    // `Cache::store_code`, over what `Component::serialize` or the compiler's
    // process gave, with a key that only this installation has. They are in memory of ours, so nobody can
    // change them between the check and their use.
    unsafe { Component::deserialize(engine, compiled) }
}

/// What compiled code depends on beside the component: wasmtime's version, its
/// settings, the machine.
fn compatibility(engine: &Engine) -> String {
    let mut hasher = Sha256Hasher(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hex::encode(&hasher.0.finalize()[..8])
}

/// A hasher whose result is the same in every process and release.
struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}
