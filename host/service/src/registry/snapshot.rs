//! The live areas at one moment. A request uses one snapshot to its end, so a swap never affects a
//! running request.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;

use super::trial::VersionOnTrial;
use super::{RegistryError, event_names};
use assurance_contract::CompiledRoute;
use assurance_contract::{HostOperation, OpenApiDocument, PublishedArea};
use assurance_core::domain::manifest::{Manifest, Method};
use assurance_work::{AreaCode, AreaPolicy};

/// One version of an area with its routes and scope.
#[derive(Clone)]
pub struct AreaVersion {
    /// Manifest of the version.
    pub manifest: Arc<Manifest>,
    /// SHA-256 of the component, lower-case hex.
    pub digest: String,
    /// Generation of the contract that the component uses; shown to operators.
    pub generation: &'static str,
    /// Interfaces that the component imports; shown to operators.
    pub imports: Vec<String>,
    /// Code that executes requests and jobs of the version.
    pub code: Arc<dyn AreaCode>,
    /// Collections, events and jobs that calls of the version can reach.
    pub scope: Arc<AreaPolicy>,
    /// Compiled routes, in the order of the manifest.
    pub routes: Arc<[CompiledRoute]>,
}

impl AreaVersion {
    /// Whether this process can run the version's code; false if only its manifest was loaded.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.code.is_loaded()
    }
}

impl fmt::Debug for AreaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AreaVersion")
            .field("name", &self.manifest.name)
            .field("version", &self.manifest.version)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

/// Result of looking up the route for a method and a path.
#[derive(Debug)]
pub enum RouteLookupResult<'s, 'p> {
    /// A route of an area matches the method and the path.
    Route(RouteMatch<'s, 'p>),
    /// The path exists with other methods; contains the value of the `Allow` header.
    MethodNotAllowed(&'s str),
    /// No route of an area has this path.
    Nothing,
}

/// Route that a request matches, with its path parameters.
#[derive(Debug)]
pub struct RouteMatch<'s, 'p> {
    /// Live version of the area that has the route.
    pub area: &'s Arc<AreaVersion>,
    /// Contract of the matched route.
    pub route: &'s CompiledRoute,
    /// Percent-encoded path parameters, in the order of `route.path_parameters`.
    pub path_values: Vec<&'p str>,
}

/// The live areas at one moment, with their routes and their OpenAPI document.
#[derive(Default)]
pub struct Snapshot {
    areas: BTreeMap<String, Arc<AreaVersion>>,
    trials: BTreeMap<String, Arc<VersionOnTrial>>,
    paths: matchit::Router<usize>,
    tables: Vec<MethodTable>,
    host: Arc<[HostOperation]>,
    document: OnceLock<OpenApiDocument>,
    pages: Mutex<CachedDocumentationPages>,
}

/// Cached documentation pages that were rendered from the OpenAPI document, by name.
#[derive(Default)]
struct CachedDocumentationPages {
    by_name: HashMap<String, Bytes>,
    bytes: usize,
}

/// Maximum total size of a snapshot's cached pages, in bytes.
const MAX_PAGES_BYTES: usize = 32 << 20;

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("areas", &self.areas).finish_non_exhaustive()
    }
}

/// Routes of one path template, by HTTP method.
#[derive(Default)]
struct MethodTable {
    by_method: [Option<(Arc<AreaVersion>, usize)>; Method::ALL.len()],
    allow: String,
}

impl MethodTable {
    fn get_writes(&self) -> bool {
        let get = self.by_method[Method::Get as usize].as_ref();
        get.is_some_and(|(area, index)| area.routes[*index].route.writes)
    }
}

impl Snapshot {
    /// Returns a snapshot without areas, with the host's own operations.
    pub(super) fn empty(host: Arc<[HostOperation]>) -> Self {
        Self { host, ..Self::default() }
    }

