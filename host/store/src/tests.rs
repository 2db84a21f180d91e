//! Tests of opening the store and of abandoned connections.

use super::testing::{TestStore, execute, fresh, on_both};
use super::*;
use assurance_core::domain::id::{UserId, WorkspaceId};
use assurance_core::domain::people::User;
use assurance_core::domain::time::Timestamp;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

async fn tables(store: &Store) {
    let mut connection = store.writer().await.unwrap();
    execute(&mut connection, "DELETE FROM idempotency").await;
    connection.release();
}

/// Returns the settings of a SQLite database that does not exist yet.
fn another(fresh: &TestStore) -> Settings {
    let url = fresh.settings.url.replace("test.sqlite", "another.sqlite");
    Settings { url, ..fresh.settings.clone() }
}

#[tokio::test]
async fn a_command_does_not_migrate_the_database_of_an_older_release() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let Some(fresh) = fresh(backend).await else { continue };
        Store::open_without_upgrade(&fresh.settings).await.expect("the schema of this release");
        let mut connection = fresh.store.writer().await.unwrap();
        let newest = migrations::newest(backend);
        let delete = format!("DELETE FROM _sqlx_migrations WHERE version = {newest}");
        execute(&mut connection, &delete).await;
        connection.release();
        let refused = Store::open_without_upgrade(&fresh.settings).await.unwrap_err().to_string();
        let expected = format!("this release needs migration {newest} of the database, which has ");
        assert!(refused.starts_with(&expected), "{refused}");
    }
}

