//! Properties that hold for any bytes: the bodies of the fuzz targets.
//!
//! Each property is a function of bytes that panics if the property is violated. `fuzz/` calls them from libFuzzer,
//! and `tests/it/fuzz_smoke.rs` with fixed bytes. The bytes are a text, or the input of an [`Rng`], so that a changed
//! byte changes one choice of a generator. Each function returns the class of the input, so that a test can check
//! that it covers interesting ones.

use std::collections::BTreeSet;

use tamis_abi::{Arch, Endian, SeccompData, Word};
use tamis_bpf::asm::assemble;
use tamis_bpf::disasm::{Style, disassemble_insns};
use tamis_bpf::validate::problems;
use tamis_bpf::{Insn, Program, forms, interp};
use tamis_compiler::{CompileOptions, compile};
use tamis_diag::limits::MAX_DIAGNOSTICS;
use tamis_diag::{Diagnostic, Sources, render};
use tamis_ebpf_vm::check::{Layout, Options, check};
use tamis_ebpf_vm::memory::{Context, Helpers, Memory};
use tamis_ebpf_vm::{elf, text as extended_text};
use tamis_kernel::differential::packets::Packets;
use tamis_kernel::differential::{CheckerAnswer, checker_answers};
use tamis_policy::loader::{Loaded, NoIncludes};
use tamis_policy::{firecracker, kafel, matrix, minijail, oci, spo, systemd, tamis};
use tamis_profile::Format;
use tamis_prover::{Answer, ComparisonResult, LimitReached, Limits, Scope, Subject, decide, prove};
use tamis_rules::{Ruleset, text};

use crate::generate::input::Neighbourhood;
use crate::generate::mutant::mutant;
use crate::generate::program::{nearly_valid, noise, program};
use crate::generate::ruleset::{Size, call, ruleset};
use crate::rng::Rng;
use crate::work;

/// The class of an input.
pub type InputClass = &'static str;

/// Limits that stop early at the whole-word arithmetic of some random programs.
pub(crate) const LIMITS: Limits = Limits {
    max_nodes: 20_000,
    max_steps: 200_000,
    max_states: 2_000,
    max_paths: 1_000,
    max_gates: 100_000,
    max_conflicts: 1_000,
};
/// The number of inputs that test a proof.
const INPUTS: u32 = 200;

fn endian(rng: &mut Rng) -> Endian {
    *rng.choose(&[Endian::Little, Endian::Big])
}

/// Prover and interpreter never contradict each other about two programs, in either order: *no* has a witness, *yes*
/// is tested on inputs near the constants of the programs, and *unknown* names a limit.
///
/// # Panics
/// If the property does not hold.
pub fn prover_pairs(bytes: &[u8]) -> InputClass {
    let mut rng = Rng::from_bytes(bytes);
    let endian = endian(&mut rng);
    let body_insns = rng.range(1..=16) as usize;
    let programs = {
        let left = program(&mut rng, body_insns, endian);
        let mut right = match rng.chance(1, 8) {
            true => program(&mut rng, body_insns, endian),
            false => left.clone(),
        };
        for _ in 0..rng.range(0..=3) {
            right = mutant(&mut rng, &right).unwrap_or(right);
        }
        [left, right]
    };
    let [left, right] = programs.each_ref().map(Subject::Program);
    let run = |side: usize, data: &SeccompData| interp::run(&programs[side], data).ret;
    let answer = decide(&left, &right, &LIMITS);
    let other_way = decide(&right, &left, &LIMITS);
    match answer {
        Answer::Equal(_) => {
            let near = Neighbourhood::from_programs(&[&programs[0], &programs[1]]);
            for _ in 0..INPUTS {
                let mut data = near.draw(&mut rng);
                for _ in 0..2 {
                    assert_eq!(run(0, &data), run(1, &data), "{data:x?} {programs:?}");
                    let word = *rng.choose(&Word::all().collect::<Vec<Word>>());
                    data = data.with_word(word, data.word(word) ^ 1 << rng.range(0..=31));
                }
            }
            assert!(
                !matches!(other_way, Answer::Different { .. }),
                "{programs:?}"
            );
            "equal"
        }
        Answer::Different {
            input, left, right, ..
        } => {
            let data = input.data;
            assert_ne!(left, right);
            assert_eq!(
                [run(0, &data), run(1, &data)],
                [left, right],
                "{data:x?} {programs:?}"
            );
            assert!(!matches!(other_way, Answer::Equal(_)), "{programs:?}");
            "different"
        }
        Answer::Unknown(limit) => {
            assert_ne!(limit, LimitReached::Stopped, "nobody stopped it");
            let report = prove(&left, &right, &Scope::default(), &LIMITS);
            assert_ne!(report.result, Ok(ComparisonResult::Equal), "{programs:?}");
            "unknown"
        }
    }
}

