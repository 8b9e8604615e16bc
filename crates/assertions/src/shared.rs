//! The results that the judges of several similar subjects share, such as of a policy in its readings.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use tamis_abi::Arch;
use tamis_analysis::Passed;
use tamis_prover::{Function, Limits, Space, Stop};
use tamis_rules::Input;

use crate::judge::AtNumber;
use crate::mend::Reading;
use crate::seek::{Rows, Sought};

/// The shared results of the judges of several similar subjects: their diagrams, and the checks that held.
pub struct Shared {
    pub(crate) space: Space,
    /// The conditions that arguments are as programs pass them.
    pub(crate) passed: Passed,
    pub(crate) rows: Rows,
    pub(crate) held: HashMap<CheckKey, Held>,
    /// The calls that checks concern, where they depend on the architectures of the subject alone.
    pub(crate) sought: HashMap<CheckKey, Known>,
    /// The calls that were found, by their names, numbers and conditions.
    pub(crate) found: HashMap<(Arch, Option<&'static str>, u32, Function), Input>,
    /// By the address of the rules, which the reading keeps.
    pub(crate) readings: HashMap<usize, (Rc<dyn Reading>, Derived)>,
    /// Replacements of this for judges, while another one uses it.
    pub(crate) spare: Vec<Shared>,
    /// Whether there are further subjects.
    pub(crate) is_for_several: bool,
    pub(crate) stop: Stop,
}

/// The parts of a subject that a judge has derived.
pub(crate) struct Derived {
    pub(crate) function: Function,
    /// The architectures that the subject names.
    pub(crate) own: Vec<Arch>,
    pub(crate) numbers: HashMap<(Arch, u32), AtNumber>,
    pub(crate) by_arch: HashMap<Arch, Function>,
}

/// A check by its address, with the architectures of the subject.
pub(crate) type CheckKey = (usize, Vec<Arch>);

/// The calls that a check concerns.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) sought: Rc<[Sought]>,
    pub(crate) notices: Vec<String>,
}

/// The parts of subjects for which a check held.
pub(crate) struct Held {
    /// The numbers that the check concerns.
    pub(crate) numbers: Vec<(Arch, u32)>,
    /// Their functions, of each subject.
    pub(crate) functions: HashSet<Vec<Function>>,
}

impl Shared {
    /// For the first of several subjects.
    pub fn new(limits: Limits, stop: Stop) -> Shared {
        Shared {
            space: Space::stoppable(limits, stop.clone()),
            passed: Passed::default(),
            rows: Rows::new(),
            held: HashMap::new(),
            sought: HashMap::new(),
            found: HashMap::new(),
            readings: HashMap::new(),
            spare: Vec::new(),
            is_for_several: true,
            stop,
        }
    }
}
