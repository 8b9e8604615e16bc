//! A filter under construction.

use tamis_abi::{Action, ActionKind, Arch};
use tamis_bpf::Program;
use tamis_scmp::{ArchError, Condition, Db, Exactness, PseudoCode, number};

use crate::attributes::{Attribute, Attributes};
use crate::build;
use crate::memory::{self, RULE_WEIGHT};
use crate::next;
use crate::status::Status;

/// Rules without identifiers: conflicts and results refer to none.
pub(crate) type Rules = Db<()>;

/// The most lines of pseudo code for the tests of calls. A program has at most 4096 instructions.
const MAX_TREE_LINES: usize = 1 << 18;

/// The filter of a handle: rules, attributes, open transactions, and the compiled program.
#[derive(Debug)]
pub(crate) struct Filter {
    rules: Rules,
    attributes: Attributes,
    /// Whether a rule or default with the action notify was ever added, including rules of rejected transactions.
    notifies: bool,
    /// The rules at the start of each open transaction.
    transactions: Vec<Rules>,
    /// An upper bound of the size of the rules, for [`memory`].
    weight: usize,
    /// The compiled program, until rules or attributes change.
    program: Option<Program>,
}

impl Filter {
    /// A filter without rules for one architecture.
    pub(crate) fn new(default: Action, native: Arch) -> Filter {
        Filter {
            rules: Db::new(default, native, &[]),
            attributes: Attributes::default(),
            notifies: default.kind == ActionKind::Notify,
            transactions: Vec::new(),
            weight: 0,
            program: None,
        }
    }

    /// The rules.
    pub(crate) const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The attributes.
    pub(crate) const fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Whether loading needs a notification descriptor.
    pub(crate) const fn notifies(&self) -> bool {
        self.notifies
    }

    /// Whether there are architectures. Without any, only adding one is possible.
    pub(crate) fn has_arches(&self) -> bool {
        !self.rules.filters().is_empty()
    }

    pub(crate) fn attribute(&self, attribute: Attribute) -> u32 {
        self.attributes.get(attribute, self.rules.default_action())
    }

    pub(crate) fn set_attribute(&mut self, attribute: Attribute, value: u32) -> Result<(), Status> {
        self.attributes.set(attribute, value, self.notifies)?;
        // The other attributes don't affect the program, and a signal handler may set them before it loads it.
        if attribute == Attribute::BadArch {
            self.program = None;
        }
        Ok(())
    }

    pub(crate) fn add_arch(&mut self, arch: Arch) -> Result<(), Status> {
        memory::require(0)?;
        self.rules.add_arch(arch).map_err(ArchError::errno)?;
        self.program = None;
        Ok(())
    }

    pub(crate) fn remove_arch(&mut self, arch: Arch) -> Result<(), Status> {
        if !self.rules.remove_arch(arch) {
            return Err(Status::Exists);
        }
        self.program = None;
        Ok(())
    }

    /// Whether the architectures of another filter can be merged, and whether there is memory for it.
    pub(crate) fn check_merge(&self, other: &Filter) -> Result<(), Status> {
        let settings = |filter: &Filter| {
            (
                filter.rules.default_action(),
                filter.attributes.no_new_privs,
                filter.attributes.tsync,
            )
        };
        if settings(self) != settings(other) {
            return Err(Status::Invalid);
        }
        let checked = self.rules.check_merge(&other.rules);
        checked.map_err(ArchError::errno)?;
        memory::require(0)
    }

    /// Merges a filter that passed [`check_merge`](Self::check_merge).
    pub(crate) fn merge(&mut self, other: Filter) -> Result<(), Status> {
        self.program = None;
        self.notifies |= other.notifies;
        self.weight += other.weight;
        self.rules
            .merge(other.rules)
            .map_err(|error| error.errno().into())
    }

    pub(crate) fn set_priority(&mut self, call: i32, priority: u8) -> Result<(), Status> {
        self.check_call(call)?;
        self.program = None;
        memory::require(0)?;
        self.weight += self.rules.filters().len() * RULE_WEIGHT;
        self.rules
            .set_priority(call, priority)
            .map_err(|error| error.errno().into())
    }

    /// Checks the call and the action of a rule, before its conditions.
    pub(crate) fn check_rule(&self, action: u32, call: i32) -> Result<Action, Status> {
        self.check_call(call)?;
        let action = self.attributes.action(action)?;
        if action == self.rules.default_action() {
            return Err(Status::Access);
        }
        Ok(action)
    }

    /// Adds a rule that passed [`check_rule`](Self::check_rule).
    pub(crate) fn add_rule(
        &mut self,
        exactness: Exactness,
        action: Action,
        call: i32,
        conditions: &[Condition],
    ) -> Result<(), Status> {
        // A multiplexed call has two places. Only the trees of these places grow.
        let places = 2 * self.rules.filters().len();
        let added = places * (RULE_WEIGHT + conditions.len());
        memory::require(places * self.rules.heaviest_call() + added)?;
        self.rules
            .add_rule(exactness, action, call, conditions, ())
            .map_err(|error| error.errno())?;
        self.weight += added;
        self.program = None;
        self.notifies |= action.kind == ActionKind::Notify;
        Ok(())
    }

    fn check_call(&self, call: i32) -> Result<(), Status> {
        match number::is_valid(call, self.attributes.handles_skipped) {
            true => Ok(()),
            false => Err(Status::Invalid),
        }
    }

    pub(crate) fn start_transaction(&mut self) -> Result<(), Status> {
        memory::require(self.weight)?;
        self.transactions.push(self.rules.clone());
        Ok(())
    }

    pub(crate) fn commit_transaction(&mut self) {
        self.transactions.pop();
    }

    /// Restores the rules and architectures at the start of the transaction.
    pub(crate) fn reject_transaction(&mut self) {
        if let Some(mut before) = self.transactions.pop() {
            before.forget_priorities();
            self.rules = before;
            self.program = None;
        }
    }

    /// The program, compiled on first use.
    pub(crate) fn program(&mut self) -> Result<&Program, Status> {
        let program = match self.program.take() {
            Some(program) => program,
            None => {
                memory::require_for_compilation(self.weight)?;
                build::program(&self.rules, self.attributes.bad_arch)?
            }
        };
        Ok(self.program.insert(program))
    }

    /// The program in the kernel's format.
    pub(crate) fn program_bytes(&mut self) -> Result<Vec<u8>, Status> {
        let program = self.program()?;
        memory::require(0)?;
        Ok(program.to_bytes())
    }

    /// The text of `seccomp_export_pfc`.
    pub(crate) fn pseudo_code(&self) -> Result<String, Status> {
        let code = PseudoCode {
            db: &self.rules,
            bad_arch: self.attributes.bad_arch,
            order: self.attributes.order,
            release: next::release(),
        };
        let lines = code.tree_lines();
        if lines > MAX_TREE_LINES {
            return Err(Status::NoMemory);
        }
        memory::require(self.weight.max(lines))?;
        Ok(code.to_string())
    }
}