/// The limits of a reader's total allocations: per byte of the texts, including included ones, and a constant for the
/// possible growth of small texts up to the limits of front ends.
const TOTAL_BYTES: [usize; 2] = [2000, 256 << 20];
/// The same for the allocations at a time.
const MOST_BYTES: [usize; 2] = [250, 64 << 20];
/// The most bytes of rendered diagnostics.
const RENDERED_BYTES: usize = 512 << 10;

/// Adds a text and calls a reader; its diagnostics are few and can always be rendered, and its work is in proportion to
/// the texts, if the executable [counts](work).
fn read<R>(
    bytes: &[u8],
    read: impl FnOnce(&mut Sources, &str) -> (Option<R>, Vec<Diagnostic>),
) -> Option<R> {
    let text = String::from_utf8_lossy(bytes);
    let mut sources = Sources::new();
    let ((result, diagnostics), work) = work::measured(|| read(&mut sources, &text));
    let read_bytes = sources
        .iter()
        .map(|source| source.text.len())
        .sum::<usize>();
    let within = |[per_byte, base]: [usize; 2]| per_byte * read_bytes + base;
    assert!(
        work.total_bytes <= within(TOTAL_BYTES),
        "{work:?} for {read_bytes}"
    );
    assert!(
        work.most_bytes <= within(MOST_BYTES),
        "{work:?} for {read_bytes}"
    );
    assert!(
        diagnostics.len() <= MAX_DIAGNOSTICS,
        "{}",
        diagnostics.len()
    );
    // A place outside the text would panic here.
    let rendered = render::render(&diagnostics, &sources, false);
    assert!(rendered.len() <= RENDERED_BYTES, "{}", rendered.len());
    let has_error = diagnostics.iter().any(Diagnostic::is_error);
    assert_eq!(result.is_none(), has_error, "{text}\n{diagnostics:?}");
    result
}

/// A program that assembles is the same after disassembly; otherwise there is an error.
///
/// # Panics
/// If the property does not hold.
pub fn assembler(bytes: &[u8]) -> InputClass {
    let assembled = |text: &[u8]| {
        read(text, |sources, text| {
            let source = sources.add("fuzz.asm", text);
            match assemble(text, source, Endian::Little) {
                Ok(assembly) => (Some(assembly.insns), assembly.warnings),
                Err(mistakes) => (None, mistakes),
            }
        })
    };
    let Some(insns) = assembled(bytes) else {
        return "refused";
    };
    for style in [Style::Plain, Style::Commented] {
        let text = disassemble_insns(&insns, Endian::Little, style);
        assert_eq!(assembled(text.as_bytes()).as_ref(), Some(&insns), "{text}");
    }
    "assembled"
}

