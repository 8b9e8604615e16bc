//! The credentials of a process from systemd's fork to the program of a service: user, capabilities, secure bits and
//! `no_new_privs`.
//!
//! The methods correspond to the kernel's operations (`security/commoncap.c`): `setresuid`, `execve`, the bounding and
//! the ambient set. [`privileges`](super::privileges) has systemd's sequence of them.

use std::ops::{BitAnd, BitOr, Not};

use tamis_policy::oci::CAPABILITIES;

/// A set of capabilities, by number as in `/proc/PID/status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Capabilities(u64);

impl Capabilities {
    pub(super) const NONE: Capabilities = Capabilities(0);
    pub(super) const ALL: Capabilities = Capabilities((1 << CAPABILITIES.len()) - 1);

    /// The capability of this name or number, with systemd's syntax.
    pub(super) fn named(name: &str) -> Option<Capabilities> {
        let number = match name.parse() {
            Ok(number) => number,
            Err(_) => CAPABILITIES
                .iter()
                .position(|known| known.eq_ignore_ascii_case(name))?,
        };
        (number < CAPABILITIES.len()).then(|| Capabilities(1 << number))
    }

    pub(super) fn contains(self, other: Capabilities) -> bool {
        self & other == other
    }

    pub(super) fn bits(self) -> u64 {
        self.0
    }

    /// The names of the capabilities.
    pub(super) fn names(self) -> Vec<&'static str> {
        let names = CAPABILITIES.iter().enumerate();
        let own = names.filter(|(number, _)| self.0 & 1 << number != 0);
        own.map(|(_, name)| *name).collect()
    }
}

impl BitAnd for Capabilities {
    type Output = Capabilities;

    fn bitand(self, other: Capabilities) -> Capabilities {
        Capabilities(self.0 & other.0)
    }
}

impl BitOr for Capabilities {
    type Output = Capabilities;

    fn bitor(self, other: Capabilities) -> Capabilities {
        Capabilities(self.0 | other.0)
    }
}

impl Not for Capabilities {
    type Output = Capabilities;

    fn not(self) -> Capabilities {
        Capabilities(!self.0) & Capabilities::ALL
    }
}

/// Bits of `PR_SET_SECUREBITS`, by their numbers in `linux/securebits.h`.
pub(super) const SECURE_BITS: [(&str, u32); 6] = [
    ("noroot", NO_ROOT),
    ("noroot-locked", 1 << 1),
    ("no-setuid-fixup", 1 << 2),
    ("no-setuid-fixup-locked", 1 << 3),
    ("keep-caps", KEEP_CAPS),
    ("keep-caps-locked", 1 << 5),
];
const NO_ROOT: u32 = 1;
const KEEP_CAPS: u32 = 1 << 4;

/// The credentials of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Credentials {
    /// Whether its user ID is 0.
    pub(super) is_root: bool,
    pub(super) inheritable: Capabilities,
    pub(super) permitted: Capabilities,
    pub(super) effective: Capabilities,
    pub(super) bounding: Capabilities,
    pub(super) ambient: Capabilities,
    pub(super) secure_bits: u32,
    pub(super) no_new_privs: bool,
}

impl Credentials {
    /// The credentials of a system manager with all privileges, which its children inherit.
    pub(super) const MANAGER: Credentials = Credentials {
        is_root: true,
        inheritable: Capabilities::NONE,
        permitted: Capabilities::ALL,
        effective: Capabilities::ALL,
        bounding: Capabilities::ALL,
        ambient: Capabilities::NONE,
        secure_bits: 0,
        no_new_privs: false,
    };

