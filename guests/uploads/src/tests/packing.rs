//! Tests of packed content.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use rawzip::{CompressionMethod, ZipArchiveWriter};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).expect("packed");
    encoder.finish().expect("packed")
}

fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut archive = ZipArchiveWriter::new(&mut packed);
    for (name, content) in files {
        if name.ends_with('/') {
            archive.new_dir(*name).create().expect("a folder");
            continue;
        }
        let file = archive.new_file(*name).compression_method(CompressionMethod::DEFLATE);
        let (mut entry, config) = file.start().expect("a file");
        let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::best()));
        writer.write_all(content).expect("its content");
        let (encoder, descriptor) = writer.finish().expect("its content");
        encoder.finish().expect("its content");
        entry.finish(descriptor).expect("a file");
    }
    archive.finish().expect("an archive");
    packed
}

#[test]
fn gzip_is_unpacked_and_its_content_is_what_others_read() {
    let host = host();
    let packed = gzip(SARIF);
    let upload = upload(&host, "scan.sarif.gz", &packed);
    assert_eq!(upload["validation_stage"], "ready");
    let kept = stored(&host);
    assert_eq!((&kept["format"], &kept["content_bytes"]), (&json!("sarif"), &json!(SARIF.len())));
    assert_eq!(kept["blob"], format!("content/{}", upload["id"].as_str().expect("an id")));
    assert_eq!(host.blobs().len(), 1, "what was sent is thrown away");
}

#[test]
fn gzip_in_several_members_is_one_content() {
    let (head, tail) = SARIF.split_at(10);
    assert_eq!(fate("scan.sarif.gz", &[gzip(head), gzip(tail)].concat()), "sarif");
}

#[test]
fn zstd_is_unpacked_whatever_its_frames() {
    let zstd = |content: &[u8]| compress_to_vec(content, CompressionLevel::Fastest);
    let host = host();
    let upload = upload(&host, "scan.sarif.zst", &zstd(SARIF));
    assert_eq!(upload["validation_stage"], "ready");
    let kept = stored(&host);
    assert_eq!((&kept["format"], &kept["content_bytes"]), (&json!("sarif"), &json!(SARIF.len())));
    let (head, tail) = SARIF.split_at(10);
    assert_eq!(fate("two.zst", &[zstd(head), zstd(tail)].concat()), "sarif");
    assert_eq!(fate("cut.zst", &zstd(SARIF)[..40]), "content_damaged");
    assert_eq!(fate("twice.zst", &zstd(&zstd(SARIF))), "unsupported_archive");
    let huge = zstd(&vec![b' '; 26_214_401]);
    assert_eq!(fate("huge.zst", &huge), "compression_ratio_too_high");
}

#[test]
fn a_zip_is_taken_with_one_file_whatever_clutter_lies_beside_it() {
    let clutter: &[(&str, &[u8])] = &[
        ("repo/", b""),
        ("__MACOSX/repo/._CODEOWNERS", b"x"),
        ("repo/.DS_Store", b"x"),
        ("repo/CODEOWNERS", b"* @org/team\n"),
    ];
    assert_eq!(fate("owners.zip", &zip(clutter)), "code_owners");
    assert_eq!(fate("two.zip", &zip(&[("a.json", SARIF), ("b.json", SARIF)])), "several_files");
    assert_eq!(fate("none.zip", &zip(&[("a/", b"")])), "empty_archive");
    assert_eq!(fate("empty.zip", &zip(&[])), "empty_archive");
}

#[test]
fn an_archive_in_an_archive_is_refused() {
    assert_eq!(fate("twice.gz", &gzip(&gzip(SARIF))), "unsupported_archive");
    assert_eq!(
        fate("inner.zip", &zip(&[("a.zip", &zip(&[("a.json", SARIF)]))])),
        "unsupported_archive"
    );
    let mut tar = vec![0; 1024];
    tar[257..262].copy_from_slice(b"ustar");
    assert_eq!(fate("a.tar.gz", &gzip(&tar)), "unsupported_archive");
    assert_eq!(fate("a.tar", &tar), "unsupported_archive");
    assert_eq!(fate("a.bz2", b"BZh91AY"), "unsupported_archive");
}

#[test]
fn bombs_are_refused() {
    let mut spaces = SARIF.to_vec();
    spaces.resize(8 << 20, b' ');
    assert_eq!(fate("spaces.gz", &gzip(&spaces)), "compression_ratio_too_high");
    assert_eq!(fate("spaces.zip", &zip(&[("a.json", &spaces)])), "compression_ratio_too_high");
    let huge = vec![b' '; 26_214_401];
    assert_eq!(fate("huge.gz", &gzip(&huge)), "compression_ratio_too_high");
    let detail = detail("spaces.gz", &gzip(&spaces));
    assert!(detail.contains("Pack it with a lower compression level"), "{detail}");
    // Small content may have any compression ratio.
    spaces.truncate(900_000);
    assert_eq!(fate("dull.gz", &gzip(&spaces)), "sarif");
}

