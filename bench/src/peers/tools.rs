//! The tools that are run for a case.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tamis_abi::{Endian, KernelVersion};
use tamis_bpf::{Program, Stack};
use tamis_compiler::CompileOptions;
use tamis_optimize::{Split, optimise};
use tamis_testkit::libseccomp::Library;

use super::builders;
use super::cases::Case;
use super::judge::Policy;
use super::plain::{NotPlain, PlainRule};
use crate::gvisor;
use crate::policies::{DOCKER, docker_ruleset};
use crate::runc;

/// The tool that the others are compared with.
pub const TAMIS: &str = "tamis";

/// The available compilers of other projects, in addition to those that are linked in.
#[derive(Debug, Default)]
pub struct Compilers {
    /// The system's libseccomp.
    pub libseccomp: Option<Library>,
    /// gVisor's compiler, which accepts gVisor's policies.
    pub gvisor: Option<gvisor::Compiler>,
}

impl Compilers {
    /// The available compilers, and the missing ones.
    pub fn find() -> (Compilers, Vec<String>) {
        let (libseccomp, gvisor) = (Library::open(), gvisor::Compiler::open());
        let missing = [libseccomp.as_ref().err(), gvisor.as_ref().err()];
        let missing = missing.into_iter().flatten().cloned().collect();
        let compilers = Compilers {
            libseccomp: libseccomp.ok(),
            gvisor: gvisor.ok(),
        };
        (compilers, missing)
    }
}

/// A way to make filters for a case; each call makes them again.
pub struct Tool<'a> {
    /// The name in the table.
    pub name: String,
    build: Box<dyn Fn() -> Result<Built, String> + 'a>,
}

/// The result of a tool.
struct Built {
    filters: Stack,
    /// The tool's own time, if the call includes other work.
    own_time: Option<Duration>,
}

/// A kernel without a bitmap.
const OLD: KernelVersion = KernelVersion::new(5, 4);

/// The rules of a case in the form of other compilers.
pub type Plain = Result<Vec<PlainRule>, NotPlain>;

/// The tools for a case, tamis first.
pub fn tools<'a>(case: &'a Case, plain: &'a Plain, compilers: &'a Compilers) -> Vec<Tool<'a>> {
    match &case.policy {
        Policy::Stack(stack) => vec![Tool::new(TAMIS, || {
            let fused = optimise(stack, &CompileOptions::default(), Split::Never);
            let fused = fused.map_err(|error| error.to_string())?;
            Ok(fused.stack().clone())
        })],
        Policy::Ruleset(_) => {
            let mut tools = vec![tamis(case, TAMIS, CompileOptions::default())];
            if let Some(counts) = &case.counts {
                let told = CompileOptions {
                    profile: Some(counts.profile.clone()),
                    ..CompileOptions::default()
                };
                let old = CompileOptions {
                    kernel: Some(OLD),
                    ..told.clone()
                };
                tools.push(tamis(case, "tamis --counts", told));
                tools.push(tamis(case, "tamis --counts --kernel 5.4", old));
            }
            tools.push(Tool::one("seccompiler", || {
                let rules = plain.as_ref().map_err(ToString::to_string)?;
                builders::seccompiler(case.ruleset().ok_or("no ruleset")?, rules)
            }));
            let levels = compilers
                .libseccomp
                .iter()
                .flat_map(|library| [(library, 1), (library, 2)]);
            tools.extend(levels.map(|(library, level)| libseccomp(case, plain, library, level)));
            let policy = compilers.gvisor.as_ref().zip(case.gvisor.as_deref());
            tools.extend(policy.map(|(compiler, file)| gvisor(compiler, file)));
            tools
        }
    }
}

fn tamis<'a>(case: &'a Case, name: &str, options: CompileOptions) -> Tool<'a> {
    Tool::one(name, move || match &case.docker {
        Some(text) => builders::tamis(&docker_ruleset(DOCKER, text), &options),
        None => builders::tamis(case.ruleset().ok_or("no ruleset")?, &options),
    })
}

fn libseccomp<'a>(case: &'a Case, plain: &'a Plain, library: &'a Library, level: u32) -> Tool<'a> {
    let (major, minor, micro) = library.version();
    let name = format!("libseccomp {major}.{minor}.{micro} level {level}");
    Tool::one(&name, move || {
        if let Some(text) = &case.docker {
            let insns = runc::compile(library, text, level).map_err(|errno| errno.to_string())?;
            return Program::new(insns, Endian::Little).map_err(|invalid| invalid.to_string());
        }
        let rules = plain.as_ref().map_err(ToString::to_string)?;
        builders::libseccomp(library, case.ruleset().ok_or("no ruleset")?, rules, level)
    })
}

fn gvisor<'a>(compiler: &gvisor::Compiler, file: &str) -> Tool<'a> {
    let builder = compiler.with_policy(file);
    let builder = builder.map_err(|error| error.to_string());
    let build = move || {
        let (program, time) = builder.as_ref().map_err(String::clone)?.build()?;
        Ok(Built {
            filters: Stack::from(program),
            own_time: Some(time),
        })
    };
    Tool {
        name: "gvisor".to_owned(),
        build: Box::new(build),
    }
}

impl<'a> Tool<'a> {
    fn new(name: &str, build: impl Fn() -> Result<Stack, String> + 'a) -> Tool<'a> {
        let build = move || {
            Ok(Built {
                filters: build()?,
                own_time: None,
            })
        };
        Tool {
            name: name.to_owned(),
            build: Box::new(build),
        }
    }

    /// Makes filters.
    ///
    /// # Errors
    /// The tool's error.
    pub fn build(&self) -> Result<Stack, String> {
        (self.build)().map(|built| built.filters)
    }

    /// Makes the filters again; returns the tool's time.
    pub fn time(&self) -> Duration {
        let start = Instant::now();
        let built = black_box((self.build)());
        let time = start.elapsed();
        built.ok().and_then(|built| built.own_time).unwrap_or(time)
    }

    fn one(name: &str, build: impl Fn() -> Result<Program, String> + 'a) -> Tool<'a> {
        Tool::new(name, move || Ok(Stack::from(build()?)))
    }
}
