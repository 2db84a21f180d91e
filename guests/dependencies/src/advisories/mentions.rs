//! Mentions: ids of other advisories in an advisory's `upstream` or `related`. Distributions name
//! the CVE there and not in `aliases`. Each mention is a document, so that lists can follow it one
//! step in both directions. Mentions are not aliases: the advisories stay two vulnerabilities.

use std::collections::BTreeSet;

use area_sdk::prelude::*;
use area_sdk::{DocumentError, JobOptions, Scope};

use super::document::{AdvisoriesWithName, StoredAdvisory};
use crate::budget::StepBudget;
use crate::text::advisory_key;

/// A mention: an id in the `upstream` or `related` of an advisory.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AdvisoryMention")]
pub(crate) struct RelatedAdvisoryMention {
    name_key: String,
    /// Id of the advisory that contains the mention.
    advisory_id: String,
}

document!(RelatedAdvisoryMention, "advisory_mentions");

/// Document that exists once the mentions (ids in `upstream` and `related`) of all advisories are
/// stored, including advisories imported by versions of this area without mentions.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MentionIndex")]
pub(crate) struct MentionIndexCompletion {
    completed_at: Timestamp,
}

document!(MentionIndexCompletion, "mention_indexes");

/// Id of the only [`MentionIndexCompletion`]; also the deduplication key of the job that creates
/// it.
const INDEX: &str = "mentions";
/// Maximum number of advisory names for which one request of the dependency list searches
/// components.
const MOST_KEYS: usize = 900;
/// Maximum number of advisories with the requested name whose mentions a list request follows.
const MOST_RECORDS: usize = 20;
/// Number of stored advisories that the job reads with one query; some are large.
const PAGE: u32 = 20;

fn id(scope: &Scope, name_key: &str, advisory_id: &str) -> String {
    scope.sha256_hex(format!("{name_key}\n{advisory_id}").as_bytes())
}

impl StoredAdvisory {
    /// Returns the keys (upper-case forms) of the ids in `upstream` and `related`, without
    /// duplicates.
    pub(crate) fn mention_keys(&self) -> BTreeSet<String> {
        let names = self.upstream.iter().chain(&self.related);
        names.map(|name| advisory_key(name)).filter(|key| !key.is_empty()).collect()
    }

    /// Returns the ids that the advisory mentions in `upstream` and `related`, as documents with
    /// their document ids.
    fn mentions(&self, scope: &Scope) -> Vec<(String, RelatedAdvisoryMention)> {
        let mention = |name_key: String| {
            let id = id(scope, &name_key, &self.advisory_id);
            (id, RelatedAdvisoryMention { name_key, advisory_id: self.advisory_id.clone() })
        };
        self.mention_keys().into_iter().map(mention).collect()
    }
}

/// Stores the ids that an advisory mentions (`upstream`, `related`), and deletes those that only
/// its former version mentions.
pub(super) fn keep(
    scope: &Scope,
    new: &StoredAdvisory,
    before: Option<&Stored<StoredAdvisory>>,
) -> Result<(), DocumentError> {
    let documents = scope.documents::<RelatedAdvisoryMention>();
    let old = before.map(|before| before.mention_keys()).unwrap_or_default();
    let now = new.mention_keys();
    let gone = old.difference(&now).map(|key| id(scope, key, &new.advisory_id));
    documents.delete_all(&documents.get_many(gone)?)?;
    let mut added = new.mentions(scope);
    added.retain(|(_, mention)| !old.contains(&mention.name_key));
    documents.create_all(added.iter().map(|(id, mention)| (id, mention)))
}

