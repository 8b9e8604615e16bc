//! The process of a virtual machine: its monitor, and the host of its guest's memory.
//!
//! The guest's addresses are those of this process: its page tables map the memory that the process has mapped for it,
//! and no other. Its calls are made by the monitor, in this process, under the guest's filter.
//!
//! | module | function |
//! |---|---|
//! | `area` | the monitor's state |
//! | `call` | system calls: the monitor's own, and the guest's |
//! | `shim` | the code that leaves the machine |
//! | `tables` | the guest's page tables |
//! | `machine` | requests to KVM |
//! | `descriptors` | the numbers of the monitor's descriptors |
//! | `vcpu` | a thread of the guest, and its loop |
//! | `calls` | calls that concern the machine |
//! | `tasks` | new threads and processes |
//! | `signals` | the guest's handlers |
//! | `start` | from a program's execution to its first instruction |
//!
//! No code here may use the C library, allocate or panic: threads of the guest have no thread-locals of the host, and
//! every call that the filter doesn't recognise is the guest's.

pub(crate) mod area;
mod call;
mod calls;
mod descriptors;
pub(crate) mod machine;
mod shim;
mod signals;
mod start;
mod tables;
mod tasks;
mod vcpu;

pub(crate) use call::{WOULD_BE_MADE, asking_ip, failed_at, own_ips};
pub(crate) use calls::{REFUSED, REFUSED_OPERATIONS};
pub(crate) use descriptors::NOFILE;
pub(crate) use signals::KILL_MARK;
pub(crate) use start::{BLOCKED, Executed, InitialState, Machine, first_fd};
