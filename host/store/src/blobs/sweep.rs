//! Deletes blob store objects that no database row refers to.

use std::path::Path as FilePath;
use std::time::UNIX_EPOCH;
use std::{fs, io};

use futures::{StreamExt as _, TryStreamExt as _};
use object_store::ObjectStoreExt as _;
use object_store::path::Path;

use super::super::Store;
use super::super::connection::Connection;
use super::super::error::Error;
use super::super::sql::{Sql, each_row};
use super::{BlobStoreLocation, unless_missing};
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::time::Timestamp;

/// Number of blob store objects that the sweep looks up in the database at
/// once.
const SWEEP_BATCH: usize = 256;
/// Length of an object's name: the hexadecimal digits of 256 bits.
const NAME_DIGITS: usize = 64;

/// Deletes blob store objects that no database row refers to. `written_before`
/// must be earlier than any running call, because a call writes the object
/// before its row. Returns the number of deleted objects. Goes on
/// after objects that cannot be deleted, and logs the first of each batch.
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
        let (deleted, failure) = delete_unreferenced(store, batch).await?;
        swept += deleted;
        if let Some(error) = failure {
            tracing::warn!(%error, "cannot delete an unreferenced blob; it stays there");
        }
    }
    Ok(swept)
}

/// Deletes a blob store object unless a database row refers to it. Call it only
/// when no call that could still commit such a row is running. Returns the
/// number of deleted objects.
pub async fn discard(store: &Store, object: &str) -> Result<u64, Error> {
    let (deleted, failure) = delete_unreferenced(store, vec![Path::from(object)]).await?;
    failure.map_or(Ok(deleted), Err)
}

/// Deletes those of the objects that no database row refers to. Returns the number of deleted
/// objects, and the error of the first one that cannot be deleted, if any.
async fn delete_unreferenced(
    store: &Store,
    objects: Vec<Path>,
) -> Result<(u64, Option<Error>), Error> {
    let names: Vec<String> = objects.iter().map(ToString::to_string).collect();
    let named = store.read(async |c| named(c, &names).await).await?;
    let (mut deleted, mut failed) = (0, None);
    for object in objects.into_iter().filter(|object| !named.contains(&object.to_string())) {
        // Another host may have deleted the object.
        match unless_missing(store.0.blobs.objects.delete(&object).await) {
            Ok(found) => deleted += u64::from(found.is_some()),
            Err(error) => failed = failed.or(Some(error.into())),
        }
    }
    Ok((deleted, failed))
}

/// Deletes the files of incomplete writes that a killed process left in a blob
/// folder. The blob store does not list them. Returns their number; a bucket has
/// none. Fails after the last file if one cannot be deleted.
pub async fn sweep_partial(store: &Store, written_before: Timestamp) -> Result<u64, Error> {
    let BlobStoreLocation::Folder(folder) = &*store.0.blobs.place else { return Ok(0) };
    let folder = folder.clone();
    let swept = tokio::task::spawn_blocking(move || sweep_folder(&folder, written_before)).await;
    swept.map_err(io::Error::other).flatten().map_err(|error| Error::Blobs(error.into()))
}

fn sweep_folder(root: &FilePath, written_before: Timestamp) -> io::Result<u64> {
    let (mut swept, mut failed, mut folders) = (0, None, vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        // A write that ends meanwhile renames its file; a deletion removes empty folders.
        for entry in unless_gone(fs::read_dir(folder))?.into_iter().flatten() {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.strip_prefix(root).is_ok_and(is_partial)
                && unless_gone(is_older(&path, written_before))? == Some(true)
            {
                match unless_gone(fs::remove_file(&path)) {
                    Ok(found) => swept += u64::from(found.is_some()),
                    Err(error) => failed = failed.or(Some(error)),
                }
            }
        }
    }
    failed.map_or(Ok(swept), Err)
}

fn is_older(file: &FilePath, than: Timestamp) -> io::Result<bool> {
    let written = fs::metadata(file)?.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(i64::try_from(written.as_micros()).is_ok_and(|micros| micros < than.0))
}

/// Returns `None` for a file or folder that does not exist any more.
fn unless_gone<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Returns whether a path in the blob folder is that of an incomplete write:
/// the name of an object, `#` and a number.
fn is_partial(file: &FilePath) -> bool {
    let parts = file.to_str().and_then(|name| name.rsplit_once('#'));
    parts.is_some_and(|(object, number)| number.parse::<u64>().is_ok() && is_ours(&object.into()))
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

/// Returns those of the blob store objects that a database row refers to.
async fn named(connection: &mut Connection, objects: &[String]) -> Result<Vec<String>, Error> {
    let mut sql = Sql::new(connection.backend(), "SELECT object FROM blobs WHERE object ");
    sql.bind_any(objects.to_vec());
    sql.push(" UNION ALL SELECT object FROM area_versions WHERE object ");
    sql.bind_any(objects.to_vec());
    let mut named = Vec::new();
    each_row(connection, sql, |row| row.text(0).map(|object| named.push(object))).await?;
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Backend;
    use crate::testing::fresh;

    #[tokio::test]
    async fn what_a_killed_process_left_half_written_is_deleted_after_a_time() {
        let fresh = fresh(Backend::Sqlite).await.unwrap();
        let BlobStoreLocation::Folder(root) = &fresh.settings.blobs else { unreachable!() };
        let name = "0".repeat(NAME_DIGITS);
        let folder = root.join("01939f1a-0000-7000-8000-000000000000/uploads");
        fs::create_dir_all(&folder).unwrap();
        for file in [format!("{name}#1"), format!("{name}#x"), "notes#1".into(), name.clone()] {
            fs::write(folder.join(file), "half").unwrap();
        }
        let sweep = async |before| sweep_partial(&fresh.store, before).await.unwrap();
        assert_eq!(sweep(Timestamp(0)).await, 0);
        assert_eq!(sweep(Timestamp(i64::MAX)).await, 1);
        assert!(!folder.join(format!("{name}#1")).exists() && folder.join(name).exists());
    }

    #[tokio::test]
    async fn an_object_that_cannot_be_deleted_does_not_keep_the_others() {
        let fresh = fresh(Backend::Sqlite).await.unwrap();
        let BlobStoreLocation::Folder(root) = &fresh.settings.blobs else { unreachable!() };
        // A folder in the place of an object cannot be deleted like a file.
        fs::create_dir_all(root.join("components/folder")).unwrap();
        let object = fresh.store.blobs().write_component("file", "x".into()).await.unwrap();
        let objects = vec![Path::from("components/folder"), Path::from(object.as_str())];
        let (deleted, failed) = delete_unreferenced(&fresh.store, objects).await.unwrap();
        assert!(deleted == 1 && matches!(failed, Some(Error::Blobs(_))), "{deleted}, {failed:?}");
        assert!(!fresh.store.blobs().has(&object).await.unwrap());
    }

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
