//! What the next snapshot is put together from: the live versions and those on
//! trial, before it is known what each can reach.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::contract::RouteContract;
use super::snapshot::{AreaVersion, Snapshot};
use super::trial::{Figures, OnTrial};
use crate::domain::manifest::Manifest;
use crate::domain::trial::Trial;
use crate::runtime::Loaded;
use crate::work::AreaCode;

/// A version before it is known what it can reach; its routes too, where they
/// were compiled before.
pub(super) struct Piece {
    pub(super) manifest: Arc<Manifest>,
    pub(super) digest: String,
    pub(super) generation: &'static str,
    pub(super) imports: Vec<String>,
    pub(super) code: Arc<dyn AreaCode>,
    pub(super) routes: Option<Arc<[RouteContract]>>,
}

/// A version on trial, likewise.
pub(super) struct TrialPiece {
    pub(super) trial: Trial,
    pub(super) piece: Piece,
    pub(super) figures: Arc<Figures>,
}

/// Everything, by the area's name.
pub(super) struct Pieces {
    pub(super) live: BTreeMap<String, Piece>,
    pub(super) trials: BTreeMap<String, TrialPiece>,
}

impl From<Loaded> for Piece {
    fn from(loaded: Loaded) -> Self {
        Self {
            manifest: Arc::new(loaded.manifest),
            digest: loaded.digest,
            generation: loaded.generation,
            imports: loaded.imports,
            code: loaded.code,
            routes: None,
        }
    }
}

impl From<&AreaVersion> for Piece {
    fn from(area: &AreaVersion) -> Self {
        Self {
            manifest: Arc::clone(&area.manifest),
            digest: area.digest.clone(),
            generation: area.generation,
            imports: area.imports.clone(),
            code: Arc::clone(&area.code),
            routes: Some(Arc::clone(&area.routes)),
        }
    }
}

impl From<&OnTrial> for TrialPiece {
    fn from(on_trial: &OnTrial) -> Self {
        Self {
            trial: on_trial.trial.clone(),
            piece: on_trial.version.as_ref().into(),
            figures: Arc::clone(&on_trial.figures),
        }
    }
}

impl From<&Snapshot> for Pieces {
    fn from(snapshot: &Snapshot) -> Self {
        let live = snapshot.areas().map(|area| (area.manifest.name.clone(), area.as_ref().into()));
        let trials = snapshot.trials().map(|one| (one.trial.area.clone(), one.as_ref().into()));
        Self { live: live.collect(), trials: trials.collect() }
    }
}
