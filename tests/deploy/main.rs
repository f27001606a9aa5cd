//! What the service is installed with: docker-compose.yml and Dockerfile, the units of systemd, and everything under
//! deploy/, held against the program's own options, ports and files. No container engine is needed; Docker Compose and
//! hadolint only read.

#[path = "../harness/mod.rs"]
mod harness;

mod authorities;
mod call;
mod clickhouse;
mod compose;
mod containers;
mod disk;
mod dockerfile;
mod full_disk;
mod moving;
mod outside;
mod postgres;
mod probe;
mod telemetry;
mod units;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The folder of the project.
const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

fn path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn yaml(name: &str) -> Value {
    yaml_serde::from_str(&text(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// One of the programs that read what makes containers.
fn checker(program: &str) -> Command {
    let folder = std::env::var_os("TIDEMARK_TEST_CONTAINER_CHECKS")
        .expect("no TIDEMARK_TEST_CONTAINER_CHECKS to test with: run `make test`");
    Command::new(Path::new(&folder).join(program))
}

fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Variables with their values, in the order of a file.
type Assignments = Vec<(String, String)>;

/// The assignments of a file of variables, those that are commented out apart.
fn variables(name: &str) -> (Assignments, Assignments) {
    let (mut set, mut suggested) = (Vec::new(), Vec::new());
    for line in text(name).lines() {
        let (list, line) = match line.strip_prefix('#') {
            Some(line) => (&mut suggested, line),
            None => (&mut set, line),
        };
        let assignment = line.split_once('=').filter(|(name, _)| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_')
        });
        list.extend(assignment.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
    (set, suggested)
}

/// Whether a variable of this name holds what nobody may know.
fn is_secret(name: &str) -> bool {
    ["PASSWORD", "SECRET", "TOKEN", "KEY", "DATABASE_URL"].iter().any(|word| name.contains(word))
}
