//! Parses calls of the program in containers and units with the program's own command line.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use clap::{Arg, ArgMatches};

/// A parsed call.
pub struct Call {
    pub matches: ArgMatches,
    /// The variables that the command reads.
    pub used: Vec<String>,
}

/// Parses a call. The environment may contain variables of other commands.
#[track_caller]
pub fn parse(arguments: &[&str], environment: &BTreeMap<String, String>) -> Call {
    let mut command = tidemark::cli::command();
    command.build();
    let name = arguments.first().expect("a subcommand");
    let subcommand = command.find_subcommand(name).unwrap_or_else(|| panic!("there is no command {name}"));
    let mut line: Vec<String> = ["tidemark"].iter().chain(arguments).map(ToString::to_string).collect();
    let mut used = Vec::new();
    for (variable, value) in environment {
        let reads = |option: &&Arg| option.get_env() == Some(OsStr::new(variable));
        let Some(option) = subcommand.get_arguments().find(reads) else { continue };
        used.push(variable.clone());
        let option = format!("--{}", option.get_long().expect("a long name"));
        if !arguments.contains(&option.as_str()) {
            line.push(format!("{option}={value}"));
        }
    }
    let mut matches = command.try_get_matches_from(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
    let (_, matches) = matches.remove_subcommand().expect("a subcommand");
    Call { matches, used }
}

/// Parses a call that has to read all variables of the program.
#[track_caller]
pub fn parse_strict(arguments: &[&str], environment: &BTreeMap<String, String>) -> ArgMatches {
    let call = parse(arguments, environment);
    for variable in environment.keys() {
        if variable.starts_with("TIDEMARK_") {
            assert!(call.used.contains(variable), "tidemark {} does not take {variable}", arguments[0]);
        } else {
            assert_documented(variable);
        }
    }
    call.matches
}

/// Asserts that a variable is one of OpenTelemetry's that docs/operating.md lists.
#[track_caller]
pub fn assert_documented(variable: &str) {
    let page = include_str!("../../docs/operating.md");
    assert!(variable.starts_with("OTEL_"), "{variable} is unknown to the program");
    assert!(page.contains(&format!("`{variable}`")), "docs/operating.md lacks {variable}");
}

#[test]
#[should_panic(expected = "does not take TIDEMARK_LISTEN")]
fn variable_of_another_command_is_rejected() {
    let environment = [("TIDEMARK_LISTEN", "127.0.0.1:1"), ("TIDEMARK_DATABASE_URL", "postgres://x/y")];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    parse_strict(&["track"], &environment);
}

#[test]
#[should_panic(expected = "invalid value")]
fn invalid_value_is_rejected() {
    let environment = [("TIDEMARK_LISTEN", "everywhere"), ("TIDEMARK_DATABASE_URL", "postgres://x/y")];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    parse_strict(&["serve"], &environment);
}

#[test]
#[should_panic(expected = "--database-url")]
fn missing_option_is_rejected() {
    parse_strict(&["migrate"], &BTreeMap::new());
}
