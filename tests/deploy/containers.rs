//! docker-compose.yml as Docker Compose parses it.

use std::collections::BTreeMap;
use std::process::Output;

use serde_json::Value;

use crate::{ROOT, checker, output_text};

/// Test values of the secrets, all different.
pub const SECRETS: [(&str, &str); 3] = [
    ("POSTGRES_PASSWORD", "of-postgres"),
    ("CLICKHOUSE_PASSWORD", "of-clickhouse"),
    ("GRAFANA_PASSWORD", "of-grafana"),
];

/// Runs `docker compose config` with these variables only.
pub fn config(variables: &[(&str, &str)], options: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("variables");
    let lines: String = variables.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    std::fs::write(&file, lines).unwrap();
    checker("docker-compose")
        .env_clear()
        .env("HOME", folder.path())
        .current_dir(ROOT)
        .arg("--env-file")
        .arg(&file)
        .args(["--profile", "*", "config", "--format", "json"])
        .args(options)
        .output()
        .unwrap()
}

/// docker-compose.yml with all profiles.
pub fn compose(variables: &[(&str, &str)], options: &[&str]) -> Value {
    let output = config(variables, options);
    assert!(output.status.success(), "{}", output_text(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The services by name, with test secrets.
pub fn services() -> BTreeMap<String, Value> {
    let compose = compose(&SECRETS, &[]);
    serde_json::from_value(compose["services"].clone()).unwrap()
}

/// The variables of a service that have a value.
pub fn environment(service: &Value) -> BTreeMap<String, String> {
    let variables = service["environment"].as_object().into_iter().flatten();
    variables.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}

/// A list of words.
pub fn words(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().map(|word| word.as_str().unwrap()).collect()
}

/// The networks that a service is in.
pub fn networks(service: &Value) -> Vec<&str> {
    service["networks"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

/// Seconds of `1m30s`.
pub fn seconds(duration: &Value) -> u64 {
    let text = duration.as_str().expect("a duration");
    let (minutes, rest) = text.split_once('m').unwrap_or(("0", text));
    let rest = rest.trim_end_matches('s');
    minutes.parse::<u64>().unwrap() * 60 + if rest.is_empty() { 0 } else { rest.parse::<u64>().unwrap() }
}

/// Where a folder or a file of the project is mounted in a service.
pub fn mounted(service: &Value, name: &str) -> String {
    let source = format!("{ROOT}/{name}");
    let volumes = service["volumes"].as_array().into_iter().flatten();
    let mut mounts = volumes.filter(|mount| mount["source"] == *source);
    let mount = mounts.next().unwrap_or_else(|| panic!("{name} is not mounted"));
    mount["target"].as_str().unwrap().to_owned()
}

/// Whether a path of a service is in a volume, and survives the container.
pub fn is_in_volume(service: &Value, path: &str) -> bool {
    let mut volumes = service["volumes"].as_array().into_iter().flatten();
    volumes.any(|mount| {
        let target = mount["target"].as_str().unwrap();
        mount["type"] == "volume" && (path == target || path.starts_with(&format!("{target}/")))
    })
}
