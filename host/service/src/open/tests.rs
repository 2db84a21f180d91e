//! Tests that a process works only with the master key of its database.

use std::path::PathBuf;

use super::*;
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::sealed::secret_place;
use assurance_identity::NewUser;
use assurance_store::Backend;
use assurance_store::testing::{self, TestStore, fresh};

/// Configuration of a process with its own data folder, on a database that may be shared.
struct Node {
    config: Config,
    _folder: tempfile::TempDir,
}

impl Node {
    fn of(database: &TestStore) -> Self {
        let (mut config, folder) = crate::testing::config();
        config.database.url = Some(database.settings.url.clone().into());
        Self { config, _folder: folder }
    }

    fn key_file(&self) -> PathBuf {
        self.config.master_key_file()
    }

    async fn open(&self) -> anyhow::Result<OpenedResources> {
        open(&self.config).await
    }

    async fn refusal(&self) -> String {
        match self.open().await {
            Ok(_) => panic!("it opens"),
            Err(error) => error.to_string(),
        }
    }

    /// Asserts that a refusal names this node's key and database.
    fn is_named_in(&self, refusal: &str) {
        let file = self.key_file().display().to_string();
        assert!(refusal.contains(&file), "{refusal}");
        assert!(refusal.contains(&self.config.database_name()), "{refusal}");
    }
}

async fn add_person(opened: &OpenedResources) {
    let person = NewUser {
        email: "ada@example.com".into(),
        display_name: "Ada".into(),
        password: None,
        email_verified: true,
    };
    opened.identity.create_user(person).await.unwrap();
}

/// Deletes the check value, as in a database of an old release.
async fn forget_check_value(store: &Store) {
    let mut writer = store.writer().await.unwrap();
    testing::execute(&mut writer, "DELETE FROM installation").await;
    writer.release();
}

async fn seal_secret(opened: &OpenedResources, name: &str) {
    let workspace = WorkspaceId::new();
    let sealed = opened.keys.seal(&secret_place(workspace, "notes", name, ""), b"a secret");
    let mut writer = opened.store.writer().await.unwrap();
    let (workspace, sealed) = (hex::encode(workspace.0), hex::encode(sealed));
    let values = match opened.store.backend() {
        Backend::Sqlite => format!("x'{workspace}', 'notes', '{name}', x'{sealed}', 1"),
        Backend::Postgres => format!("'{workspace}', 'notes', '{name}', '\\x{sealed}', 1"),
    };
    let insert = format!(
        "INSERT INTO secrets (workspace_id, area, name, sealed, updated_at) VALUES ({values})"
    );
    testing::execute(&mut writer, &insert).await;
    writer.release();
}

macro_rules! on_both {
    ($($(#[$meta:meta])* async fn $name:ident($database:ident) $body:block)*) => {
        $($(#[$meta])* mod $name {
            use super::*;

            async fn body($database: &TestStore) $body

            #[tokio::test]
            async fn sqlite() {
                body(&fresh(Backend::Sqlite).await.expect("SQLite is always there")).await;
            }

            #[tokio::test]
            async fn postgres() {
                if let Some(database) = fresh(Backend::Postgres).await {
                    body(&database).await;
                }
            }
        })*
    };
}

on_both! {
    async fn a_lost_key_is_not_replaced_by_a_new_one(database) {
        let node = Node::of(database);
        add_person(&node.open().await.unwrap()).await;
        std::fs::remove_file(node.key_file()).unwrap();
        node.is_named_in(&node.refusal().await);
        assert!(!node.key_file().exists());
    }

    async fn a_database_of_a_former_release_that_lost_its_key_is_not_given_a_new_one(database) {
        let node = Node::of(database);
        let opened = node.open().await.unwrap();
        add_person(&opened).await;
        forget_check_value(&opened.store).await;
        std::fs::remove_file(node.key_file()).unwrap();
        node.is_named_in(&node.refusal().await);
        assert!(!node.key_file().exists());
    }

    async fn another_key_is_refused_wherever_it_comes_from(database) {
        let (first, other) = (Node::of(database), Node::of(database));
        add_person(&first.open().await.unwrap()).await;
        Keys::create(&other.key_file()).unwrap();
        other.is_named_in(&other.refusal().await);
        assert!(other.key_file().exists(), "a key that was there is never deleted");
        let mut by_setting = Node::of(database);
        let key = "YSBtYXN0ZXIga2V5IG9mIHRoZSB0ZXN0cywgMzIgYi4=".to_owned();
        by_setting.config.keys.master_key = Some(key.into());
        let refusal = by_setting.refusal().await;
        assert!(refusal.contains("keys.master_key"), "{refusal}");
        first.open().await.expect("the right key opens as before");
    }

    async fn of_two_nodes_that_start_on_an_empty_database_one_wins(database) {
        let (one, two) = (Node::of(database), Node::of(database));
        let (first, second) = tokio::join!(one.open(), two.open());
        assert!(first.is_ok() != second.is_ok(), "{first:?} {second:?}");
        let (winner, loser) = if first.is_ok() { (&one, &two) } else { (&two, &one) };
        loser.is_named_in(&loser.refusal().await);
        assert!(!loser.key_file().exists(), "the key that nothing is sealed with is not kept");
        std::fs::copy(winner.key_file(), loser.key_file()).unwrap();
        loser.open().await.expect("with the fleet's key it opens");
    }

    async fn a_database_of_a_former_release_takes_the_key_that_opens_what_it_has_sealed(database) {
        let (node, other) = (Node::of(database), Node::of(database));
        let opened = node.open().await.unwrap();
        seal_secret(&opened, "token").await;
        forget_check_value(&opened.store).await;
        Keys::create(&other.key_file()).unwrap();
        let refusal = other.refusal().await;
        other.is_named_in(&refusal);
        assert!(refusal.contains("none of the 1 encrypted values"), "{refusal}");
        node.open().await.expect("the right key is taken");
        other.is_named_in(&other.refusal().await);
    }
}
