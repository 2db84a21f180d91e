//! Places for the long calls of an area, which its workspaces share.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use assurance_core::domain::id::WorkspaceId;

/// Places for the long calls of one area. A workspace gets another place only while it has fewer
/// places than are free. So it has at most half of them (rounded up), and leaves some to others
/// however often it calls.
#[derive(Debug)]
pub(super) struct LongCallPlaces {
    most: usize,
    /// Number of places that each workspace has; without an entry, none. The key `None` stands for
    /// calls without a workspace.
    taken: Mutex<HashMap<Option<WorkspaceId>, usize>>,
}

/// Place of one long call. Dropping it frees the place.
#[derive(Debug)]
pub(super) struct LongCallPlace {
    places: Arc<LongCallPlaces>,
    workspace: Option<WorkspaceId>,
}

impl LongCallPlaces {
    pub(super) fn new(most: usize) -> Self {
        Self { most, taken: Mutex::default() }
    }

    /// Returns whether a call of this workspace would get a place.
    pub(super) fn has_place_for(&self, workspace: Option<WorkspaceId>) -> bool {
        self.may_take(&self.taken.lock(), workspace)
    }

    /// Takes a place; `None` if the workspace gets no more.
    pub(super) fn take(self: &Arc<Self>, workspace: Option<WorkspaceId>) -> Option<LongCallPlace> {
        let mut taken = self.taken.lock();
        if !self.may_take(&taken, workspace) {
            return None;
        }
        *taken.entry(workspace).or_default() += 1;
        Some(LongCallPlace { places: Arc::clone(self), workspace })
    }

    fn may_take(
        &self,
        taken: &HashMap<Option<WorkspaceId>, usize>,
        workspace: Option<WorkspaceId>,
    ) -> bool {
        let free = self.most.saturating_sub(taken.values().sum());
        taken.get(&workspace).copied().unwrap_or_default() < free
    }
}

impl Drop for LongCallPlace {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        if let Some(places) = taken.get_mut(&self.workspace) {
            *places -= 1;
            if *places == 0 {
                taken.remove(&self.workspace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_leaves_places_to_others() {
        let places = Arc::new(LongCallPlaces::new(4));
        let [busy, other, third] = [(); 3].map(|()| Some(WorkspaceId::new()));
        let all = || std::iter::from_fn(|| places.take(busy)).collect::<Vec<_>>();
        let held = all();
        assert_eq!(held.len(), 2);
        assert!(!places.has_place_for(busy) && places.has_place_for(other));
        let others = [places.take(other).unwrap(), places.take(third).unwrap()];
        assert!(places.take(other).is_none() && places.take(Some(WorkspaceId::new())).is_none());
        drop((held, others));
        assert_eq!(all().len(), 2);
        assert!(places.taken.lock().is_empty());
    }

    #[test]
    fn the_only_place_is_for_whoever_comes_first() {
        let places = Arc::new(LongCallPlaces::new(1));
        let place = places.take(None);
        assert!(place.is_some() && places.take(Some(WorkspaceId::new())).is_none());
        drop(place);
        assert!(places.take(Some(WorkspaceId::new())).is_some());
    }
}
