//! The live areas at one moment. A request takes one snapshot and keeps it to
//! its end, so a swap never changes a request under way.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;

use super::contract::RouteContract;
use super::openapi::Document;
use super::trial::OnTrial;
use super::{HostOperation, Refusal, checks};
use crate::domain::manifest::{Manifest, Method};
use crate::work::{AreaCode, AreaScope};

/// One version of one area, answering.
pub struct AreaVersion {
    /// What it declares.
    pub manifest: Arc<Manifest>,
    /// SHA-256 of the component, lower-case hex.
    pub digest: String,
    /// The generation of the contract that it speaks, for the operator.
    pub generation: &'static str,
    /// What it imports, for the operator.
    pub imports: Vec<String>,
    /// Runs its logic.
    pub code: Arc<dyn AreaCode>,
    /// What it can reach.
    pub scope: Arc<AreaScope>,
    /// Its routes, in the manifest's order.
    pub routes: Arc<[RouteContract]>,
}

impl AreaVersion {
    /// Whether this process can run it; not, where it only has its manifest.
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

/// Where a request goes.
#[derive(Debug)]
pub enum Found<'s, 'p> {
    /// To a route of an area, with the raw path parameters in template order.
    Route(Match<'s, 'p>),
    /// The path is known, by other methods; the value of `Allow`.
    MethodNotAllowed(&'s str),
    /// Nothing answers at the path.
    Nothing,
}

/// A route that answers, and what its path says.
#[derive(Debug)]
pub struct Match<'s, 'p> {
    /// Whose route it is.
    pub area: &'s Arc<AreaVersion>,
    /// The route.
    pub route: &'s RouteContract,
    /// Percent-encoded, in the order of `route.path_parameters`.
    pub path_values: Vec<&'p str>,
}

/// The live areas, their paths and their documentation.
pub struct Snapshot {
    areas: BTreeMap<String, Arc<AreaVersion>>,
    trials: BTreeMap<String, Arc<OnTrial>>,
    paths: matchit::Router<usize>,
    tables: Vec<MethodTable>,
    host: Arc<[HostOperation]>,
    document: OnceLock<Document>,
    pages: Mutex<Pages>,
}

/// Pages that were made from the document.
#[derive(Default)]
struct Pages {
    by_name: HashMap<String, Bytes>,
    bytes: usize,
}

/// Pages of more than so many bytes in all are not kept.
const MAX_PAGES_BYTES: usize = 32 << 20;

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("areas", &self.areas).finish_non_exhaustive()
    }
}

/// Which route answers to which method at one path.
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
    /// Nothing but the host.
    pub(super) fn empty(host: Arc<[HostOperation]>) -> Self {
        Self {
            areas: BTreeMap::new(),
            trials: BTreeMap::new(),
            paths: matchit::Router::new(),
            tables: Vec::new(),
            host,
            document: OnceLock::new(),
            pages: Mutex::default(),
        }
    }

    /// A snapshot of these areas and the versions on trial beside them, or why
    /// they cannot be live together; what the newcomer shares with another is
    /// the newcomer's to mend.
    pub(super) fn new(
        areas: BTreeMap<String, Arc<AreaVersion>>,
        trials: BTreeMap<String, Arc<OnTrial>>,
        host: Arc<[HostOperation]>,
        newcomer: Option<&str>,
    ) -> Result<Self, Refusal> {
        let mut builder = Builder::new(&host);
        let is_new = |area: &&Arc<AreaVersion>| newcomer == Some(area.manifest.name.as_str());
        for area in areas.values().filter(|area| !is_new(area)) {
            builder.add(area)?;
        }
        for area in areas.values().filter(is_new) {
            builder.add(area)?;
        }
        let Builder { paths, tables, .. } = builder;
        let (document, pages) = (OnceLock::new(), Mutex::default());
        Ok(Self { areas, trials, paths, tables, host, document, pages })
    }

    /// Finds what answers at a path; `None` stands for a method no route can
    /// have.
    #[must_use]
    pub fn route<'s, 'p>(&'s self, method: Option<Method>, path: &'p str) -> Found<'s, 'p> {
        let Ok(matched) = self.paths.at(path) else { return Found::Nothing };
        let Some(table) = self.tables.get(*matched.value) else { return Found::Nothing };
        let entry = method.and_then(|method| table.by_method[method as usize].as_ref());
        let Some((area, index)) = entry else { return Found::MethodNotAllowed(&table.allow) };
        Found::Route(Match {
            area,
            route: &area.routes[*index],
            path_values: matched.params.iter().map(|(_, value)| value).collect(),
        })
    }

    /// The live version of an area, where this process can run it.
    #[must_use]
    pub fn running(&self, name: &str) -> Option<&Arc<AreaVersion>> {
        self.area(name).filter(|area| area.is_loaded())
    }

    /// The live version of an area, loaded or not.
    #[must_use]
    pub fn area(&self, name: &str) -> Option<&Arc<AreaVersion>> {
        self.areas.get(name)
    }

    /// Every live area, by name.
    pub fn areas(&self) -> impl Iterator<Item = &Arc<AreaVersion>> {
        self.areas.values()
    }

    /// The version of an area that is on trial. It has no paths of its own:
    /// what clients may ask for, and how, is what the live version says.
    #[must_use]
    pub fn trial(&self, name: &str) -> Option<&Arc<OnTrial>> {
        self.trials.get(name)
    }

    /// Every version on trial.
    pub fn trials(&self) -> impl Iterator<Item = &Arc<OnTrial>> {
        self.trials.values()
    }

    /// The OpenAPI document of this moment, made at the first question.
    pub fn openapi(&self, base_url: &str) -> &Document {
        self.document.get_or_init(|| Document::of(&self.host, self.areas.values(), base_url))
    }

    /// True once the OpenAPI document is made.
    #[must_use]
    pub fn is_described(&self) -> bool {
        self.document.get().is_some()
    }

    /// A page about these areas that was made before.
    #[must_use]
    pub fn page(&self, name: &str) -> Option<Bytes> {
        self.pages.lock().by_name.get(name).cloned()
    }

    /// Keeps a page for the next who asks for it, as long as there is room.
    pub fn keep_page(&self, name: String, page: Bytes) {
        let mut pages = self.pages.lock();
        let bytes = pages.bytes + page.len();
        if bytes <= MAX_PAGES_BYTES && !pages.by_name.contains_key(&name) {
            pages.bytes = bytes;
            pages.by_name.insert(name, page);
        }
    }

    /// The names of all live events, sorted.
    #[must_use]
    pub fn events(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .areas
            .values()
            .flat_map(|area| area.manifest.publishes.iter().map(|event| event.name.clone()))
            .collect();
        names.sort();
        names
    }
}

