//! The folder of recordings: selection and retention.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rand::RngExt as _;

use super::{CallMetadata, CallRecording, InputRedactionReason, Recorder};
use crate::config::RecordingsConfig;
use crate::config::files::{PrivateFileError, private_dir, replace_private};

/// Folder of this node's recorded calls, with the settings that select which
/// calls are recorded. Clones share both.
#[derive(Clone, Debug)]
pub struct Recordings(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    dir: PathBuf,
    /// Current settings of recordings. Their `dir` is ignored, because the
    /// folder cannot change while the node runs.
    settings: ArcSwap<RecordingsConfig>,
    /// Locked while recordings are added to or deleted from the folder.
    changing: Mutex<()>,
}

/// A recording's file in the folder.
struct RecordingFile {
    written: SystemTime,
    bytes: u64,
    path: PathBuf,
}

impl Recordings {
    /// Opens the recordings with the operator's settings. Creates the folder if
    /// the settings record any call.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn open(settings: RecordingsConfig, dir: PathBuf) -> Result<Self, PrivateFileError> {
        let (off, changing) =
            (ArcSwap::from_pointee(RecordingsConfig::default()), Mutex::default());
        let opened = Self(Arc::new(Inner { dir, settings: off, changing }));
        opened.set(settings)?;
        Ok(opened)
    }

    /// Replaces the settings for calls that begin from now on. The folder stays
    /// the same; it is created if the settings record any call.
    ///
    /// # Errors
    /// The folder cannot be created; the settings are then unchanged.
    pub fn set(&self, settings: RecordingsConfig) -> Result<(), PrivateFileError> {
        if settings.is_on() {
            private_dir(&self.0.dir)?;
        }
        self.0.settings.store(Arc::new(settings));
        Ok(())
    }

    /// Begins to record one call. `sealed` is the reason why its input must be
    /// withheld, if there is one. [`Recordings::keep`] decides later whether
    /// the recording is stored.
    #[must_use]
    pub fn begin(
        &self,
        about: CallMetadata,
        sealed: Option<InputRedactionReason>,
    ) -> Arc<Recorder> {
        let max_bytes = usize::try_from(self.0.settings.load().max_bytes).unwrap_or(usize::MAX);
        Arc::new(Recorder::new(about, sealed, max_bytes))
    }

    /// Draws at random whether a call belongs to the percentage that is stored
    /// whatever its outcome.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        let percent = self.0.settings.load().percent;
        percent > 0.0 && rand::rng().random_range(0.0..100.0) < percent
    }

    /// Returns whether the settings store the recordings of calls that end in a
    /// fault.
    #[must_use]
    pub fn keeps_faults(&self) -> bool {
        self.0.settings.load().faults
    }

    /// Stores the recording of an ended call in the background, if `picked` is
    /// true, or if the call ended in a fault and faults are stored.
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
                "call recorded"
            ),
            Err(error) => tracing::warn!(%error, "cannot write a recording"),
        });
    }
}

impl Inner {
    fn write(&self, recording: &CallRecording) -> io::Result<PathBuf> {
        let content = serde_json::to_vec(recording)?;
        let path = self.dir.join(format!("{}.json", recording.about.id));
        let _changing = self.changing.lock();
        self.make_room(content.len() as u64)?;
        replace_private(&path, &content, false)?;
        Ok(path)
    }

    /// Deletes the oldest recordings until a new one of `bytes` bytes fits the
    /// limits `max_files` and `max_total_bytes`.
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

fn recordings(dir: &Path) -> io::Result<Vec<RecordingFile>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let metadata = entry.metadata()?;
            found.push(RecordingFile {
                written: metadata.modified()?,
                bytes: metadata.len(),
                path,
            });
        }
    }
    Ok(found)
}
