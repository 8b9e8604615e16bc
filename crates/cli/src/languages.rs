//! The options of policy languages as options of commands.
//!
//! Every command with inputs has `-O NAME=VALUE` and a flag for each option, such as `--dialect c`. The help of
//! commands that compile one policy lists the flags ([`shown`]); the others refer to `tamis tables options`.

use clap::builder::{PossibleValue, PossibleValuesParser, ValueParser};
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, FromArgMatches};
use tamis_policy::option::{self, LanguageOption, OptionForm};
use tamis_session::Assignment;

use super::input;

const HEADING: &str = "Options of policy languages";

/// The group of all options of languages, for conflicts.
const GROUP: &str = "language_options";

/// The identifier of the generic option.
const OPTION: &str = "option";

/// The options of languages on the command line.
#[derive(Clone, Debug, Default)]
pub struct LanguageArgs {
    /// In the order of the command line.
    pub list: Vec<Assignment>,
}

/// Lists the flag of an option in the help of a command.
pub fn shown(arg: Arg) -> Arg {
    match arg.get_help_heading() {
        Some(HEADING) => arg.hide(false),
        _ => arg,
    }
}

/// The flag for an option.
fn flag(option: &'static LanguageOption) -> Arg {
    let languages: Vec<&str> = option.languages().map(|own| own.plural).collect();
    let help = format!("{}: {}", languages.join(", "), option.help);
    let with_default = format!("{help} [default: {}]", option.default);
    let flag = Arg::new(option.name)
        .long(option.name)
        .help_heading(HEADING)
        .help(with_default)
        .hide(true);
    match &option.form {
        OptionForm::Flag(_) => flag.action(ArgAction::SetTrue).help(help),
        OptionForm::Choice(choices) => {
            let values = choices.iter();
            let values = values.map(|own| PossibleValue::new(own.name).help(own.help));
            let parser = PossibleValuesParser::new(values);
            flag.value_name("WHICH").value_parser(parser)
        }
        OptionForm::List { placeholder, .. } => {
            let help = format!("{help}; may be repeated [default: {}]", option.default);
            flag.value_name(*placeholder)
                .action(ArgAction::Append)
                .help(help)
        }
        OptionForm::Text { placeholder, .. } => flag.value_name(*placeholder),
        OptionForm::File { placeholder, .. } => {
            let flag = flag.value_name(*placeholder);
            flag.value_parser(ValueParser::new(input::path_parser()))
        }
    }
}

impl clap::Args for LanguageArgs {
    fn augment_args(command: Command) -> Command {
        let option = Arg::new(OPTION)
            .short('O')
            .long(OPTION)
            .value_name("NAME=VALUE")
            // The value can be a path; other values are not affected by the conversion of paths.
            .value_parser(ValueParser::new(input::path_parser()))
            .action(ArgAction::Append)
            .help(
                "An option of the policy's language, such as `dialect=c`; may be repeated. \
                 `tamis tables options` lists them",
            );
        let names = option::all().into_iter().map(|option| option.name);
        let group = ArgGroup::new(GROUP).multiple(true);
        command
            .arg(option)
            .args(option::all().into_iter().map(flag))
            .group(group.args(names.chain([OPTION])))
    }

    fn augment_args_for_update(command: Command) -> Command {
        LanguageArgs::augment_args(command)
    }
}

impl FromArgMatches for LanguageArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<LanguageArgs, clap::Error> {
        let texts = |id| matches.get_many::<String>(id).into_iter().flatten();
        let mut list: Vec<Assignment> = texts(OPTION).map(|text| Assignment::parse(text)).collect();
        for option in option::all() {
            let name = option.name;
            match option.form {
                OptionForm::Flag(_) if matches.get_flag(name) => list.push(Assignment::parse(name)),
                OptionForm::Flag(_) => {}
                _ => list.extend(texts(name).map(|text| Assignment::new(name, text))),
            }
        }
        Ok(LanguageArgs { list })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = LanguageArgs::from_arg_matches(matches)?;
        Ok(())
    }
}
