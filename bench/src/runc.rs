//! Docker's profile compiled in the way of container runtimes: the engine selects entries, and calls libseccomp for
//! each name of an entry.
//!
//! This is the peer of `tamis compile`, written against the peer's own interface. It supports only the features of
//! Docker's default profile.

use serde_json::Value;
use tamis_abi::{Action, Arch};
use tamis_bpf::Insn;
use tamis_testkit::libseccomp::{Condition, Errno, Filter, Library, Op};

/// The capabilities of a container without additional ones.
const CAPABILITIES: [&str; 14] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FSETID",
    "CAP_FOWNER",
    "CAP_MKNOD",
    "CAP_NET_RAW",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETFCAP",
    "CAP_SETPCAP",
    "CAP_NET_BIND_SERVICE",
    "CAP_SYS_CHROOT",
    "CAP_KILL",
    "CAP_AUDIT_WRITE",
];
/// The engine's name of the architecture.
const ARCH: &str = "amd64";
/// The errno of an entry without a number.
const EPERM: u16 = 1;

/// libseccomp's program for a Docker profile on x86-64, with x86 and x32.
///
/// # Errors
/// The library's error.
///
/// # Panics
/// If the text is not a profile, or has features that are not in Docker's default profile.
pub fn compile(library: &Library, text: &str, optimize: u32) -> Result<Vec<Insn>, Errno> {
    Rules::parse(text).filter(library, optimize)?.export()
}

/// The rules that the engine passes to libseccomp.
#[derive(Clone, Debug)]
pub struct Rules {
    default: Action,
    entries: Vec<(Action, Vec<Condition>, Vec<String>)>,
}

impl Rules {
    /// The rules of a Docker profile.
    ///
    /// # Panics
    /// As [`compile`].
    pub fn parse(text: &str) -> Rules {
        let profile: Value = serde_json::from_str(text).expect("the profile is JSON");
        let default = action(&profile["defaultAction"], &profile["defaultErrnoRet"]);
        let entries = list(&profile["syscalls"]).filter(|entry| applies(entry));
        let entries = entries.map(|entry| {
            let names = list(&entry["names"]).filter_map(Value::as_str);
            (
                action(&entry["action"], &entry["errnoRet"]),
                list(&entry["args"]).map(condition).collect(),
                names.map(str::to_owned).collect(),
            )
        });
        let entries = entries.filter(|(action, ..)| *action != default).collect();
        Rules { default, entries }
    }

    /// The filter on x86-64, with x86 and x32.
    ///
    /// # Errors
    /// The library's error.
    ///
    /// # Panics
    /// If the library refuses the default action.
    pub fn filter<'l>(&self, library: &'l Library, optimize: u32) -> Result<Filter<'l>, Errno> {
        let mut filter = library
            .filter(self.default)
            .expect("libseccomp takes the default");
        filter.set_optimize(optimize)?;
        for arch in [Arch::X86, Arch::X32] {
            filter.add_arch(arch)?;
        }
        for (action, conditions, names) in &self.entries {
            for nr in names.iter().filter_map(|name| library.resolve(name)) {
                filter.add_rule(*action, nr, conditions)?;
            }
        }
        Ok(filter)
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Whether the engine selects an entry; the kernel counts as new enough.
fn applies(entry: &Value) -> bool {
    let has_cap = |cap: &Value| cap.as_str().is_some_and(|cap| CAPABILITIES.contains(&cap));
    let is_arch = |arch: &Value| arch == ARCH;
    let (includes, excludes) = (&entry["includes"], &entry["excludes"]);
    let is_included = list(&includes["caps"]).all(has_cap)
        && (includes["arches"].is_null() || list(&includes["arches"]).any(is_arch));
    let is_excluded =
        list(&excludes["caps"]).any(has_cap) || list(&excludes["arches"]).any(is_arch);
    is_included && !is_excluded
}

fn action(name: &Value, errno: &Value) -> Action {
    match name.as_str() {
        Some("SCMP_ACT_ALLOW") => Action::ALLOW,
        Some("SCMP_ACT_ERRNO") => {
            let errno = errno.as_u64().and_then(|errno| u16::try_from(errno).ok());
            Action::errno(errno.unwrap_or(EPERM))
        }
        other => panic!("Docker's profile does not use {other:?}"),
    }
}

fn condition(arg: &Value) -> Condition {
    let number = |name: &str| arg[name].as_u64().unwrap_or(0);
    let op = match arg["op"].as_str() {
        Some("SCMP_CMP_LT") => Op::Lt,
        Some("SCMP_CMP_EQ") => Op::Eq,
        Some("SCMP_CMP_GT") => Op::Gt,
        Some("SCMP_CMP_MASKED_EQ") => Op::MaskedEq,
        other => panic!("Docker's profile does not use {other:?}"),
    };
    Condition {
        arg: u32::try_from(number("index")).expect("an argument has a small index"),
        op,
        value: number("value"),
        value_two: number("valueTwo"),
    }
}
