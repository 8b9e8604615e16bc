//! The attributes of a filter.

use tamis_abi::Action;
use tamis_scmp::CallOrder;

use crate::status::Status;
use crate::support::{self, Feature, supports};

/// The attributes of a filter, except the default action, which belongs to the rules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes {
    /// The action for other architectures.
    pub(crate) bad_arch: Action,
    /// Whether loading sets `no_new_privs`.
    pub(crate) no_new_privs: bool,
    /// Whether all threads get the filter (`TSYNC`).
    pub(crate) tsync: bool,
    /// Whether rules for call number -1, which tracers write to skip a call, are accepted.
    pub(crate) handles_skipped: bool,
    /// Whether the kernel logs actions other than allow.
    pub(crate) log: bool,
    /// Whether the kernel's mitigation of speculative store bypass is off.
    pub(crate) spec_allow: bool,
    /// The order of the pseudo code; programs don't depend on it.
    pub(crate) order: CallOrder,
    /// Whether the kernel's error numbers are returned unchanged.
    pub(crate) raw_errors: bool,
    /// Whether only a fatal signal interrupts a task that waits for the response to a notification.
    pub(crate) wait_killable: bool,
}

/// An attribute, `SCMP_FLTATR_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attribute {
    DefaultAction,
    BadArch,
    NoNewPrivs,
    Tsync,
    HandlesSkipped,
    Log,
    SpecAllow,
    Order,
    RawErrors,
    WaitKillable,
}

impl Attribute {
    /// The attribute with a number of the interface.
    pub(crate) const fn from_number(number: u32) -> Option<Attribute> {
        Some(match number {
            1 => Attribute::DefaultAction,
            2 => Attribute::BadArch,
            3 => Attribute::NoNewPrivs,
            4 => Attribute::Tsync,
            5 => Attribute::HandlesSkipped,
            6 => Attribute::Log,
            7 => Attribute::SpecAllow,
            8 => Attribute::Order,
            9 => Attribute::RawErrors,
            10 => Attribute::WaitKillable,
            _ => return None,
        })
    }
}

impl Default for Attributes {
    fn default() -> Attributes {
        Attributes {
            bad_arch: Action::KILL_THREAD,
            no_new_privs: true,
            tsync: false,
            handles_skipped: false,
            log: false,
            spec_allow: false,
            order: CallOrder::Priority,
            raw_errors: false,
            wait_killable: false,
        }
    }
}

impl Attributes {
    /// The value of an attribute.
    pub(crate) fn get(&self, attribute: Attribute, default: Action) -> u32 {
        match attribute {
            Attribute::DefaultAction => default.ret(),
            Attribute::BadArch => self.bad_arch.ret(),
            Attribute::NoNewPrivs => self.no_new_privs.into(),
            Attribute::Tsync => self.tsync.into(),
            Attribute::HandlesSkipped => self.handles_skipped.into(),
            Attribute::Log => self.log.into(),
            Attribute::SpecAllow => self.spec_allow.into(),
            Attribute::Order => match self.order {
                CallOrder::Priority => 1,
                CallOrder::BinaryTree => 2,
            },
            Attribute::RawErrors => self.raw_errors.into(),
            Attribute::WaitKillable => self.wait_killable.into(),
        }
    }

    /// Sets an attribute. `notifies` means that the filter has rules with the action notify.
    pub(crate) fn set(
        &mut self,
        attribute: Attribute,
        value: u32,
        notifies: bool,
    ) -> Result<(), Status> {
        let flag = value != 0;
        match attribute {
            Attribute::DefaultAction => return Err(Status::Access),
            Attribute::BadArch => self.bad_arch = self.action(value)?,
            Attribute::NoNewPrivs => self.no_new_privs = flag,
            Attribute::Tsync => {
                require(Feature::Tsync)?;
                if flag && notifies && !supports(Feature::TsyncEsrch) {
                    return Err(Status::Invalid);
                }
                self.tsync = flag;
            }
            Attribute::HandlesSkipped => self.handles_skipped = flag,
            Attribute::Log => {
                require(Feature::LogFlag)?;
                self.log = flag;
            }
            Attribute::SpecAllow => {
                require(Feature::SpecAllow)?;
                self.spec_allow = flag;
            }
            Attribute::Order => {
                self.order = match value {
                    1 => CallOrder::Priority,
                    2 => CallOrder::BinaryTree,
                    _ => return Err(Status::NotSupported),
                }
            }
            Attribute::RawErrors => self.raw_errors = flag,
            Attribute::WaitKillable => self.wait_killable = flag,
        }
        Ok(())
    }

    /// The action for a value in a rule of this filter.
    pub(crate) fn action(&self, value: u32) -> Result<Action, Status> {
        let notifies = value == tamis_abi::ActionKind::Notify.ret();
        if notifies && self.tsync && !supports(Feature::TsyncEsrch) {
            return Err(Status::Invalid);
        }
        support::action(value).ok_or(Status::Invalid)
    }
}

fn require(feature: Feature) -> Result<(), Status> {
    if supports(feature) {
        Ok(())
    } else {
        Err(Status::NotSupported)
    }
}
