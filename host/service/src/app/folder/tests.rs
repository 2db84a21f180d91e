//! Tests of the component folder with a list in place of the host.

use std::io::Write as _;

use parking_lot::Mutex;

use super::*;

/// Log of loads and removals, in order. A component is a text here: the area's name and any
/// suffix; `bad` is not loaded, `later` is installed at the third attempt, `never` is refused.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    async fn folder(&self, path: &Path) -> ComponentFolder<Self> {
        ComponentFolder::load(self.clone(), path.into()).await.unwrap()
    }

    async fn becomes(&self, expected: &[&str]) {
        for _ in 0..100 {
            if *self.0.lock() == expected {
                // Waits three scan intervals, in which nothing else may be logged.
                tokio::time::sleep(SETTLE_INTERVAL * 3).await;
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(*self.0.lock(), expected);
    }
}

impl ComponentInstaller for Log {
    type LoadedComponent = String;
    type Error = &'static str;

    async fn load(
        &self,
        component: Arc<[u8]>,
        signature: Option<Vec<u8>>,
    ) -> Result<String, &'static str> {
        let mut text = String::from_utf8_lossy(&component).into_owned();
        if let Some(signature) = signature {
            text += &String::from_utf8_lossy(&signature);
        }
        self.0.lock().push(text.clone());
        if text.starts_with("bad") { Err("it is bad") } else { Ok(text) }
    }

    fn area_of(text: &String) -> &str {
        text.split(' ').next().unwrap_or_default()
    }

    async fn install(&self, text: String, _: Timestamp) -> Result<String, &'static str> {
        let attempts = self.0.lock().len();
        if text.starts_with("later") && attempts < 3 {
            return Err("the database is unavailable");
        }
        if text.starts_with("never") {
            return Err("its route is taken");
        }
        Ok(Self::area_of(&text).to_owned())
    }

    fn is_temporary(error: &&'static str) -> bool {
        error.ends_with("unavailable")
    }

    fn note_refused(&self, _: &Path, _: RefusedFile) {}

    fn note_settled(&self, _: &Path) {}

    async fn remove(&self, area: &str) -> Result<(), &'static str> {
        self.0.lock().push(format!("no {area}"));
        Ok(())
    }
}

fn write(folder: &tempfile::TempDir, name: &str, text: &str) {
    std::fs::write(folder.path().join(name), text).unwrap();
}

#[tokio::test]
async fn every_component_is_loaded_and_a_bad_one_keeps_no_other_out() {
    let (folder, log) = (tempfile::tempdir().unwrap(), Log::default());
    write(&folder, "a.wasm", "support 1");
    write(&folder, "b.wasm", "bad");
    write(&folder, "c.wasm", "notes 1");
    write(&folder, "readme.txt", "no component");
    let folder = log.folder(folder.path()).await;
    let areas: Vec<_> = folder.files.values().map(|file| file.area.as_deref()).collect();
    assert_eq!(areas, [Some("support"), None, Some("notes")]);
}

#[tokio::test]
async fn a_changed_file_is_taken_in_once_and_only_when_whole() {
    let (folder, log) = (tempfile::tempdir().unwrap(), Log::default());
    write(&folder, "a.wasm", "notes 1");
    let watching = tokio::spawn(log.folder(folder.path()).await.watch());
    tokio::time::sleep(SETTLE_INTERVAL).await;
    let mut file = std::fs::File::create(folder.path().join("a.wasm")).unwrap();
    for part in ["notes", " 2", " and", " the", " rest"] {
        file.write_all(part.as_bytes()).unwrap();
        tokio::time::sleep(SETTLE_INTERVAL / 3).await;
    }
    drop(file);
    log.becomes(&["notes 1", "notes 2 and the rest"]).await;
    watching.abort();
}

