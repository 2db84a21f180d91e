//! Deletes blob store objects that no database row refers to.

use futures::{StreamExt as _, TryStreamExt as _};
use object_store::ObjectStoreExt as _;
use object_store::path::Path;

use super::super::Store;
use super::super::connection::{Connection, Raw};
use super::super::error::Error;
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::time::Timestamp;

/// Number of objects in one database query of the sweep.
const SWEEP_BATCH: usize = 256;
/// Number of hexadecimal digits of 256 bits.
const NAME_DIGITS: usize = 64;

/// Deletes objects that no row refers to. `written_before` must be earlier than
/// any running call, because a call writes the object before its row. Returns
/// the number of deleted objects.
pub async fn sweep(store: &Store, written_before: Timestamp) -> Result<u64, Error> {
    let objects = &store.0.blobs.objects;
    let old = objects.list(None).try_filter_map(async |object| {
        let old = object.last_modified.timestamp_micros() < written_before.0;
        Ok((old && is_ours(&object.location)).then_some(object.location))
    });
    let mut batches = old.try_chunks(SWEEP_BATCH).boxed();
    let mut swept = 0;
    while let Some(batch) = batches.next().await {
        let batch = batch.map_err(|error| Error::from(error.1))?;
        let names: Vec<String> = batch.iter().map(ToString::to_string).collect();
        let named = store.read(async |c| named(c, &names).await).await?;
        for object in batch.into_iter().filter(|object| !named.contains(&object.to_string())) {
            match objects.delete(&object).await {
                Ok(()) => swept += 1,
                // Another host runs the sweep too and has deleted the object.
                Err(object_store::Error::NotFound { .. }) => {}
                Err(failed) => return Err(failed.into()),
            }
        }
    }
    Ok(swept)
}

/// Returns whether this service created the object's name. A bucket may also
/// contain objects of other programs.
fn is_ours(object: &Path) -> bool {
    let hex = |name: &str| name.len() == NAME_DIGITS && name.bytes().all(|b| b.is_ascii_hexdigit());
    let parts: Vec<_> = object.parts().collect();
    let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    match parts[..] {
        ["components", file] => file.strip_suffix(".wasm").is_some_and(hex),
        ["compiled", file] => {
            file.strip_suffix(".cwasm").and_then(|name| name.get(..NAME_DIGITS)).is_some_and(hex)
        }
        [workspace, _, name] => workspace.parse::<WorkspaceId>().is_ok() && hex(name),
        _ => false,
    }
}

/// Returns those of the objects that a row refers to.
async fn named(connection: &mut Connection, objects: &[String]) -> Result<Vec<String>, Error> {
    let list = serde_json::to_string(objects).unwrap_or_default();
    Ok(match connection.raw() {
        Raw::Sqlite(c) => {
            sqlx::query_scalar(
                "SELECT object FROM blobs WHERE object IN (SELECT value FROM json_each($1)) \
                 UNION ALL SELECT object FROM area_versions \
                 WHERE object IN (SELECT value FROM json_each($1))",
            )
            .bind(list)
            .fetch_all(c)
            .await?
        }
        Raw::Postgres(c) => {
            sqlx::query_scalar(
                "SELECT object FROM blobs WHERE object = ANY($1) \
                 UNION ALL SELECT object FROM area_versions WHERE object = ANY($1)",
            )
            .bind(objects)
            .fetch_all(c)
            .await?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_this_service_named_may_be_deleted() {
        let name = "0".repeat(NAME_DIGITS);
        let workspace = "01939f1a-0000-7000-8000-000000000000";
        for (object, ours) in [
            (format!("{workspace}/uploads/{name}"), true),
            (format!("components/{name}.wasm"), true),
            (format!("compiled/{name}-0011223344556677.cwasm"), true),
            ("compiled/notes.cwasm".to_owned(), false),
            (format!("{workspace}/uploads/report.pdf"), false),
            (format!("backups/uploads/{name}"), false),
            (format!("fleet/{workspace}/uploads/{name}"), false),
            ("components/support.wasm".to_owned(), false),
            ("trial".to_owned(), false),
        ] {
            assert_eq!(is_ours(&Path::from(object.as_str())), ours, "{object}");
        }
    }
}
