//! The systemd units and their environment file.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use harness::report_skipped;

use crate::call::{assert_documented, parse};
use crate::{is_secret, output_text, path, text, variables};

const PROGRAM: &str = "/usr/local/bin/tidemark";
/// The disk guard, which does not run the program.
const DISK_GUARD: &str = "tidemark-space.service";
const DISK_GUARD_SCRIPT: &str = "/usr/local/lib/tidemark/space";
const ENVIRONMENT: &str = "deploy/systemd/tidemark.env.example";

/// Settings of all units.
const HARDENING: [&str; 12] = [
    "NoNewPrivileges=yes",
    "CapabilityBoundingSet=",
    "ProtectSystem=strict",
    "ProtectHome=yes",
    "PrivateTmp=yes",
    "PrivateDevices=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelTunables=yes",
    "RestrictNamespaces=yes",
    "RestrictSUIDSGID=yes",
    "LockPersonality=yes",
    "SystemCallArchitectures=native",
];

struct Unit {
    name: String,
    settings: Vec<(String, String)>,
}

impl Unit {
    fn read(name: String) -> Unit {
        let file = text(&format!("deploy/systemd/{name}"));
        let settings = file.lines().filter(|line| !line.starts_with('#'));
        let settings = settings.filter_map(|line| line.split_once('='));
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Unit { name, settings }
    }

    /// The units that run the program.
    fn all() -> Vec<Unit> {
        let names = names().into_iter().filter(|name| name.ends_with(".service") && name != DISK_GUARD);
        names.map(Unit::read).collect()
    }

    fn every(&self, key: &str) -> impl Iterator<Item = &str> {
        self.settings.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    #[track_caller]
    fn one(&self, key: &str) -> &str {
        let mut all = self.every(key);
        let one = all.next().unwrap_or_else(|| panic!("{} has no {key}", self.name));
        assert!(all.next().is_none(), "{} has {key} twice", self.name);
        one
    }

    /// The environment of the unit.
    fn environment(&self) -> BTreeMap<String, String> {
        let (set, _) = variables(ENVIRONMENT);
        let own = self.every("Environment").map(|pair| pair.split_once('=').unwrap());
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        own.chain(set).collect()
    }

    /// The calls of the program under a key, with variables expanded.
    fn calls(&self, key: &str) -> Vec<Vec<String>> {
        let environment = self.environment();
        let line = |line: &str| {
            let mut line = line.to_owned();
            for (name, value) in &environment {
                line = line.replace(&format!("${{{name}}}"), value);
            }
            assert!(!line.contains("${"), "{}: {line}", self.name);
            let mut words = line.split_whitespace().map(str::to_owned);
            assert_eq!(words.next().as_deref(), Some(PROGRAM), "{}", self.name);
            words.collect()
        };
        self.every(key).map(line).collect()
    }
}

/// All services and timers.
fn names() -> Vec<String> {
    let files = std::fs::read_dir(path("deploy/systemd")).unwrap();
    let mut names: Vec<_> = files.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.ends_with(".service") || name.ends_with(".timer"));
    names.sort();
    names
}

fn words(call: &[String]) -> Vec<&str> {
    call.iter().map(String::as_str).collect()
}

#[test]
fn program_parses_all_calls_and_variables() {
    let (set, suggested) = variables(ENVIRONMENT);
    let mut used = BTreeSet::new();
    let mut ports = BTreeSet::new();
    let mut called = Vec::new();
    let mut folders = BTreeSet::new();
    for unit in Unit::all() {
        // Suggested values have to parse too.
        let mut environment = unit.environment();
        environment.extend(suggested.iter().filter(|(_, value)| !value.is_empty()).cloned());
        let calls = unit.calls("ExecStart");
        let [arguments] = &calls[..] else { panic!("{} has several ExecStart", unit.name) };
        let call = parse(&words(arguments), &environment);
        called.push(arguments[0].clone());
        used.extend(call.used.clone());
        for (name, _) in unit.every("Environment").map(|pair| pair.split_once('=').unwrap()) {
            assert!(call.used.contains(&name.to_owned()), "{}: {name}", unit.name);
        }
        for option in ["listen", "metrics_listen"] {
            if let Ok(Some(address)) = call.matches.try_get_one::<SocketAddr>(option) {
                assert!(address.ip().is_loopback(), "{}: {address}", unit.name);
                assert!(ports.insert(address.port()), "{}: port {} is taken", unit.name, address.port());
            }
        }
        // Other folders are read-only.
        for option in ["data", "search_index"] {
            if let Ok(Some(folder)) = call.matches.try_get_one::<PathBuf>(option) {
                assert_eq!(*folder, Path::new("/var/lib").join(unit.one("StateDirectory")), "{}", unit.name);
                folders.insert(option);
            }
        }
        // The tracker writes pictures, which the API reads.
        if arguments[0] == "track" {
            let folder: &String = call.matches.get_one("media_dir").unwrap();
            assert_eq!(Path::new(folder), Path::new("/var/lib").join(unit.one("StateDirectory")));
        }
        for probe in unit.calls("ExecStartPost") {
            let probe = parse(&words(&probe), &BTreeMap::new()).matches;
            let url: &url::Url = probe.get_one("url").unwrap();
            assert!(ports.contains(&url.port().unwrap()), "{} probes {url}", unit.name);
            assert!(["/ping", "/v2/meta", "/metrics"].contains(&url.path()), "{} probes {url}", unit.name);
        }
    }
    called.sort();
    assert_eq!(called, ["clickhouse", "migrate", "serve", "track"]);
    assert_eq!(folders, BTreeSet::from(["data", "search_index"]));
    for (name, value) in set.iter().chain(&suggested) {
        if name.starts_with("TIDEMARK_") {
            let is_used = used.contains(name) || value.is_empty();
            assert!(is_used, "no unit reads {name}");
        } else {
            assert_documented(name);
        }
        if is_secret(name) {
            assert!(value.is_empty() || value.contains("PASSWORD"), "{name} has a usable value");
        }
    }
    // ClickHouse listens on the port of the URL.
    let environment: BTreeMap<_, _> = set.into_iter().collect();
    let url = url::Url::parse(&environment["TIDEMARK_CLICKHOUSE_URL"]).unwrap();
    assert!(ports.contains(&url.port().unwrap()), "{url}");
}

