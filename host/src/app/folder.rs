//! The folder that areas are loaded from, and swapped from while the host
//! serves.
//!
//! A file is taken only when two looks at it saw the same, so that one half
//! written is left alone; one that is refused changes nothing, and the log says
//! why. A file that goes away takes nothing with it: builds delete and write.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{RecursiveMode, Watcher as _};
use tokio::sync::mpsc;

/// Between the two looks that must see the same.
const QUIET: Duration = Duration::from_millis(150);
/// The folder is looked at so often even if nothing is heard of it: it may have
/// been replaced, or lie where the system tells of no changes.
const RECHECK: Duration = Duration::from_secs(2);

/// Takes a component in; answers the name of its area, or why not.
pub type Install =
    Arc<dyn Fn(Arc<[u8]>) -> BoxFuture<'static, anyhow::Result<String>> + Send + Sync>;

/// A folder of components.
pub struct Folder {
    path: PathBuf,
    install: Install,
    files: BTreeMap<PathBuf, File>,
}

/// What is known of one file.
struct File {
    stamp: Stamp,
    /// Taken in or refused as it is.
    dealt_with: bool,
    area: Option<String>,
}

/// Two equal stamps mean: not written to in between.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Folder {
    /// The folder at this path; nothing is read yet.
    #[must_use]
    pub fn new(path: PathBuf, install: Install) -> Self {
        Self { path, install, files: BTreeMap::new() }
    }

    /// Takes in every component as it is now, by file name. One that is
    /// refused is logged and does not keep the others out. Answers the names of
    /// the areas that came from here.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub async fn load(&mut self) -> io::Result<Vec<String>> {
        for (path, stamp) in components(&self.path)? {
            self.take(path, stamp).await;
        }
        Ok(self.files.values().filter_map(|file| file.area.clone()).collect())
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
            // Both a bell and silence are a reason to look; and our own end of
            // the channel keeps it open.
            let _ = tokio::time::timeout(RECHECK, rung.recv()).await;
        }
    }

    /// Answers whether everything was settled.
    async fn look(&mut self) -> bool {
        let found = match components(&self.path) {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(folder = %self.path.display(), %error, "the folder is away");
                return true;
            }
        };
        let mut settled = true;
        for (path, stamp) in found {
            match self.files.get(&path) {
                Some(file) if file.stamp == stamp && file.dealt_with => {}
                Some(file) if file.stamp == stamp => settled &= self.take(path, stamp).await,
                _ => {
                    settled = false;
                    self.note(path, stamp, false);
                }
            }
        }
        settled
    }

    /// Reads a file and takes it in, unless it changes meanwhile. Answers
    /// whether it was settled.
    async fn take(&mut self, path: PathBuf, stamp: Stamp) -> bool {
        let read = tokio::fs::read(&path).await;
        let (Ok(bytes), Ok(after)) = (read, Stamp::of(&path)) else {
            // Gone again; its successor will be seen.
            return true;
        };
        self.note(path.clone(), after, after == stamp);
        if after != stamp {
            return false;
        }
        let file = path.display();
        match (self.install)(bytes.into()).await {
            Ok(area) => {
                tracing::info!(area.name = area, %file, "area loaded");
                self.warn_of_namesake(&path, &area);
                if let Some(known) = self.files.get_mut(&path) {
                    known.area = Some(area);
                }
            }
            Err(error) => {
                tracing::error!(%file, "not loaded, nothing changed: {error:#}");
            }
        }
        true
    }

    fn note(&mut self, path: PathBuf, stamp: Stamp, dealt_with: bool) {
        let area = self.files.remove(&path).and_then(|file| file.area);
        self.files.insert(path, File { stamp, dealt_with, area });
    }

    fn warn_of_namesake(&self, path: &Path, area: &str) {
        let namesake = self
            .files
            .iter()
            .find(|(other, file)| *other != path && file.area.as_deref() == Some(area));
        if let Some((other, _)) = namesake.filter(|(other, _)| other.exists()) {
            tracing::warn!(
                area.name = area,
                "{} and {} are the same area; the one loaded last answers",
                other.display(),
                path.display()
            );
        }
    }
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Self> {
        let file = std::fs::metadata(path)?;
        Ok(Self { inode: file.ino(), bytes: file.len(), modified: file.modified().ok() })
    }
}

