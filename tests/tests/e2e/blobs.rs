//! The blob store in a folder and in a bucket: the same guarantees hold in both.

use assurance_core::config::credentials;
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::time::Timestamp;
use assurance_store::blobs::{self, BlobStoreLocation};
use assurance_store::{Error, PostgresSessionTimeouts, Settings, Store};
use assurance_tests::bucket::Bucket;
use assurance_tests::client::install_tls_provider;
use assurance_tests::operators::digest;
use assurance_tests::until;

/// An empty store with blobs in this location.
async fn store(folder: &tempfile::TempDir, blobs: BlobStoreLocation) -> Store {
    let url = format!("sqlite:{}", folder.path().join("test.sqlite").display());
    let timeouts = PostgresSessionTimeouts::default();
    let settings =
        Settings { url, max_connections: 4, acquire_timeout_ms: 30_000, timeouts, blobs };
    Store::open(&settings).await.expect("a fresh store opens")
}

fn place_in(bucket: &Bucket) -> BlobStoreLocation {
    let prefix = bucket.prefix().trim_end_matches('/').to_owned();
    let file = bucket.credentials_file.as_ref();
    BlobStoreLocation::Bucket(Box::new(blobs::Bucket {
        name: "blobs".into(),
        prefix,
        endpoint: Some(bucket.endpoint.parse().expect("a URL")),
        region: None,
        virtual_host: false,
        allow_http: true,
        key: Some(credentials::read(file).expect("the key")),
    }))
}

/// Asserts that no multipart upload is left. Aborted uploads are deleted in the background.
async fn leaves_no_parts(bucket: &Bucket) {
    until("every part is deleted", async || bucket.uploads().is_empty()).await;
}

/// Creates a test for each location from one body.
macro_rules! in_both {
    ($(async fn $name:ident($store:ident: &Store) $body:block)*) => {
        $(mod $name {
            use super::*;

            async fn body($store: &Store) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn folder() {
                let folder = tempfile::tempdir().expect("a folder");
                let place = BlobStoreLocation::Folder(folder.path().join("blobs"));
                body(&store(&folder, place).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn bucket() {
                install_tls_provider();
                let folder = tempfile::tempdir().expect("a folder");
                let bucket = Bucket::fresh();
                body(&store(&folder, place_in(&bucket)).await).await;
                leaves_no_parts(&bucket).await;
            }
        })*
    };
}

in_both! {
    async fn a_place_that_can_be_used_says_so(store: &Store) {
        store.blobs().check().await.expect("usable");
        store.blobs().check().await.expect("usable again");
        store.blobs().ping().await.expect("there");
        assert_eq!(blobs::sweep(store, Timestamp(i64::MAX)).await.expect("swept"), 0);
    }

    async fn what_is_written_is_read_whole_and_in_part(store: &Store) {
        let blob = store.blobs().write(WorkspaceId::new(), "x", b"0123456789".to_vec()).await;
        let blob = blob.expect("written");
        assert_eq!(blob.sha256, "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882");
        for (offset, length, found) in
            [(0, 99, &b"0123456789"[..]), (3, 4, b"3456"), (8, 40, b"89"), (10, 1, b"")]
        {
            let read = store.blobs().read(&blob, offset, length).await.expect("read");
            assert_eq!(read, found, "{length} from {offset}");
        }
        let gone = blobs::StoredBlob { object: format!("{}-", blob.object), ..blob };
        assert!(matches!(store.blobs().read(&gone, 0, 1).await, Err(Error::Blobs(_))));
    }

    async fn content_comes_in_pieces_of_any_size(store: &Store) {
        for (pieces, bytes) in [(0, 0), (3, 7), (1, 6 << 20), (64, 200_001)] {
            let mut upload = store.blobs().upload(WorkspaceId::new(), "x");
            let mut whole = Vec::new();
            for number in 0..pieces {
                let piece = vec![number; bytes];
                whole.extend_from_slice(&piece);
                upload.write(piece.into()).await.expect("taken");
            }
            assert_eq!(upload.size(), whole.len() as u64);
            let blob = upload.finish().await.expect("finished");
            assert_eq!(blob.sha256, digest(&whole));
            let read = store.blobs().read(&blob, 0, u64::MAX).await.expect("read");
            assert!(read == whole, "{pieces} pieces of {bytes}");
        }
    }

    async fn an_upload_is_seen_when_it_is_finished_and_never_when_it_is_dropped(store: &Store) {
        let mut upload = store.blobs().upload(WorkspaceId::new(), "x");
        upload.write(vec![b'x'; 11 << 20].into()).await.expect("taken");
        assert_eq!(blobs::sweep(store, Timestamp(i64::MAX)).await.expect("swept"), 0);
        drop(upload);
        let mut kept = store.blobs().upload(WorkspaceId::new(), "x");
        kept.write(vec![b'x'; 11 << 20].into()).await.expect("taken");
        kept.finish().await.expect("finished");
        assert_eq!(blobs::sweep(store, Timestamp(i64::MAX)).await.expect("swept"), 1);
    }

    async fn a_component_is_found_under_its_digest_until_it_is_swept(store: &Store) {
        let name = "a".repeat(64);
        let written = store.blobs().write_component(&name, b"wasm".as_slice().into()).await;
        let object = written.expect("written");
        let again = store.blobs().write_component(&name, b"wasm".as_slice().into()).await;
        assert_eq!(again.expect("written again"), object);
        assert_eq!(store.blobs().read_component(&object).await.expect("there"), &b"wasm"[..]);
        assert_eq!(blobs::sweep(store, Timestamp(0)).await.expect("swept"), 0, "it is new");
        assert_eq!(blobs::sweep(store, Timestamp(i64::MAX)).await.expect("swept"), 1);
        assert!(matches!(store.blobs().read_component(&object).await, Err(Error::NotFound)));
    }

    async fn what_others_have_put_there_is_left(store: &Store) {
        let others = store.blobs().write_component("not-a-digest", b"x".as_slice().into()).await;
        let others = others.expect("written");
        assert_eq!(blobs::sweep(store, Timestamp(i64::MAX)).await.expect("swept"), 0);
        store.blobs().read_component(&others).await.expect("left");
    }
}
