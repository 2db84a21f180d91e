//! The files of the folder: which there are, what is in them, and when to look.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{RecursiveMode, Watcher as _};
use tokio::sync::mpsc;

use crate::domain::time::Timestamp;

/// Two equal stamps mean: not written to in between.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stamp {
    inode: u64,
    bytes: u64,
    /// When content or name last changed, in nanoseconds since 1970: other
    /// than the time of modification, it is not copied along with a file.
    changed_ns: i128,
    /// The same of the signature beside it.
    signed_ns: Option<i128>,
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Self> {
        let file = std::fs::metadata(path)?;
        let changed_ns = |file: &Metadata| {
            i128::from(file.ctime()) * 1_000_000_000 + i128::from(file.ctime_nsec())
        };
        let signed_ns = std::fs::metadata(signature_of(path)).ok().as_ref().map(changed_ns);
        let (inode, bytes, changed_ns) = (file.ino(), file.len(), changed_ns(&file));
        Ok(Self { inode, bytes, changed_ns, signed_ns })
    }

    /// When the file came to be as it is.
    pub(super) fn written_at(self) -> Timestamp {
        Timestamp(i64::try_from(self.changed_ns / 1_000).unwrap_or(i64::MAX))
    }
}

/// A file's content.
pub(super) struct Read {
    pub(super) path: PathBuf,
    pub(super) component: Arc<[u8]>,
    /// What stands beside it in a file of its own.
    pub(super) signature: Option<Vec<u8>>,
    pub(super) stamp: Stamp,
    /// Nobody wrote to it meanwhile.
    pub(super) whole: bool,
}

/// Nothing, where it has gone since.
pub(super) async fn read(path: PathBuf, before: Stamp) -> Option<Read> {
    let component = tokio::fs::read(&path).await.ok()?.into();
    let signature = tokio::fs::read(signature_of(&path)).await.ok();
    let stamp = Stamp::of(&path).ok()?;
    Some(Read { path, component, signature, stamp, whole: stamp == before })
}

/// `notes.wasm` is signed in `notes.wasm.sig`.
pub(crate) fn signature_of(component: &Path) -> PathBuf {
    let mut name = component.as_os_str().to_owned();
    name.push(".sig");
    name.into()
}

/// The component files, by name, as they are now.
pub(super) fn components(folder: &Path) -> io::Result<BTreeMap<PathBuf, Stamp>> {
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
pub(super) fn watcher(
    folder: &Path,
    bell: mpsc::Sender<()>,
) -> notify::Result<notify::RecommendedWatcher> {
    std::fs::create_dir_all(folder).map_err(notify::Error::io)?;
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
