//! The units of systemd and the file of variables that they share.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::call::{is_standard, understand};
use crate::{is_secret, path, text, told, variables};

const PROGRAM: &str = "/usr/local/bin/tidemark";
/// The one unit that does not run the program.
const SPACE: &str = "tidemark-space.service";
/// What that one runs.
const GUARD: &str = "/usr/local/lib/tidemark/space";
const ENVIRONMENT: &str = "deploy/systemd/tidemark.env.example";

/// What every unit forbids itself.
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

/// A unit: its settings in their order.
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

    /// Those that run the program.
    fn all() -> Vec<Unit> {
        let names = names().into_iter().filter(|name| name.ends_with(".service") && name != SPACE);
        names.map(Unit::read).collect()
    }

    fn every(&self, key: &str) -> impl Iterator<Item = &str> {
        self.settings.iter().filter(move |(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    #[track_caller]
    fn one(&self, key: &str) -> &str {
        let mut all = self.every(key);
        let one = all.next().unwrap_or_else(|| panic!("{} has no {key}", self.name));
        assert!(all.next().is_none(), "{} has {key} twice", self.name);
        one
    }

    /// The variables that the unit's commands see.
    fn environment(&self) -> BTreeMap<String, String> {
        let (set, _) = variables(ENVIRONMENT);
        let own = self.every("Environment").map(|pair| pair.split_once('=').unwrap());
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        own.chain(set).collect()
    }

    /// The calls of the program by a key, with variables put in as systemd does.
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

/// Everything that is installed for systemd: services and timers.
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
fn the_program_understands_what_units_call_and_is_told_nothing_in_vain() {
    let (set, suggested) = variables(ENVIRONMENT);
    let mut taken = BTreeSet::new();
    let mut ports = BTreeSet::new();
    let mut called = Vec::new();
    for unit in Unit::all() {
        // What is suggested has to be understood as well, where it holds a value.
        let mut environment = unit.environment();
        environment.extend(suggested.iter().filter(|(_, value)| !value.is_empty()).cloned());
        let calls = unit.calls("ExecStart");
        let [call] = &calls[..] else { panic!("{} starts several things", unit.name) };
        let understood = understand(&words(call), &environment);
        called.push(call[0].clone());
        taken.extend(understood.taken.clone());
        for (name, _) in unit.every("Environment").map(|pair| pair.split_once('=').unwrap()) {
            assert!(understood.taken.contains(&name.to_owned()), "{}: {name}", unit.name);
        }
        for option in ["listen", "metrics_listen"] {
            if let Ok(Some(address)) = understood.matches.try_get_one::<SocketAddr>(option) {
                assert!(address.ip().is_loopback(), "{}: {address}", unit.name);
                assert!(ports.insert(address.port()), "{}: port {} is taken", unit.name, address.port());
            }
        }
        // What it writes lies in the folder that systemd makes for it; everything else is read-only.
        for option in ["data", "search_index"] {
            if let Ok(Some(folder)) = understood.matches.try_get_one::<PathBuf>(option) {
                assert_eq!(*folder, Path::new("/var/lib").join(unit.one("StateDirectory")), "{}", unit.name);
            }
        }
        for probe in unit.calls("ExecStartPost") {
            let probe = understand(&words(&probe), &BTreeMap::new()).matches;
            let url: &url::Url = probe.get_one("url").unwrap();
            assert!(ports.contains(&url.port().unwrap()), "{} asks {url}", unit.name);
            assert!(["/ping", "/v2/meta", "/metrics"].contains(&url.path()), "{} asks {url}", unit.name);
        }
    }
    called.sort();
    assert_eq!(called, ["clickhouse", "migrate", "serve", "track"]);
    for (name, value) in set.iter().chain(&suggested) {
        if name.starts_with("TIDEMARK_") {
            let is_known = taken.contains(name) || value.is_empty();
            assert!(is_known, "{name} means nothing to any unit");
        } else {
            is_standard(name);
        }
        if is_secret(name) {
            assert!(value.is_empty() || value.contains("PASSWORD"), "{name} has a usable value");
        }
    }
    // ClickHouse listens where the others look for it.
    let environment: BTreeMap<_, _> = set.into_iter().collect();
    let url = url::Url::parse(&environment["TIDEMARK_CLICKHOUSE_URL"]).unwrap();
    assert!(ports.contains(&url.port().unwrap()), "{url}");
}

#[test]
fn every_unit_is_bounded_hardened_and_starts_again() {
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
        // The engine makes machine code at run time, and nothing else does.
        let makes_code = name == "tidemark-clickhouse.service";
        assert_eq!(unit.every("MemoryDenyWriteExecute").count(), usize::from(!makes_code), "{name}");
        if !runs_once {
            let grace = Duration::from_secs(tidemark::shutdown::DEFAULT_STOP_SECONDS + 5);
            let stop: u64 = unit.one("TimeoutStopSec").parse().unwrap();
            assert!(stop >= grace.as_secs(), "{name} is killed before it has ended");
        }
        for key in ["After", "Wants"] {
            for other in unit.every(key).flat_map(str::split_whitespace) {
                let is_ours = other.starts_with("tidemark-");
                assert!(!is_ours || files.contains(other), "{name}: there is no {other}");
            }
        }
        assert!(page.contains(name.trim_end_matches(".service")), "docs/install.md does not tell of {name}");
    }
    assert!(text("deploy/systemd/sysusers.conf").lines().any(|line| line.starts_with("u tidemark ")));
}

#[test]
fn the_guard_of_the_disk_is_there_and_hardened_too() {
    use std::os::unix::fs::PermissionsExt;
    let unit = Unit::read(SPACE.to_owned());
    for line in HARDENING {
        let (key, value) = line.split_once('=').unwrap();
        assert_eq!(unit.one(key), value);
    }
    let script = path("deploy/systemd/space");
    assert_ne!(script.metadata().unwrap().permissions().mode() & 0o111, 0, "it cannot be run");
    let (script, page) = (text("deploy/systemd/space"), text("docs/operating.md"));
    for pair in unit.one("Environment").split(' ') {
        let (name, value) = pair.split_once('=').unwrap();
        let defaults = format!("${{{name}:-{value}}}");
        assert!(
            name == "PGDATABASE" || script.contains(&defaults),
            "{name} means nothing, or another default"
        );
        assert!(name == "PGDATABASE" || page.contains(name), "docs/operating.md does not describe {name}");
    }
    assert_eq!(unit.one("ExecStart"), GUARD);
    let install = text("docs/install.md");
    assert!(install.contains(GUARD) && install.contains("tidemark-space.timer"));
}

/// systemd's own opinion of all units; it wants the programs to be there that they start. Where systemd is not installed,
/// the run says so at its end.
#[test]
fn systemd_objects_to_nothing() {
    let names = names();
    assert!(names.iter().any(|name| name == SPACE) && names.iter().any(|name| name.ends_with(".timer")));
    let verify = |change: &dyn Fn(String) -> String| {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("systemd-analyze");
        command.arg("verify");
        for name in &names {
            let file = folder.path().join(name);
            let unit = text(&format!("deploy/systemd/{name}")).replace(PROGRAM, "/bin/true");
            std::fs::write(&file, change(unit.replace(GUARD, "/bin/true"))).unwrap();
            command.arg(file);
        }
        command.output()
    };
    let Ok(output) = verify(&|unit| unit) else {
        let goes_without = std::env::var_os("TIDEMARK_TEST_WITHOUT_SYSTEMD").is_some();
        assert!(goes_without, "systemd-analyze does not run: install systemd, or run `make test`");
        return;
    };
    let objects = |output: &std::process::Output| told(output).lines().any(|line| line.contains("tidemark-"));
    assert!(output.status.success() && !objects(&output), "{}", told(&output));
    let told = told(&verify(&|unit| unit.replacen("[Unit]", "[Unit]\nDescripton=mistyped", 1)).unwrap());
    for name in &names {
        let objects = told.lines().any(|line| line.contains(name) && line.contains("Descripton"));
        assert!(objects, "it does not look at {name}: {told}");
    }
}