    /// Creates a snapshot of the live areas and the versions on trial.
    ///
    /// # Errors
    /// Two areas conflict. The error names `newcomer` as the area to fix.
    pub(super) fn new(
        areas: BTreeMap<String, Arc<AreaVersion>>,
        trials: BTreeMap<String, Arc<VersionOnTrial>>,
        host: Arc<[HostOperation]>,
        newcomer: &str,
    ) -> Result<Self, RegistryError> {
        let mut builder = RouteTableBuilder::new(&host);
        let others = areas.values().filter(|area| area.manifest.name != newcomer);
        others.chain(areas.get(newcomer)).for_each(|area| builder.add(area));
        let RouteTableBuilder { paths, tables, conflicts, .. } = builder;
        let next = Self { areas, trials, paths, tables, host, ..Self::default() };
        conflicts.into_iter().next().map_or(Ok(next), Err)
    }

    /// Returns all routes, operation ids and events of the version that another owner has.
    pub(crate) fn conflicts(&self, version: &Arc<AreaVersion>) -> Vec<RegistryError> {
        let mut builder = RouteTableBuilder::new(&self.host);
        let others = self.areas().filter(|area| area.manifest.name != version.manifest.name);
        others.chain([version]).for_each(|area| builder.add(area));
        builder.conflicts
    }

    /// Finds the route for a method and a path. `None` as method stands for one that no route can
    /// have.
    #[must_use]
    pub fn route<'s, 'p>(
        &'s self,
        method: Option<Method>,
        path: &'p str,
    ) -> RouteLookupResult<'s, 'p> {
        let Ok(matched) = self.paths.at(path) else { return RouteLookupResult::Nothing };
        let Some(table) = self.tables.get(*matched.value) else {
            return RouteLookupResult::Nothing;
        };
        let entry = method.and_then(|method| table.by_method[method as usize].as_ref());
        let Some((area, index)) = entry else {
            return RouteLookupResult::MethodNotAllowed(&table.allow);
        };
        RouteLookupResult::Route(RouteMatch {
            area,
            route: &area.routes[*index],
            path_values: matched.params.iter().map(|(_, value)| value).collect(),
        })
    }

    /// Returns the live version of an area if this process can run it.
    #[must_use]
    pub fn running(&self, name: &str) -> Option<&Arc<AreaVersion>> {
        self.area(name).filter(|area| area.is_loaded())
    }

    /// Returns the live version of an area, loaded or not.
    #[must_use]
    pub fn area(&self, name: &str) -> Option<&Arc<AreaVersion>> {
        self.areas.get(name)
    }

    /// Returns the live version of every area, sorted by the area's name.
    pub fn areas(&self) -> impl Iterator<Item = &Arc<AreaVersion>> {
        self.areas.values()
    }

    /// Returns the version of an area on trial; `None` if there is none. It has no routes of its
    /// own: the live version's manifest decides which requests are valid.
    #[must_use]
    pub fn trial(&self, name: &str) -> Option<&Arc<VersionOnTrial>> {
        self.trials.get(name)
    }

    /// Returns every version on trial.
    pub fn trials(&self) -> impl Iterator<Item = &Arc<VersionOnTrial>> {
        self.trials.values()
    }

    /// Returns the OpenAPI document of the live areas. The first call renders it.
    pub fn openapi(&self, base_url: &str) -> &OpenApiDocument {
        self.document.get_or_init(|| {
            let areas = self
                .areas
                .values()
                .map(|area| PublishedArea { manifest: &area.manifest, routes: &area.routes });
            OpenApiDocument::of(&self.host, areas, base_url)
        })
    }

    /// Whether the OpenAPI document of this snapshot is rendered already.
    #[must_use]
    pub fn is_described(&self) -> bool {
        self.document.get().is_some()
    }

    /// Returns a cached documentation page; `None` if it is not cached.
    #[must_use]
    pub fn page(&self, name: &str) -> Option<Bytes> {
        self.pages.lock().by_name.get(name).cloned()
    }

