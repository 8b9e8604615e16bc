//! Certificates: everything that a sceptic needs to check *equal* without tamis.
//!
//! A [`Certificate`] is a folder of files, made from two subjects that the prover found equal:
//!
//! - the raw programs of both sides; for a policy a program straight from its rules ([`naive`]);
//! - `claim.smt2`, that some call distinguishes the sides, for SMT solvers ([`smt`]);
//! - `claim.cnf`, the same for one circuit of both raw programs, and `claim.lrat`, the proof that it has no solution
//!   ([`formula`]);
//! - `table.txt`, a decision table for `tamis-check`, which shares no code with this crate ([`table`]);
//! - `manifest`, the version of the format and the hashes, and `README`.
//!
//! The crate does no I/O. Before it returns a certificate it runs the checkers on it.
#![forbid(unsafe_code)]

mod formula;
mod naive;
pub mod smt;
mod table;

use std::error::Error;
use std::fmt;

use tamis_abi::Endian;
use tamis_bpf::Program;
use tamis_check::{FORMAT, Refusal, TITLE, check, sha256};
use tamis_prover::{Equality, LimitReached, Limits, Space, Stop, Subject, refutation};

/// A certificate: its files by name, and what they have.
#[derive(Clone, Debug)]
pub struct Certificate {
    files: Vec<(String, Vec<u8>)>,
    /// The count of cubes of the table, or why there is no table.
    pub cubes: Result<usize, Gap>,
    /// The count of steps of the proof, or why there is no `claim.lrat`.
    pub steps: Result<usize, Gap>,
}

/// Why a certificate lacks a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gap {
    /// The diagrams reached a limit.
    Limit(LimitReached),
    /// Two words of a call are compared.
    Relation,
    /// The table would have this many cubes.
    Cubes(u64),
    /// `tamis-check` can't follow a program on a cube, with its reason.
    Unfollowed(String),
}

/// Why there is no certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Uncertified {
    /// A side has run-time variables.
    Variables,
    /// The sides are for machines of both byte orders.
    Endian,
    /// A side has no filter.
    Empty,
    /// The sides differ.
    Different,
    /// The sides were not proved equal within the limits.
    Unproved(Gap),
    /// The program of a policy would be too long to be read.
    TooLong,
    /// A checker rejects the certificate, which is a bug: its reason.
    Rejected(String),
}

/// The effort for making a certificate.
#[derive(Clone, Debug, Default)]
pub struct Effort {
    /// The limits of the prover.
    pub limits: Limits,
    /// The deadline and the memory.
    pub stop: Stop,
}

/// One side: its raw programs.
struct Side {
    name: &'static str,
    programs: Vec<Program>,
}

impl Certificate {
    /// The certificate that two subjects are the same function.
    ///
    /// # Errors
    /// If a side has no raw programs, or the sides are not proved equal.
    pub fn new(
        left: &Subject<'_>,
        right: &Subject<'_>,
        effort: &Effort,
    ) -> Result<Certificate, Uncertified> {
        let endian = endian([left, right])?;
        let sides = [
            Side::new("left", left, endian)?,
            Side::new("right", right, endian)?,
        ];
        let mut files = Vec::new();
        for side in &sides {
            let programs = side.programs.iter().map(Program::to_bytes);
            files.extend(side.file_names().into_iter().zip(programs));
        }
        let mut certificate = Certificate {
            files,
            cubes: Ok(0),
            steps: Ok(0),
        };
        certificate.cubes = certificate.add_table(left, right, &sides, endian, effort)?;
        // The circuit is that of the raw programs, so that it can be made again from the certificate alone.
        let programs = sides
            .each_ref()
            .map(|side| Subject::programs(&side.programs));
        let [own_left, own_right] = programs.each_ref().map(|own| Subject::whole(own));
        certificate.steps = certificate.add_proof(&own_left, &own_right, effort)?;
        if let (Err(_), Err(gap)) = (&certificate.cubes, &certificate.steps) {
            return Err(Uncertified::Unproved(gap.clone()));
        }
        certificate.add("claim.smt2", smt::difference(left, right, endian));
        certificate.finish();
        Ok(certificate)
    }

