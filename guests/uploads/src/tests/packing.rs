//! What is packed, and what only seems to be.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use rawzip::{CompressionMethod, ZipArchiveWriter};

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
    assert_eq!(fate("a.zst", &[0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3]), "unsupported_archive");
}

#[test]
fn bombs_are_refused() {
    let mut spaces = SARIF.to_vec();
    spaces.resize(8 << 20, b' ');
    assert_eq!(fate("spaces.gz", &gzip(&spaces)), "compression_ratio_too_high");
    assert_eq!(fate("spaces.zip", &zip(&[("a.json", &spaces)])), "compression_ratio_too_high");
    let huge = vec![b' '; 26_214_401];
    assert_eq!(fate("huge.gz", &gzip(&huge)), "content_too_large");
    // What is small may be as dull as it likes.
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