#[test]
fn damaged_archives_are_told_from_away_ones() {
    let packed = gzip(SARIF);
    assert_eq!(fate("cut.gz", &packed[..packed.len() - 6]), "content_damaged");
    let mut altered = packed;
    let middle = altered.len() / 2;
    altered[middle] ^= 0xff;
    assert_eq!(fate("altered.gz", &altered), "content_damaged");
    let archive = zip(&[("a.json", SARIF)]);
    assert_eq!(fate("cut.zip", &archive[..archive.len() - 10]), "content_damaged");
    for at in 0..archive.len() {
        let mut altered = archive.clone();
        altered[at] ^= 0x55;
        fate("altered.zip", &altered);
    }
}

/// JSON with a member `x` of at least this size.
fn large(head: &str, bytes: usize) -> Vec<u8> {
    let mut text = format!("{{{head},\"x\":[0");
    let mut number = 0_u64;
    while text.len() < bytes {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        text.push_str(&format!(",{number},0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0"));
    }
    text.push_str("]}");
    text.into_bytes()
}

fn fast_gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).expect("packed");
    encoder.finish().expect("packed")
}

const CYCLONEDX: &str = r#""bomFormat":"CycloneDX","specVersion":"1.5""#;

#[test]
fn large_content_is_kept_as_it_was_sent() {
    let content = large(CYCLONEDX, 26_214_401);
    let packed = fast_gzip(&content);
    let host = host();
    let upload = upload(&host, "image.cdx.json.gz", &packed);
    assert_eq!(upload["validation_stage"], "ready", "{upload}");
    let kept = stored(&host);
    assert_eq!(kept["format"], "cyclonedx");
    assert_eq!(kept["content_bytes"], json!(content.len()));
    let digest = area_sdk::Host::crypto_sha256(&host, &content);
    let digest = digest.iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    assert_eq!(kept["content_sha256"], json!(digest), "of what it unpacks to");
    let blobs = host.blobs();
    assert_eq!(blobs.len(), 1);
    assert_eq!(Some(blobs[0].as_str()), kept["blob"].as_str());
}

#[test]
fn large_content_is_recognised_or_refused() {
    let large = |head: &str, bytes: usize| fast_gzip(&large(head, bytes));
    let old = large(r#""bomFormat":"CycloneDX","specVersion":"1.1""#, 26_214_401);
    assert_eq!(fate("old.gz", &old), "unsupported_version");
    assert_eq!(fate("other.gz", &large(r#""a":1"#, 26_214_401)), "unsupported_format");
    let sarif = r#""version":"2.1.0","runs":[]"#;
    assert_eq!(fate("sarif.gz", &large(sarif, 26_214_401)), "sarif");
    assert_eq!(fate("sarif.gz", &large(sarif, 67_108_865)), "content_too_large");
    let mut cut = self::large(CYCLONEDX, 26_214_401);
    cut.pop();
    assert_eq!(fate("cut.gz", &fast_gzip(&cut)), "malformed_json");
    cut.push(0xff);
    assert_eq!(fate("bytes.gz", &fast_gzip(&cut)), "not_utf8");
    let packed = large(CYCLONEDX, 26_214_401);
    assert_eq!(fate("damaged.gz", &packed[..packed.len() - 3]), "content_damaged");
    let deep = format!("\"a\":{}0{}", "[".repeat(128), "]".repeat(128));
    assert_eq!(fate("deep.gz", &large(&deep, 26_214_401)), "nested_too_deeply");
}

#[test]
fn large_content_that_is_no_json_is_refused_by_its_size() {
    let mut paths = String::new();
    while paths.len() <= 26_214_400 {
        paths.push_str(&format!("src/module{}/file.rs\n", paths.len()));
    }
    let detail = detail("paths.txt.gz", &fast_gzip(paths.as_bytes()));
    assert!(detail.starts_with("Unpacked it has more than 26214400 bytes."), "{detail}");
    let marked = [&b"\xef\xbb\xbf"[..], &[b' '; 600], &large(CYCLONEDX, 26_214_401)].concat();
    assert_eq!(fate("marked.gz", &fast_gzip(&marked)), "cyclonedx");
}

#[test]
fn large_content_for_evidence_must_have_a_known_format() {
    let stage = |content: &[u8]| {
        let (host, packed) = (host(), fast_gzip(content));
        let mut announced = announcement("proof.gz", &packed);
        announced["purpose"] = json!("evidence");
        let upload = upload_as(&host, announced, &packed);
        [&upload["validation_stage"], &upload["validation_error_code"]].map(Value::clone)
    };
    let refused = [json!("rejected"), json!("content_too_large")];
    let mut unknown = large(r#""a":1"#, 26_214_401);
    assert_eq!(stage(&unknown), refused);
    unknown[0] = 0xff;
    assert_eq!(stage(&unknown), refused);
    assert_eq!(stage(&large(r#""version":"2.1.0","runs":[]"#, 67_108_865)), refused);
    assert_eq!(stage(&large(CYCLONEDX, 26_214_401)), [json!("ready"), Value::Null]);
}