    /// The files, each with its name.
    pub fn files(&self) -> &[(String, Vec<u8>)] {
        &self.files
    }

    /// The content of a file.
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        let found = self.files.iter().find(|(known, _)| known == name);
        found.map(|(_, bytes)| bytes.as_slice())
    }

    fn add(&mut self, name: &str, text: String) {
        self.files.push((name.to_owned(), text.into_bytes()));
    }

    /// Adds the table, if it can be made and followed. Returns the count of cubes.
    fn add_table(
        &mut self,
        left: &Subject<'_>,
        right: &Subject<'_>,
        sides: &[Side; 2],
        endian: Endian,
        effort: &Effort,
    ) -> Result<Result<usize, Gap>, Uncertified> {
        let mut space = Space::stoppable(effort.limits, effort.stop.clone());
        let functions = space
            .subject(left)
            .and_then(|left| Ok((left, space.subject(right)?)));
        let function = match functions {
            Err(limit) => return Ok(Err(Gap::Limit(limit))),
            Ok((left, right)) => match space.compare(left, right) {
                Equality::Equal => left,
                Equality::Different(_) => return Err(Uncertified::Different),
                Equality::Unknown => return Ok(Err(Gap::Relation)),
            },
        };
        let (rows, cubes) = match table::rows(&space, function, endian) {
            Ok(made) => made,
            Err(gap) => return Ok(Err(gap)),
        };
        let order = match endian {
            Endian::Little => "little",
            Endian::Big => "big",
        };
        let [left, right] = sides.each_ref().map(|side| side.file_names().join(" "));
        self.add(
            "table.txt",
            format!("endian {order}\nleft {left}\nright {right}\n{rows}"),
        );
        self.files.push(("manifest".to_owned(), self.manifest()));
        let read = |name: &str| {
            let missing = || format!("{name} is missing");
            self.file(name).map(<[u8]>::to_vec).ok_or_else(missing)
        };
        let verdict = check(&read);
        self.files.pop();
        match verdict {
            Ok(_) => Ok(Ok(cubes)),
            Err(Refusal::Unfollowed(reason)) => {
                self.files.pop();
                Ok(Err(Gap::Unfollowed(reason)))
            }
            Err(Refusal::Rejected(reason) | Refusal::Bad(reason)) => {
                Err(Uncertified::Rejected(reason))
            }
        }
    }

    /// Adds the formula and its refutation, if it is found within the limits. Returns the count of steps.
    fn add_proof(
        &mut self,
        left: &Subject<'_>,
        right: &Subject<'_>,
        effort: &Effort,
    ) -> Result<Result<usize, Gap>, Uncertified> {
        let refutation = match refutation(left, right, &effort.limits, &effort.stop) {
            Err(limit) => return Ok(Err(Gap::Limit(limit))),
            Ok(Err(_)) => return Err(Uncertified::Different),
            Ok(Ok(refutation)) => refutation,
        };
        self.add("claim.cnf", formula::dimacs(&refutation));
        self.add("claim.lrat", formula::lrat(&refutation));
        Ok(Ok(refutation.steps().len()))
    }

    /// Adds the files that depend on all others.
    fn finish(&mut self) {
        self.add("README", README.to_owned());
        self.files.push(("manifest".to_owned(), self.manifest()));
    }

    /// The version and the hash of each file, in the form of `sha256sum`.
    fn manifest(&self) -> Vec<u8> {
        let version = env!("CARGO_PKG_VERSION");
        let mut text = format!("{TITLE}{FORMAT}, of tamis {version}\n");
        for (name, bytes) in &self.files {
            text += &format!("{}  {name}\n", sha256(bytes));
        }
        text.into_bytes()
    }
}

impl Side {
    fn new(name: &'static str, subject: &Subject<'_>, endian: Endian) -> Result<Side, Uncertified> {
        let filters = match subject {
            Subject::Stack(filters) => filters,
            single => std::slice::from_ref(single),
        };
        let programs = filters.iter().map(|filter| raw(filter, endian));
        let programs: Vec<Program> = programs.collect::<Result<_, _>>()?;
        match (programs.is_empty(), subject) {
            (true, _) => Err(Uncertified::Empty),
            // One filter is written as two equal ones, which the checker reads as a stack: the function is the same.
            (false, Subject::Stack([_])) => Ok(Side {
                name,
                programs: vec![programs[0].clone(), programs[0].clone()],
            }),
            (false, _) => Ok(Side { name, programs }),
        }
    }

