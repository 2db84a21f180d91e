//! A cache of compiled components on disk. A restart compiles nothing, and the
//! hosts of a fleet can exchange compiled components.
//!
//! A compiled component is machine code: whoever writes it controls the host.
//! So only this user can access the folder, and a file is loaded only with a
//! valid MAC. The key belongs to this installation, and the MAC covers the
//! exact bytes, the component and the engine. It uses BLAKE3, because SHA-256
//! over megabytes takes ten milliseconds on processors without SHA
//! instructions.

use std::fs::{self, DirBuilder};
use std::hash::{Hash, Hasher};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

const MAC_BYTES: usize = blake3::OUT_LEN;
/// Number of bytes that are hashed before the thread yields; takes about 20
/// microseconds.
const CHUNK: usize = 64 << 10;
/// Beginning of the names of files that are being written.
const TEMPORARY: &str = ".writing-";
/// Age after which a temporary file belongs to a process that was killed while it
/// wrote the file; a write takes less than a second.
const ABANDONED_AFTER: Duration = Duration::from_secs(3_600);

/// Cache folder with the key of its MACs and the engine that its files are for.
/// Methods that read or write files block, so call them on a blocking thread.
#[derive(Clone)]
pub struct CodeCache {
    dir: PathBuf,
    keyed: blake3::Hasher,
    engine: String,
}

impl CodeCache {
    /// Creates the cache folder, accessible by this user only, and removes
    /// abandoned temporary files from it.
    pub(super) fn open(dir: &Path, key: &[u8; 32], engine: &Engine) -> anyhow::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .and_then(|()| fs::set_permissions(dir, fs::Permissions::from_mode(0o700)))
            .with_context(|| format!("cannot make the folder {}", dir.display()))?;
        if let Err(error) = remove_abandoned(dir) {
            tracing::warn!(%error, "cannot remove abandoned files from the compiled cache");
        }
        let keyed = blake3::Hasher::new_keyed(key);
        Ok(Self { dir: dir.to_owned(), keyed, engine: compatibility(engine) })
    }

    /// Returns the file name of the compiled component with this digest. It
    /// differs between engines and processors.
    #[must_use]
    pub fn name(&self, digest: &str) -> String {
        format!("{digest}-{}.cwasm", self.engine)
    }

    /// Returns whether the compiled component with this digest is cached.
    #[must_use]
    pub fn has(&self, digest: &str) -> bool {
        self.dir.join(self.name(digest)).exists()
    }

    /// Returns the compiled component with its MAC, for another host of this
    /// installation.
    ///
    /// # Errors
    /// The file does not exist or cannot be read.
    pub fn read(&self, digest: &str) -> std::io::Result<Vec<u8>> {
        fs::read(self.dir.join(self.name(digest)))
    }

    /// Stores machine code that another host of this installation returned from
    /// [`CodeCache::read`].
    ///
    /// # Errors
    /// The MAC is wrong, or the folder cannot be written.
    pub fn insert_sealed(&self, digest: &str, sealed: &[u8]) -> anyhow::Result<()> {
        let name = self.name(digest);
        anyhow::ensure!(self.unsealed(&name, sealed).is_some(), "{name} was altered");
        self.write(&name, &[sealed])
    }

    /// Loads a compiled component. Returns `None` if it is missing, its MAC is
    /// wrong, or it cannot be loaded, which is logged.
    pub(super) fn load(&self, engine: &Engine, digest: &str) -> Option<Component> {
        match self.try_load(engine, digest)? {
            Ok(component) => Some(component),
            Err(error) => {
                let file = self.name(digest);
                tracing::warn!(file, %error, "a compiled component does not load");
                None
            }
        }
    }

    /// Loads a compiled component. Returns `None` if it is missing or its MAC
    /// is wrong; the inner error is that of the engine.
    pub(super) fn try_load(
        &self,
        engine: &Engine,
        digest: &str,
    ) -> Option<wasmtime::Result<Component>> {
        let name = self.name(digest);
        let file = self.read(digest).ok()?;
        let Some(compiled) = self.unsealed(&name, &file) else {
            tracing::warn!(file = %name, "a compiled component has a wrong MAC and is ignored");
            return None;
        };
        Some(deserialize(engine, compiled))
    }

    /// Deletes a compiled component from the cache.
    pub(super) fn forget(&self, digest: &str) {
        if let Err(error) = fs::remove_file(self.dir.join(self.name(digest))) {
            tracing::warn!(%error, area.digest = digest, "a compiled component is not removed");
        }
    }

    /// Stores a compiled component with its MAC in the cache.
    pub(super) fn store(&self, digest: &str, component: &Component) -> anyhow::Result<()> {
        self.store_code(digest, &component.serialize()?)
    }

    /// Stores machine code from this installation's compiler, with its MAC, in
    /// the cache.
    pub(super) fn store_code(&self, digest: &str, compiled: &[u8]) -> anyhow::Result<()> {
        let name = self.name(digest);
        self.write(&name, &[self.mac(&name, compiled).as_bytes(), compiled])
    }

    /// Writes a file of the cache atomically.
    fn write(&self, name: &str, parts: &[&[u8]]) -> anyhow::Result<()> {
        let mut file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(&self.dir)?;
        for part in parts {
            file.write_all(part)?;
        }
        file.persist(self.dir.join(name))?;
        Ok(())
    }

    /// Returns the machine code in a file of the cache, without its MAC; `None`
    /// if the MAC is wrong.
    fn unsealed<'a>(&self, name: &str, sealed: &'a [u8]) -> Option<&'a [u8]> {
        let (mac, compiled) = sealed.split_first_chunk::<MAC_BYTES>()?;
        // `blake3::Hash` compares in constant time.
        (self.mac(name, compiled) == *mac).then_some(compiled)
    }

    /// Returns the MAC over a cache file's name and content, so that a file is
    /// not valid under another name. All names have equal length.
    fn mac(&self, name: &str, compiled: &[u8]) -> blake3::Hash {
        let mut mac = self.keyed.clone();
        mac.update(name.as_bytes());
        for chunk in compiled.chunks(CHUNK) {
            mac.update(chunk);
            // Even with low priority, a thread keeps its processor for some
            // milliseconds unless it yields.
            std::thread::yield_now();
        }
        mac.finalize()
    }
}

