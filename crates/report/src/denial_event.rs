//! Denied calls as they happen: `tamis run --explain-denied --json-lines`, an object for each event.

use serde::Serialize;
use tamis_abi::{Arch, Nr, SeccompData, syscall};

/// An event. Absent members are omitted.
#[derive(Serialize)]
pub struct DenialEvent {
    pub event: &'static str,
    pub time_us: u64,
    #[serde(flatten)]
    pub details: DenialDetails,
}

/// The details of an event of one kind.
#[derive(Serialize)]
#[serde(untagged)]
pub enum DenialDetails {
    Call(Box<DeniedCall>),
    Ended {
        exit_code: Option<u8>,
        signal: Option<i32>,
    },
}

/// A denied call.
#[derive(Serialize)]
pub struct DeniedCall {
    pub thread: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    #[serde(flatten)]
    pub entry: Option<CallEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
}

/// The call itself.
#[derive(Serialize)]
pub struct CallEntry {
    /// As text, with the memory of arguments where it was read.
    pub call: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arch: Option<&'static str>,
    pub nr: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'static str>,
    /// The registers, in hexadecimal.
    pub args: Vec<String>,
}

impl CallEntry {
    /// The entry of a call with its text.
    pub fn new(data: &SeccompData, call: String) -> CallEntry {
        let arch = Arch::of_call(data.arch, data.nr);
        CallEntry {
            call,
            arch: arch.map(Arch::name),
            nr: data.nr,
            name: arch.and_then(|arch| syscall::name(arch, Nr(data.nr))),
            args: data.args.iter().map(|arg| format!("{arg:#x}")).collect(),
        }
    }
}

impl DenialEvent {
    /// The event as one line of JSON, without the newline.
    ///
    /// # Errors
    /// Never: the members have names.
    pub fn line(&self) -> serde_json::Result<String> {
        crate::line(self)
    }
}
