//! Compilation: from a ruleset to a program, stage by stage.

use tamis_abi::{Arch, Endian, Nr, syscall};
use tamis_bpf::{Program, Template};
use tamis_rules::{Operand, OperandSource, Part, Predicate, Ruleset, Section, Test};

use crate::block_order::order_blocks;
use crate::cost;
use crate::dag::Walk;
use crate::emit::emit;
use crate::error::{CompileError, Contributor};
use crate::layout::{self, Layout, RuleListDecision};
use crate::linearise::place;
use crate::options::CompileOptions;
use crate::passes::{self, PassCx, Remark};
use crate::verify::{Compiled, verify};
use crate::verify_each::{Made, Watcher};
use crate::weights::Weights;

/// The deepest nesting of a condition. Stages walk conditions recursively; lists have no limit.
pub const MAX_DEPTH: usize = 512;

/// The maximum number of contributors in an error, and of names and origins of each.
const MAX_LISTED: usize = 5;

/// Compiles a ruleset.
///
/// ```
/// use tamis_compiler::{CompileOptions, compile};
/// let text = "ruleset bad-arch kill_process\nsection x86_64 default errno(1)\n  0..3: allow\n";
/// let mut sources = tamis_diag::Sources::new();
/// let source = sources.add("a.rules", text);
/// let ruleset = tamis_rules::text::parse(&sources, source).unwrap();
/// let compiled = compile(&ruleset, &CompileOptions::default()).unwrap();
/// assert_eq!(compiled.costs()[0].1.cached_numbers, 4);
/// assert!(compiled.program().is_ok());
/// ```
///
/// A ruleset with run-time variables is compiled once, for all their values, and has no program until it is bound:
///
/// ```
/// # use tamis_compiler::{CompileOptions, compile};
/// let text = "ruleset bad-arch kill_process\nvariable \"fd\" u32 0x0..0xffffffff\n\
///             section x86_64 default errno(1)\n  write if arg0.low == var0.low: allow\n";
/// # let mut sources = tamis_diag::Sources::new();
/// # let source = sources.add("a.rules", text);
/// # let ruleset = tamis_rules::text::parse(&sources, source).unwrap();
/// let compiled = compile(&ruleset, &CompileOptions::default()).unwrap();
/// assert!(compiled.program().is_err());
/// let program = compiled.bind(&[3]).unwrap();
/// assert_eq!(program.len(), compiled.template().unbound().len());
/// ```
///
/// # Errors
/// If the architectures differ in byte order, a condition nests deeper than [`MAX_DEPTH`], a variable is used in a
/// way that no instruction supports, or the program is longer than the kernel accepts.
pub fn compile(ruleset: &Ruleset, options: &CompileOptions) -> Result<Compiled, CompileError> {
    compile_within(Program::MAX_INSNS, ruleset, options)
}

/// The same as [`compile`] for a program that need not fit into one filter: an input of
/// `tamis_optimize::optimise`, which may split it.
///
/// # Errors
/// As [`compile`], except that the limit of length is [`Program::MAX_INPUT_INSNS`].
pub fn compile_any_length(
    ruleset: &Ruleset,
    options: &CompileOptions,
) -> Result<Compiled, CompileError> {
    compile_within(Program::MAX_INPUT_INSNS, ruleset, options)
}

fn compile_within(
    limit_insns: usize,
    ruleset: &Ruleset,
    options: &CompileOptions,
) -> Result<Compiled, CompileError> {
    let endian = check(ruleset)?;
    let built = if options.verify_each {
        let mut watcher = Watcher::new(ruleset, &options.proof);
        let built = build(ruleset, options, endian, &mut |stage, made| {
            watcher.see(stage, made);
        });
        watcher.into_result()?;
        built?
    } else {
        build(ruleset, options, endian, &mut |_, _| ())?
    };
    let length_insns = built.template.unbound().len();
    if length_insns > limit_insns {
        return Err(CompileError::TooLong {
            given_insns: length_insns,
            limit_insns,
            contributors: contributors(&built.simplified, &built.layout),
        });
    }
    let Built {
        template, remarks, ..
    } = built;
    verify(template, ruleset, remarks, &options.proof)
}

/// The result of the stages for a ruleset, not proved.
pub(crate) struct Built {
    pub(crate) template: Template,
    pub(crate) remarks: Vec<Remark>,
    simplified: Ruleset,
    layout: Layout,
}