/// Text as extended BPF: assembled programs survive disassembly, and a checked program runs to its end. Bytes as an
/// object: an error or a program.
///
/// # Panics
/// If the property does not hold.
pub fn extended(bytes: &[u8]) -> InputClass {
    if let Ok(object) = elf::Object::parse(bytes) {
        let sections = object.sections().unwrap_or_default();
        let programs = sections.iter().filter(|name| object.program(name).is_ok());
        return if programs.count() > 0 {
            "object"
        } else {
            "refused object"
        };
    }
    let assembled = |written: &[u8]| {
        read(written, |sources, written| {
            let source = sources.add("fuzz.s", written);
            match extended_text::assemble(written, source) {
                Ok(assembly) => (Some(assembly), Vec::new()),
                Err(mistakes) => (None, mistakes),
            }
        })
    };
    let Some(assembly) = assembled(bytes) else {
        return "refused";
    };
    let printed = extended_text::disassemble(&assembly.insns);
    let again = assembled(printed.as_bytes()).map(|assembly| assembly.insns);
    assert_eq!(again.as_ref(), Some(&assembly.insns), "{printed}");
    let Ok(program) = assembly.into_program(Endian::Little) else {
        return "assembled";
    };
    let options = Options {
        max_steps: 10_000,
        permits_unreachable: true,
    };
    let mut context = [0; 88];
    let mut memory = Memory::new(Context::Writable(&mut context), &[1; 20], Endian::Little);
    let run = tamis_ebpf_vm::interp::run(&program, &mut memory, &mut Helpers::none(), 10_000);
    match check(
        program,
        &Layout::socket_filter(),
        &Helpers::none(),
        &options,
    ) {
        Ok(_) => {
            assert!(run.is_ok(), "{run:?}\n{printed}");
            "safe"
        }
        Err(_) => "program",
    }
}

/// Errors in a program have places, in every form; a program without errors is the same after disassembly.
///
/// # Panics
/// If the property does not hold.
pub fn program_forms(bytes: &[u8]) -> InputClass {
    let mut outcome = "refused";
    for form in &forms::ALL {
        let insns = read(bytes, |sources, text| {
            (form.recognises)(text);
            let source = sources.add("fuzz.txt", text);
            match (form.read)(text, source, Arch::X86_64) {
                Ok(assembly) => {
                    assert_eq!(assembly.insns.len(), assembly.spans.len(), "{text}");
                    (Some(assembly.insns), assembly.warnings)
                }
                Err(mistakes) => (None, mistakes),
            }
        });
        if let Some(insns) = insns {
            let text = disassemble_insns(&insns, Endian::Little, Style::Plain);
            let source = Sources::new().add("again.asm", text.as_str());
            let again = assemble(&text, source, Endian::Little);
            assert_eq!(again.map(|assembly| assembly.insns), Ok(insns), "{text}");
            outcome = "a program";
        }
    }
    outcome
}

/// Checks that the text form of a ruleset parses to a ruleset with the same text.
fn assert_text_form(ruleset: &Ruleset) {
    let printed = ruleset.to_string();
    let mut sources = Sources::new();
    let source = sources.add("fuzz.rules", printed.as_str());
    let again = text::parse(&sources, source);
    let again = again.unwrap_or_else(|mistakes| panic!("{mistakes:?}\n{printed}"));
    assert_eq!(again.to_string(), printed);
}

/// A policy's errors have places; a policy without errors is equivalent after printing, and its ruleset survives the
/// text form.
///
/// # Panics
/// If the property does not hold.
pub fn policy_tamis(bytes: &[u8]) -> InputClass {
    let options = tamis::TamisOptions::new(vec![Arch::X86_64, Arch::Aarch64]);
    let mut canonical = None;
    let parsed = read(bytes, |sources, text| {
        let source = sources.add("fuzz.tamis", text);
        let (syntax, _) = tamis::parse_syntax(sources, source);
        canonical = Some(tamis::print::policy(&syntax));
        let parsed = tamis::parse(sources, source, &mut NoIncludes, &options);
        (parsed.ruleset, parsed.diagnostics)
    });
    let (Some(ruleset), Some(canonical)) = (parsed, canonical) else {
        return "refused";
    };
    assert_text_form(&ruleset);
    let again = read(canonical.as_bytes(), |sources, text| {
        let source = sources.add("printed.tamis", text);
        let parsed = tamis::parse(sources, source, &mut NoIncludes, &options);
        (parsed.ruleset, parsed.diagnostics)
    });
    let again = again.unwrap_or_else(|| panic!("printed, it has mistakes:\n{canonical}"));
    assert_eq!(
        without_origins(&again),
        without_origins(&ruleset),
        "{canonical}"
    );
    "a policy"
}