/// Returns the keys of advisory names whose matches a list shows for `name`: the name itself,
/// advisories that mention it, and advisories that it mentions.
pub(crate) fn related_keys(scope: &Scope, name: &str) -> Result<Vec<String>, DocumentError> {
    let key = advisory_key(name);
    let mut same: BTreeSet<String> = [key.clone()].into();
    let mut mentioned = BTreeSet::new();
    if let Some(known) = scope.documents::<AdvisoriesWithName>().find(&key)? {
        let ids = known.advisories.iter().take(MOST_RECORDS).map(|named| &named.advisory_id);
        for record in scope.documents::<StoredAdvisory>().get_many(ids)? {
            same.extend(record.name_keys());
            mentioned.extend(record.mention_keys());
        }
    }
    let mentions = scope.documents::<RelatedAdvisoryMention>().query();
    let mentions = mentions.one_of("name_key", same.iter().take(100)).ascending("name_key");
    let mentions = mentions.limit(1_000).list()?;
    let keys = mentions.iter().map(|mention| advisory_key(&mention.advisory_id));
    mentioned.extend(keys);
    mentioned.remove(&key);
    Ok([key].into_iter().chain(mentioned).take(MOST_KEYS).collect())
}

/// Returns the limitation that lists of dependencies show while the mentions of some advisories are
/// not stored; `None` once all are stored.
pub(crate) fn limitation(scope: &Scope) -> Result<Option<String>, DocumentError> {
    if scope.documents::<MentionIndexCompletion>().find(INDEX)?.is_some()
        || StoredAdvisory::none(scope)?
    {
        return Ok(None);
    }
    Ok(Some(
        "Not all advisories are indexed yet by the names in their `upstream` and `related`, so \
         dependencies that such an advisory affects may be missing. The next audit, upload or \
         import of advisories starts the index."
            .to_owned(),
    ))
}

/// Job that stores the mentions (`upstream`, `related`) of advisories that were imported by
/// versions of this area without mentions.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AdvisoryMentionBackfillJob {
    /// Id of the last advisory whose mentions the job stored; `None` before the first.
    after: Option<String>,
}

job!(AdvisoryMentionBackfillJob, "index_mentions");

/// Enqueues the job that stores the mentions of all advisories, unless it has finished before.
pub(crate) fn ensure(scope: &Scope) -> Result<(), DocumentError> {
    if scope.documents::<MentionIndexCompletion>().find(INDEX)?.is_none() {
        let later = JobOptions { at: None, resource: None, dedupe_key: Some(INDEX.to_owned()) };
        scope.enqueue_with(&AdvisoryMentionBackfillJob { after: None }, later);
    }
    Ok(())
}

/// Runs one step of the job that stores the mentions of all advisories.
pub(crate) fn index(
    ctx: &JobCtx,
    mut job: AdvisoryMentionBackfillJob,
) -> JobResult<AdvisoryMentionBackfillJob> {
    let mut budget = StepBudget::default();
    loop {
        let all = ctx.documents::<StoredAdvisory>().query().after(job.after.as_ref());
        let page = all.limit(PAGE).list()?;
        if page.is_empty() {
            break;
        }
        budget.spend(page.len());
        budget.spend_bytes(page.iter().map(|advisory| advisory.bytes()).sum());
        for advisory in page {
            if !budget.is_ample() {
                return Ok(Outcome::Continue(job));
            }
            add_missing(ctx, &advisory, &mut budget)?;
            job.after = Some(advisory.id);
        }
    }
    if ctx.documents::<MentionIndexCompletion>().find(INDEX)?.is_none() {
        ctx.documents().create(INDEX, &MentionIndexCompletion { completed_at: ctx.now() })?;
    }
    Ok(Outcome::Done)
}

fn add_missing(
    scope: &Scope,
    advisory: &StoredAdvisory,
    budget: &mut StepBudget,
) -> Result<(), DocumentError> {
    let documents = scope.documents::<RelatedAdvisoryMention>();
    let mut mentions = advisory.mentions(scope);
    budget.spend(2 * mentions.len());
    let known = documents.get_many(mentions.iter().map(|(id, _)| id))?;
    let known: BTreeSet<String> = known.into_iter().map(|mention| mention.id).collect();
    mentions.retain(|(id, _)| !known.contains(id));
    documents.create_all(mentions.iter().map(|(id, mention)| (id, mention)))
}
