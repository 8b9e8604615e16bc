//! Pseudo filter code: the text of `seccomp_export_pfc`.
//!
//! The text shows the tree of tests of every call, not a program. It contains calls that no program tests because the
//! architecture lacks them. People compare it across versions, so it is what libseccomp 2.6.1 writes, byte for byte:
//! calls with the greater priority first, or, in the order for its binary tree, descending numbers below a search
//! tree that is drawn from their count alone.

use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};

use tamis_abi::{Action, ActionKind, Arch};

use crate::db::{ArchRules, Db, Listed};
use crate::number;
use crate::release::Release;
use crate::tree::{CallTree, Exit, NodeId, WordTest};

/// The order of calls, the attribute `SCMP_FLTATR_CTL_OPTIMIZE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallOrder {
    /// By priority.
    #[default]
    Priority,
    /// By number, with a search tree.
    BinaryTree,
}

/// The pseudo code of a filter, to be displayed.
#[derive(Clone, Copy, Debug)]
pub struct PseudoCode<'a, T> {
    /// The rules.
    pub db: &'a Db<T>,
    /// The action for other architectures.
    pub bad_arch: Action,
    /// The order of calls.
    pub order: CallOrder,
    /// The release whose text it is.
    pub release: Release,
}

/// The calls below a leaf of the search tree.
const CALLS_PER_LEAF: usize = 4;

impl<T: Copy + Ord> Display for PseudoCode<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("#\n# pseudo filter code start\n#\n")?;
        for filter in self.db.filters() {
            self.arch(f, filter)?;
        }
        f.write_str("# invalid architecture action\n")?;
        action(f, self.bad_arch, self.release)?;
        f.write_str("#\n# pseudo filter code end\n#\n")
    }
}

impl<T: Copy + Ord> PseudoCode<'_, T> {
    /// How many lines the tests and actions of all calls have. Branches share what follows them in the tree, but not
    /// in the text, so a few rules can have more lines than fit into memory.
    pub fn tree_lines(&self) -> usize {
        let calls = self.db.filters().iter().flat_map(ArchRules::entries);
        let trees = calls.filter_map(|call| call.tree);
        trees
            .map(|tree| exit_lines(tree, tree.top, &mut HashMap::new()))
            .fold(0, usize::saturating_add)
    }

    fn arch(&self, f: &mut Formatter<'_>, filter: &ArchRules<T>) -> fmt::Result {
        let arch = filter.arch();
        let audit = arch.audit();
        writeln!(
            f,
            "# filter for arch {arch} ({audit})\nif ($arch == {audit})"
        )?;
        let mut calls: Vec<Listed<'_, T>> = filter.entries().collect();
        calls.reverse();
        match self.order {
            CallOrder::Priority => {
                calls.sort_by_key(|call| std::cmp::Reverse(call.priority));
                for call in &calls {
                    call_rules(f, (arch, self.release), call, 1)?;
                }
            }
            CallOrder::BinaryTree => {
                search_tree(f, (arch, self.release), &calls, filter.counted_calls())?;
            }
        }
        indent(f, 1)?;
        f.write_str("# default action\n")?;
        indent(f, 1)?;
        action(f, self.db.default_action(), self.release)
    }
}

/// The determinants of a tree's text: its architecture and the release.
type Target = (Arch, Release);