/// Collects paths and refuses what two owners claim.
struct Builder {
    paths: matchit::Router<usize>,
    by_key: HashMap<String, usize>,
    tables: Vec<MethodTable>,
    /// Paths and operation ids of the host: no area may have them.
    host_paths: HashMap<String, &'static str>,
    operation_owners: HashMap<String, String>,
    event_owners: HashMap<String, String>,
}

impl Builder {
    fn new(host: &[HostOperation]) -> Self {
        let mut builder = Self {
            paths: matchit::Router::new(),
            by_key: HashMap::new(),
            tables: Vec::new(),
            host_paths: HashMap::new(),
            operation_owners: HashMap::new(),
            event_owners: HashMap::new(),
        };
        for operation in host {
            builder.host_paths.insert(checks::template_key(operation.path), operation.path);
            builder.operation_owners.insert(operation.operation_id.into(), "host".into());
        }
        builder
    }

    fn add(&mut self, area: &Arc<AreaVersion>) -> Result<(), Refusal> {
        for (index, contract) in area.routes.iter().enumerate() {
            self.claim_operation(area, &contract.route.operation_id)?;
            let table = self.table(area, &contract.route.path)?;
            let entry = &mut self.tables[table].by_method[contract.route.method as usize];
            if let Some((owner, _)) = entry {
                return Err(Refusal::RouteTaken {
                    route: format!("{} {}", contract.route.method.as_str(), contract.route.path),
                    owner: owner.manifest.name.clone(),
                    area: area.manifest.name.clone(),
                });
            }
            *entry = Some((Arc::clone(area), index));
            self.tables[table].allow = allow(&self.tables[table]);
        }
        for event in &area.manifest.publishes {
            self.claim_event(area, &event.name)?;
        }
        Ok(())
    }

    fn table(&mut self, area: &AreaVersion, path: &str) -> Result<usize, Refusal> {
        let key = checks::template_key(path);
        let taken = |owner: String| Refusal::RouteTaken {
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
        self.paths.insert(key.clone(), index).map_err(|error| taken(error.to_string()))?;
        self.by_key.insert(key, index);
        self.tables.push(MethodTable::default());
        Ok(index)
    }

    fn claim_operation(&mut self, area: &AreaVersion, operation: &str) -> Result<(), Refusal> {
        let name = &area.manifest.name;
        match self.operation_owners.insert(operation.to_owned(), name.clone()) {
            Some(owner) => Err(Refusal::OperationTaken {
                operation: operation.to_owned(),
                owner,
                area: name.clone(),
            }),
            None => Ok(()),
        }
    }

    fn claim_event(&mut self, area: &AreaVersion, event: &str) -> Result<(), Refusal> {
        let name = &area.manifest.name;
        match self.event_owners.insert(event.to_owned(), name.clone()) {
            Some(owner) => {
                Err(Refusal::EventTaken { event: event.to_owned(), owner, area: name.clone() })
            }
            None => Ok(()),
        }
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
