//! Loads areas from a folder at start and replaces them while the host serves.
//!
//! A changed file is installed only after two scans saw the same stamp, so that half-written files
//! are skipped. A refused file changes nothing; the reason is logged. When a file is deleted, its
//! area is removed after a delay, because builds delete a file before they write it. When a file
//! gets a component of another area, the area that it had is removed.

mod files;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::join_all;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use self::files::{FileContent, components, read, watcher};
pub use self::files::{FileStamp, signature_of};
use super::App;
use assurance_core::domain::time::Timestamp;

/// Interval between two scans of the component folder that must see the same stamp before a file is
/// read.
const SETTLE_INTERVAL: Duration = Duration::from_millis(150);
/// Interval of scans of the component folder without a notification. The folder may have been
/// replaced, or its file system may not report changes.
const SCAN_INTERVAL: Duration = Duration::from_secs(2);
/// Time after which a missing component file counts as deleted.
const REMOVAL_DELAY: Duration = Duration::from_secs(2);

/// Finds the component with this digest (lower-case hex) in a folder. Returns its content and its
/// signature.
pub(super) async fn component_of(folder: &Path, digest: &str) -> Option<(Bytes, Option<Vec<u8>>)> {
    for (path, stamp) in components(folder).ok()? {
        let Some(file) = read(path, stamp).await else { continue };
        let component = Bytes::from_owner(file.component);
        let bytes = component.clone();
        let found = tokio::task::spawn_blocking(move || hex::encode(Sha256::digest(&bytes))).await;
        if found.ok()? == digest {
            return Some((component, file.signature));
        }
    }
    None
}

/// A component file that was refused.
#[derive(Clone, Debug)]
pub struct RefusedFile {
    /// Name of the component's area; if the component cannot be loaded, of the area that the file
    /// is named after.
    pub area: String,
    /// Stamp of the file when it was refused.
    pub stamp: FileStamp,
    /// Reason why the component was refused.
    pub why: String,
}

/// Loads, installs and removes the components of a folder; tests replace the [`App`].
pub trait ComponentInstaller: Send + Sync {
    /// A component that was compiled and checked, ready to be installed.
    type LoadedComponent: Send;
    /// Why a component was not loaded or not installed, or an area was not removed.
    type Error: Display + Send;

    /// Compiles and checks a component. Outside development mode it must be signed.
    fn load(
        &self,
        component: Arc<[u8]>,
        signature: Option<Vec<u8>>,
    ) -> impl Future<Output = Result<Self::LoadedComponent, Self::Error>> + Send;

    /// Returns the name of a loaded component's area.
    fn area_of(loaded: &Self::LoadedComponent) -> &str;

    /// Makes the component live, unless the live version is newer than the file. Returns the area's
    /// name.
    fn install(
        &self,
        loaded: Self::LoadedComponent,
        written_at: Timestamp,
    ) -> impl Future<Output = Result<String, Self::Error>> + Send;

    /// Returns whether a component that was refused with this error may be installed later.
    fn is_temporary(error: &Self::Error) -> bool;

    /// Records that a component file was refused, for the health check.
    fn note_refused(&self, path: &Path, file: RefusedFile);

    /// Records that a component file was installed or deleted, so that no earlier refusal counts.
    fn note_settled(&self, file: &Path);

    /// Removes an area from the live areas, because its component file was deleted.
    fn remove(&self, area: &str) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// A folder of component files whose areas the host installs and keeps up to date.
#[derive(Debug)]
pub struct ComponentFolder<H = App> {
    host: H,
    path: PathBuf,
    files: BTreeMap<PathBuf, KnownFile>,
}

/// State of one component file that scans of the folder have seen.
#[derive(Debug)]
struct KnownFile {
    stamp: FileStamp,
    /// Whether the file with its present stamp was installed or refused. False after a temporary
    /// error, so that the next scan reads the file again.
    handled: bool,
    /// Name of the area that was installed from this component file; `None` if none was.
    area: Option<String>,
    missing_since: Option<Instant>,
}

impl<H: ComponentInstaller> ComponentFolder<H> {
    /// Installs every component of the folder. Refused components are logged and do not stop the
    /// others; those refused with a temporary error are tried twice.
    ///
    /// # Errors
    /// The folder cannot be read. A missing folder counts as empty.
    pub async fn load(host: H, path: PathBuf) -> io::Result<Self> {
        let mut folder = Self { host, path, files: BTreeMap::new() };
        let found = match components(&folder.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            found => found?,
        };
        let read = join_all(found.into_iter().map(|(path, stamp)| read(path, stamp))).await;
        let read: Vec<FileContent> = read.into_iter().flatten().collect();
        // Components are compiled concurrently and installed in the order of their names.
        let loading = read
            .iter()
            .map(|file| folder.host.load(Arc::clone(&file.component), file.signature.clone()));
        let loaded = join_all(loading).await;
        for (file, loaded) in read.into_iter().zip(loaded) {
            folder.note(&file.path, file.stamp, file.whole);
            folder.install(&file.path, file.stamp, loaded).await;
        }
        // The host should not begin to serve without an area because the database was slow once.
        if folder.files.values().any(|file| !file.handled) {
            folder.scan().await;
        }
        Ok(folder)
    }

