//! The table of formats in the book: the number of texts in each that were read, and compared with programs of other
//! tools.
//!
//! `TAMIS_BLESS=1` writes the table into the page; equal results are counted, never written by hand.

use std::fmt::Write;

use tamis_abi::Arch;
use tamis_diag::Sources;
use tamis_policy::firecracker;
use tamis_policy::front_end::{self, FrontEnd, ParseOptions};
use tamis_policy::loader::Loaded;
use tamis_policy::minijail::{Dialect, Settings};
use tamis_prover::{ComparisonResult, Limits, Scope, Subject, prove};
use tamis_rules::Ruleset;
use tamis_testkit::corpus::{self, texts};
use tamis_testkit::generate::plain::plain;
use tamis_testkit::languages;
use tamis_testkit::oracle;
use tamis_testkit::rng::Rng;

const PAGE: &str = "docs/book/formats.md";
const BEGIN: &str = "<!-- table -->\n";
const END: &str = "<!-- end of table -->\n";
const RANDOM: u64 = 300;

/// A text in a format, with programs made from it by other tools.
struct Case {
    name: &'static str,
    text: String,
    options: ParseOptions,
    programs: Vec<String>,
}

/// The results of a format's cases.
#[derive(Default)]
struct Counts {
    equal: usize,
    /// Equal for calls of x86_64; these texts do not define other architectures.
    on_its_own: usize,
    different: Vec<String>,
}

fn options() -> ParseOptions {
    ParseOptions {
        asked_arches: vec![Arch::X86_64],
        ..ParseOptions::new(Arch::X86_64)
    }
}

fn case(name: &'static str, text: String, options: ParseOptions, programs: &[&str]) -> Case {
    let programs = programs.iter().map(|program| (*program).to_owned());
    Case {
        name,
        text,
        options,
        programs: programs.collect(),
    }
}

fn minijail_cases() -> Vec<Case> {
    let told = |dialect, default: Option<&str>| ParseOptions {
        minijail: Settings {
            dialect: Some(dialect),
            default_action: default.map(|action| action.parse().expect("an action")),
            ..Settings::default()
        },
        ..options()
    };
    let tool = |case: &str, suffix: &str| {
        ["linear", "bst", "linear-freq", "bst-freq"]
            .map(|kind| format!("peers/{case}-minijail-{kind}{suffix}.bpf"))
            .to_vec()
    };
    let python = |name, text, default, programs| Case {
        name,
        text,
        options: told(Dialect::Python, Some(default)),
        programs,
    };
    let of = |policy| texts::minijail(policy);
    let fc = "peers/fc-vmm.pol.json";
    vec![
        python(
            "docker",
            of("peers/docker.pol.json"),
            "return EPERM",
            tool("docker", ""),
        ),
        python(
            "gappy302",
            of("peers/gappy302.pol.json"),
            "return EPERM",
            tool("gappy302", ""),
        ),
        python("fc-vmm", of(fc), "trap", tool("firecracker", "-vmm")),
        python(
            "allow306",
            texts::minijail_306(),
            "return 1",
            tool("allow306", ""),
        ),
        case(
            "allow306 for the library",
            texts::minijail_306(),
            told(Dialect::C, None),
            &["peers/allow306-minijail-c.bpf"],
        ),
        case(
            "fc-vmm for the library",
            of(fc),
            told(Dialect::C, None),
            &["peers/firecracker-minijail-c-vmm.bpf"],
        ),
    ]
}

fn cases(format: &str) -> Vec<Case> {
    match format {
        "oci" => vec![case(
            "docker-default",
            corpus::text("docker/docker-default-x86_64.json"),
            options(),
            &[
                "docker/docker-libseccomp-opt1.bpf",
                "docker/docker-libseccomp-opt2.bpf",
            ],
        )],
        "firecracker" => vec![case(
            "vmm",
            corpus::text("firecracker/firecracker-vmm-x86_64.json"),
            ParseOptions {
                firecracker: firecracker::Settings {
                    thread: Some("vmm".to_owned()),
                },
                ..options()
            },
            &[
                "peers/firecracker-seccompiler-vmm.bpf",
                "peers/firecracker-own-seccompiler-bin-vmm.bpf",
                "peers/firecracker-kafel-vmm.bpf",
                "peers/firecracker-libseccomp-2.5.4-vmm.bpf",
                "peers/firecracker-libseccomp-2.5.4-opt2-vmm.bpf",
            ],
        )],
        "minijail" => minijail_cases(),
        "kafel" => {
            let of = |name, policy, program: &str| {
                case(name, texts::kafel(policy), options(), &[program])
            };
            vec![
                of("docker", "peers/docker.pol.json", "peers/docker-kafel.bpf"),
                of(
                    "gappy302",
                    "peers/gappy302.pol.json",
                    "peers/gappy302-kafel.bpf",
                ),
                of(
                    "fc-vmm",
                    "peers/fc-vmm.pol.json",
                    "peers/firecracker-kafel-vmm.bpf",
                ),
                case(
                    "allow306",
                    texts::kafel_306(),
                    options(),
                    &["peers/allow306-kafel.bpf"],
                ),
            ]
        }
        _ => Vec::new(),
    }
}

