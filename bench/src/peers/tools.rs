//! Which tools are run here for a case.

use tamis_abi::{Endian, KernelVersion};
use tamis_bpf::{Program, Stack};
use tamis_compiler::Options;
use tamis_compiler::foreign::{Split, optimise};
use tamis_testkit::libseccomp::Library;

use super::builders;
use super::cases::Case;
use super::judge::Policy;
use super::plain::{NotPlain, PlainRule};
use crate::policies::{DOCKER, docker_ruleset};
use crate::runc;

/// The tool that the others are compared with.
pub const TAMIS: &str = "tamis";

/// A way to make filters for a case; a call makes them anew.
pub struct Tool<'a> {
    /// The name in the table.
    pub name: String,
    /// Makes them, or says what the tool refuses.
    pub build: Box<dyn Fn() -> Result<Stack, String> + 'a>,
}

/// A kernel without a bitmap.
const OLD: KernelVersion = KernelVersion::new(5, 4);

/// The rules of a case as other compilers take them.
pub type Plain = Result<Vec<PlainRule>, NotPlain>;

/// The tools for a case, tamis first. Without a library there is no libseccomp.
pub fn tools<'a>(case: &'a Case, plain: &'a Plain, library: Option<&'a Library>) -> Vec<Tool<'a>> {
    match &case.policy {
        Policy::Stack(stack) => vec![Tool::new(TAMIS, || {
            let fused = optimise(
                stack.programs(),
                Endian::Little,
                &Options::default(),
                Split::Never,
            );
            let fused = fused.map_err(|error| error.to_string())?;
            Ok(Stack::new(fused.programs().to_vec()))
        })],
        Policy::Ruleset(_) => {
            let mut tools = vec![tamis(case, TAMIS, Options::default())];
            if let Some(counts) = &case.counts {
                let told = Options {
                    profile: Some(counts.profile.clone()),
                    ..Options::default()
                };
                let old = Options {
                    kernel: Some(OLD),
                    ..told.clone()
                };
                tools.push(tamis(case, "tamis --profile", told));
                tools.push(tamis(case, "tamis --profile --kernel 5.4", old));
            }
            tools.push(Tool::one("seccompiler", || {
                let rules = plain.as_ref().map_err(ToString::to_string)?;
                builders::seccompiler(case.ruleset().ok_or("no ruleset")?, rules)
            }));
            let levels = library
                .into_iter()
                .flat_map(|library| [(library, 1), (library, 2)]);
            tools.extend(levels.map(|(library, level)| libseccomp(case, plain, library, level)));
            tools
        }
    }
}

fn tamis<'a>(case: &'a Case, name: &str, options: Options) -> Tool<'a> {
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
            return Program::new(insns).map_err(|invalid| invalid.to_string());
        }
        let rules = plain.as_ref().map_err(ToString::to_string)?;
        builders::libseccomp(library, case.ruleset().ok_or("no ruleset")?, rules, level)
    })
}

impl<'a> Tool<'a> {
    fn new(name: &str, build: impl Fn() -> Result<Stack, String> + 'a) -> Tool<'a> {
        Tool {
            name: name.to_owned(),
            build: Box::new(build),
        }
    }

    fn one(name: &str, build: impl Fn() -> Result<Program, String> + 'a) -> Tool<'a> {
        Tool::new(name, move || Ok(Stack::new(vec![build()?])))
    }
}