    fn file_names(&self) -> Vec<String> {
        let name = self.name;
        match self.programs.len() {
            1 => vec![format!("{name}.bpf")],
            several => (1..=several)
                .map(|number| format!("{name}.{number}.bpf"))
                .collect(),
        }
    }
}

/// A filter as a raw program.
fn raw(filter: &Subject<'_>, endian: Endian) -> Result<Program, Uncertified> {
    match filter {
        Subject::Program(program) => Ok((*program).clone()),
        Subject::Template(template) if template.patches().is_empty() => {
            Ok(template.unbound().clone())
        }
        Subject::Ruleset(ruleset) if ruleset.variables().is_empty() => {
            naive::program(ruleset, endian).map_err(|_| Uncertified::TooLong)
        }
        Subject::Template(_) | Subject::Ruleset(_) | Subject::Stack(_) => {
            Err(Uncertified::Variables)
        }
    }
}

/// The byte order of the machines of all filters; little if they state none.
fn endian(sides: [&Subject<'_>; 2]) -> Result<Endian, Uncertified> {
    let mut found = Vec::new();
    let mut open: Vec<&Subject<'_>> = sides.to_vec();
    while let Some(subject) = open.pop() {
        match subject {
            Subject::Program(program) => found.push(program.endian()),
            Subject::Template(template) => found.push(template.endian()),
            Subject::Ruleset(ruleset) => {
                found.extend(
                    ruleset
                        .sections()
                        .iter()
                        .map(|section| section.arch.endian()),
                );
            }
            Subject::Stack(filters) => open.extend(*filters),
        }
    }
    match found.as_slice() {
        [] => Ok(Endian::Little),
        [first, rest @ ..] if rest.iter().all(|other| other == first) => Ok(*first),
        _ => Err(Uncertified::Endian),
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gap::Limit(limit) => limit.fmt(f),
            Gap::Relation => f.write_str("the filters compare words of a call with each other"),
            Gap::Cubes(count) => write!(f, "it would have {count} cubes"),
            Gap::Unfollowed(reason) => f.write_str(reason),
        }
    }
}

impl fmt::Display for Uncertified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Uncertified::Variables => {
                f.write_str("a certificate is about raw programs, and the policy has variables")
            }
            Uncertified::Endian => {
                f.write_str("the sides are for machines of both byte orders, so no program is both")
            }
            Uncertified::Empty => f.write_str("a side has no filter"),
            Uncertified::Different => f.write_str("the sides differ for some call"),
            Uncertified::Unproved(gap) => write!(f, "the sides were not proved equal: {gap}"),
            Uncertified::TooLong => f.write_str("the rules need a program that is too long"),
            Uncertified::Rejected(reason) => write!(f, "the certificate is rejected: {reason}"),
        }
    }
}

impl Error for Gap {}
impl Error for Uncertified {}

/// The page in each certificate.
const README: &str = "\
A certificate of tamis: two seccomp filters return the same value for every call.

left.bpf, right.bpf    the raw programs, struct sock_filter[], as they are installed; left.1.bpf, left.2.bpf
                       and so on are the filters of a task, the oldest first. For a policy this is a program
                       straight from its rules, not the compiled one.
table.txt              a decision table: the calls of each line get the value behind `->` from both sides
                           tamis-check .
claim.smt2             some call gets different values, in SMT-LIB 2 (QF_BV); the answer must be unsat
                           z3 claim.smt2, cvc5 claim.smt2 or bitwuzla claim.smt2
claim.cnf, claim.lrat  the same as a circuit of gates, in DIMACS, and the proof in LRAT that it has no solution
                           lrat-check claim.cnf claim.lrat
                       the circuit is that of these programs if tamis makes it again from them:
                           tamis prove left.bpf right.bpf --certify again && cmp claim.cnf again/claim.cnf
manifest               the version of the format, and the hashes
                           sha256sum -c manifest

Compare the programs with those in use: cmp left.bpf filter.bpf
What must still be trusted is in the page `certificates` of tamis's book.
";