#[tokio::test]
async fn a_command_creates_the_schema_of_an_empty_database() {
    let fresh = fresh(Backend::Sqlite).await.unwrap();
    tables(&Store::open_without_upgrade(&another(&fresh)).await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_open_at_once() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let Some(fresh) = fresh(backend).await else { continue };
        // The name of a PostgreSQL database stays.
        let settings = another(&fresh);
        let all = (0..6).map(|_| Store::open(&settings));
        for store in futures::future::join_all(all).await {
            tables(&store.unwrap()).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_does_not_touch_the_file_that_another_one_creates() {
    let fresh = fresh(Backend::Sqlite).await.unwrap();
    let settings = another(&fresh);
    let database = std::path::Path::new(settings.url.trim_start_matches("sqlite:"));
    let other = std::fs::File::create(database.with_extension("migrating")).unwrap();
    other.lock().unwrap();
    let mut opens = std::pin::pin!(Store::open(&settings));
    let waited = tokio::time::timeout(Duration::from_millis(300), &mut opens).await;
    assert!(waited.is_err() && !database.exists(), "it did not wait");
    drop(other);
    tables(&opens.await.unwrap()).await;
}

#[tokio::test]
async fn an_invalid_url_is_refused_without_its_password() {
    let fresh = fresh(Backend::Sqlite).await.unwrap();
    for url in ["mysql://ada:pa55@host/x", "postgres://ada:pa55@host:port/x"] {
        let settings = Settings { url: url.into(), ..fresh.settings.clone() };
        let refused = Store::open(&settings).await.unwrap_err();
        assert!(matches!(refused, Error::Url) && !refused.to_string().contains("pa55"));
    }
}

#[tokio::test]
async fn a_role_without_privileges_is_refused_once_with_those_it_needs() {
    let Some(fresh) = fresh(Backend::Postgres).await else { return };
    let mut settings = fresh.settings.clone();
    let separator = if settings.url.contains('?') { '&' } else { '?' };
    settings.url = format!("{}{separator}options[role]=pg_monitor", settings.url);
    let refused = Store::open(&settings).await.unwrap_err();
    assert!(matches!(refused, Error::Migration(_)), "{refused:?}");
    let text = refused.to_string();
    assert!(text.contains("permission denied") && text.contains("USAGE and CREATE"), "{text}");
    assert!(std::error::Error::source(&refused).is_none(), "it would be printed again");
}

/// Starts a proxy that forwards a session without its startup options, as PgBouncer does with
/// `ignore_startup_parameters`. Returns its address.
async fn without_options(server: String) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut server = TcpStream::connect(&server).await.unwrap();
            tokio::spawn(async move {
                // A startup message: its length, the protocol's version, names and values that
                // each end with a zero.
                let length = client.read_u32().await.unwrap() as usize;
                let mut message = vec![0; length - 4];
                client.read_exact(&mut message).await.unwrap();
                let texts: Vec<&[u8]> = message[4..length - 6].split(|byte| *byte == 0).collect();
                let mut kept = message[..4].to_vec();
                for pair in texts.chunks(2).filter(|pair| pair[0] != b"options") {
                    kept.extend([pair[0], b"\0", pair[1], b"\0"].concat());
                }
                kept.push(0);
                server.write_u32(u32::try_from(kept.len() + 4).unwrap()).await.unwrap();
                server.write_all(&kept).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_that_drops_the_settings_of_connections_is_refused() {
    let Some(fresh) = fresh(Backend::Postgres).await else { return };
    let url = url::Url::parse(&fresh.settings.url).unwrap();
    let server = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap_or(5432));
    let proxy = without_options(server).await;
    let mut through = url.clone();
    through.set_host(Some("127.0.0.1")).unwrap();
    through.set_port(Some(proxy.port())).unwrap();
    through.set_query(Some("sslmode=disable"));
    let settings = Settings { url: through.to_string(), ..fresh.settings.clone() };
    let refused = Store::open(&settings).await.unwrap_err();
    assert!(matches!(refused, Error::SettingsDropped), "{refused:?}");
}

/// Starts a proxy that closes this many connections before it forwards any, like the one of a
/// container whose server still starts. Returns its address.
async fn ready_after(closed: usize, server: String) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for _ in 0..closed {
            drop(listener.accept().await.unwrap());
        }
        while let Ok((mut client, _)) = listener.accept().await {
            let mut server = TcpStream::connect(&server).await.unwrap();
            tokio::spawn(async move {
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_waits_for_a_server_that_starts_and_a_command_does_not() {
    let Some(fresh) = fresh(Backend::Postgres).await else { return };
    let url = url::Url::parse(&fresh.settings.url).unwrap();
    let server = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap_or(5432));
    let through = |proxy: std::net::SocketAddr| {
        let mut through = url.clone();
        through.set_host(Some("127.0.0.1")).unwrap();
        through.set_port(Some(proxy.port())).unwrap();
        Settings { url: through.to_string(), ..fresh.settings.clone() }
    };
    let starting = through(ready_after(2, server.clone()).await);
    tables(&Store::open(&starting).await.unwrap()).await;
    let starting = through(ready_after(2, server).await);
    let refused = Store::open_without_upgrade(&starting).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable(_)), "{refused:?}");
}

/// Starts a proxy. After a value is sent, the connections that were open then stay open and forward
/// nothing, like those to a server that has vanished. Returns its address.
async fn open_until(vanished: watch::Sender<()>, server: String) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut server = TcpStream::connect(&server).await.unwrap();
            let mut vanishing = vanished.subscribe();
            tokio::spawn(async move {
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                    _ = vanishing.changed() => std::future::pending().await,
                }
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_vanishes_delays_no_work_for_long() {
    let Some(fresh) = fresh(Backend::Postgres).await else { return };
    let mut url = url::Url::parse(&fresh.settings.url).unwrap();
    let server = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap_or(5432));
    let vanished = watch::Sender::new(());
    let proxy = open_until(vanished.clone(), server).await;
    url.set_host(Some("127.0.0.1")).unwrap();
    url.set_port(Some(proxy.port())).unwrap();
    let timeouts = PostgresSessionTimeouts { statement_ms: 1_000, ..fresh.settings.timeouts };
    let settings = Settings { url: url.to_string(), timeouts, ..fresh.settings.clone() };
    let store = Store::open(&settings).await.unwrap();
    let take_back = async || store.write(async |c| mail_counts::take_back(c, "ada").await).await;
    let mut tx = store.begin(TransactionAccess::WriteLocked).await.unwrap();
    mail_counts::take_back(&mut tx, "ada").await.unwrap();
    let mut reader = store.reader().await.unwrap();
    store.writer().await.unwrap().release();
    vanished.send_replace(());
    let reading = users::find(&mut reader, UserId::new());
    let ends = async { tokio::join!(take_back(), tx.commit(), reading) };
    let (written, committed, read) =
        tokio::time::timeout(Duration::from_secs(20), ends).await.expect("no wait is longer");
    assert!(matches!(written, Err(Error::Unavailable(_))), "{written:?}");
    assert!(matches!(committed, Err(Error::Unavailable(_))), "{committed:?}");
    assert!(matches!(read, Err(Error::Unavailable(_))), "{read:?}");
    take_back().await.expect("a connection to the new server");
}

#[tokio::test]
async fn the_service_does_not_wait_for_an_unknown_database() {
    let Some(fresh) = fresh(Backend::Postgres).await else { return };
    let mut url = url::Url::parse(&fresh.settings.url).unwrap();
    url.set_path("/nobody_created_it");
    let settings = Settings { url: url.to_string(), ..fresh.settings.clone() };
    let opened = tokio::time::timeout(Duration::from_secs(10), Store::open(&settings)).await;
    let refused = opened.expect("it does not wait").unwrap_err();
    assert!(matches!(refused, Error::Database(_)), "{refused:?}");
}

fn holder(workspace: WorkspaceId) -> ConnectionHolder {
    ConnectionHolder { area: "notes".into(), workspace, in_job: false }
}

#[tokio::test]
async fn calls_that_read_and_calls_that_write_leave_sqlite_a_reader() {
    let fresh = fresh(Backend::Sqlite).await.unwrap();
    let settings = Settings { acquire_timeout_ms: 50, ..fresh.settings.clone() };
    let store = Store::open(&settings).await.unwrap();
    let mut held = Vec::new();
    for n in 0..settings.max_connections {
        for access in [TransactionAccess::Read, TransactionAccess::Write] {
            let area = format!("area{n}");
            let owner = ConnectionHolder { area, ..holder(WorkspaceId::new()) };
            held.extend(store.begin_held(access, owner).await.ok());
        }
    }
    // Of 15 readers, 4 are reserved for single statements.
    assert_eq!(held.len(), 11);
    store.reader().await.unwrap().release();
}

on_both! {
    async fn an_abandoned_transaction_is_rolled_back(store: &Store) {
        for access in [TransactionAccess::WriteLocked, TransactionAccess::Write, TransactionAccess::Read] {
            for _ in 0..40 {
                let tx = store.begin(access).await.unwrap();
                drop(tx);
            }
        }
        for _ in 0..40 {
            let gated = store.begin_locked(holder(WorkspaceId::new())).await.unwrap();
            drop(gated);
        }
        tables(store).await;
    }

    async fn a_cancelled_begin_leaves_nothing_open(store: &Store) {
        let workspace = WorkspaceId::new();
        let first = store.begin_locked(holder(workspace)).await.unwrap();
        for _ in 0..10 {
            let waits = Box::pin(store.begin_locked(holder(workspace)));
            let waited = tokio::time::timeout(Duration::from_millis(5), waits).await;
            assert!(waited.is_err(), "two hold one workspace");
        }
        drop(first);
        store.begin_locked(holder(workspace)).await.unwrap().commit().await.unwrap();
        tables(store).await;
    }

    async fn reads_go_on_while_one_writes(store: &Store) {
        let mut writes = store.begin(TransactionAccess::WriteLocked).await.unwrap();
        execute(&mut writes, "DELETE FROM idempotency").await;
        let mut reader = store.reader().await.unwrap();
        execute(&mut reader, "SELECT 1").await;
        reader.release();
        let read = store.begin(TransactionAccess::Read).await.unwrap();
        read.commit().await.unwrap();
        writes.commit().await.unwrap();
    }
}

#[tokio::test]
async fn who_waits_too_long_is_told_that_the_database_is_away() {
    let fresh = fresh(Backend::Sqlite).await.unwrap();
    let settings =
        Settings { max_connections: 2, acquire_timeout_ms: 20, ..fresh.settings.clone() };
    let store = Store::open(&settings).await.unwrap();
    let (reader, writer) = (store.reader().await.unwrap(), store.writer().await.unwrap());
    assert!(matches!(store.reader().await, Err(Error::Unavailable(_))));
    assert!(matches!(store.writer().await, Err(Error::Unavailable(_))));
    reader.release();
    drop(writer);
    store.reader().await.unwrap().release();
    tables(&store).await;
    store.close().await;
    assert!(matches!(store.reader().await, Err(Error::Unavailable(_))));
}

#[tokio::test]
async fn an_error_at_the_end_of_a_statement_that_returns_a_row_is_reported() {
    let fresh = fresh(Backend::Sqlite).await.unwrap();
    let mut connection = fresh.store.writer().await.unwrap();
    let (user, now) = (UserId::new(), Timestamp(1));
    let email = "ada@example.com".to_owned();
    let ada = User { id: user, email, display_name: "Ada".into(), email_verified: true };
    users::insert(&mut connection, &ada, None, now).await.unwrap();
    mfa::begin_enrolment(&mut connection, user, b"secret").await.unwrap();
    // SQLite checks foreign keys at the end of the statement, after its rows.
    execute(&mut connection, "CREATE TABLE parents (id INTEGER PRIMARY KEY)").await;
    execute(&mut connection, "CREATE TABLE orphans (parent INTEGER REFERENCES parents)").await;
    let changes = ["INSERT ON mail_counts", "INSERT ON sign_in_failures", "UPDATE ON totp"];
    for (n, change) in changes.iter().enumerate() {
        let then = "BEGIN INSERT INTO orphans VALUES (1); END";
        execute(&mut connection, &format!("CREATE TRIGGER t{n} AFTER {change} {then}")).await;
    }
    assert!(mail_counts::lock(&mut connection, "ada", now).await.is_err());
    assert!(sign_in_failures::lock(&mut connection, "ada", now).await.is_err());
    assert!(mfa::lock(&mut connection, user).await.is_err());
}