/// The ruleset without origins: printing moves rules to other lines.
fn without_origins(ruleset: &Ruleset) -> Ruleset {
    let mut sections = ruleset.sections().to_vec();
    for rule in sections.iter_mut().flat_map(|section| &mut section.rules) {
        rule.origin = None;
    }
    Ruleset::new(sections, ruleset.bad_arch).expect("the sections are those of a ruleset")
}

/// A profile's errors have places; the ruleset of one without errors survives the text form.
///
/// # Panics
/// If the property does not hold.
pub fn policy_oci(bytes: &[u8]) -> InputClass {
    let ruleset = read(bytes, |sources, text| {
        let source = sources.add("fuzz.json", text);
        let options = oci::OciOptions::docker(Arch::X86_64);
        let parsed = oci::parse(sources, source, &options).parsed;
        (parsed.ruleset, parsed.diagnostics)
    });
    let Some(ruleset) = ruleset else {
        return "refused";
    };
    assert_text_form(&ruleset);
    "a profile"
}

/// Errors in a resource of Kubernetes have places, in YAML and JSON; the ruleset of one without errors survives the
/// text form.
///
/// # Panics
/// If the property does not hold.
pub fn policy_spo(bytes: &[u8]) -> InputClass {
    let ruleset = read(bytes, |sources, text| {
        let source = sources.add("fuzz.yaml", text);
        let options = oci::OciOptions::docker(Arch::X86_64);
        let parsed = spo::parse(sources, source, &options).parsed;
        (parsed.ruleset, parsed.diagnostics)
    });
    let Some(ruleset) = ruleset else {
        return "refused";
    };
    assert_text_form(&ruleset);
    "a profile"
}

/// Errors in a file of Firecracker's filters have places; the ruleset of one without errors survives the text form.
///
/// # Panics
/// If the property does not hold.
pub fn policy_firecracker(bytes: &[u8]) -> InputClass {
    let ruleset = read(bytes, |sources, text| {
        let source = sources.add("fuzz.json", text);
        let options = firecracker::FirecrackerOptions::new(Arch::X86_64);
        let parsed = firecracker::parse(sources, source, &options);
        (parsed.ruleset, parsed.diagnostics)
    });
    let Some(ruleset) = ruleset else {
        return "refused";
    };
    assert_text_form(&ruleset);
    "a filter"
}

/// Errors in a minijail policy have places, in both dialects; the ruleset of one without errors survives the text
/// form. A policy may include itself, by any name.
///
/// # Panics
/// If the property does not hold.
pub fn policy_minijail(bytes: &[u8]) -> InputClass {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let [library, tool] = [minijail::Dialect::C, minijail::Dialect::Python].map(|dialect| {
        let mut options = minijail::MinijailOptions::new(Arch::X86_64);
        options.settings.dialect = Some(dialect);
        read(bytes, |sources, _| {
            let source = sources.add("fuzz.policy", text.as_str());
            let mut itself = |path: &str, _: &str| {
                Ok(Loaded {
                    name: path.to_owned(),
                    text: text.clone(),
                })
            };
            let parsed = minijail::parse(sources, source, &mut itself, &options).parsed;
            (parsed.ruleset, parsed.diagnostics)
        })
    });
    for ruleset in [&library, &tool].into_iter().flatten() {
        assert_text_form(ruleset);
    }
    match (library, tool) {
        (_, Some(_)) => "a policy",
        (Some(_), None) => "for the library only",
        (None, None) => "refused",
    }
}

/// Errors in a table of minijail's compile tool have places; with a table without errors, a policy is read for its
/// architecture.
///
/// # Panics
/// If the property does not hold.
pub fn minijail_table(bytes: &[u8]) -> InputClass {
    let ruleset = read(bytes, |sources, text| {
        let source = sources.add("fuzz.policy", "io@libc: 1\nclose: arg0 == TCGETS\n");
        let options = minijail::MinijailOptions {
            arches: Vec::new(),
            settings: minijail::Settings {
                arch_json: Some(minijail::ArchJson {
                    name: "fuzz.json".to_owned(),
                    text: text.to_owned(),
                }),
                ..minijail::Settings::default()
            },
            strict: false,
        };
        let parsed = minijail::parse(sources, source, &mut NoIncludes, &options).parsed;
        (parsed.ruleset, parsed.diagnostics)
    });
    let Some(ruleset) = ruleset else {
        return "refused";
    };
    assert_text_form(&ruleset);
    "a table"
}

