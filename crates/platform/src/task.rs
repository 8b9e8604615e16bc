//! The task that makes a call, its registers and its memory.

use crate::error::Unsupported;
use tamis_kernel::Errno;

/// A task of a guest: a thread, by its number as the supervisor sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub i32);

/// A task that waits for the answer to a call.
pub trait Task {
    /// Its number.
    fn id(&self) -> TaskId;

    /// Its memory.
    fn space(&self) -> &dyn Space;

    /// Its registers, read on demand.
    ///
    /// # Errors
    /// The platform doesn't support it, or the task is gone.
    fn registers(&mut self) -> Result<Registers, Unsupported> {
        Err(Unsupported::new("the registers of a task"))
    }

    /// Replaces its registers.
    ///
    /// # Errors
    /// The platform doesn't support it, or the task is gone.
    fn set_registers(&mut self, _registers: &Registers) -> Result<(), Unsupported> {
        Err(Unsupported::new("setting the registers of a task"))
    }
}

/// The general registers of a task on x86-64. Before a call, `rax` is its number, after it its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the registers")]
pub struct Registers {
    pub rax: u64,
    pub rbx: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub rbp: u64,
    pub rsp: u64,
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
    pub rip: u64,
    pub rflags: u64,
}

impl Registers {
    /// The count of words in `struct user_regs_struct` of `sys/user.h`.
    pub(crate) const KERNEL_WORDS: usize = 27;

    /// The registers except `rax` with their indices in that structure.
    fn places(&mut self) -> [(usize, &mut u64); 17] {
        [
            (0, &mut self.r15),
            (1, &mut self.r14),
            (2, &mut self.r13),
            (3, &mut self.r12),
            (4, &mut self.rbp),
            (5, &mut self.rbx),
            (6, &mut self.r11),
            (7, &mut self.r10),
            (8, &mut self.r9),
            (9, &mut self.r8),
            (11, &mut self.rcx),
            (12, &mut self.rdx),
            (13, &mut self.rsi),
            (14, &mut self.rdi),
            (16, &mut self.rip),
            (18, &mut self.rflags),
            (19, &mut self.rsp),
        ]
    }

    /// The registers in the words of that structure, without `rax`, which has two words.
    pub(crate) fn of_words(words: &[u64; Registers::KERNEL_WORDS]) -> Registers {
        let mut registers = Registers::default();
        for (place, register) in registers.places() {
            *register = words[place];
        }
        registers
    }

    /// Sets the words of that structure, with `rax` at this index.
    pub(crate) fn to_words(mut self, rax: usize, words: &mut [u64; Registers::KERNEL_WORDS]) {
        words[rax] = self.rax;
        for (place, register) in self.places() {
            words[place] = *register;
        }
    }
}

/// The memory of a guest's process.
///
/// Other tasks of the guest may change it at any time: read each value once, and check the value that was read.
pub trait Space {
    /// Fills the buffer from this address; returns how many bytes could be read.
    ///
    /// # Errors
    /// `EFAULT` if not even the first byte could be read, `ESRCH` if the process is gone, `EPERM` if it has made itself
    /// unreadable (`PR_SET_DUMPABLE`) and this process has no privileges.
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<usize, Errno>;

    /// Writes bytes to this address; returns how many could be written.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn write(&self, address: u64, bytes: &[u8]) -> Result<usize, Errno>;
}
