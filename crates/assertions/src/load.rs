//! From files of checks to checks with resolved names.
//!
//! Mistakes that don't depend on a policy are reported here: unknown names, a condition that has no meaning
//! on any architecture, files and groups without checks, parameters that nothing uses, and checks that contradict each
//! other.

use std::collections::{HashMap, HashSet};

use tamis_abi::{Arch, syscall};
use tamis_diag::{Diagnostic, SourceId, Sources, Span, sort_by_place, suggest};
use tamis_policy::loader::{self, Loader};
use tamis_policy::sink::Sink;
use tamis_policy::tamis::ast::{self, Constant, Name, TargetKind};
use tamis_policy::tamis::include::{IncludingLanguage, Placed, expand};
use tamis_policy::tamis::parser::Parser;
use tamis_policy::tamis::resolve::{
    Definitions, defined_twice, unknown_call, visit_constants, visit_constants_of_condition,
};
use tamis_rules::IntervalSet;

use crate::ast::{Check as Syntax, GroupStatementKind, Statement, StatementKind};
use crate::checks::{Calls, Check, Checks, Claim, Group, Target};
use crate::code;
use crate::contradiction::contradictions;
use crate::parser;
use crate::standard::standard;

/// A parameter's value from the caller: `FAMILY=AF_VSOCK`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The parameter.
    pub name: String,
    /// Its value, in the language of policies.
    pub value: String,
}

/// The result of loading.
pub struct Loaded {
    /// The checks; `None` exactly if one of the diagnostics is an error.
    pub checks: Option<Checks>,
    /// Errors and warnings, in the order of their places.
    pub diagnostics: Vec<Diagnostic>,
    /// The settings that a parameter uses, by index.
    pub used_settings: HashSet<usize>,
    /// The declared parameters.
    pub parameters: Vec<String>,
}

/// Files of checks.
const CHECKS: IncludingLanguage<Statement> = IncludingLanguage {
    file: "a file of checks",
    parse: parser::parse,
    foreign: None,
};

/// A loader that also finds the embedded files of checks.
struct WithStandard<'a>(&'a mut dyn Loader);

impl Loader for WithStandard<'_> {
    fn load(&mut self, path: &str, from: &str) -> Result<loader::Loaded, String> {
        match standard(path) {
            Some(file) => Ok(loader::Loaded {
                name: file.name.to_owned(),
                text: file.text.to_owned(),
            }),
            None if standard(from).is_some() => {
                Err("embedded checks include embedded checks only".to_owned())
            }
            None => self.0.load(path, from),
        }
    }
}

/// Loads a file of checks that is among the sources, and the files that it includes, which are added to them.
pub fn load(
    sources: &mut Sources,
    root: SourceId,
    loader: &mut dyn Loader,
    settings: &[Setting],
) -> Loaded {
    let mut sink = Sink::new(false);
    let mut place = |statement: Statement, _: &mut Sink| match statement.kind {
        StatementKind::Include(path) => Placed::Include(path),
        _ => Placed::Statement(statement),
    };
    let mut loader = WithStandard(loader);
    let expanded = expand(&CHECKS, sources, root, &mut loader, &mut place, &mut sink);
    let statements = expanded.statements;
    let arches: Vec<Arch> = Arch::all().collect();
    let mut loading = Loading {
        checks: Checks {
            all: Vec::new(),
            groups: Vec::new(),
            definitions: Definitions::new(&arches),
            constants: HashMap::new(),
        },
        titles: HashMap::new(),
        parameters: Vec::new(),
        used_names: HashSet::new(),
        used_settings: HashSet::new(),
        settings,
        sources,
        sink: &mut sink,
    };
    let mut on: HashMap<SourceId, Vec<Arch>> = HashMap::new();
    for statement in &statements {
        loading.statement(statement, &mut on);
    }
    loading.check_parameters();
    let Loading {
        checks,
        used_settings,
        parameters,
        ..
    } = loading;
    if checks.all.is_empty() && !sink.has_failed() {
        let span = Span::new(root, 0, 0);
        sink.report(
            Diagnostic::error(code::CHECKS_EMPTY, "the file has no check")
                .label(span, "")
                .note("a file that checks nothing would always succeed")
                .help("write a check such as `never allow ptrace`"),
        );
    }
    if !sink.has_failed() {
        for contradiction in contradictions(&checks) {
            sink.report(contradiction);
        }
    }
    let checks = (!sink.has_failed()).then_some(checks);
    let mut diagnostics = sink.into_diagnostics();
    sort_by_place(&mut diagnostics);
    Loaded {
        checks,
        diagnostics,
        used_settings,
        parameters: parameters.into_iter().map(|name| name.text).collect(),
    }
}

