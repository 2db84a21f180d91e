//! OSV files: one record, an array of records, or the format of the OSV API, `{"vulns": […]}`. An
//! invalid record does not stop the import of the others.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use area_sdk::prelude::*;
use area_sdk::{JobError, Scope};
use artifact_formats::packing::Packing;
use serde_json::value::RawValue;

use super::import::{self, ReevaluationTargets};
use super::packed;
use crate::artifacts::{self, FileImportError, StoredFileSummary};
use crate::budget::StepBudget;
use crate::osv::Osv;
use crate::reading::{self, ImportFailure};

/// Maximum size of an uploaded OSV file as it was sent, in bytes. The unpacked content of a
/// compressed file may be larger.
const MAX_BYTES: usize = 26_214_400;
/// Maximum number of OSV records that one step imports.
const STEP: usize = 500;
/// Size of the records of a compressed OSV file, in bytes, from which a step reads no further ones.
const MOST_RECORD_BYTES: usize = 8 << 20;
/// Maximum number of errors that are stored for an OSV file; further ones are only counted.
const MOST_ERRORS: usize = 20;

/// Returns the records of an OSV file (one record, an array, or an object with `vulns`) as unparsed
/// JSON.
pub(crate) fn records(bytes: &[u8]) -> Result<Vec<&RawValue>, ImportFailure> {
    #[derive(Deserialize)]
    struct OsvQueryResponse<'a> {
        #[serde(borrow)]
        vulns: Option<Vec<&'a RawValue>>,
    }
    let text = reading::text(bytes)?;
    if text.trim_start().starts_with('[') {
        return reading::json(text);
    }
    let whole: &RawValue = reading::json(text)?;
    let answer: OsvQueryResponse<'_> = reading::json(whole.get())?;
    Ok(answer.vulns.unwrap_or_else(|| vec![whole]))
}

/// Returns the records at these indexes of an uploaded OSV file, at least one and as many as fit
/// into memory, and the number of all its records.
fn records_at(
    content: &[u8],
    places: Range<usize>,
) -> Result<(Vec<Cow<'_, RawValue>>, usize), ImportFailure> {
    if Packing::of(content) != Packing::None {
        let read = packed::records(content, places, MOST_RECORD_BYTES)?;
        return Ok((read.records.into_iter().map(Cow::Owned).collect(), read.total));
    }
    let all = records(content)?;
    let total = all.len();
    let some = all.into_iter().skip(places.start).map(Cow::Borrowed);
    Ok((some.collect(), total))
}

/// Runs one step of importing an uploaded OSV file: the records from the index `offset` on.
/// `artifact` is the result of the former steps; `None` in the first step. Returns the result so
/// far, and the index at which the next step continues; `None` if the import has ended, now or
/// earlier.
pub(crate) fn import_step(
    scope: &Scope,
    (blob, sha256): (&str, &str),
    offset: usize,
    artifact: Option<StoredFileSummary>,
) -> Result<(StoredFileSummary, Option<usize>), JobError> {
    if artifact.is_none()
        && let Some(known) = StoredFileSummary::known(scope, sha256)?
    {
        return Ok((known, None));
    }
    let mut artifact = artifact.unwrap_or_else(|| StoredFileSummary::new(Vec::new()));
    let next = match artifacts::content(scope, blob, MAX_BYTES)? {
        Ok(content) => import_some(scope, (&content, sha256), offset, &mut artifact)?,
        Err(error) => {
            artifact.errors.push(error);
            None
        }
    };
    if next.is_none() {
        artifact.keep(scope, sha256)?;
    }
    Ok((artifact, next))
}

/// Imports records of an OSV file, from the index `offset` on, as far as a step may. Returns the
/// index of the next record; `None` if no record is left or the file cannot be read.
fn import_some(
    scope: &Scope,
    (content, sha256): (&[u8], &str),
    offset: usize,
    artifact: &mut StoredFileSummary,
) -> Result<Option<usize>, JobError> {
    let (found, total) = match records_at(content, offset..offset.saturating_add(STEP)) {
        Ok(found) => found,
        Err(mistake) => {
            artifact.errors.push(FileImportError::new("invalid_osv", mistake.to_string()));
            return Ok(None);
        }
    };
    let mut changed = ReevaluationTargets::default();
    let mut seen = BTreeMap::new();
    let (mut end, mut budget) = (offset, StepBudget::default());
    for (at, record) in (offset..).zip(&found).take(STEP) {
        let read = Osv::read(record.get());
        // Two records with the same id cannot be stored in one step. A newer one begins the next
        // step; an older one is skipped.
        let is_newer = |osv: &Osv| seen.get(&osv.id).is_some_and(|stored| osv.modified > *stored);
        if read.as_ref().is_ok_and(is_newer) {
            break;
        }
        let before = match &read {
            Ok(osv) if !seen.contains_key(&osv.id) => import::stored(scope, &osv.id)?,
            _ => None,
        };
        let cost = read.as_ref().map_or(0, |osv| import::cost(osv, before.as_deref()));
        if !budget.has(cost) && at > offset {
            break;
        }
        budget.spend(cost);
        // An advisory is stored twice: whole, and as its affected packages.
        let former = before.as_ref().map_or(0, |before| before.bytes());
        budget.spend_bytes(2 * (record.get().len() + former));
        end = at + 1;
        match read {
            Ok(osv) if seen.contains_key(&osv.id) => {}
            Ok(osv) => {
                seen.insert(osv.id.clone(), osv.modified);
                let digest = if total == 1 { sha256.to_owned() } else { digest(scope, record) };
                import::keep(scope, (osv, before), &digest, &mut changed)?;
                artifact.advisories += 1;
            }
            Err(mistake) if artifact.errors.len() < MOST_ERRORS => {
                let mistake = if total == 1 { mistake } else { mistake.within(&format!("/{at}")) };
                artifact.errors.push(FileImportError::new("invalid_osv", mistake.to_string()));
            }
            Err(_) => artifact.more_errors += 1,
        }
    }
    changed.settle(scope)?;
    Ok((end < total).then_some(end))
}

/// Returns the lower-case hex SHA-256 of an OSV record's original text.
pub(crate) fn digest(scope: &Scope, record: &RawValue) -> String {
    scope.sha256_hex(record.get().as_bytes())
}
