//! Assessment of a dependency between two groups, computed from properties of the groups. It is
//! computed again when one of the groups changes.

use area_sdk::prelude::*;
use area_sdk::{EventDelivery, JobError, JobOptions};
use area_shared::catalog::{DataClassification, UserGroup};

use crate::dependencies::StoredGroupDependency;

/// Maximum number of dependencies that one step of the job assesses.
const STEP: u32 = 200;

/// Assessment of a dependency between two groups: whether it crosses a trust boundary, and its data
/// classification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TrustBoundaryAssessment {
    pub(crate) crosses_trust_boundary: bool,
    pub(crate) data_classification: DataClassification,
}

/// Assesses a dependency of one group on another. Its data classification is the higher one of the
/// two groups, because data may flow in both directions. It crosses a trust boundary if the trust
/// zones differ.
pub(crate) fn assess(source: &UserGroup, target: &UserGroup) -> TrustBoundaryAssessment {
    TrustBoundaryAssessment {
        crosses_trust_boundary: source.trust_zone != target.trust_zone,
        data_classification: source.data_classification.max(target.data_classification),
    }
}

/// Job that assesses all dependencies of a changed group again: first those with the group as
/// source, then those with the group as target.
#[derive(Serialize, Deserialize)]
pub(crate) struct ReassessDependenciesJob {
    group_id: Uuid,
    end: SourceOrTarget,
    cursor: Option<String>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SourceOrTarget {
    Source,
    Target,
}

impl SourceOrTarget {
    fn field(self) -> &'static str {
        match self {
            Self::Source => "source_group_id",
            Self::Target => "target_group_id",
        }
    }
}

job!(ReassessDependenciesJob, "rejudge_group");

/// Members of the event `group.updated` that this area reads.
#[derive(Deserialize)]
struct GroupUpdated {
    group_id: Uuid,
}

pub(crate) fn take(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let GroupUpdated { group_id } = event.data()?;
    let later = JobOptions { resource: Some(group_id), ..JobOptions::default() };
    ctx.enqueue_with(
        &ReassessDependenciesJob { group_id, end: SourceOrTarget::Source, cursor: None },
        later,
    );
    Ok(Outcome::Done)
}

pub(crate) fn run(
    ctx: &JobCtx,
    job: ReassessDependenciesJob,
) -> JobResult<ReassessDependenciesJob> {
    let touched =
        ctx.documents::<StoredGroupDependency>().query().equals(job.end.field(), job.group_id);
    let page = touched.cursor(job.cursor).limit(STEP).page()?;
    for mut dependency in page.items {
        reassess(ctx, &mut dependency)?;
    }
    Ok(match (page.next_cursor, job.end) {
        (None, SourceOrTarget::Source) => Outcome::Continue(ReassessDependenciesJob {
            end: SourceOrTarget::Target,
            cursor: None,
            ..job
        }),
        (None, SourceOrTarget::Target) => Outcome::Done,
        (cursor, _) => Outcome::Continue(ReassessDependenciesJob { cursor, ..job }),
    })
}

fn reassess(ctx: &JobCtx, dependency: &mut Stored<StoredGroupDependency>) -> Result<(), JobError> {
    let ends = [dependency.source_group_id, dependency.target_group_id];
    let groups = ctx.documents::<UserGroup>().get_many(ends)?;
    if let [source, target] = groups.as_slice()
        && dependency.is_otherwise(assess(source, target))
    {
        ctx.documents().replace(dependency)?;
    }
    Ok(())
}