    /// Caches a rendered documentation page if the cache has room.
    pub fn keep_page(&self, name: String, page: Bytes) {
        let mut pages = self.pages.lock();
        let bytes = pages.bytes + page.len();
        if bytes <= MAX_PAGES_BYTES && !pages.by_name.contains_key(&name) {
            pages.bytes = bytes;
            pages.by_name.insert(name, page);
        }
    }

    /// Returns the names of the events that live areas publish and webhooks can subscribe to,
    /// sorted.
    #[must_use]
    pub fn events(&self) -> Vec<String> {
        event_names(self.areas.values().map(|area| area.manifest.as_ref()))
    }
}

/// Collects the routes of a snapshot and refuses routes, operation ids and events that two owners
/// claim.
#[derive(Default)]
struct RouteTableBuilder {
    paths: matchit::Router<usize>,
    by_key: HashMap<String, usize>,
    tables: Vec<MethodTable>,
    /// Paths of the host's own operations by their normalized template; areas cannot use them.
    host_paths: HashMap<String, &'static str>,
    operation_owners: HashMap<String, String>,
    event_owners: HashMap<String, String>,
    conflicts: Vec<RegistryError>,
}

impl RouteTableBuilder {
    fn new(host: &[HostOperation]) -> Self {
        let mut builder = Self::default();
        for operation in host {
            builder
                .host_paths
                .insert(assurance_contract::template_key(operation.path), operation.path);
            builder.operation_owners.insert(operation.operation_id.into(), "host".into());
        }
        builder
    }

    fn add(&mut self, area: &Arc<AreaVersion>) {
        let name = &area.manifest.name;
        for (index, contract) in area.routes.iter().enumerate() {
            let operation = &contract.route.operation_id;
            if let Some(owner) = self.operation_owners.insert(operation.clone(), name.clone()) {
                let (operation, area) = (operation.clone(), name.clone());
                self.conflicts.push(RegistryError::OperationTaken { operation, owner, area });
            }
            let table = self.table(area, &contract.route.path);
            let Ok(table) = table.map_err(|taken| self.conflicts.push(taken)) else { continue };
            let entry = &mut self.tables[table].by_method[contract.route.method as usize];
            if let Some((owner, _)) = entry {
                self.conflicts.push(RegistryError::RouteTaken {
                    route: format!("{} {}", contract.route.method.as_str(), contract.route.path),
                    owner: owner.manifest.name.clone(),
                    area: area.manifest.name.clone(),
                });
                continue;
            }
            *entry = Some((Arc::clone(area), index));
            self.tables[table].allow = allow(&self.tables[table]);
        }
        for event in &area.manifest.publishes {
            if let Some(owner) = self.event_owners.insert(event.name.clone(), name.clone()) {
                let (event, area) = (event.name.clone(), name.clone());
                self.conflicts.push(RegistryError::EventTaken { event, owner, area });
            }
        }
    }

    fn table(&mut self, area: &AreaVersion, path: &str) -> Result<usize, RegistryError> {
        let key = assurance_contract::template_key(path);
        let taken = |owner: String| RegistryError::RouteTaken {
            route: path.to_owned(),
            owner,
            area: area.manifest.name.clone(),
        };
        if self.host_paths.contains_key(&key) {
            return Err(taken("host".into()));
        }
        if let Some(index) = self.by_key.get(&key) {
            return Ok(*index);
        }
        let index = self.tables.len();
        let conflict = |error: matchit::InsertError| RegistryError::PathConflict {
            path: path.to_owned(),
            area: area.manifest.name.clone(),
            error: error.to_string(),
        };
        self.paths.insert(key.clone(), index).map_err(conflict)?;
        self.by_key.insert(key, index);
        self.tables.push(MethodTable::default());
        Ok(index)
    }
}

fn allow(table: &MethodTable) -> String {
    let methods = Method::ALL.iter().zip(&table.by_method).filter(|(_, entry)| entry.is_some());
    let mut names: Vec<&str> = methods.map(|(method, _)| method.as_str()).collect();
    if names.first() == Some(&"GET") && !table.get_writes() {
        names.insert(1, "HEAD");
    }
    names.join(", ")
}