/// Errors in a kafel policy have places; the ruleset of one without errors survives the text form. An included file
/// contains its name, or is the policy itself.
///
/// # Panics
/// If the property does not hold.
pub fn policy_kafel(bytes: &[u8]) -> InputClass {
    let ruleset = read(bytes, |sources, text| {
        let source = sources.add("fuzz.kafel", text);
        let mut itself = |path: &str, _: &str| {
            Ok(Loaded {
                name: path.to_owned(),
                text: if path == "itself" { text } else { path }.to_owned(),
            })
        };
        let options = kafel::KafelOptions::new(Arch::X86_64);
        let parsed = kafel::parse(sources, source, &mut itself, &options);
        (parsed.ruleset, parsed.diagnostics)
    });
    let Some(ruleset) = ruleset else {
        return "refused";
    };
    assert_text_form(&ruleset);
    "a policy"
}

/// Errors in a systemd unit have places; the ruleset survives the text form.
///
/// # Panics
/// If the property does not hold.
pub fn policy_systemd(bytes: &[u8]) -> InputClass {
    let mut is_clean = false;
    let ruleset = read(bytes, |sources, text| {
        let source = sources.add("fuzz.service", text);
        let parsed = systemd::parse(sources, source, &systemd::SystemdOptions::new(Arch::X86_64));
        is_clean = parsed.diagnostics.is_empty();
        (parsed.ruleset, parsed.diagnostics)
    });
    let Some(ruleset) = ruleset else {
        return "refused";
    };
    assert_text_form(&ruleset);
    match is_clean {
        true => "a unit",
        false => "with warnings",
    }
}

/// Errors in a text with counts - of `strace -c`, `perf trace -s`, minijail or JSON - have places; a profile without
/// errors is the same after writing and reading.
///
/// # Panics
/// If the property does not hold.
pub fn profile_text(bytes: &[u8]) -> InputClass {
    let read_counts = |bytes: &[u8]| {
        let mut format = None;
        let profile = read(bytes, |sources, text| {
            let source = sources.add("fuzz.counts", text);
            let reading = tamis_profile::read(sources, source, Arch::X86_64);
            format = reading.format;
            (reading.profile, reading.diagnostics)
        });
        (profile, format)
    };
    let (Some(profile), Some(format)) = read_counts(bytes) else {
        return "refused";
    };
    let written = profile.to_json();
    let (again, _) = read_counts(written.as_bytes());
    assert_eq!(again, Some(profile), "{written}");
    match format {
        Format::Json => "JSON",
        Format::Strace => "strace",
        Format::Perf => "perf",
        Format::Frequency => "frequency",
        Format::Trace => "a log",
        Format::Audit => "audit records",
        Format::PerfLog => "a log of perf",
        Format::Journal => "a journal",
        Format::Events => "events",
        Format::Names => "names",
    }
}

/// A small ruleset compiles, twice to the same program, which returns the same actions as the ruleset.
///
/// # Panics
/// If the property does not hold.
pub fn compile_ruleset(bytes: &[u8]) -> InputClass {
    let mut rng = Rng::from_bytes(bytes);
    let endian = endian(&mut rng);
    let ruleset = ruleset(&mut rng, Size::SMALL, endian);
    let compiled = |options: &CompileOptions| {
        let compiled = compile(&ruleset, options);
        compiled.unwrap_or_else(|error| panic!("{error}\n{ruleset}"))
    };
    let made = compiled(&CompileOptions::default());
    let again = compiled(&CompileOptions {
        verify_each: rng.chance(1, 8),
        ..CompileOptions::default()
    });
    assert_eq!(
        made.program().unwrap(),
        again.program().unwrap(),
        "{ruleset}"
    );
    for _ in 0..INPUTS {
        let data = call(&mut rng, &ruleset);
        let expected = ruleset.decide(&data).action.ret();
        let run = interp::run(made.program().unwrap(), &data);
        assert_eq!(run.ret, expected, "{data:x?}\n{ruleset}");
    }
    "compiled"
}

