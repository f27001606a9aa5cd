//! Calls of the program as containers and units make them, understood by the program's own command line.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use clap::{Arg, ArgMatches};

/// A call that the command line understood.
pub struct Call {
    /// The command's own options.
    pub matches: ArgMatches,
    /// The variables that it takes, of those that were there.
    pub taken: Vec<String>,
}

/// Understands a call in an environment, in which variables may be that are meant for other commands.
#[track_caller]
pub fn understand(arguments: &[&str], environment: &BTreeMap<String, String>) -> Call {
    let mut command = tidemark::cli::command();
    command.build();
    let name = arguments.first().expect("a command is called");
    let known = command.find_subcommand(name).unwrap_or_else(|| panic!("there is no command {name}"));
    let mut line: Vec<String> = ["tidemark"].iter().chain(arguments).map(ToString::to_string).collect();
    let mut taken = Vec::new();
    for (variable, value) in environment {
        let reads = |option: &&Arg| option.get_env() == Some(OsStr::new(variable));
        let Some(option) = known.get_arguments().find(reads) else { continue };
        taken.push(variable.clone());
        let option = format!("--{}", option.get_long().expect("an option with a variable has a name"));
        if !arguments.contains(&option.as_str()) {
            line.push(format!("{option}={value}"));
        }
    }
    let mut matches = command.try_get_matches_from(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
    let (_, matches) = matches.remove_subcommand().expect("a command is called");
    Call { matches, taken }
}

/// Understands a call in an environment that is made for it: the command has to take every variable of the program.
#[track_caller]
pub fn understand_all(arguments: &[&str], environment: &BTreeMap<String, String>) -> ArgMatches {
    let call = understand(arguments, environment);
    for variable in environment.keys() {
        if variable.starts_with("TIDEMARK_") {
            assert!(call.taken.contains(variable), "tidemark {} does not take {variable}", arguments[0]);
        } else {
            is_standard(variable);
        }
    }
    call.matches
}

/// What is not an option of the program is one of OpenTelemetry's variables, which the page about operating lists.
#[track_caller]
pub fn is_standard(variable: &str) {
    let page = include_str!("../../docs/operating.md");
    assert!(variable.starts_with("OTEL_"), "{variable} means nothing to the program");
    assert!(page.contains(&format!("`{variable}`")), "docs/operating.md does not know {variable}");
}

#[test]
#[should_panic(expected = "does not take TIDEMARK_LISTEN")]
fn a_variable_of_another_command_is_noticed() {
    let environment = [("TIDEMARK_LISTEN", "127.0.0.1:1"), ("TIDEMARK_DATABASE_URL", "postgres://x/y")];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    understand_all(&["track"], &environment);
}

#[test]
#[should_panic(expected = "invalid value")]
fn a_value_that_the_program_refuses_is_noticed() {
    let environment = [("TIDEMARK_LISTEN", "everywhere"), ("TIDEMARK_DATABASE_URL", "postgres://x/y")];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    understand_all(&["serve"], &environment);
}

#[test]
#[should_panic(expected = "--database-url")]
fn what_is_missing_is_noticed() {
    understand_all(&["migrate"], &BTreeMap::new());
}
