//! The folder of areas: every component in it is loaded at start, and swapped
//! when its file changes where the operator wants that.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::App;
use super::areas::{self, InstallError, Installed};
use crate::runtime::Loaded;

/// A file still being written is left alone until it has been quiet for so
/// long.
const QUIET: Duration = Duration::from_millis(150);

/// Why a file of the folder does not answer.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error(transparent)]
    Install(#[from] InstallError),
}

/// Loads every component of the folder. One that is refused is told to the
/// operator; the others answer.
///
/// # Errors
/// The folder cannot be read.
pub async fn load_all(app: &App) -> io::Result<()> {
    let files = components(&app.areas_dir)?;
    let loaded = join_all(files.iter().map(|file| load_file(app, file))).await;
    for (file, loaded) in files.iter().zip(loaded) {
        let installed = match loaded {
            Ok(loaded) => areas::install(app, loaded).await.map_err(Failure::from),
            Err(failure) => Err(failure),
        };
        tell(file, installed);
    }
    Ok(())
}

/// Swaps components as their files change, until stopped. A file that goes
/// away takes its area with it.
///
/// # Errors
/// The folder cannot be watched.
pub fn watch(app: &App, stop: CancellationToken) -> notify::Result<tokio::task::JoinHandle<()>> {
    let (sender, receiver) = mpsc::channel(64);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        for path in event.map(|event| event.paths).unwrap_or_default() {
            // A full channel means that a look at the folder is due anyway.
            let _ = sender.try_send(path);
        }
    })?;
    std::fs::create_dir_all(&app.areas_dir)?;
    watcher.watch(&app.areas_dir, RecursiveMode::NonRecursive)?;
    Ok(tokio::spawn(follow(app.clone(), watcher, receiver, stop)))
}

async fn follow(
    app: App,
    watcher: RecommendedWatcher,
    mut changed: mpsc::Receiver<PathBuf>,
    stop: CancellationToken,
) {
    loop {
        let first = tokio::select! {
            () = stop.cancelled() => break,
            path = changed.recv() => path,
        };
        let Some(first) = first else { break };
        let mut paths = vec![first];
        while let Ok(Some(path)) = tokio::time::timeout(QUIET, changed.recv()).await {
            paths.push(path);
        }
        paths.retain(|path| is_component(path));
        paths.sort();
        paths.dedup();
        for path in paths {
            look_at(&app, &path).await;
        }
    }
    drop(watcher);
}

async fn look_at(app: &App, path: &Path) {
    if path.exists() {
        let installed = match load_file(app, path).await {
            Ok(loaded) => areas::install(app, loaded).await.map_err(Failure::from),
            Err(failure) => Err(failure),
        };
        tell(path, installed);
        return;
    }
    let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else { return };
    if app.registry.snapshot().area(name).is_some()
        && let Err(error) = areas::remove(app, name).await
    {
        tracing::warn!(area.name = name, error = %error, "area not removed");
    }
}

async fn load_file(app: &App, file: &Path) -> Result<Loaded, Failure> {
    let component: Arc<[u8]> = tokio::fs::read(file).await?.into();
    Ok(areas::load(app, component).await.map_err(InstallError::from)?)
}

fn tell(file: &Path, installed: Result<Installed, Failure>) {
    if let Err(error) = installed {
        tracing::error!(file = %file.display(), error = %error, "component refused");
    }
}

fn components(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if is_component(&path) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn is_component(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "wasm")
}