    /// The credentials in `/proc/PID/status`; `None` if the fields are missing.
    pub(super) fn of_status(status: &str) -> Option<Credentials> {
        let field = |name: &str| {
            let mut fields = status.lines().filter_map(|line| line.split_once(':'));
            fields
                .find(|(own, _)| *own == name)
                .map(|(_, value)| value.trim())
        };
        let set = |name: &str| {
            let bits = u64::from_str_radix(field(name)?, 16).ok()?;
            Some(Capabilities(bits) & Capabilities::ALL)
        };
        Some(Credentials {
            inheritable: set("CapInh")?,
            permitted: set("CapPrm")?,
            effective: set("CapEff")?,
            bounding: set("CapBnd")?,
            ambient: set("CapAmb")?,
            no_new_privs: field("NoNewPrivs")? == "1",
            ..Credentials::MANAGER
        })
    }

    /// Sets or clears the flag of `PR_SET_KEEPCAPS`.
    pub(super) fn keep_capabilities(&mut self, keeps: bool) {
        self.secure_bits = match keeps {
            true => self.secure_bits | KEEP_CAPS,
            false => self.secure_bits & !KEEP_CAPS,
        };
    }

    /// `PR_CAPBSET_DROP` of all other capabilities, which are also removed from the inheritable set.
    pub(super) fn bound(&mut self, kept: Capabilities) {
        self.bounding = self.bounding & kept;
        self.inheritable = self.inheritable & kept;
    }

    /// Sets the ambient set, limited to the bounding set.
    pub(super) fn make_ambient(&mut self, set: Capabilities) {
        self.ambient = set & self.bounding & self.permitted & self.inheritable;
    }

    /// Removes a capability from all sets but the bounding set.
    pub(super) fn drop(&mut self, capability: Capabilities) {
        self.inheritable = self.inheritable & !capability;
        self.permitted = self.permitted & !capability;
        self.effective = self.effective & !capability;
        self.ambient = self.ambient & !capability;
    }

    /// Adds a permitted capability to the effective and the inheritable set.
    pub(super) fn raise(&mut self, capability: Capabilities) {
        let capability = capability & self.permitted;
        self.effective = self.effective | capability;
        self.inheritable = self.inheritable | capability;
    }

    /// `setresuid` by user 0, to itself or another user.
    pub(super) fn set_user(&mut self, is_root: bool) {
        if self.is_root && !is_root {
            if self.secure_bits & KEEP_CAPS == 0 {
                self.permitted = Capabilities::NONE;
            }
            self.effective = Capabilities::NONE;
            self.ambient = Capabilities::NONE;
        }
        self.is_root = is_root;
    }

    /// `execve` of a file without capabilities and set-user-ID bits.
    pub(super) fn execute(&mut self) {
        let is_privileged = self.is_root && self.secure_bits & NO_ROOT == 0;
        let mut gained = match is_privileged {
            true => self.inheritable | self.bounding,
            false => Capabilities::NONE,
        };
        if self.no_new_privs {
            gained = gained & self.permitted;
        }
        self.permitted = gained | self.ambient;
        self.effective = match is_privileged {
            true => self.permitted,
            false => self.ambient,
        };
        self.keep_capabilities(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_those_of_lists() {
        let admin = Capabilities::named("CAP_SYS_ADMIN").unwrap();
        assert_eq!(admin.bits(), 1 << 21);
        assert_eq!(Capabilities::named("cap_sys_admin"), Some(admin));
        assert_eq!(Capabilities::named("21"), Some(admin));
        assert_eq!(admin.names(), ["CAP_SYS_ADMIN"]);
        for unknown in ["sys_admin", "CAP_NO", "99", ""] {
            assert_eq!(Capabilities::named(unknown), None, "{unknown}");
        }
        assert_eq!((!Capabilities::NONE).bits(), 0x1ff_ffff_ffff);
    }

    #[test]
    fn a_manager_in_a_container_has_what_its_status_says() {
        let status = "Name:\tsystemd\nCapInh:\t0000000000000000\nCapPrm:\t00000000a80425fb\nCapEff:\t00000000a80425fb\n\
                      CapBnd:\t00000000a80425fb\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\n";
        let own = Credentials::of_status(status).unwrap();
        assert!(own.no_new_privs && own.is_root && own.effective.bits() == 0xa804_25fb);
        assert_eq!(Credentials::of_status("Name:\tsystemd\n"), None);
    }
}
