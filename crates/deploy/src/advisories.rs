//! Known weaknesses of the filters of running processes, by owner.
//!
//! The filters of each task are read, and each distinct stack of filters is examined once, however many tasks have it.
//! What a weakness is, and whether a filter has it, is `tamis_lint`'s.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tamis_abi::{Arch, KernelVersion};
use tamis_bpf::{Program, Stack};
use tamis_lint::advisories::{Advice, advise};
use tamis_prover::{Limits, Stop};
use tamis_report::advisories::{
    AdvisoriesReport, AdvisoryEntry, OwnerEntry, ProcessEntry, StackEntry,
};

use crate::audit::{TaskFilters, Tasks};
use crate::owner::Owner;

/// How filters are examined.
#[derive(Clone, Debug)]
pub struct Examination {
    /// The architecture of filters that test none.
    pub arch: Arch,
    /// The running kernel, by which deny lists are judged.
    pub kernel: Option<KernelVersion>,
    /// The limits of each search.
    pub limits: Limits,
    /// Ends searches early.
    pub stop: Stop,
}

impl Examination {
    /// The report on tasks of this machine.
    pub fn report(&self, tasks: Tasks) -> AdvisoriesReport {
        let (found, unreadable) = tasks.into_parts();
        let owned = found.into_iter();
        let owned = owned.map(|task| (Owner::from_process(task.tid), task));
        AdvisoriesReport {
            unreadable,
            ..self.report_owned(owned.collect())
        }
    }

    /// The report on tasks with their owners.
    fn report_owned(&self, tasks: Vec<(Owner, TaskFilters)>) -> AdvisoriesReport {
        let mut known: HashMap<Vec<Program>, usize> = HashMap::new();
        let mut stacks: Vec<StackEntry> = Vec::new();
        let mut owners: BTreeMap<OwnerKey, OwnerEntry> = BTreeMap::new();
        for (owner, TaskFilters { tid, name, filters }) in tasks {
            let stack = (!filters.is_empty()).then(|| {
                *known.entry(filters).or_insert_with_key(|filters| {
                    stacks.push(self.stack(filters));
                    stacks.len() - 1
                })
            });
            let mut advisories = Vec::new();
            if let Some(index) = stack {
                stacks[index].tasks += 1;
                advisories.extend(stacks[index].advisories.iter().map(|entry| entry.id));
            }
            let entry = owners.entry(key(&owner)).or_insert_with(|| entry_of(owner));
            entry.advisories.extend(&advisories);
            entry.processes.push(ProcessEntry {
                pid: tid,
                name,
                stack,
                advisories,
            });
        }
        AdvisoriesReport {
            kernel: self.kernel.map(|kernel| kernel.to_string()),
            owners: owners.into_values().collect(),
            stacks,
            unreadable: Vec::new(),
        }
    }

    fn stack(&self, filters: &[Program]) -> StackEntry {
        let advice = match Stack::new(filters.to_vec()) {
            Ok(stack) => {
                let stop = self.stop.clone();
                advise(&stack, self.arch, self.kernel, self.limits, stop)
                    .map_err(|limit| limit.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        let advice = advice.unwrap_or_else(|reason| Advice {
            gaps: vec![reason],
            ..Advice::default()
        });
        StackEntry {
            filters: filters.len(),
            length_insns: filters.iter().map(Program::len).sum(),
            tasks: 0,
            advisories: advice.raised.iter().map(AdvisoryEntry::from).collect(),
            gaps: advice.gaps,
        }
    }
}

/// The order of owners: containers, units, other processes.
type OwnerKey = (bool, Option<String>, bool, Option<String>);

fn key(owner: &Owner) -> OwnerKey {
    let Owner {
        unit, container, ..
    } = owner;
    let (no_container, no_unit) = (container.is_none(), unit.is_none());
    (no_container, container.clone(), no_unit, unit.clone())
}

fn entry_of(owner: Owner) -> OwnerEntry {
    OwnerEntry {
        unit: owner.unit,
        container: owner.container,
        pod: owner.pod,
        advisories: BTreeSet::new(),
        processes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_bpf::{Insn, Op};

    /// A filter that allows everything; `size` tells such filters apart.
    fn filter(size: usize) -> Program {
        let mut ops = vec![Op::LoadImm(0); size];
        ops.push(Op::RetImm(tamis_abi::Action::ALLOW.ret()));
        let insns = ops.into_iter().map(Insn::from).collect();
        Program::new(insns, Arch::X86_64.endian()).unwrap()
    }

    /// 500 tasks with three stacks of two filters: three are examined, and each owner stands once.
    #[test]
    fn tasks_with_the_same_filters_are_examined_once() {
        let examination = Examination {
            arch: Arch::X86_64,
            kernel: None,
            limits: Limits::default(),
            stop: Stop::default(),
        };
        let stacks = [vec![filter(1)], vec![filter(2)], vec![filter(1), filter(2)]];
        let tasks = (0..500).map(|tid: i32| {
            let unit = Some(format!("u{}.service", tid % 10));
            let owner = Owner {
                unit,
                ..Owner::default()
            };
            let filters = stacks[tid as usize % stacks.len()].clone();
            let name = "t".to_owned();
            (owner, TaskFilters { tid, name, filters })
        });
        let report = examination.report_owned(tasks.collect());
        let shared: Vec<usize> = report.stacks.iter().map(|stack| stack.tasks).collect();
        assert_eq!(shared, [167, 167, 166]);
        assert_eq!(report.owners.len(), 10);
        assert!(
            report
                .owners
                .iter()
                .all(|owner| owner.processes.len() == 50)
        );
        assert!(report.owners[0].advisories.contains("unchecked-arch"));
    }
}