#[test]
fn units_are_limited_hardened_and_restarted() {
    let files: BTreeSet<_> = Unit::all().into_iter().map(|unit| unit.name).collect();
    let page = text("docs/install.md");
    for unit in Unit::all() {
        let name = &unit.name;
        for line in HARDENING {
            let (key, value) = line.split_once('=').unwrap();
            assert_eq!(unit.one(key), value, "{name}");
        }
        assert_eq!((unit.one("User"), unit.one("Group")), ("tidemark", "tidemark"), "{name}");
        assert_eq!(unit.one("EnvironmentFile"), "/etc/tidemark/tidemark.env", "{name}");
        assert_eq!(unit.one("Restart"), "on-failure", "{name}");
        assert!(!unit.one("MemoryMax").is_empty() && !unit.one("TasksMax").is_empty(), "{name}");
        let runs_once = unit.every("Type").any(|kind| kind == "oneshot");
        assert_eq!(unit.every("LimitNOFILE").count(), usize::from(!runs_once), "{name}");
        assert_eq!(unit.every("WantedBy").count(), usize::from(!runs_once), "{name}");
        // ClickHouse compiles queries at run time.
        let compiles = name == "tidemark-clickhouse.service";
        assert_eq!(unit.every("MemoryDenyWriteExecute").count(), usize::from(!compiles), "{name}");
        if !runs_once {
            let grace = Duration::from_secs(tidemark::shutdown::DEFAULT_STOP_SECONDS + 5);
            let stop: u64 = unit.one("TimeoutStopSec").parse().unwrap();
            assert!(stop >= grace.as_secs(), "{name} is killed during its graceful shutdown");
        }
        for key in ["After", "Wants"] {
            for other in unit.every(key).flat_map(str::split_whitespace) {
                let is_unit = other.starts_with("tidemark-");
                assert!(!is_unit || files.contains(other), "{name}: {other} does not exist");
            }
        }
        assert!(page.contains(name.trim_end_matches(".service")), "docs/install.md lacks {name}");
    }
    assert!(text("deploy/systemd/sysusers.conf").lines().any(|line| line.starts_with("u tidemark ")));
}

#[test]
fn disk_guard_is_hardened_and_documented() {
    use std::os::unix::fs::PermissionsExt;
    let unit = Unit::read(DISK_GUARD.to_owned());
    for line in HARDENING {
        let (key, value) = line.split_once('=').unwrap();
        assert_eq!(unit.one(key), value);
    }
    let script = path("deploy/systemd/space");
    assert_ne!(script.metadata().unwrap().permissions().mode() & 0o111, 0, "the script is not executable");
    let (script, page) = (text("deploy/systemd/space"), text("docs/operating.md"));
    for pair in unit.one("Environment").split(' ') {
        let (name, value) = pair.split_once('=').unwrap();
        let defaults = format!("${{{name}:-{value}}}");
        assert!(name == "PGDATABASE" || script.contains(&defaults), "{name} has another default");
        assert!(name == "PGDATABASE" || page.contains(name), "docs/operating.md does not describe {name}");
    }
    assert_eq!(unit.one("ExecStart"), DISK_GUARD_SCRIPT);
    let install = text("docs/install.md");
    assert!(install.contains(DISK_GUARD_SCRIPT) && install.contains("tidemark-space.timer"));
}

/// The programs of the units have to exist. Skipped where systemd is not installed.
#[test]
fn systemd_analyze_reports_nothing() {
    let names = names();
    assert!(names.iter().any(|name| name == DISK_GUARD) && names.iter().any(|name| name.ends_with(".timer")));
    let verify = |change: &dyn Fn(String) -> String| {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("systemd-analyze");
        command.arg("verify");
        for name in &names {
            let file = folder.path().join(name);
            let unit = text(&format!("deploy/systemd/{name}")).replace(PROGRAM, "/bin/true");
            std::fs::write(&file, change(unit.replace(DISK_GUARD_SCRIPT, "/bin/true"))).unwrap();
            command.arg(file);
        }
        command.output()
    };
    let output = match verify(&|unit| unit) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return report_skipped("checks of deploy/systemd: systemd-analyze is not installed");
        }
        output => output.unwrap(),
    };
    let has_findings =
        |output: &std::process::Output| output_text(output).lines().any(|line| line.contains("tidemark-"));
    assert!(output.status.success() && !has_findings(&output), "{}", output_text(&output));
    let findings =
        output_text(&verify(&|unit| unit.replacen("[Unit]", "[Unit]\nDescripton=mistyped", 1)).unwrap());
    for name in &names {
        let is_reported = findings.lines().any(|line| line.contains(name) && line.contains("Descripton"));
        assert!(is_reported, "{name} is not checked: {findings}");
    }
}