struct Loading<'a> {
    checks: Checks,
    /// The titles of groups, with their places.
    titles: HashMap<String, Span>,
    parameters: Vec<Name>,
    /// The constants that checks and definitions use.
    used_names: HashSet<String>,
    used_settings: HashSet<usize>,
    settings: &'a [Setting],
    sources: &'a mut Sources,
    sink: &'a mut Sink,
}

/// The group and the architectures around a check.
struct Around<'a> {
    group: Option<usize>,
    arches: Option<&'a Vec<Arch>>,
}

impl Loading<'_> {
    fn statement(&mut self, statement: &Statement, on: &mut HashMap<SourceId, Vec<Arch>>) {
        let source = statement.span.source;
        match &statement.kind {
            // Already expanded.
            StatementKind::Include(_) => {}
            StatementKind::Parameter(name, constant) => self.parameter(name, constant),
            StatementKind::Definition(definition) => {
                if let ast::StatementKind::Let(name, constant) = definition {
                    let constants = &mut self.checks.constants;
                    constants.insert(name.text.clone(), constant.clone());
                    visit_constants(constant, &mut |name| {
                        self.used_names.insert(name.to_owned());
                    });
                }
                self.checks.definitions.define(definition, self.sink);
            }
            StatementKind::On(names) => {
                let arches = self.arches(names);
                on.insert(source, arches);
            }
            StatementKind::Group(group) => self.group(group, statement.span, on.get(&source)),
            StatementKind::Check(check) => {
                let around = Around {
                    group: None,
                    arches: on.get(&source),
                };
                self.check(check, statement.span, &around);
            }
        }
    }

    fn parameter(&mut self, name: &Name, constant: &Constant) {
        let earlier = self.parameters.iter().find(|own| own.text == name.text);
        if let Some(earlier) = earlier {
            self.sink.report(defined_twice(name, earlier.span));
            return;
        }
        self.parameters.push(name.clone());
        let own = self.settings.iter().rposition(|own| own.name == name.text);
        let given = own.and_then(|index| {
            let same = self.settings.iter().enumerate();
            let same = same.filter(|(_, own)| own.name == name.text);
            self.used_settings.extend(same.map(|(index, _)| index));
            self.given(&self.settings[index].clone())
        });
        let constant = given.as_ref().unwrap_or(constant);
        visit_constants(constant, &mut |name| {
            self.used_names.insert(name.to_owned());
        });
        let constants = &mut self.checks.constants;
        constants.insert(name.text.clone(), constant.clone());
        self.checks
            .definitions
            .define_constant(name, constant, self.sink);
    }

    /// The value of a setting.
    fn given(&mut self, setting: &Setting) -> Option<Constant> {
        let name = format!("--param {}", setting.name);
        let source = self.sources.add(name, setting.value.as_str());
        let text = self.sources.get(source).text.clone();
        let mut parser = Parser::new(source, &text, |_| false, self.sink);
        let constant = parser::constant(&mut parser).ok()?;
        parser.expect_end().ok()?;
        Some(constant)
    }

    fn arches(&mut self, names: &[Name]) -> Vec<Arch> {
        let mut arches = Vec::new();
        for name in names {
            match Arch::from_name(&name.text) {
                Some(arch) if !arches.contains(&arch) => arches.push(arch),
                Some(_) => {}
                None => {
                    let diagnostic = Diagnostic::error(
                        code::UNKNOWN_ARCH,
                        format!("unknown architecture `{name}`"),
                    )
                    .label(name.span, "");
                    let near = suggest::nearest(&name.text, Arch::all().map(Arch::name));
                    self.sink.report(match near {
                        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                        None => diagnostic,
                    });
                }
            }
        }
        arches
    }

    fn group(&mut self, group: &crate::ast::Group, span: Span, outer: Option<&Vec<Arch>>) {
        let title = &group.title;
        if let Some(earlier) = self.titles.insert(title.text.clone(), title.span) {
            self.sink.report(
                Diagnostic::error(code::STATED_TWICE, format!("two groups `{title}`"))
                    .label(title.span, "")
                    .label(earlier, "the first one")
                    .help("give each group its own title: `--group` selects by it"),
            );
        }
        let index = self.checks.groups.len();
        let mut own = Group {
            title: title.text.clone(),
            reason: None,
            sources: Vec::new(),
        };
        let mut arches: Option<Vec<Arch>> = None;
        let mut has_checks = false;
        for statement in &group.body {
            match &statement.kind {
                GroupStatementKind::Reason(_) if own.reason.is_some() => {
                    let diagnostic = Diagnostic::error(code::STATED_TWICE, "two reasons");
                    let help = "write one text, or several in quotes behind each other";
                    self.sink
                        .report(diagnostic.label(statement.span, "").help(help));
                }
                GroupStatementKind::Reason(text) => own.reason = Some(text.whole()),
                GroupStatementKind::Source(text) => own.sources.push(text.whole()),
                GroupStatementKind::On(names) => arches = Some(self.arches(names)),
                GroupStatementKind::Check(check) => {
                    has_checks = true;
                    let around = Around {
                        group: Some(index),
                        arches: arches.as_ref().or(outer),
                    };
                    self.check(check, statement.span, &around);
                }
            }
        }
        if !has_checks && !self.sink.has_failed() {
            self.sink.report(
                Diagnostic::error(code::CHECKS_EMPTY, format!("group `{title}` has no check"))
                    .label(span, "")
                    .help("write a check such as `never allow ptrace`, or remove the group"),
            );
        }
        self.checks.groups.push(own);
    }

    fn check(&mut self, check: &Syntax, span: Span, around: &Around<'_>) {
        let claim = match check {
            Syntax::Never { any_way, targets } => Claim::Never {
                any_way: *any_way,
                targets: self.targets(targets, around),
            },
            Syntax::Always(targets) => Claim::Always(self.targets(targets, around)),
            Syntax::Expect(targets, answer) => {
                let arches = selected(around);
                let mut results = arches
                    .iter()
                    .map(|arch| self.checks.definitions.action(answer, *arch));
                let first = results.next();
                if results.all(|result| result.is_err())
                    && let Some(Err(diagnostic)) = first
                {
                    self.sink.report(*diagnostic);
                }
                if let Some(data) = &answer.data {
                    visit_constants(&Constant::Value(data.clone()), &mut |name| {
                        self.used_names.insert(name.to_owned());
                    });
                }
                Claim::Expect(self.targets(targets, around), answer.clone())
            }
            Syntax::Compare(relation, reference) => {
                Claim::Compare(*relation, reference.text.clone())
            }
            Syntax::AtMost(count) => Claim::AtMost(*count),
            Syntax::Cached(names) => Claim::Cached(
                names
                    .iter()
                    .filter_map(|name| self.known_call(name))
                    .collect(),
            ),
        };
        self.checks.all.push(Check {
            text: check.to_string(),
            origin: tamis_policy::origin(self.sources, span),
            span,
            group: around.group,
            arches: around.arches.cloned(),
            claim,
        });
    }

    fn known_call(&mut self, name: &Name) -> Option<&'static str> {
        if let Some(unknown) = unknown_call(name) {
            self.sink.report(unknown);
        }
        syscall::Name::find(&name.text).map(syscall::Name::text)
    }

    fn targets(&mut self, targets: &[ast::Target], around: &Around<'_>) -> Vec<Target> {
        let resolved = targets.iter().filter_map(|target| {
            let calls = self.calls(target, around)?;
            if let Some(when) = &target.when {
                visit_constants_of(when, &mut self.used_names);
            }
            let own = Target {
                text: target.to_string(),
                calls,
                when: target.when.clone(),
            };
            self.check_condition(&own, around);
            Some(own)
        });
        resolved.collect()
    }

    fn calls(&mut self, target: &ast::Target, around: &Around<'_>) -> Option<Calls> {
        match &target.kind {
            TargetKind::Call(name) => Some(Calls::Named(vec![self.known_call(name)?])),
            TargetKind::Set(name) => {
                let set = self.checks.definitions.calls(name, self.sink)?;
                let names = set.iter().filter_map(|name| syscall::Name::find(name));
                Some(Calls::Named(names.map(syscall::Name::text).collect()))
            }
            TargetKind::Numbers(first, last) => {
                let Some(&[arch]) = around.arches.map(Vec::as_slice) else {
                    self.sink.report(
                        Diagnostic::error(
                            code::NUMBER_NEEDS_ARCH,
                            "a number means different calls on different architectures",
                        )
                        .label(target.span, "")
                        .help("select one architecture above it: `on x86_64`"),
                    );
                    return None;
                };
                let value = |value| self.checks.definitions.value(value, arch);
                let last = last.as_ref().unwrap_or(first);
                match value(first).and_then(|first| Ok((first, value(last)?))) {
                    Ok((first, last)) => self.numbers(first, last, target.span),
                    Err(diagnostic) => {
                        self.sink.report(*diagnostic);
                        None
                    }
                }
            }
        }
    }

    /// The calls of a range of numbers; reports an empty one.
    fn numbers(&mut self, first: u32, last: u32, span: Span) -> Option<Calls> {
        if first <= last {
            return Some(Calls::Numbers(IntervalSet::from_iter([first..=last])));
        }
        self.sink.report(
            Diagnostic::error(code::CONSTANT_CONDITION, "an empty range")
                .label(span, "")
                .help("write the smaller number first"),
        );
        None
    }

    /// Reports a condition that has no meaning on any of the architectures.
    fn check_condition(&mut self, target: &Target, around: &Around<'_>) {
        let Some(when) = &target.when else {
            return;
        };
        let call = match &target.calls {
            Calls::Named(names) => names.first().copied(),
            Calls::Numbers(_) => None,
        };
        let has_call = |arch: &Arch| call.is_none_or(|call| syscall::number(*arch, call).is_some());
        let mut first = None;
        for arch in selected(around).into_iter().filter(has_call) {
            match self.checks.definitions.predicate(when, call, arch) {
                Ok(_) => return,
                Err(diagnostic) => {
                    first.get_or_insert(diagnostic);
                }
            }
        }
        if let Some(diagnostic) = first {
            self.sink.report(*diagnostic);
        }
    }

    fn check_parameters(&mut self) {
        for name in &self.parameters {
            if !self.used_names.contains(&name.text) {
                self.sink.report(
                    Diagnostic::error(
                        code::CHECKS_UNUSED_PARAMETER,
                        format!("no check uses the parameter `{name}`"),
                    )
                    .label(name.span, "")
                    .note("to set it would change nothing")
                    .help("remove it"),
                );
            }
        }
    }
}

/// The architectures that `on` selects, or all.
fn selected(around: &Around<'_>) -> Vec<Arch> {
    around
        .arches
        .map_or_else(|| Arch::all().collect(), Clone::clone)
}

fn visit_constants_of(when: &ast::Condition, used: &mut HashSet<String>) {
    visit_constants_of_condition(when, &mut |name| {
        used.insert(name.to_owned());
    });
}
