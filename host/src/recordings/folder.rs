//! The folder of recordings: which calls are kept, and for how long.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rand::RngExt as _;

use super::{About, Recorder, Recording, Sealed};
use crate::config::Record;
use crate::config::files::{FileError, private_dir};

/// What is recorded and where it is kept; cloning shares it.
#[derive(Clone, Debug)]
pub struct Recordings(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    dir: PathBuf,
    /// As last set, but for the folder.
    settings: ArcSwap<Record>,
    /// Held while the folder is changed.
    changing: Mutex<()>,
}

/// A recording that is there already.
struct Old {
    written: SystemTime,
    bytes: u64,
    path: PathBuf,
}

impl Recordings {
    /// As the operator has set it; there is no folder before something is
    /// recorded.
    ///
    /// # Errors
    /// Where the folder cannot be made.
    pub fn open(settings: Record, dir: PathBuf) -> Result<Self, FileError> {
        let (off, changing) = (ArcSwap::from_pointee(Record::default()), Mutex::default());
        let opened = Self(Arc::new(Inner { dir, settings: off, changing }));
        opened.set(settings)?;
        Ok(opened)
    }

    /// Sets what is recorded of calls that begin from now on, and how much is
    /// kept. The folder stays the one that was opened.
    ///
    /// # Errors
    /// Where the folder cannot be made; then all is as before.
    pub fn set(&self, settings: Record) -> Result<(), FileError> {
        if settings.is_on() {
            private_dir(&self.0.dir)?;
        }
        self.0.settings.store(Arc::new(settings));
        Ok(())
    }

    /// Begins to write a call down. Whether it is kept is seen at its end.
    #[must_use]
    pub fn begin(&self, about: About, sealed: Option<Sealed>) -> Arc<Recorder> {
        let max_bytes = usize::try_from(self.0.settings.load().max_bytes).unwrap_or(usize::MAX);
        Arc::new(Recorder::new(about, sealed, max_bytes))
    }

    /// Whether a call is in the share that is kept however it ends.
    #[must_use]
    pub fn picks(&self) -> bool {
        let percent = self.0.settings.load().percent;
        percent > 0.0 && rand::rng().random_range(0.0..100.0) < percent
    }

    /// Whether faults are kept.
    #[must_use]
    pub fn keeps_faults(&self) -> bool {
        self.0.settings.load().faults
    }

    /// Keeps a call that has ended, beside the work: where it ended in a
    /// fault and those are kept, or where it was picked.
    pub fn keep(&self, recorder: &Recorder, picked: bool) {
        let wanted = picked || (self.keeps_faults() && recorder.is_fault());
        if !wanted {
            return;
        }
        let Some(recording) = recorder.finish() else { return };
        let kept = self.clone();
        tokio::task::spawn_blocking(move || match kept.0.write(&recording) {
            Ok(path) => tracing::info!(
                recording = %path.display(),
                area.name = recording.about.area,
                "a call was recorded"
            ),
            Err(error) => tracing::warn!(%error, "a recording could not be written"),
        });
    }
}

impl Inner {
    fn write(&self, recording: &Recording) -> io::Result<PathBuf> {
        let content = serde_json::to_vec(recording)?;
        let path = self.dir.join(format!("{}.json", recording.about.id));
        let beside = self.dir.join(format!("{}.new", recording.about.id));
        let _changing = self.changing.lock();
        self.make_room(content.len() as u64)?;
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(&content)?;
        fs::rename(&beside, &path)?;
        Ok(path)
    }

    /// Removes the oldest until one more, of so many bytes, is within bounds.
    fn make_room(&self, bytes: u64) -> io::Result<()> {
        let mut old = recordings(&self.dir)?;
        old.sort_by_key(|one| std::cmp::Reverse(one.written));
        let mut total = old.iter().map(|one| one.bytes).sum::<u64>() + bytes;
        let settings = self.settings.load();
        while old.len() >= settings.max_files as usize || total > settings.max_total_bytes {
            let Some(oldest) = old.pop() else { break };
            fs::remove_file(&oldest.path)?;
            total -= oldest.bytes;
        }
        Ok(())
    }
}

fn recordings(dir: &Path) -> io::Result<Vec<Old>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let metadata = entry.metadata()?;
            found.push(Old { written: metadata.modified()?, bytes: metadata.len(), path });
        }
    }
    Ok(found)
}
