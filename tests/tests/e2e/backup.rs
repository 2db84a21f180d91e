//! Backups made during writes, and the content of a restored service.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use assurance_tests::artifacts::sample;
use assurance_tests::components::area;
use assurance_tests::{Backend, Builder, Client, TestHost, both_backends, postgres};
use tempfile::TempDir;
use test_database::TestDatabase;
use tokio::task::JoinHandle;

use crate::durability::{everything, ids_by_key, open};

const AREAS: [&str; 7] =
    ["support", "catalog", "uploads", "control-room", "ownership", "schedules", "dependencies"];
const WRITERS: usize = 4;
const LOAD: Duration = Duration::from_millis(1_500);

/// Clients that write until the test ends them.
struct Load {
    stop: Arc<AtomicBool>,
    /// Ids of acknowledged cases by idempotency key.
    cases: Vec<JoinHandle<BTreeMap<String, String>>>,
    /// Cases acknowledged so far.
    count: Arc<std::sync::Mutex<BTreeMap<String, String>>>,
    repository: String,
    uploads: JoinHandle<usize>,
}

impl Load {
    async fn start(ada: &Client) -> Self {
        let (stop, count) = (Arc::<AtomicBool>::default(), Arc::default());
        let cases = (0..WRITERS)
            .map(|writer| {
                tokio::spawn(write_cases(
                    ada.clone(),
                    writer,
                    Arc::clone(&stop),
                    Arc::clone(&count),
                ))
            })
            .collect();
        let repository = ada.repository("backed-up").await;
        let uploads = tokio::spawn(upload(ada.clone(), repository.clone(), Arc::clone(&stop)));
        tokio::time::sleep(LOAD).await;
        Self { stop, cases, count, repository, uploads }
    }

    /// Returns the cases acknowledged so far.
    fn acknowledged(&self) -> BTreeMap<String, String> {
        self.count.lock().expect("no panic while holding it").clone()
    }

    /// Ends the writes. Returns all acknowledged cases.
    async fn end(self) -> BTreeMap<String, String> {
        self.stop.store(true, Ordering::SeqCst);
        let mut all = BTreeMap::new();
        for writer in self.cases {
            all.extend(writer.await.expect("no panic"));
        }
        assert!(self.uploads.await.expect("no panic") > 0, "nothing was uploaded");
        all
    }
}

async fn write_cases(
    client: Client,
    writer: usize,
    stop: Arc<AtomicBool>,
    count: Arc<std::sync::Mutex<BTreeMap<String, String>>>,
) -> BTreeMap<String, String> {
    let mut written = BTreeMap::new();
    for number in 0_u32.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let key = format!("backup-{writer}-{number}");
        let id = open(&client, &key).await.expect("an answer");
        count.lock().expect("no panic while holding it").insert(key.clone(), id.clone());
        written.insert(key, id);
    }
    written
}

async fn upload(client: Client, repository: String, stop: Arc<AtomicBool>) -> usize {
    let mut count = 0;
    while !stop.load(Ordering::SeqCst) {
        let ready = client.upload(&repository, "shop.sarif", &sample("shop.sarif")).await;
        assert_eq!(ready["validation_stage"], "ready");
        count += 1;
    }
    count
}

/// Checks a restored service: it has everything acknowledged before the backup began, nothing that
/// was never written, and the content of every upload.
async fn is_whole(
    ada: &Client,
    load: (BTreeMap<String, String>, BTreeMap<String, String>),
    repository: &str,
) {
    let (before, ever) = load;
    let found = ids_by_key(&everything(async |path| ada.get(path).await.expect(200)).await);
    assert!(before.len() > 10, "{} cases", before.len());
    let lost: Vec<_> = before.iter().filter(|(key, id)| found.get(*key) != Some(id)).collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    let strange: Vec<_> =
        found.iter().filter(|(key, id)| ever.get(*key).is_some_and(|known| known != *id)).collect();
    assert!(strange.is_empty(), "{strange:?}");
    // The audit reads the uploads.
    let audit = ada.audit(repository).await;
    assert_eq!(audit["state"], "completed", "{audit}");
    assert!(audit.to_string().contains("shop.sarif"), "{audit}");
}