/// The component files, by name, as they are now.
fn components(folder: &Path) -> io::Result<BTreeMap<PathBuf, Stamp>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            // One that has gone since is not there.
            if let Ok(stamp) = Stamp::of(&path) {
                found.insert(path, stamp);
            }
        }
    }
    Ok(found)
}

/// Rings for every change of the folder's content.
fn watcher(folder: &Path, bell: mpsc::Sender<()>) -> notify::Result<notify::RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.map_or(true, |event| is_change(event.kind)) {
            // Full: it is ringing already.
            let _ = bell.try_send(());
        }
    })?;
    watcher.watch(folder, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}

/// Reading is none, or every look would be the reason for the next.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use parking_lot::Mutex;

    use super::*;

    /// What was taken in, in order. A component is a text here: the area's
    /// name and anything, or `bad`.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<String>>>);

    impl Log {
        fn install(&self) -> Install {
            let log = self.clone();
            Arc::new(move |bytes| {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                log.0.lock().push(text.clone());
                Box::pin(async move {
                    anyhow::ensure!(!text.starts_with("bad"), "it is bad");
                    Ok(text.split(' ').next().unwrap_or_default().to_owned())
                })
            })
        }

        async fn becomes(&self, expected: &[&str]) {
            for _ in 0..100 {
                if *self.0.lock() == expected {
                    // Nothing more comes.
                    tokio::time::sleep(QUIET * 3).await;
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            assert_eq!(*self.0.lock(), expected);
        }
    }

    fn write(folder: &tempfile::TempDir, name: &str, text: &str) {
        std::fs::write(folder.path().join(name), text).unwrap();
    }

    #[tokio::test]
    async fn every_component_is_loaded_and_a_bad_one_keeps_no_other_out() {
        let (folder, log) = (tempfile::tempdir().unwrap(), Log::default());
        write(&folder, "a.wasm", "support 1");
        write(&folder, "b.wasm", "bad");
        write(&folder, "c.wasm", "notes 1");
        write(&folder, "readme.txt", "no component");
        let mut folder = Folder::new(folder.path().into(), log.install());
        assert_eq!(folder.load().await.unwrap(), ["support", "notes"]);
    }

    #[tokio::test]
    async fn a_changed_file_is_taken_in_once_and_only_when_whole() {
        let (folder, log) = (tempfile::tempdir().unwrap(), Log::default());
        write(&folder, "a.wasm", "notes 1");
        let mut areas = Folder::new(folder.path().into(), log.install());
        areas.load().await.unwrap();
        let watching = tokio::spawn(areas.watch());
        tokio::time::sleep(QUIET).await;
        let mut file = std::fs::File::create(folder.path().join("a.wasm")).unwrap();
        for part in ["notes", " 2", " and", " the", " rest"] {
            file.write_all(part.as_bytes()).unwrap();
            tokio::time::sleep(QUIET / 3).await;
        }
        drop(file);
        log.becomes(&["notes 1", "notes 2 and the rest"]).await;
        watching.abort();
    }

    #[tokio::test]
    async fn a_bad_file_is_refused_once_and_its_successor_taken_in() {
        let (folder, log) = (tempfile::tempdir().unwrap(), Log::default());
        let watching = tokio::spawn(Folder::new(folder.path().into(), log.install()).watch());
        write(&folder, "a.wasm", "bad");
        log.becomes(&["bad"]).await;
        write(&folder, "a.new", "notes 3");
        std::fs::rename(folder.path().join("a.new"), folder.path().join("a.wasm")).unwrap();
        log.becomes(&["bad", "notes 3"]).await;
        watching.abort();
    }

    #[tokio::test]
    async fn a_folder_that_was_replaced_is_still_looked_at() {
        let (parent, log) = (tempfile::tempdir().unwrap(), Log::default());
        let path = parent.path().join("areas");
        std::fs::create_dir(&path).unwrap();
        let watching = tokio::spawn(Folder::new(path.clone(), log.install()).watch());
        tokio::time::sleep(QUIET).await;
        std::fs::remove_dir(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("a.wasm"), "notes 4").unwrap();
        log.becomes(&["notes 4"]).await;
        watching.abort();
    }
}
