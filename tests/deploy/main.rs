//! docker-compose.yml, the Dockerfile, the systemd units and deploy/, compared with the program's options, ports and files;
//! scripts/install-postgres on machines without Postgres. Docker Compose and hadolint only parse: no container engine is needed.

mod authorities;
mod call;
mod clickhouse;
mod clickhouse_settings;
mod compose;
mod containers;
mod disk;
mod dockerfile;
mod full_disk;
mod install_postgres;
mod moving;
mod outside;
mod postgres;
mod probe;
mod telemetry;
mod units;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn path(name: &str) -> PathBuf {
    Path::new(ROOT).join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn yaml(name: &str) -> Value {
    yaml_serde::from_str(&text(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Docker Compose or hadolint.
fn checker(program: &str) -> Command {
    let folder = std::env::var_os("TIDEMARK_TEST_CONTAINER_CHECKS")
        .expect("no TIDEMARK_TEST_CONTAINER_CHECKS to test with: run `make test`");
    Command::new(Path::new(&folder).join(program))
}

fn output_text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Variables and values.
type Assignments = Vec<(String, String)>;

/// The assignments of an environment file, and those that are commented out.
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

fn is_secret(name: &str) -> bool {
    ["PASSWORD", "SECRET", "TOKEN", "KEY", "DATABASE_URL"].iter().any(|word| name.contains(word))
}