async fn run(command: Command) -> Output {
    let mut command = command;
    tokio::task::spawn_blocking(move || command.output().expect("its end")).await.expect("no panic")
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn with_folder(host: &TestHost, command: &str, folder: &Path) -> Command {
    let mut command = host.command(&[command]);
    command.arg(folder);
    command
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_load_has_every_write_acknowledged_before_it() {
    let (host, ada) = Builder::new(Backend::Sqlite).areas(&AREAS).start_with_owner().await;
    assert_eq!(host.put_area("groups", &area("groups")).await.status, 200);
    let load = Load::start(&ada).await;
    let before = load.acknowledged();

    let folder = TempDir::new().expect("a folder");
    let backup = folder.path().join("backup");
    let made = run(with_folder(&host, "backup", &backup)).await;
    assert!(made.status.success(), "{}", errors(&made));
    assert!(errors(&made).contains("database: "), "{}", errors(&made));
    let repository = load.repository.clone();
    let ever = load.end().await;
    assert!(ever.len() > before.len(), "nothing was written during the backup");
    drop(host);

    let mut restored = Builder::new(Backend::Sqlite).areas(&AREAS).prepare().await;
    let put = run(with_folder(&restored, "restore", &backup)).await;
    assert!(put.status.success(), "{}", errors(&put));
    restored.start().await;
    let ada = ada.at(&restored);
    is_whole(&ada, (before, ever), &repository).await;
    assert_eq!(ada.get("/v1/workspaces/{ws}/group-dependencies").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pg_dump_and_the_blobs_make_a_backup_too() {
    if !Backend::Postgres.is_there() {
        return;
    }
    let (host, ada) = Builder::new(Backend::Postgres).areas(&AREAS).start_with_owner().await;
    let load = Load::start(&ada).await;
    let before = load.acknowledged();

    let folder = TempDir::new().expect("a folder");
    let blobs = folder.path().join("blobs");
    let dump = folder.path().join("dump");
    copy(&host.folder().join("data/blobs"), &blobs).await;
    let url = host.database_url().expect("a server's");
    postgres(&["pg_dump", "--format=custom", "--file"], &dump, &["--dbname", &url]).await;
    copy(&host.folder().join("data/blobs"), &blobs).await;
    let repository = load.repository.clone();
    let ever = load.end().await;
    drop(host);

    let empty = TestDatabase::create().await.expect("a server");
    postgres(&["pg_restore", "--no-owner", "--dbname", &empty.url()], &dump, &[]).await;
    let restored = Builder::new(Backend::Postgres)
        .areas(&AREAS)
        .set("database.url", empty.url())
        .set("blobs.dir", blobs.to_string_lossy().into_owned())
        .start()
        .await;
    is_whole(&ada.at(&restored), (before, ever), &repository).await;
}

/// Copies like `cp -rn`: existing files stay.
async fn copy(from: &Path, to: &Path) {
    let mut command = Command::new("cp");
    command.args(["-r", "-n", "-T"]).arg(from).arg(to);
    let copied = run(command).await;
    assert!(copied.status.success(), "{}", errors(&copied));
}

async fn postgres(before: &[&str], file: &Path, after: &[&str]) {
    let program = postgres::programs().expect("PostgreSQL's programs").join(before[0]);
    let mut command = Command::new(program);
    command.args(&before[1..]).arg(file).args(after);
    let ran = run(command).await;
    assert!(ran.status.success(), "{}", errors(&ran));
}

/// A stopped host with one user and its key in a file.
async fn with_key_file() -> TestHost {
    let mut host = Builder::new(Backend::Sqlite).prepare().await;
    host.configure(&[("keys", toml::Table::new().into())]);
    host.create_person("ada");
    host
}

async fn empty_host() -> TestHost {
    let host = Builder::new(Backend::Sqlite).prepare().await;
    host.configure(&[("keys", toml::Table::new().into())]);
    host
}

fn key_of(host: &TestHost) -> PathBuf {
    host.folder().join("data/master.key")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_master_key_is_in_a_backup_only_if_asked_for() {
    let host = with_key_file().await;
    let folder = TempDir::new().expect("a folder");
    let (without, with) = (folder.path().join("without"), folder.path().join("with"));
    assert!(run(with_folder(&host, "backup", &without)).await.status.success());
    let mut command = with_folder(&host, "backup", &with);
    command.arg("--with-key");
    assert!(run(command).await.status.success());
    let key = std::fs::read_to_string(key_of(&host)).expect("a key");
    for entry in std::fs::read_dir(&without).expect("files").flatten() {
        let bytes = std::fs::read(entry.path()).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&bytes).contains(key.trim()), "{entry:?}");
    }

    let target = empty_host().await;
    let refused = run(with_folder(&target, "restore", &without)).await;
    assert!(errors(&refused).contains("has no master key"), "{}", errors(&refused));
    assert!(!target.folder().join("data/assurance.sqlite").exists());
    let put = run(with_folder(&target, "restore", &with)).await;
    assert!(put.status.success(), "{}", errors(&put));
    assert_eq!(std::fs::read_to_string(key_of(&target)).expect("a key").trim(), key.trim());
    // The host still has its own database.
    target.cli(&["session", "create", "--user", "ada@example.org"]);
    // A restore overwrites nothing.
    let again = run(with_folder(&target, "restore", &with)).await;
    assert!(errors(&again).contains("a restore overwrites nothing"), "{}", errors(&again));
    let again = run(with_folder(&host, "backup", &with)).await;
    assert!(errors(&again).contains("is not empty"), "{}", errors(&again));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_whole_backup_is_refused() {
    let host = with_key_file().await;
    let folder = TempDir::new().expect("a folder");
    let backup = folder.path().join("backup");
    let mut command = with_folder(&host, "backup", &backup);
    command.arg("--with-key");
    assert!(run(command).await.status.success());
    let manifest = std::fs::read_to_string(backup.join("manifest.json")).expect("a manifest");
    let database = std::fs::read(backup.join("assurance.sqlite")).expect("a database");

    let other = with_key_file().await;
    // A command that ends may leave SQLite's write-ahead log behind.
    for file in ["assurance.sqlite", "assurance.sqlite-wal", "assurance.sqlite-shm"] {
        let gone = std::fs::remove_file(other.folder().join("data").join(file));
        assert!(gone.is_ok() || file != "assurance.sqlite", "{gone:?}");
    }
    let refused = errors(&run(with_folder(&other, "restore", &backup)).await);
    assert!(refused.contains("needs the master key with the fingerprint"), "{refused}");

    let target = empty_host().await;
    let mut broken = database.clone();
    broken[5_000] ^= 1;
    for (file, content, said) in [
        ("assurance.sqlite", Some(broken), "assurance.sqlite differs from the manifest"),
        ("assurance.sqlite", None, "assurance.sqlite cannot be read"),
        ("manifest.json", None, "is this a backup that was completed?"),
        (
            "manifest.json",
            Some(manifest.replace("\"schema\": ", "\"schema\": 9").into()),
            "newer one",
        ),
    ] {
        match content {
            Some(content) => std::fs::write(backup.join(file), content).expect("written"),
            None => std::fs::remove_file(backup.join(file)).expect("removed"),
        }
        let refused = errors(&run(with_folder(&target, "restore", &backup)).await);
        assert!(refused.contains(said), "{refused}");
        assert!(!target.folder().join("data/assurance.sqlite").exists());
        std::fs::write(backup.join("assurance.sqlite"), &database).expect("written");
        std::fs::write(backup.join("manifest.json"), &manifest).expect("written");
    }
    let put = run(with_folder(&target, "restore", &backup)).await;
    assert!(put.status.success(), "{}", errors(&put));
}

both_backends! {
    async fn a_backup_of_what_is_not_there_is_refused(backend) {
        let host = Builder::new(backend).prepare().await;
        let folder = TempDir::new().expect("a folder");
        let refused = run(with_folder(&host, "backup", &folder.path().join("backup"))).await;
        let said = match backend {
            Backend::Sqlite => "nothing to back up",
            Backend::Postgres => "pg_dump",
        };
        assert!(errors(&refused).contains(said), "{}", errors(&refused));
        assert!(!refused.status.success());
    }
}
