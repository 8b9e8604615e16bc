//! `--arch`: selected architectures, or all.

use std::ffi::OsStr;
use std::ops::Deref;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};
use tamis_abi::Arch;
use tamis_diag::suggest;

const ID: &str = "arches";
/// The value for all.
const ALL: &str = "all";

/// The architectures given by `--arch`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchArgs {
    list: Vec<Arch>,
    /// Whether `--arch all` was given; the list is then empty.
    pub is_all: bool,
}

impl Deref for ArchArgs {
    type Target = [Arch];

    fn deref(&self) -> &[Arch] {
        &self.list
    }
}

impl From<Vec<Arch>> for ArchArgs {
    fn from(list: Vec<Arch>) -> ArchArgs {
        ArchArgs {
            list,
            is_all: false,
        }
    }
}

/// A value of the option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    One(Arch),
    All,
}

/// Parses an architecture and lists them for completion.
#[derive(Clone, Copy, Debug)]
struct ValueParser;

impl TypedValueParser for ValueParser {
    type Value = Value;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Value, clap::Error> {
        if value == ALL {
            return Ok(Value::All);
        }
        ArchParser.parse_ref(command, arg, value).map(Value::One)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let all = PossibleValue::new(ALL).help("each, for commands that compare");
        Some(Box::new(ArchParser.possible_values()?.chain([all])))
    }
}

/// Parses one architecture.
#[derive(Clone, Copy, Debug)]
pub struct ArchParser;

impl TypedValueParser for ArchParser {
    type Value = Arch;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Arch, clap::Error> {
        let parser = |name: &str| parse_arch(name);
        parser.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(
            Arch::all().map(|arch| PossibleValue::new(arch.name())),
        ))
    }
}

/// The architecture with this name, or an error that suggests the most similar one.
fn parse_arch(name: &str) -> Result<Arch, String> {
    Arch::from_name(name).ok_or_else(|| {
        let known =
            Arch::all().flat_map(|arch| arch.aliases().iter().copied().chain([arch.name()]));
        match suggest::nearest(name, known) {
            Some(near) => format!("no such architecture; did you mean `{near}`?"),
            None => "no such architecture; `tamis tables arches` lists them".to_owned(),
        }
    })
}

impl clap::Args for ArchArgs {
    fn augment_args(command: Command) -> Command {
        let arch = Arg::new(ID)
            .long("arch")
            .value_name("ARCH")
            .value_parser(ValueParser)
            .hide_possible_values(true)
            .action(ArgAction::Append)
            .help_heading(None::<&str>)
            .help("The architecture [default: this machine's]")
            .long_help(
                "The architecture [default: this machine's]\n\n\
                 It is that of the filter, and of calls that name none; may be repeated. The default is without others \
                 whose programs the machine runs, such as 32-bit ones. For an OCI profile, a single one is the native \
                 architecture, to which the profile adds its sub-architectures, unless `--native-only` is given; several \
                 are exactly those of the filter, the native one first, and `--native-only` is refused. `all` is for \
                 `diff` and `prove`: each machine that a profile may be for.",
            );
        command.arg(arch)
    }

    fn augment_args_for_update(command: Command) -> Command {
        ArchArgs::augment_args(command)
    }
}

impl FromArgMatches for ArchArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ArchArgs, clap::Error> {
        let values = matches.get_many::<Value>(ID).into_iter().flatten();
        let mut args = ArchArgs::default();
        for value in values {
            match value {
                Value::One(arch) => args.list.push(*arch),
                Value::All => args.is_all = true,
            }
        }
        if args.is_all {
            args.list.clear();
        }
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = ArchArgs::from_arg_matches(matches)?;
        Ok(())
    }
}
