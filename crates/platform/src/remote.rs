//! The memory of a guest that is another process.

use tamis_kernel::{Errno, memory};

use crate::task::Space;

/// The memory of the process of a task, by `process_vm_readv`.
pub(crate) struct Remote {
    pub(crate) tid: i32,
}

impl Space for Remote {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        memory::read(self.tid, address, buffer)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<usize, Errno> {
        memory::write(self.tid, address, bytes)
    }
}
