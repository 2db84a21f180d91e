//! Selects the documents to import: for each subject the newest SBOM with components, and the
//! newest VEX document. The results of reading a file are stored under its digest, so that this
//! reads each file only once.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::{AuditInputFile, AuditStarted, ImportCounts};
use crate::artifacts::{self, BomDocumentDetails, StoredFileSummary};
use crate::{sbom, text};

/// Maximum number of replaced SBOMs or VEX documents that one warning names.
const MOST_LISTED: usize = 5;

/// SBOMs and VEX documents that an audit imports: the newest ones of each subject.
#[derive(Debug, Default)]
pub(super) struct ImportSelection {
    pub(super) sboms: Vec<ChosenInput>,
    /// VEX documents: they have `vulnerabilities` and no components.
    pub(super) vex: Vec<ChosenInput>,
}

/// An SBOM or VEX document that an audit imports; `at` is its index in the audit's inputs.
#[derive(Debug)]
pub(super) struct ChosenInput {
    pub(super) at: usize,
    pub(super) components: usize,
    pub(super) details: BomDocumentDetails,
    pub(super) stream: String,
}

/// Reads one SBOM or VEX file of the audit that was not read before. When all files are read,
/// returns the selected ones.
pub(super) fn look(
    ctx: &JobCtx,
    audit: &AuditStarted,
    tally: &mut ImportCounts,
) -> Result<Option<ImportSelection>, JobError> {
    let mut known = Vec::new();
    for (at, input) in audit.inputs.iter().enumerate().filter(|(_, input)| input.is_sbom()) {
        match StoredFileSummary::known(ctx, &input.content_sha256)? {
            Some(artifact) => known.push((at, input, artifact)),
            None => {
                let content = artifacts::sbom_content(ctx, &input.blob)?;
                let artifact = StoredFileSummary::of_sbom(artifacts::sbom(&content));
                if content.is_err() {
                    known.push((at, input, artifact));
                    continue;
                }
                artifact.keep(ctx, &input.content_sha256)?;
                return Ok(None);
            }
        }
    }
    Ok(Some(choose(known, tally)))
}

/// Selects the SBOMs and VEX documents to import. `known` has the results of reading the audit's
/// files, newest first.
fn choose(
    known: Vec<(usize, &AuditInputFile, StoredFileSummary)>,
    tally: &mut ImportCounts,
) -> ImportSelection {
    let mut streams = DocumentsByStream::default();
    let mut replaced = BTreeSet::new();
    for (at, input, artifact) in known {
        // An invalid file is not reported if a newer file has the same name.
        let name = input.filename.as_str();
        let error = artifact.errors.into_iter().next();
        match (error, artifact.details) {
            (Some(error), _) if !replaced.contains(name) => tally.fail(input, error),
            (None, Some(details)) => {
                let stream = sbom::stream(details.subject.as_ref(), name);
                let components = artifact.components;
                streams.add(input, ChosenInput { at, components, details, stream });
            }
            _ => {}
        }
        replaced.insert(name);
    }
    streams.finish(tally)
}

/// SBOMs and VEX documents of an audit, newest first, by stream: the sequence of documents of one
/// subject.
#[derive(Default)]
struct DocumentsByStream<'a> {
    sboms: BTreeMap<String, Vec<(&'a AuditInputFile, ChosenInput)>>,
    vex: BTreeMap<String, Vec<(&'a AuditInputFile, ChosenInput)>>,
    /// SBOMs without components and without vulnerabilities.
    empty: BTreeMap<String, Vec<(&'a AuditInputFile, ChosenInput)>>,
}

impl<'a> DocumentsByStream<'a> {
    fn add(&mut self, input: &'a AuditInputFile, chosen: ChosenInput) {
        let kind = match (chosen.components, chosen.details.is_vex) {
            (0, false) => &mut self.empty,
            (_, true) => &mut self.vex,
            _ => &mut self.sboms,
        };
        kind.entry(chosen.stream.clone()).or_default().push((input, chosen));
    }

    fn finish(mut self, tally: &mut ImportCounts) -> ImportSelection {
        for (stream, documents) in std::mem::take(&mut self.empty) {
            match self.sboms.get(&stream).and_then(|sboms| sboms.first()) {
                Some((sbom, _)) => {
                    for (input, _) in &documents {
                        tally.warn(format!(
                            "{} has no components, so it does not replace {}.",
                            input.named(),
                            sbom.named()
                        ));
                    }
                }
                None => drop(self.sboms.insert(stream, documents)),
            }
        }
        ImportSelection {
            sboms: newest(self.sboms, "", tally),
            vex: newest(self.vex, "the statements of ", tally),
        }
    }
}

/// Returns the newest document of each stream, in the order of the audit's inputs. Warns about the
/// older ones.
fn newest(
    streams: BTreeMap<String, Vec<(&AuditInputFile, ChosenInput)>>,
    what: &str,
    tally: &mut ImportCounts,
) -> Vec<ChosenInput> {
    let mut chosen = Vec::new();
    for documents in streams.into_values() {
        let mut documents = documents.into_iter();
        let Some((newest, first)) = documents.next() else { continue };
        let older: Vec<String> = documents
            .filter(|(input, _)| input.content_sha256 != newest.content_sha256)
            .map(|(input, document)| input.counted(document.components))
            .collect();
        if !older.is_empty() {
            report(tally, (newest, &first), what, &older);
        }
        chosen.push(first);
    }
    chosen.sort_by_key(|chosen| chosen.at);
    chosen
}

/// Reports that a document replaces older ones (`older`): as a warning of the audit, and, if the
/// subjects may differ, as a limitation of the components.
fn report(
    tally: &mut ImportCounts,
    (newest, first): (&AuditInputFile, &ChosenInput),
    what: &str,
    older: &[String],
) {
    let listed = text::listed(older.iter(), MOST_LISTED);
    let document = newest.named();
    let subject = first.details.subject.as_ref().filter(|subject| !subject.is_weak);
    let (why, is_certain) = match subject {
        Some(subject) => (format!("the same subject, {}", subject.key), true),
        None => ("the same filename, and neither names a subject".to_owned(), false),
    };
    let text = format!("{document} replaces {what}{listed}: it is a later document of {why}.");
    if !is_certain {
        tally.limit(newest, text.clone());
    }
    tally.warn(text);
}

impl AuditInputFile {
    /// Returns the file's name and time for messages, because filenames repeat.
    pub(super) fn named(&self) -> String {
        format!("{} of {}", self.filename, self.ready_at)
    }

    fn counted(&self, components: usize) -> String {
        match components {
            0 => self.named(),
            _ => format!("{} ({})", self.named(), text::counted(components, "component")),
        }
    }
}
