//! Entry point for fuzzing the SARIF parser.

use area_sdk::Uuid;

use crate::identity::FindingIdentityGenerator;
use crate::sarif;

/// Fuzzes the SARIF parser: parses a log as an import does. Returns the total size of its
/// observations in bytes.
pub fn sarif(bytes: &[u8]) -> usize {
    let Ok(runs) = sarif::open(bytes) else { return 0 };
    let checked = runs.iter().flatten().filter(|run| run.check().is_ok());
    checked
        .map(|run| {
            let identities = FindingIdentityGenerator::new(Uuid::nil(), Uuid::nil());
            let results = run.results(identities).into_iter().flatten().flatten();
            results.map(|one| serde_json::to_vec(&one).map_or(0, |text| text.len())).sum::<usize>()
        })
        .sum()
}
