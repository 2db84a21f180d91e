//! After advisories have changed, the latest components of their packages, and
//! those under their names, are looked at again: some pages a step.

use std::collections::BTreeSet;

use area_sdk::JobError;
use area_sdk::prelude::*;

use crate::inventory::component::StoredComponent;
use crate::inventory::matches::{self, Alerts, StoredMatch};
use crate::matching::Known;

/// How many components a step looks at.
const STEP: u32 = 500;

/// Looks at components again.
#[derive(Serialize, Deserialize)]
pub(crate) struct Reevaluate {
    /// Packages that are left, the one being looked at first.
    packages: Vec<String>,
    /// Names of advisories that are left.
    names: Vec<String>,
    cursor: Option<String>,
}

impl Job for Reevaluate {
    const KIND: &'static str = "reevaluate";
}

impl Reevaluate {
    pub(crate) fn new(packages: BTreeSet<String>, names: BTreeSet<String>) -> Self {
        let (packages, names) = (packages.into_iter().collect(), names.into_iter().collect());
        Self { packages, names, cursor: None }
    }
}

pub(crate) fn run(ctx: &JobCtx, mut job: Reevaluate) -> JobResult<Reevaluate> {
    let mut room = STEP;
    while room > 0 {
        let cursor = job.cursor.take();
        let (components, next) = match (job.packages.first(), job.names.first()) {
            (Some(package), _) => of_package(ctx, package, cursor, room)?,
            (None, Some(name)) => under_name(ctx, name, cursor, room)?,
            (None, None) => return Ok(Outcome::Done),
        };
        if next.is_none() {
            let list = if job.packages.is_empty() { &mut job.names } else { &mut job.packages };
            list.remove(0);
        }
        job.cursor = next;
        let count = u32::try_from(components.len()).unwrap_or(STEP);
        look_again(ctx, components)?;
        // A question costs something too.
        room = room.saturating_sub(count + 10);
    }
    Ok(Outcome::Continue(job))
}

/// A page of components, and where the next begins.
type Found = (Vec<Stored<StoredComponent>>, Option<String>);

fn of_package(
    ctx: &JobCtx,
    package: &str,
    cursor: Option<String>,
    limit: u32,
) -> Result<Found, JobError> {
    let components = ctx.documents::<StoredComponent>().query().equals("latest", true);
    let components = components.equals("package_key", package).ascending("package_key");
    let page = components.cursor(cursor).limit(limit).page()?;
    Ok((page.items, page.next_cursor))
}

fn under_name(
    ctx: &JobCtx,
    name: &str,
    cursor: Option<String>,
    limit: u32,
) -> Result<Found, JobError> {
    let found = ctx.documents::<StoredMatch>().query().equals("advisory_key", name);
    let found = found.equals("latest", true).ascending("name");
    let page = found.cursor(cursor).limit(limit).page()?;
    let ids = page.items.iter().map(|found| &found.component_id);
    Ok((ctx.documents::<StoredComponent>().get_many(ids)?, page.next_cursor))
}

/// Assesses components anew, and keeps what changed.
fn look_again(ctx: &JobCtx, components: Vec<Stored<StoredComponent>>) -> Result<(), JobError> {
    let known = Known::load(ctx, components.iter().map(|component| &component.value))?;
    let mut alerts = Alerts::default();
    let mut changed = Vec::new();
    for mut component in components {
        let assessment = known.assess(&component);
        let before = component.advisory_keys.clone();
        if !matches::apply(&mut component, &assessment) {
            continue;
        }
        let fresh = assessment.vulnerabilities.iter();
        for found in fresh.filter(|found| !before.iter().any(|key| found.names.contains(key))) {
            alerts.add(&component.id, &component, found);
        }
        matches::renew(ctx, &component, &before)?;
        changed.push(component);
    }
    ctx.documents().replace_all(&changed)?;
    alerts.publish(ctx);
    Ok(())
}
