//! The folder that areas are loaded from at start, and swapped from while the
//! host serves.
//!
//! A changed file is taken only when two looks at it saw the same, so that one
//! half written is left alone; one that is refused changes nothing, and the log
//! says why. A file that goes away takes its area with it, but not at once:
//! builds delete and write.

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

pub(crate) use self::files::signature_of;
use self::files::{Read, Stamp, components, read, watcher};
use super::App;
use crate::domain::time::Timestamp;

/// Between the two looks that must see the same.
const QUIET: Duration = Duration::from_millis(150);
/// The folder is looked at so often even if nothing is heard of it: it may have
/// been replaced, or lie where the system tells of no changes.
const RECHECK: Duration = Duration::from_secs(2);
/// A file that stays away for so long is gone.
const GONE: Duration = Duration::from_secs(2);

/// The component of a folder with this digest, as lower-case hex, and the
/// signature beside it.
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

/// What takes components in and areas out; a test stands in for the [`App`].
pub trait Host: Send + Sync {
    /// A component, ready to be installed.
    type Loaded: Send;
    /// Why one cannot be.
    type LoadError: Display + Send;
    /// Why a change did not happen.
    type InstallError: Display + Send;

    /// Compiles a component and checks what it is; outside development mode
    /// only one that is signed.
    fn load(
        &self,
        component: Arc<[u8]>,
        signature: Option<Vec<u8>>,
    ) -> impl Future<Output = Result<Self::Loaded, Self::LoadError>> + Send;

    /// Lets it answer, unless something newer than the file does; tells its
    /// area's name.
    fn install(
        &self,
        loaded: Self::Loaded,
        written_at: Timestamp,
    ) -> impl Future<Output = Result<String, Self::InstallError>> + Send;

    /// A file was refused.
    fn note_refused(&self, file: &Path, why: &str);

    /// A file was taken in, or is gone.
    fn note_settled(&self, file: &Path);

    /// Lets an area answer no more.
    fn remove(&self, area: &str) -> impl Future<Output = Result<(), Self::InstallError>> + Send;
}

/// A folder of components.
#[derive(Debug)]
pub struct Folder<H = App> {
    host: H,
    path: PathBuf,
    files: BTreeMap<PathBuf, File>,
}

/// What is known of one file.
#[derive(Debug)]
struct File {
    stamp: Stamp,
    /// Taken in or refused as it is.
    dealt_with: bool,
    /// What it was taken in as.
    area: Option<String>,
    missing_since: Option<Instant>,
}

impl<H: Host> Folder<H> {
    /// Takes in every component as it is now. One that is refused is logged and
    /// does not keep the others out.
    ///
    /// # Errors
    /// The folder cannot be read; one that is not there is empty.
    pub async fn load(host: H, path: PathBuf) -> io::Result<Self> {
        let mut folder = Self { host, path, files: BTreeMap::new() };
        let found = match components(&folder.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            found => found?,
        };
        let read = join_all(found.into_iter().map(|(path, stamp)| read(path, stamp))).await;
        let read: Vec<Read> = read.into_iter().flatten().collect();
        // Compiled side by side, installed in the order of their names.
        let loading = read
            .iter()
            .map(|file| folder.host.load(Arc::clone(&file.component), file.signature.clone()));
        let loaded = join_all(loading).await;
        for (file, loaded) in read.into_iter().zip(loaded) {
            folder.note(&file.path, file.stamp, file.whole);
            folder.install(&file.path, file.stamp, loaded).await;
        }
        Ok(folder)
    }

    /// Takes in what changes, for as long as it is polled.
    pub async fn watch(mut self) {
        let (bell, mut rung) = mpsc::channel(1);
        let watcher = watcher(&self.path, bell.clone());
        if let Err(error) = &watcher {
            let folder = self.path.display();
            tracing::warn!(%folder, %error, "no news of the folder; it is looked at regularly");
        }
        loop {
            while !self.look().await {
                tokio::time::sleep(QUIET).await;
            }
            // Both a bell and silence are a reason to look; our own end of the
            // bell keeps the channel open.
            let _ = tokio::time::timeout(RECHECK, rung.recv()).await;
        }
    }

    /// Answers whether everything was settled.
    async fn look(&mut self) -> bool {
        let found = match components(&self.path) {
            Ok(found) => found,
            Err(error) => {
                // It may be about to be made anew; nothing is taken out.
                tracing::warn!(folder = %self.path.display(), %error, "the folder is away");
                return true;
            }
        };
        let mut settled = self.miss(&found).await;
        for (path, stamp) in found {
            match self.files.get(&path) {
                Some(file) if file.stamp == stamp && file.dealt_with => {}
                Some(file) if file.stamp == stamp => settled &= self.take(path, stamp).await,
                _ => {
                    settled = false;
                    self.note(&path, stamp, false);
                }
            }
        }
        settled
    }

    /// Reads a file and takes it in, unless it changes meanwhile. Answers
    /// whether it was settled.
    async fn take(&mut self, path: PathBuf, stamp: Stamp) -> bool {
        // Gone again; its successor will be seen.
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
        stamp: Stamp,
        loaded: Result<H::Loaded, H::LoadError>,
    ) {
        let file = path.display();
        let refused = match loaded {
            Ok(loaded) => match self.host.install(loaded, stamp.written_at()).await {
                Ok(area) => return self.installed(path, area),
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        };
        tracing::error!(%file, error = refused, "component refused; nothing changed");
        self.host.note_refused(path, &refused);
    }

    fn installed(&mut self, path: &Path, area: String) {
        self.host.note_settled(path);
        if let Some(other) = self.other_file_of(path, &area) {
            tracing::warn!(
                area.name = area,
                "{} and {} are the same area; the one loaded last answers",
                other.display(),
                path.display()
            );
        }
        if let Some(file) = self.files.get_mut(path) {
            file.area = Some(area);
        }
    }

    /// Another file that is there, of the same area.
    fn other_file_of(&self, path: &Path, area: &str) -> Option<&PathBuf> {
        let mut others = self.files.iter().filter(|(other, _)| *other != path);
        let other = others
            .find(|(_, file)| file.missing_since.is_none() && file.area.as_deref() == Some(area));
        other.map(|(path, _)| path)
    }

    /// Takes out the areas of files that stayed away. Answers whether none is
    /// missing.
    async fn miss(&mut self, found: &BTreeMap<PathBuf, Stamp>) -> bool {
        let mut gone = Vec::new();
        let mut missing = false;
        for (path, file) in &mut self.files {
            if found.contains_key(path) {
                file.missing_since = None;
                continue;
            }
            missing = true;
            if file.missing_since.get_or_insert_with(Instant::now).elapsed() >= GONE {
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
        let Some(area) = self.files.remove(path).and_then(|file| file.area) else { return };
        // A file may have been renamed.
        if self.other_file_of(path, &area).is_some() {
            return;
        }
        let file = path.display();
        tracing::info!(area.name = area, %file, "the component is gone, and its area with it");
        if let Err(error) = self.host.remove(&area).await {
            tracing::warn!(area.name = area, %error, "area not removed");
        }
    }

    fn note(&mut self, path: &Path, stamp: Stamp, dealt_with: bool) {
        let area = self.files.remove(path).and_then(|file| file.area);
        let file = File { stamp, dealt_with, area, missing_since: None };
        self.files.insert(path.to_path_buf(), file);
    }
}
