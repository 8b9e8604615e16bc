//! The names in profiles: actions, operators, architectures, flags and capabilities.

pub use tamis_abi::capability::CAPABILITIES;
use tamis_abi::{Action, ActionKind, Arch};

/// The names of actions in profiles; whether an action has an errno depends on its kind.
pub const ACTIONS: [(&str, ActionKind); 9] = [
    ("SCMP_ACT_KILL", ActionKind::KillThread),
    ("SCMP_ACT_KILL_THREAD", ActionKind::KillThread),
    ("SCMP_ACT_KILL_PROCESS", ActionKind::KillProcess),
    ("SCMP_ACT_TRAP", ActionKind::Trap),
    ("SCMP_ACT_ERRNO", ActionKind::Errno),
    ("SCMP_ACT_TRACE", ActionKind::Trace),
    ("SCMP_ACT_ALLOW", ActionKind::Allow),
    ("SCMP_ACT_LOG", ActionKind::Log),
    ("SCMP_ACT_NOTIFY", ActionKind::Notify),
];

/// The default errno: `EPERM`.
pub(super) const DEFAULT_ERRNO: u16 = 1;

/// The largest errno that libseccomp accepts; the kernel accepts one more.
pub const MAX_ERRNO: u64 = 4094;

/// Whether an action has an errno.
pub const fn takes_errno(kind: ActionKind) -> bool {
    matches!(kind, ActionKind::Errno | ActionKind::Trace)
}

/// The action of this kind, with this errno if it has one.
pub(super) fn action(kind: ActionKind, errno: Option<u16>) -> Action {
    if takes_errno(kind) {
        Action::new(kind, errno.unwrap_or(DEFAULT_ERRNO))
    } else {
        Action::new(kind, 0)
    }
}

/// An operator as named in a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Ne,
    Lt,
    Le,
    Eq,
    Ge,
    Gt,
    MaskedEq,
}

/// All operators.
pub(super) const OPERATORS: [(&str, Operator); 7] = [
    ("SCMP_CMP_NE", Operator::Ne),
    ("SCMP_CMP_LT", Operator::Lt),
    ("SCMP_CMP_LE", Operator::Le),
    ("SCMP_CMP_EQ", Operator::Eq),
    ("SCMP_CMP_GE", Operator::Ge),
    ("SCMP_CMP_GT", Operator::Gt),
    ("SCMP_CMP_MASKED_EQ", Operator::MaskedEq),
];

/// The architectures of the OCI runtime specification.
pub const ARCHES: [(&str, Arch); 23] = [
    ("SCMP_ARCH_X86", Arch::X86),
    ("SCMP_ARCH_X86_64", Arch::X86_64),
    ("SCMP_ARCH_X32", Arch::X32),
    ("SCMP_ARCH_ARM", Arch::Arm),
    ("SCMP_ARCH_AARCH64", Arch::Aarch64),
    ("SCMP_ARCH_MIPS", Arch::Mips),
    ("SCMP_ARCH_MIPS64", Arch::Mips64),
    ("SCMP_ARCH_MIPS64N32", Arch::Mips64n32),
    ("SCMP_ARCH_MIPSEL", Arch::Mipsel),
    ("SCMP_ARCH_MIPSEL64", Arch::Mipsel64),
    ("SCMP_ARCH_MIPSEL64N32", Arch::Mipsel64n32),
    ("SCMP_ARCH_PPC", Arch::Ppc),
    ("SCMP_ARCH_PPC64", Arch::Ppc64),
    ("SCMP_ARCH_PPC64LE", Arch::Ppc64le),
    ("SCMP_ARCH_S390", Arch::S390),
    ("SCMP_ARCH_S390X", Arch::S390x),
    ("SCMP_ARCH_PARISC", Arch::Parisc),
    ("SCMP_ARCH_PARISC64", Arch::Parisc64),
    ("SCMP_ARCH_RISCV64", Arch::Riscv64),
    ("SCMP_ARCH_LOONGARCH64", Arch::Loongarch64),
    ("SCMP_ARCH_M68K", Arch::M68k),
    ("SCMP_ARCH_SH", Arch::Sh),
    ("SCMP_ARCH_SHEB", Arch::Sheb),
];

/// The flags of the OCI runtime specification.
pub(super) const FLAGS: [(&str, ()); 4] = [
    ("SECCOMP_FILTER_FLAG_TSYNC", ()),
    ("SECCOMP_FILTER_FLAG_LOG", ()),
    ("SECCOMP_FILTER_FLAG_SPEC_ALLOW", ()),
    ("SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV", ()),
];

/// The architecture with this name in `includes` and `excludes`, if an engine has the name: Go's for the two most
/// frequent, libseccomp's for others.
pub(super) fn engine_arch(name: &str) -> Option<Arch> {
    match name {
        "amd64" => Some(Arch::X86_64),
        "arm64" => Some(Arch::Aarch64),
        "mips3l64n32" => Some(Arch::Mipsel64n32),
        _ => {
            let arch = Arch::from_name(name).filter(|arch| arch.name() == name)?;
            let is_unknown = matches!(
                arch,
                Arch::X86_64 | Arch::Aarch64 | Arch::M68k | Arch::Sh | Arch::Sheb
            );
            (!is_unknown).then_some(arch)
        }
    }
}

/// The full name of a capability: `CAP_SYS_ADMIN` for `sys_admin`, in any case.
pub fn capability(name: &str) -> Option<&'static str> {
    let upper = name.to_ascii_uppercase();
    let bare = upper.strip_prefix("CAP_").unwrap_or(&upper);
    CAPABILITIES
        .into_iter()
        .find(|known| known.strip_prefix("CAP_") == Some(bare))
}

/// The default capabilities of a Docker container.
pub(super) const DOCKER_CAPABILITIES: [&str; 14] = [
    "CAP_AUDIT_WRITE",
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_MKNOD",
    "CAP_NET_BIND_SERVICE",
    "CAP_NET_RAW",
    "CAP_SETFCAP",
    "CAP_SETGID",
    "CAP_SETPCAP",
    "CAP_SETUID",
    "CAP_SYS_CHROOT",
];
