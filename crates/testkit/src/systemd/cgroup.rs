//! A control group below that of the test, killed and removed with everything in it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// How often to try to remove a group whose processes are ending, and the pause in between.
const TRIES: usize = 500;
const PAUSE: Duration = Duration::from_millis(10);

/// A control group of version 2.
pub(super) struct Cgroup(PathBuf);

impl Cgroup {
    /// A new one, below that of this process.
    ///
    /// # Errors
    /// If version 2 is not mounted, lacks `cgroup.kill` (before kernel 5.14), or may not be written.
    pub(super) fn new() -> io::Result<Cgroup> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let mounts = fs::read_to_string("/proc/self/mounts")?;
        let mut mounts = mounts.lines().map(|line| line.split(' '));
        let mounted = mounts.find_map(|mut fields| {
            let place = fields.nth(1)?;
            (fields.next() == Some("cgroup2")).then(|| place.to_owned())
        });
        let mounted = mounted.ok_or_else(|| io::Error::other("version 2 is not mounted"))?;
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"));
        let own = own.ok_or_else(|| io::Error::other("this process is in none of version 2"))?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tamis-test-{}-{count}", std::process::id());
        let path = Path::new(&mounted).join(own).join(name);
        fs::create_dir(&path)?;
        let cgroup = Cgroup(path);
        match cgroup.0.join("cgroup.kill").exists() {
            true => Ok(cgroup),
            false => Err(io::Error::other("the kernel can't kill a control group")),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Kills all processes in it and below.
    pub(super) fn kill(&self) {
        // It fails only if the group is gone.
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.kill();
        for _ in 0..TRIES {
            if remove(&self.0).is_ok() {
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}

/// Removes a group and those below it.
fn remove(group: &Path) -> io::Result<()> {
    for entry in fs::read_dir(group)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    fs::remove_dir(group)
}