/// Errors in a matrix of options have places; the policies of one without errors are syntactically correct, and each
/// combination has a name of its own.
///
/// # Panics
/// If the property does not hold.
pub fn policy_matrix(bytes: &[u8]) -> InputClass {
    const COMBINATIONS: usize = 16;
    let matrix = read(bytes, |sources, text| {
        let source = sources.add("fuzz.toml", text);
        matrix::read(sources, source, false)
    });
    let Some(matrix) = matrix else {
        return "refused";
    };
    let mut titles = BTreeSet::new();
    for values in matrix.combinations().take(COMBINATIONS) {
        let text = matrix.policy_text(&values);
        let text = text.expect("a matrix without a policy is refused");
        let mut sources = Sources::new();
        let source = sources.add("fuzz.tamis", text.as_str());
        let (_, diagnostics) = tamis::parse_syntax(&sources, source);
        assert!(
            !diagnostics.iter().any(Diagnostic::is_error),
            "{text}\n{diagnostics:?}"
        );
        assert!(titles.insert(matrix.title(&values)), "{titles:?}");
    }
    "a matrix"
}

/// The class if the kernel cannot be used.
const NOT_ASKED: InputClass = "not asked";

/// The kernel accepts exactly the lists of instructions that the validator accepts, and rejects others with `EINVAL`.
///
/// # Panics
/// If the property does not hold.
pub fn validator_kernel(bytes: &[u8]) -> InputClass {
    const EINVAL: i32 = 22;
    let mut rng = Rng::from_bytes(bytes);
    let mut list = || {
        let body_insns = rng.range(0..=30) as usize;
        match rng.range(0..=3) {
            0 => program(&mut rng, body_insns, Endian::Little)
                .insns()
                .to_vec(),
            1 => noise(&mut rng, body_insns),
            _ => nearly_valid(&mut rng, body_insns),
        }
    };
    // Each use of the kernel costs a thread, whatever the number of lists.
    let lists: Vec<Vec<Insn>> = (0..16).map(|_| list()).collect();
    let Ok(answers) = checker_answers(&lists) else {
        return NOT_ASKED;
    };
    for (insns, answer) in lists.iter().zip(&answers) {
        let problems = problems(insns);
        match answer {
            CheckerAnswer::Accepted => assert!(problems.is_empty(), "{problems:?} in {insns:?}"),
            CheckerAnswer::Refused(errno) => {
                assert_eq!(errno.0, EINVAL, "{insns:?}");
                let is_expected = !problems.is_empty() || insns.len() > Program::MAX_INSNS;
                assert!(is_expected, "refused: {insns:?}");
            }
        }
    }
    match answers.contains(&CheckerAnswer::Accepted) {
        true => "accepted",
        false => "refused",
    }
}

/// The kernel, running a program as a socket filter, returns the same as the interpreter, for any input.
///
/// # Panics
/// If the property does not hold.
pub fn interpreter_kernel(bytes: &[u8]) -> InputClass {
    let mut rng = Rng::from_bytes(bytes);
    let body_insns = rng.range(0..=40) as usize;
    let program = program(&mut rng, body_insns, Endian::Little);
    let near = Neighbourhood::from_programs(&[&program]);
    let Ok(packets) = Packets::new() else {
        return NOT_ASKED;
    };
    for _ in 0..8 {
        let call = near.draw(&mut rng);
        let image = call.image(Endian::Little);
        let ret = interp::run(&program, &call).ret;
        match packets.returns(&program, ret, [&image]) {
            Ok(answers) => assert_eq!(answers, [true], "{ret:#x} for {call:x?}: {program:?}"),
            Err(_) => return NOT_ASKED,
        }
    }
    "the same"
}
