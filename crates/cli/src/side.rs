//! Reading one side of a comparison, or the filters of a stack.

use tamis_bpf::{MixedEndian, Program, Stack};
use tamis_compiler::CompileOptions;
use tamis_optimize::{Optimised, Split, optimise};
use tamis_profile::Profile;
use tamis_session::files::{self, FileLoader};
use tamis_session::{Input, Loaded, NamedProgram, Side, SideOptions};

use super::load::{LoadArgs, on_this_machine, read_input, reading, warn, warn_installation};
use super::target::TargetArgs;
use super::{Failure, Global};

/// The inputs of a side, as read: standard input and pipes can be read once, and a side is loaded for several machines.
#[derive(Clone)]
pub struct SideInputs {
    argument: String,
    inputs: Vec<Input>,
    is_stack: bool,
}

impl SideInputs {
    /// Reads a file, a list of files with commas, or a folder of programs.
    ///
    /// # Errors
    /// If one can't be read.
    pub fn read(argument: &str, global: &Global) -> Result<SideInputs, Failure> {
        let (paths, is_stack) = files::stack_paths(argument)?;
        let inputs = paths.iter().map(|path| {
            let _stage = reading(path);
            read_input(path, global)
        });
        Ok(SideInputs {
            argument: argument.to_owned(),
            inputs: inputs.collect::<Result<_, _>>()?,
            is_stack,
        })
    }

    /// Loads them with options for this side alone. Prints warnings.
    ///
    /// # Errors
    /// If one is no filter under these options.
    pub fn load(
        self,
        own: &SideOptions,
        load: &LoadArgs,
        global: &Global,
    ) -> Result<Side, Failure> {
        let options = own.over(&load.shared_options());
        let folders = [load.include_dirs(), &own.include_dirs].concat();
        let mut filters = Vec::new();
        for input in self.inputs {
            let _stage = reading(&input.name);
            let mut loader = FileLoader::new(&folders);
            let options = on_this_machine(options.clone(), &input);
            let loaded = tamis_session::load(input, &options, &mut loader)?;
            warn(&loaded, global);
            filters.push(loaded);
        }
        Ok(Side::new(self.argument, filters, self.is_stack))
    }
}

/// Reads a file, a list of files with commas, or a folder of programs. Prints warnings.
pub fn read(argument: &str, load: &LoadArgs, global: &Global) -> Result<Side, Failure> {
    SideInputs::read(argument, global)?.load(&SideOptions::default(), load, global)
}

/// Reads it with options for this side alone; options without effect are rejected.
pub fn read_alone(
    argument: &str,
    own: &SideOptions,
    load: &LoadArgs,
    global: &Global,
) -> Result<Side, Failure> {
    let side = SideInputs::read(argument, global)?.load(own, load, global)?;
    own.check(&side)?;
    Ok(side)
}

/// Programs as the filters of one task, the oldest first.
pub fn stack(filters: impl IntoIterator<Item = NamedProgram>) -> Result<Stack, Failure> {
    let filters = filters.into_iter().map(|raw| (raw.name, raw.program));
    let (names, programs): (Vec<String>, Vec<Program>) = filters.unzip();
    Stack::new(programs).map_err(|MixedEndian { filter }| {
        let name = &names[filter];
        Failure::usage(
            format!("{name} is for machines of another byte order than the filters before it"),
            "filters of one task run on one machine; select it with `--arch`",
        )
    })
}

/// The filters of one task, merged into as few as possible.
pub fn optimised(stack: &Stack, options: &CompileOptions) -> Result<Optimised, Failure> {
    optimise(stack, options, Split::Never)
        .map_err(|error| Failure::bug(error.to_string(), "please report this with the input"))
}

/// A stack with the name that the user gave it.
pub type NamedStack = (String, Stack);

/// Filters with their names as stacks, and the profile that policies are compiled for.
pub fn named_stacks(
    filters: &[String],
    load: &LoadArgs,
    target: &TargetArgs,
    global: &Global,
) -> Result<(Vec<NamedStack>, Option<Profile>), Failure> {
    let load = load.for_filter();
    let sides: Vec<Side> = filters
        .iter()
        .map(|filter| read(filter, &load, global))
        .collect::<Result<_, _>>()?;
    let inputs = || sides.iter().flat_map(Side::filters);
    load.check_options(inputs())?;
    load.check_arches(inputs())?;
    target.check_objective_use(inputs())?;
    let options = target.options(&load.options(), global)?;
    let policies = inputs().filter_map(Loaded::policy);
    policies.for_each(|policy| warn_installation(policy, global));
    let mut named = Vec::with_capacity(sides.len());
    for side in sides {
        let name = side.name.clone();
        let programs = side.into_filters().into_iter();
        let programs: Vec<NamedProgram> = programs
            .map(|filter| Ok(filter.into_program(&options)?))
            .collect::<Result<_, Failure>>()?;
        named.push((name, stack(programs)?));
    }
    Ok((named, options.profile))
}
