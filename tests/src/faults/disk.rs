//! A small file system that can be filled, and one that can become read-only.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Size of one write while filling, in bytes.
const CHUNK: usize = 64 * 1024;

/// A mounted file system; it is unmounted when dropped.
#[derive(Debug)]
pub(crate) struct Disk {
    folder: TempDir,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Memory,
    Loop,
}

impl Disk {
    /// Creates a file system in memory with this size.
    pub(crate) fn small(megabytes: u32) -> Result<Self, String> {
        let disk = Self::new(Kind::Memory);
        let at = disk.root();
        let options = format!("size={megabytes}m,mode=1777");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at))?;
        Ok(disk)
    }

    /// Creates a 300 MB ext4 file system in a file. It becomes read-only after an error.
    pub(crate) fn looped() -> Result<Self, String> {
        let disk = Self::new(Kind::Loop);
        let image = File::create(disk.image()).expect("an image");
        image.set_len(300 << 20).expect("room");
        run(Command::new("mkfs.ext4").arg("-q").arg(disk.image()))?;
        disk.mount()?;
        Ok(disk)
    }

    /// Returns the mount point.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    /// Fills the file system.
    pub(crate) fn fill(&self) -> String {
        let mut file = File::create(self.filling()).expect("a file");
        let mut bytes = 0;
        for chunk in [CHUNK, 4096, 512, 1] {
            while file.write_all(&vec![0; chunk]).is_ok() {
                bytes += chunk;
            }
        }
        format!("{} MB filled", bytes >> 20)
    }

    /// Deletes the fill file.
    pub(crate) fn free(&self) {
        fs::remove_file(self.filling()).expect("it is there");
    }

    /// Makes the kernel detect an error in the file system.
    pub(crate) fn turn_read_only(&self) -> String {
        let mut command = Command::new("findmnt");
        let found = command.args(["-no", "SOURCE"]).arg(self.root()).output().expect("findmnt");
        let device = String::from_utf8_lossy(&found.stdout).trim().replace("/dev/", "");
        let trigger = format!("/sys/fs/ext4/{device}/trigger_fs_error");
        fs::write(trigger, "1").expect("a kernel that takes it");
        "repair includes fsck, mount and a start of the host".to_owned()
    }

    /// Checks the file system and mounts it for writing; no file on it may be open.
    pub(crate) fn mount_again(&self) {
        run(Command::new("umount").arg(self.root())).expect("nobody uses it");
        // Exit code 1: errors were corrected.
        let _ = Command::new("e2fsck").args(["-fy"]).arg(self.image()).output().expect("e2fsck");
        self.mount().expect("a file system");
    }

    fn new(kind: Kind) -> Self {
        let folder = tempfile::Builder::new().prefix("assurance-disk-").tempdir();
        let disk = Self { folder: folder.expect("a temporary folder"), kind };
        fs::create_dir(disk.root()).expect("a folder");
        open_to_all(disk.folder.path());
        disk
    }

    fn mount(&self) -> Result<(), String> {
        let mut command = Command::new("mount");
        command.args(["-o", "loop,errors=remount-ro"]).arg(self.image()).arg(self.root());
        run(&mut command)?;
        Ok(())
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    fn filling(&self) -> PathBuf {
        self.root().join("filling")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazy, because a killed process may not have ended yet.
        if let Err(error) = run(Command::new("umount").arg("-l").arg(self.root())) {
            eprintln!("{:?} disk {} stays: {error}", self.kind, self.root().display());
        }
    }
}

/// Makes a folder accessible to the user `postgres`, which runs PostgreSQL.
fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder, mode).expect("a folder of ours");
}

/// Runs a system command. Returns its error output if it fails.
fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("needs root and mounts; {}", String::from_utf8_lossy(&output.stderr).trim()))
}