/// The ruleset of a text; includes are searched beside minijail's files, by their last path components.
fn read(format: &FrontEnd, name: &str, text: &str, options: &ParseOptions) -> Option<Ruleset> {
    let mut sources = Sources::new();
    let root = sources.add(name, text);
    let mut load = |path: &str, _: &str| {
        let base = path.rsplit('/').next().unwrap_or(path);
        let name = format!("minijail/{base}");
        let text = corpus::text(&name);
        Ok(Loaded { name, text })
    };
    let parsed = (format.parse)(&mut sources, root, &mut load, options).parsed;
    parsed.ruleset
}

fn compared(format: &FrontEnd) -> Counts {
    let mut counts = Counts::default();
    for case in cases(format.name) {
        let ruleset =
            read(format, case.name, &case.text, &case.options).expect("it has no mistakes");
        for name in &case.programs {
            let program = corpus::program(name);
            let program = Subject::Program(&program);
            let is_equal = |arches: Vec<Arch>| {
                let scope = Scope {
                    arches,
                    ..Scope::default()
                };
                let ruleset = Subject::Ruleset(&ruleset);
                let report = prove(&ruleset, &program, &scope, &Limits::default());
                report.result == Ok(ComparisonResult::Equal)
            };
            if is_equal(Vec::new()) {
                counts.equal += 1;
            } else if is_equal(vec![Arch::X86_64]) {
                counts.on_its_own += 1;
            } else {
                counts.different.push(name.clone());
            }
        }
    }
    counts
}

/// The number of files of the corpus in a format, and of those that are read without an error.
fn files(format: &FrontEnd) -> (usize, usize) {
    let (folder, suffix) = match format.name {
        "oci" => ("docker", ".json"),
        "firecracker" => ("firecracker", ".json"),
        "minijail" => ("minijail", ".policy"),
        "kafel" => ("kafel", ".policy"),
        _ => return (0, 0),
    };
    let names = corpus::files(folder, suffix);
    let is_read = |name: &&String| {
        let text = corpus::text(name);
        let options = ParseOptions {
            firecracker: firecracker::Settings {
                thread: (format.name == "firecracker").then(|| "vmm".to_owned()),
            },
            ..options()
        };
        read(format, name, &text, &options).is_some()
    };
    (names.len(), names.iter().filter(is_read).count())
}

/// The number of random rulesets that the format can express, and whether all are the same after reading.
fn random(format: &str) -> usize {
    let language = languages::ALL
        .iter()
        .find(|language| language.name == format);
    let language = language.expect("every format is a language");
    let parsed = (0..RANDOM).filter_map(|seed| {
        let ruleset = plain(&mut Rng::new(seed));
        let text = (language.print)(&ruleset)?;
        let again = language
            .parse(&text)
            .expect("what is printed has no mistakes");
        let scope = Scope {
            arches: vec![Arch::X86_64],
            ..Scope::default()
        };
        let sides = [&ruleset, &again].map(Subject::Ruleset);
        let report = prove(&sides[0], &sides[1], &scope, &Limits::default());
        assert_eq!(report.result, Ok(ComparisonResult::Equal), "{text}");
        Some(text)
    });
    parsed.count()
}

fn table() -> String {
    let mut table = String::from(
        "| format | files, of them read | random rulesets said and read back | programs of others | equal | equal on x86_64 | different |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for format in front_end::ALL {
        let counts = compared(format);
        let (all, read) = files(format);
        let programs = counts.equal + counts.on_its_own + counts.different.len();
        let random = random(format.name);
        let different = match counts.different.as_slice() {
            [] => "0".to_owned(),
            names => format!("{}: {}", names.len(), names.join(", ")),
        };
        writeln!(
            table,
            "| {} | {all}, {read} | {random} of {RANDOM} | {programs} | {} | {} | {different} |",
            format.name, counts.equal, counts.on_its_own,
        )
        .expect("a string takes everything");
    }
    table
}

#[test]
fn the_table_in_the_book_is_what_comes_out() {
    let table = table();
    println!("{table}");
    let path = corpus::repository().join(PAGE);
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let (_, rest) = page.split_once(BEGIN).expect("the page has a table");
    let (written, _) = rest.split_once(END).expect("the table ends");
    if std::env::var_os("TAMIS_BLESS").is_some() {
        return oracle::edit_page(|page| page.replace(written, &table));
    }
    assert_eq!(written, table, "TAMIS_BLESS=1 writes it");
}
