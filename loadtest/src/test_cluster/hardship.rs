//! Difficult conditions for a node that are not acts on its process: a full disk, a wrong clock, a start that must be
//! refused.

use super::{TestCluster, host};
use std::{
    fs::{self, File},
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

/// A node that is refused its start says so within this time.
const REFUSED: Duration = Duration::from_secs(30);
/// Size of a disk that is to be filled.
const DISK: &str = "size=256k";

impl TestCluster {
    /// Gives nodes a small disk of their own.
    pub(super) fn mount_disks(&self) -> io::Result<()> {
        for n in &self.disks {
            let disk = self.data(*n);
            fs::create_dir_all(&disk)?;
            host::run("mount", &["-t", "tmpfs", "-o", DISK, "none", &disk.to_string_lossy()])?;
        }
        Ok(())
    }

    /// A start that fails, in words that hold `why`.
    pub fn refused(&mut self, n: usize, why: &str) -> io::Result<()> {
        let before = fs::metadata(self.log(n)).map_or(0, |log| log.len());
        self.launch(n, "")?;
        let name = Self::name(n);
        if self.ended(n, REFUSED)?.is_none_or(|status| status.success()) {
            return Err(io::Error::other(format!("{name} was not refused its start")));
        }
        let log = fs::read(self.log(n))?;
        let told =
            String::from_utf8_lossy(log.get(usize::try_from(before).unwrap_or(0)..).unwrap_or_default()).into_owned();
        if told.contains(why) {
            println!("    {name} is refused: {}", told.lines().last().unwrap_or_default());
            return Ok(());
        }
        Err(io::Error::other(format!("{name} was refused its start without '{why}': {told}")))
    }

    /// The wall clock of a node is off by so much from now on, milliseconds.
    pub fn set_clock(&self, n: usize, ms: i64) -> io::Result<()> {
        let new = self.clock(n).with_extension("new");
        fs::write(&new, ms.to_string())?;
        fs::rename(new, self.clock(n))
    }

    fn filler(&self, n: usize) -> PathBuf {
        self.data(n).join("filler")
    }

    /// Fills the disk of a node to the last byte.
    pub fn fill_disk(&self, n: usize) -> io::Result<()> {
        let mut filler = File::create(self.filler(n))?;
        for size in [4_096, 1] {
            let block = vec![0; size];
            loop {
                match filler.write(&block) {
                    Ok(1..) => {}
                    Ok(0) => break,
                    Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    pub fn free_disk(&self, n: usize) -> io::Result<()> {
        fs::remove_file(self.filler(n))
    }

    /// Takes small disks away; their nodes have ended.
    pub fn clear(&self) -> io::Result<()> {
        self.disks.iter().try_for_each(|n| host::run("umount", &[&self.data(*n).to_string_lossy()]))
    }
}