    /// Installs changed component files and removes the areas of deleted ones, until the future is
    /// dropped.
    pub async fn watch(mut self) {
        let (notify, mut notified) = mpsc::channel(1);
        let watcher = watcher(&self.path, notify.clone());
        if let Err(error) = &watcher {
            let folder = self.path.display();
            tracing::warn!(%folder, %error, "cannot watch the area folder; scanning it every 2 s");
        }
        loop {
            while !self.scan().await {
                tokio::time::sleep(SETTLE_INTERVAL).await;
            }
            // A notification and a timeout both start a scan. `notify` keeps the channel open if
            // the watcher failed.
            let _ = tokio::time::timeout(SCAN_INTERVAL, notified.recv()).await;
        }
    }

    /// Scans the component folder once. Returns true if no file needs another scan.
    async fn scan(&mut self) -> bool {
        let found = match components(&self.path) {
            Ok(found) => found,
            Err(error) => {
                // The folder may be about to be replaced, so no area is removed.
                tracing::warn!(
                    folder = %self.path.display(),
                    %error,
                    "cannot read the area folder; no area was removed"
                );
                return true;
            }
        };
        let mut settled = self.remove_missing(&found).await;
        for (path, stamp) in found {
            match self.files.get(&path) {
                Some(file) if file.stamp == stamp && file.handled => {}
                Some(file) if file.stamp == stamp => {
                    settled &= self.read_and_install(path, stamp).await;
                }
                _ => {
                    settled = false;
                    self.note(&path, stamp, false);
                }
            }
        }
        settled
    }

    /// Reads a component file and installs it, unless it changes meanwhile. Returns true if the
    /// file needs no other scan.
    async fn read_and_install(&mut self, path: PathBuf, stamp: FileStamp) -> bool {
        // The file was deleted again. The next scan sees its replacement.
        let Some(file) = read(path, stamp).await else { return true };
        self.note(&file.path, file.stamp, file.whole);
        if file.whole {
            let loaded = self.host.load(file.component, file.signature).await;
            self.install(&file.path, file.stamp, loaded).await;
        }
        file.whole
    }

    async fn install(
        &mut self,
        path: &Path,
        stamp: FileStamp,
        loaded: Result<H::LoadedComponent, H::Error>,
    ) {
        let mut area = area_named_by(path);
        let installed = match loaded {
            Ok(loaded) => {
                H::area_of(&loaded).clone_into(&mut area);
                self.host.install(loaded, stamp.written_at()).await
            }
            Err(error) => Err(error),
        };
        let refused = match installed {
            Ok(area) => return self.installed(path, area).await,
            Err(error) => error,
        };
        if let Some(file) = self.files.get_mut(path).filter(|_| H::is_temporary(&refused)) {
            file.handled = false;
        }
        let (file, why) = (path.display(), refused.to_string());
        tracing::error!(%file, error = why, "component refused; nothing changed");
        self.host.note_refused(path, RefusedFile { area, stamp, why });
    }

    async fn installed(&mut self, path: &Path, area: String) {
        self.host.note_settled(path);
        if let Some(other) = self.other_file_of(path, &area) {
            tracing::warn!(
                area.name = area,
                "{} and {} contain the same area; the one loaded last is live",
                other.display(),
                path.display()
            );
        }
        let Some(file) = self.files.get_mut(path) else { return };
        let before = file.area.replace(area);
        if let Some(before) = before.filter(|before| file.area.as_ref() != Some(before)) {
            self.remove_area(path, &before).await;
        }
    }

    /// Returns another existing component file of the same area; `None` if there is none.
    fn other_file_of(&self, path: &Path, area: &str) -> Option<&PathBuf> {
        let mut others = self.files.iter().filter(|(other, _)| *other != path);
        let other = others
            .find(|(_, file)| file.missing_since.is_none() && file.area.as_deref() == Some(area));
        other.map(|(path, _)| path)
    }

    /// Removes the areas of component files that stayed missing. Returns true if no file is
    /// missing.
    async fn remove_missing(&mut self, found: &BTreeMap<PathBuf, FileStamp>) -> bool {
        let mut gone = Vec::new();
        let mut missing = false;
        for (path, file) in &mut self.files {
            if found.contains_key(path) {
                file.missing_since = None;
                continue;
            }
            missing = true;
            if file.missing_since.get_or_insert_with(Instant::now).elapsed() >= REMOVAL_DELAY {
                gone.push(path.clone());
            }
        }
        for path in gone {
            self.forget(&path).await;
        }
        !missing
    }

    async fn forget(&mut self, path: &Path) {
        self.host.note_settled(path);
        if let Some(area) = self.files.remove(path).and_then(|file| file.area) {
            self.remove_area(path, &area).await;
        }
    }

    /// Removes an area that is not in this component file any more, unless it is in another one,
    /// because the file was renamed.
    async fn remove_area(&self, path: &Path, area: &str) {
        if self.other_file_of(path, area).is_some() {
            return;
        }
        let file = path.display();
        tracing::info!(area.name = area, %file, "no component file has the area; removing it");
        if let Err(error) = self.host.remove(area).await {
            tracing::warn!(area.name = area, %error, "area not removed");
        }
    }

    fn note(&mut self, path: &Path, stamp: FileStamp, handled: bool) {
        let area = self.files.remove(path).and_then(|file| file.area);
        let file = KnownFile { stamp, handled, area, missing_since: None };
        self.files.insert(path.to_path_buf(), file);
    }
}

/// Returns the name of the area that a component file is named after: `control_room` for
/// `control-room.wasm`.
fn area_named_by(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().replace('-', "_")
}