/// Runs the stages on a ruleset that passed [`check`], and calls an observer with the result of each.
pub(crate) fn build(
    ruleset: &Ruleset,
    options: &CompileOptions,
    endian: Endian,
    watch: &mut impl FnMut(&'static str, Made<'_>),
) -> Result<Built, CompileError> {
    let archs = ruleset.sections().iter().map(|section| section.arch);
    let mut cx = PassCx::with_options(options, archs);
    let rule_passes = options.passes.rule_passes();
    let simplified =
        passes::run_on_rules_watched(ruleset, rule_passes, &mut cx, &mut |pass, rules| {
            watch(pass, Made::Rules(rules));
        });
    let layout = layout::lay_out(&simplified, &Weights::new(options));
    let mut graph = emit(&layout.dag, layout.root, endian, options.instructions);
    watch("layout", Made::Graph(&graph));
    let bytecode_passes = options.passes.bytecode_passes();
    passes::run_on_graph_watched(&mut graph, bytecode_passes, &mut cx, &mut |pass, graph| {
        watch(pass, Made::Graph(graph));
    });
    let template = match &options.profile {
        // The frequencies of ordinary programs differ too little for a gain here.
        Some(_) => {
            let archs: Vec<Arch> = ruleset.sections().iter().map(|it| it.arch).collect();
            order_blocks(&graph, &options.workload(&archs), options)
        }
        None => place(&graph).template(),
    };
    let template = template.map_err(CompileError::Invalid)?;
    Ok(Built {
        template,
        remarks: cx.into_remarks(),
        simplified,
        layout,
    })
}

/// Checks that the stages accept the ruleset; returns its byte order.
pub(crate) fn check(ruleset: &Ruleset) -> Result<Endian, CompileError> {
    check_depth(ruleset)?;
    check_variables(ruleset)?;
    byte_order(ruleset)
}

/// The byte order of all architectures; little-endian for a ruleset without sections, which suits every machine.
fn byte_order(ruleset: &Ruleset) -> Result<Endian, CompileError> {
    let with = |endian| {
        let mut archs = ruleset.sections().iter().map(|section| section.arch);
        archs.find(|arch| arch.endian() == endian)
    };
    match (with(Endian::Little), with(Endian::Big)) {
        (Some(little), Some(big)) => Err(CompileError::MixedEndian { little, big }),
        (None, Some(_)) => Ok(Endian::Big),
        (_, None) => Ok(Endian::Little),
    }
}

fn check_depth(ruleset: &Ruleset) -> Result<(), CompileError> {
    for section in ruleset.sections() {
        for rule in &section.rules {
            if depth(&rule.when) > MAX_DEPTH {
                return Err(CompileError::TooDeep {
                    arch: section.arch,
                    origin: rule.origin.clone(),
                });
            }
        }
    }
    Ok(())
}

/// Checks how variables are used: instructions can compare a word with a variable but not load one.
fn check_variables(ruleset: &Ruleset) -> Result<(), CompileError> {
    let is_variable = |operand: Operand| matches!(operand.source, OperandSource::Variable(_));
    let is_declared = |operand: Operand| match operand.source {
        OperandSource::Variable(index) => {
            let variable = ruleset.variables().get(index.index());
            variable.is_some_and(|variable| variable.operand(index) == operand)
        }
        OperandSource::Arg(_) | OperandSource::Ip => true,
    };
    let is_possible = |test: &Test| match test {
        Test::Compare { operand, .. } | Test::Masked { operand, .. } | Test::In { operand, .. } => {
            !is_variable(*operand)
        }
        Test::Between { left, right, .. } => {
            let (data, variable) = if is_variable(*left) {
                (*right, *left)
            } else {
                (*left, *right)
            };
            let fits = data.part == Part::Full || variable.part != Part::Full;
            !is_variable(data) && is_declared(variable) && (fits || !is_variable(variable))
        }
    };
    for section in ruleset.sections() {
        for rule in &section.rules {
            if !rule.when.tests().all(is_possible) {
                return Err(CompileError::VariableUse {
                    arch: section.arch,
                    origin: rule.origin.clone(),
                });
            }
        }
    }
    Ok(())
}

/// The nesting depth of a condition.
fn depth(predicate: &Predicate) -> usize {
    let depths = predicate.nested().map(|(_, depth)| depth);
    depths.max().unwrap_or(0)
}

/// The numbers with the longest decisions.
fn contributors(ruleset: &Ruleset, layout: &Layout) -> Vec<Contributor> {
    let mut walk = Walk::default();
    let mut decisions: Vec<(u64, &RuleListDecision)> = layout
        .decisions
        .iter()
        .map(|decision| {
            let measure = cost::measure(&layout.dag, decision.node, &mut walk, |_| true);
            (measure.length_insns, decision)
        })
        .collect();
    decisions.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
    let largest = decisions.into_iter().take(MAX_LISTED);
    largest
        .filter_map(|(length, decision)| {
            let section = ruleset.section(decision.arch)?;
            Some(contributor(section, decision, length as usize))
        })
        .collect()
}

fn contributor(section: &Section, decision: &RuleListDecision, length_insns: usize) -> Contributor {
    let name = |first: u32, last: u32| match syscall::name(section.arch, Nr(first)) {
        Some(name) if first == last => name.to_owned(),
        _ if first == last => first.to_string(),
        _ => format!("{first}..{last}"),
    };
    let numbers = decision.numbers.iter().take(MAX_LISTED);
    let rules = decision
        .rules
        .iter()
        .map(|rule| &section.rules[*rule as usize]);
    Contributor {
        arch: section.arch,
        syscalls: numbers.map(|(first, last)| name(*first, *last)).collect(),
        origins: rules
            .filter_map(|rule| rule.origin.clone())
            .take(MAX_LISTED)
            .collect(),
        length_insns,
    }
}