#[tokio::test]
async fn a_bad_file_is_refused_once_and_its_successor_taken_in() {
    let (folder, log) = (tempfile::tempdir().unwrap(), Log::default());
    let watching = tokio::spawn(log.folder(folder.path()).await.watch());
    write(&folder, "a.wasm", "bad");
    log.becomes(&["bad"]).await;
    write(&folder, "a.new", "notes 3");
    std::fs::rename(folder.path().join("a.new"), folder.path().join("a.wasm")).unwrap();
    log.becomes(&["bad", "notes 3"]).await;
    watching.abort();
}

#[tokio::test]
async fn a_file_is_installed_again_only_after_a_temporary_error() {
    let (folder, log) = (tempfile::tempdir().unwrap(), Log::default());
    write(&folder, "a.wasm", "later");
    let loaded = log.folder(folder.path()).await;
    assert_eq!(*log.0.lock(), ["later", "later"], "twice before the host serves");
    let watching = tokio::spawn(loaded.watch());
    log.becomes(&["later", "later", "later"]).await;
    write(&folder, "b.wasm", "never");
    log.becomes(&["later", "later", "later", "never"]).await;
    tokio::time::sleep(SCAN_INTERVAL).await;
    log.becomes(&["later", "later", "later", "never"]).await;
    watching.abort();
}

#[tokio::test]
async fn a_signature_that_comes_later_is_a_reason_to_look_again() {
    let (folder, log) = (tempfile::tempdir().unwrap(), Log::default());
    write(&folder, "a.wasm", "bad, unsigned");
    let watching = tokio::spawn(log.folder(folder.path()).await.watch());
    log.becomes(&["bad, unsigned"]).await;
    write(&folder, "a.wasm.sig", " and signed");
    log.becomes(&["bad, unsigned", "bad, unsigned and signed"]).await;
    watching.abort();
}

#[tokio::test]
async fn a_folder_that_was_replaced_is_still_looked_at() {
    let (parent, log) = (tempfile::tempdir().unwrap(), Log::default());
    let path = parent.path().join("areas");
    std::fs::create_dir(&path).unwrap();
    let watching = tokio::spawn(log.folder(&path).await.watch());
    tokio::time::sleep(SETTLE_INTERVAL).await;
    std::fs::remove_dir(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("a.wasm"), "notes 4").unwrap();
    log.becomes(&["notes 4"]).await;
    watching.abort();
}

#[tokio::test]
async fn a_file_that_is_written_anew_or_renamed_keeps_its_area_and_one_that_is_gone_loses_it() {
    let (folder, log) = (tempfile::tempdir().unwrap(), Log::default());
    let file = |name: &str| folder.path().join(name);
    write(&folder, "a.wasm", "notes 1");
    let watching = tokio::spawn(log.folder(folder.path()).await.watch());
    std::fs::remove_file(file("a.wasm")).unwrap();
    tokio::time::sleep(SETTLE_INTERVAL * 2).await;
    write(&folder, "a.wasm", "notes 2");
    log.becomes(&["notes 1", "notes 2"]).await;
    std::fs::rename(file("a.wasm"), file("b.wasm")).unwrap();
    tokio::time::sleep(REMOVAL_DELAY + SETTLE_INTERVAL * 3).await;
    log.becomes(&["notes 1", "notes 2", "notes 2"]).await;
    std::fs::remove_file(file("b.wasm")).unwrap();
    log.becomes(&["notes 1", "notes 2", "notes 2", "no notes"]).await;
    watching.abort();
}

#[tokio::test]
async fn a_file_that_gets_another_area_loses_the_one_before() {
    let (folder, log) = (tempfile::tempdir().unwrap(), Log::default());
    write(&folder, "a.wasm", "notes 1");
    let watching = tokio::spawn(log.folder(folder.path()).await.watch());
    tokio::time::sleep(SETTLE_INTERVAL).await;
    write(&folder, "a.wasm", "memos 1");
    log.becomes(&["notes 1", "memos 1", "no notes"]).await;
    write(&folder, "b.wasm", "memos 2");
    log.becomes(&["notes 1", "memos 1", "no notes", "memos 2"]).await;
    write(&folder, "a.wasm", "notes 3");
    log.becomes(&["notes 1", "memos 1", "no notes", "memos 2", "notes 3"]).await;
    watching.abort();
}
