//! Files of the component folder: listing, reading, and notifications of changes.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{RecursiveMode, Watcher as _};
use tokio::sync::mpsc;

use assurance_core::domain::time::Timestamp;

/// Identity, size and change time of a component file, with the change time of its signature. If
/// two stamps are equal, the file did not change between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileStamp {
    inode: u64,
    bytes: u64,
    /// Time of the last change of content or name, in nanoseconds since 1970. Copying a file does
    /// not copy this time, in contrast to the modification time.
    changed_ns: i128,
    /// Time of the last change of content or name of the signature file, in nanoseconds since 1970;
    /// `None` without one.
    signed_ns: Option<i128>,
}

impl FileStamp {
    fn of(path: &Path) -> io::Result<Self> {
        let file = std::fs::metadata(path)?;
        let changed_ns = |file: &Metadata| {
            i128::from(file.ctime()) * 1_000_000_000 + i128::from(file.ctime_nsec())
        };
        let signed_ns = std::fs::metadata(signature_of(path)).ok().as_ref().map(changed_ns);
        let (inode, bytes, changed_ns) = (file.ino(), file.len(), changed_ns(&file));
        Ok(Self { inode, bytes, changed_ns, signed_ns })
    }

    /// Returns the time of the last change of the component file.
    pub(in crate::app) fn written_at(self) -> Timestamp {
        Timestamp(i64::try_from(self.changed_ns / 1_000).unwrap_or(i64::MAX))
    }
}

/// Content of a component file and its signature file, with the file's stamp.
pub(super) struct FileContent {
    pub(super) path: PathBuf,
    pub(super) component: Arc<[u8]>,
    /// Content of the signature file; `None` without one.
    pub(super) signature: Option<Vec<u8>>,
    pub(super) stamp: FileStamp,
    /// Whether the component file stayed unchanged while it was read.
    pub(super) whole: bool,
}

/// Reads a component file and its signature. Returns `None` if the file was deleted.
pub(super) async fn read(path: PathBuf, before: FileStamp) -> Option<FileContent> {
    let component = tokio::fs::read(&path).await.ok()?.into();
    let signature = tokio::fs::read(signature_of(&path)).await.ok();
    let stamp = FileStamp::of(&path).ok()?;
    Some(FileContent { path, component, signature, stamp, whole: stamp == before })
}

/// Returns the path of a component's signature: `notes.wasm.sig` for `notes.wasm`.
pub fn signature_of(component: &Path) -> PathBuf {
    let mut name = component.as_os_str().to_owned();
    name.push(".sig");
    name.into()
}

/// Lists the component files of a folder with their stamps, sorted by path.
pub(super) fn components(folder: &Path) -> io::Result<BTreeMap<PathBuf, FileStamp>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            // Skips files that were deleted after the listing.
            if let Ok(stamp) = FileStamp::of(&path) {
                found.insert(path, stamp);
            }
        }
    }
    Ok(found)
}

/// Starts a file watcher that sends a message for every change of the folder's content.
pub(super) fn watcher(
    folder: &Path,
    notify: mpsc::Sender<()>,
) -> notify::Result<notify::RecommendedWatcher> {
    std::fs::create_dir_all(folder).map_err(notify::Error::io)?;
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.map_or(true, |event| is_change(event.kind)) {
            // A full channel already has a pending notification.
            let _ = notify.try_send(());
        }
    })?;
    watcher.watch(folder, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}

/// Whether a file system event changes the component folder. Read access is ignored: each scan
/// reads and would trigger the next scan.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}