/// Calls in descending order below comparisons. A comparison opens when the count of calls before it is a multiple of
/// the calls below it, whether or not there are calls for both sides.
fn search_tree<T: Copy + Ord>(
    f: &mut Formatter<'_>,
    target: Target,
    calls: &[Listed<'_, T>],
    counted: usize,
) -> fmt::Result {
    let mut levels = 0;
    while counted > 0 && (levels == 0 || CALLS_PER_LEAF << (levels - 1) < counted) {
        levels += 1;
    }
    let mut depth = 1;
    let with_rules = calls
        .iter()
        .enumerate()
        .filter(|(_, call)| call.tree.is_some());
    for (before, (place, call)) in with_rules.enumerate() {
        for level in (1..levels).rev() {
            let below = CALLS_PER_LEAF << level;
            if before % below == 0 {
                if let Some(middle) = calls.get(place + below / 2) {
                    indent(f, depth)?;
                    writeln!(f, "if ($syscall > {})", middle.number)?;
                    depth += 1;
                }
            } else if before % (below / 2) == 0 {
                indent(f, depth - 1)?;
                writeln!(f, "else # ($syscall <= {})", call.number)?;
            }
        }
        call_rules(f, target, call, depth)?;
        let ends = |level: &usize| (before + 1) % (CALLS_PER_LEAF << (level + 1)) == 0;
        let closed = (0..levels).filter(ends);
        depth = depth.saturating_sub(closed.count());
    }
    Ok(())
}

fn call_rules<T: Copy + Ord>(
    f: &mut Formatter<'_>,
    target: Target,
    call: &Listed<'_, T>,
    depth: usize,
) -> fmt::Result {
    let Some(tree) = call.tree else {
        return Ok(());
    };
    let number = call.number;
    let name = number::resolve_number(target.0, number as i32).unwrap_or("UNKNOWN");
    let priority = call.priority;
    indent(f, depth)?;
    writeln!(
        f,
        "# filter for syscall \"{name}\" ({number}) [priority: {priority}]"
    )?;
    indent(f, depth)?;
    writeln!(f, "if ($syscall == {number})")?;
    exit(f, tree, tree.top, target, depth + 1)
}

/// Writes the end of a branch; nothing if it falls through.
fn exit<T: Copy + Ord>(
    f: &mut Formatter<'_>,
    tree: &CallTree<T>,
    exit: Exit<T>,
    target: Target,
    depth: usize,
) -> fmt::Result {
    match exit {
        Exit::Fall => Ok(()),
        Exit::Action(tagged) => {
            indent(f, depth)?;
            action(f, tagged.action, target.1)
        }
        Exit::Level(at) => {
            let mut nodes = tree.level(at).iter();
            nodes.try_for_each(|id| node(f, tree, *id, target, depth))
        }
    }
}

/// The lines of [`exit`], with the known ones of levels.
fn exit_lines<T: Copy + Ord>(
    tree: &CallTree<T>,
    exit: Exit<T>,
    known: &mut HashMap<usize, usize>,
) -> usize {
    let at = match exit {
        Exit::Fall => return 0,
        Exit::Action(_) => return 1,
        Exit::Level(at) => at,
    };
    let level = tree.node(at).level;
    if let Some(lines) = known.get(&level) {
        return *lines;
    }
    let mut lines: usize = 0;
    for id in tree.level(at) {
        let node = tree.node(*id);
        let tests = 1 + usize::from(node.no != Exit::Fall);
        for below in [node.yes, node.no].map(|exit| exit_lines(tree, exit, known)) {
            lines = lines.saturating_add(below);
        }
        lines = lines.saturating_add(tests);
    }
    known.insert(level, lines);
    lines
}

fn node<T: Copy + Ord>(
    f: &mut Formatter<'_>,
    tree: &CallTree<T>,
    id: NodeId,
    target: Target,
    depth: usize,
) -> fmt::Result {
    let node = tree.node(id);
    indent(f, depth)?;
    write!(f, "if ($a{}", node.arg)?;
    if target.0.is_64_bit() {
        f.write_str(if node.high { ".hi32" } else { ".lo32" })?;
    }
    match node.test {
        WordTest::Equal => f.write_str(" == ")?,
        WordTest::AtLeast => f.write_str(" >= ")?,
        WordTest::Above => f.write_str(" > ")?,
        WordTest::Masked => write!(f, " & 0x{:08x} == ", node.mask)?,
    }
    writeln!(f, "{})", node.value)?;
    exit(f, tree, node.yes, target, depth + 1)?;
    if node.no != Exit::Fall {
        indent(f, depth)?;
        f.write_str("else\n")?;
        exit(f, tree, node.no, target, depth + 1)?;
    }
    Ok(())
}

fn indent(f: &mut Formatter<'_>, depth: usize) -> fmt::Result {
    write!(f, "{:1$}", "", 2 * depth)
}

fn action(f: &mut Formatter<'_>, action: Action, release: Release) -> fmt::Result {
    let data = action.data;
    match action.kind {
        ActionKind::KillProcess => writeln!(f, "action KILL_PROCESS;"),
        ActionKind::KillThread => writeln!(f, "action KILL;"),
        ActionKind::Trap if release.traps_have_data() => writeln!(f, "action TRAP({data});"),
        ActionKind::Trap => writeln!(f, "action TRAP;"),
        ActionKind::Errno => writeln!(f, "action ERRNO({data});"),
        ActionKind::Trace => writeln!(f, "action TRACE({data});"),
        ActionKind::Log => writeln!(f, "action LOG;"),
        ActionKind::Allow => writeln!(f, "action ALLOW;"),
        ActionKind::Notify => writeln!(f, "action 0x{:x};", action.ret()),
    }
}