/// Removes temporary files of processes that were killed while they wrote them.
fn remove_abandoned(dir: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes()) {
            continue;
        }
        let age = entry.metadata()?.modified()?.elapsed().unwrap_or_default();
        if age > ABANDONED_AFTER {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Loads machine code whose MAC was verified by the caller.
#[expect(unsafe_code, reason = "the one place that loads compiled components")]
fn deserialize(engine: &Engine, compiled: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the bytes must come from wasmtime's own compiler, unaltered. The
    // only caller has just verified their MAC. Only `CodeCache::store_code`
    // creates this MAC, over the output of `Component::serialize` or of the
    // compiler process, with a key that only this installation has. The bytes
    // are in private memory, so nobody can change them between check and use.
    unsafe { Component::deserialize(engine, compiled) }
}

/// Returns a hash of what compiled code depends on in addition to the
/// component: wasmtime's version, its settings, the machine.
fn compatibility(engine: &Engine) -> String {
    let mut hasher = Sha256Hasher(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hex::encode(&hasher.0.finalize()[..8])
}

/// A hasher with the same result in every process and release.
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn only_old_temporary_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str| File::create(folder.path().join(name)).unwrap();
        for old in [".writing-old", ".old"] {
            make(old).set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
        make(".writing-new");
        remove_abandoned(folder.path()).unwrap();
        let there =
            [".writing-old", ".old", ".writing-new"].map(|name| folder.path().join(name).exists());
        assert_eq!(there, [false, true, true]);
    }
}
