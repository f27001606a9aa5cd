//! docker-compose.yml: what every service has, what is reached from where, and how the program is called.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Arg;
use serde_json::Value;
use url::Url;

use crate::call::{is_standard, understand_all};
use crate::containers::{
    SECRETS, compose, config, environment, mounted, networks, seconds, services, stays, words,
};
use crate::{FOLDER, is_secret, path, text, told, variables, yaml};

/// Services whose images have no program that could ask whether they work: Prometheus watches them.
const WATCHED: [&str; 2] = ["otel-collector", "tempo"];

/// Whether a service does one thing and ends.
fn ends(service: &Value) -> bool {
    service["restart"] == "no"
}

fn is_ours(service: &Value) -> bool {
    service["image"].as_str().unwrap().starts_with("tidemark:")
}

#[test]
fn nothing_starts_without_its_secrets() {
    for (missing, _) in SECRETS {
        let others: Vec<_> = SECRETS.into_iter().filter(|(name, _)| *name != missing).collect();
        let output = config(&others, &[]);
        assert!(!output.status.success(), "without {missing}");
        assert!(
            told(&output).contains(&format!("{missing} is missing a value: set it in .env")),
            "{missing}"
        );
    }
    let (example, _) = variables(".env.example");
    assert_eq!(
        example.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        SECRETS.map(|(name, _)| name)
    );
    let example: Vec<_> = example.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert!(!config(&example, &[]).status.success(), "the example's secrets are usable");
}

#[test]
fn what_is_secret_comes_from_outside_and_the_example_lists_it() {
    let raw = compose(&[], &["--no-interpolate"]);
    let (set, suggested) = variables(".env.example");
    let listed: BTreeSet<_> = set.iter().chain(&suggested).map(|(name, _)| name.as_str()).collect();
    let mut passed = 0;
    for (name, service) in raw["services"].as_object().unwrap() {
        for (variable, value) in service["environment"].as_object().into_iter().flatten() {
            if !is_secret(variable) {
                continue;
            }
            let demanded = value.as_str().is_some_and(|value| value.contains("${") && value.contains(":?"));
            assert!(value.is_null() || demanded, "{name} {variable}: {value}");
            assert!(!value.is_null() || listed.contains(variable.as_str()), ".env.example lacks {variable}");
            passed += usize::from(value.is_null());
        }
    }
    assert!(passed > 5, "credentials of the platforms are passed on");
    // Of what is read from outside, only addresses and ports have a default.
    let file = text("docker-compose.yml") + &text("deploy/compose-clickhouse.yml");
    let read: BTreeSet<_> = file.split("${").skip(1).map(|rest| rest.split('}').next().unwrap()).collect();
    for expression in read {
        let name = expression.split(':').next().unwrap();
        assert!(listed.contains(name), ".env.example lacks {name}");
        let has_default = expression.contains(":-");
        let is_place = ["_ADDRESS", "_PORT", "_SUBNET", "_GATEWAY"].iter().any(|end| name.ends_with(end));
        assert_eq!((has_default, expression.contains(":?")), (is_place, !is_place), "{expression}");
    }
    for (name, value) in suggested.iter().filter(|(name, _)| is_secret(name)) {
        assert_eq!(value, "", "{name} has a value in .env.example");
    }
    assert!(text(".gitignore").lines().any(|line| line == "/.env"), "git takes .env");
}

#[test]
fn every_service_is_pinned_bounded_and_locked() {
    let scraped = text("deploy/prometheus.yml");
    let services = services();
    for (name, service) in &services {
        let image = service["image"].as_str().unwrap();
        let (_, tag) = image.rsplit_once(':').unwrap_or_else(|| panic!("{name}: {image} has no tag"));
        let exact =
            tag.split(['.', '-']).filter(|part| part.bytes().any(|byte| byte.is_ascii_digit())).count();
        assert!(exact >= 2, "{name}: {image} is not exact");
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(words(&service["cap_drop"]), ["ALL"], "{name}");
        assert_eq!(words(&service["security_opt"]), ["no-new-privileges:true"], "{name}");
        let limits = &service["deploy"]["resources"]["limits"];
        for limit in ["memory", "pids"] {
            assert!(!limits[limit].is_null(), "{name} has no limit of {limit}");
        }
        let log = &service["logging"]["options"];
        assert!(log["max-size"].is_string() && log["max-file"].is_string(), "{name}: its log grows for ever");
        assert!(!networks(service).is_empty(), "{name} is in the default network");
        assert!(ends(service) || service["stop_grace_period"].is_string(), "{name}");
        let checked = words(&service["healthcheck"]["test"]).first() == Some(&"CMD");
        if WATCHED.contains(&name.as_str()) {
            assert!(scraped.contains(&format!("{name}:")), "nobody watches {name}");
        } else {
            assert_eq!(checked, !ends(service), "{name}: who does not end has a health check");
        }
        for (other, wait) in service["depends_on"].as_object().into_iter().flatten() {
            let other = &services[other];
            match wait["condition"].as_str().unwrap() {
                "service_healthy" => assert_eq!(other["healthcheck"]["test"][0], "CMD", "{name}"),
                "service_completed_successfully" => assert!(ends(other), "{name}"),
                condition => panic!("{name} waits for {condition}"),
            }
            let optional = !other["profiles"].is_null();
            assert_eq!(wait["required"], !optional, "{name}: a profile's service is there only with it");
        }
    }
}

#[test]
fn versions_are_those_of_the_project() {
    let services = services();
    let tag = |name: &str| services[name]["image"].as_str().unwrap().rsplit_once(':').unwrap().1.to_owned();
    let of_script = |script: &str| {
        let script = text(script);
        let line = script.lines().find_map(|line| line.strip_prefix("version=")).unwrap();
        line.to_owned()
    };
    for name in ["migrate", "api", "tracker", "sandbox"] {
        assert_eq!(tag(name), env!("CARGO_PKG_VERSION"), "{name}");
    }
    assert_eq!(tag("k6"), of_script("scripts/install-k6"));
    let release = |version: &str| version.split('.').take(2).collect::<Vec<_>>().join(".");
    // What was tested on the library holds for a server of the same release.
    assert_eq!(release(&tag("clickhouse")), release(&of_script("scripts/install-libchdb")));
    assert!(tag("postgres").starts_with("17."), "{}", tag("postgres"));
    assert_eq!(tag("space"), tag("postgres"));
}

#[test]
fn the_program_understands_how_its_services_are_called() {
    let mut called = BTreeSet::new();
    for (name, service) in services().iter().filter(|(_, service)| is_ours(service)) {
        let command = words(&service["command"]);
        let call = understand_all(&command, &environment(service));
        called.insert(command[0].to_owned());
        assert_eq!(call.get_raw("log-format").unwrap().next().unwrap(), "json", "{name}");
        // What is passed on without a value of its own is known too.
        for variable in service["environment"].as_object().unwrap().keys() {
            if variable.starts_with("OTEL_") {
                is_standard(variable);
            } else {
                let mut known = tidemark::cli::command();
                known.build();
                let known = known.find_subcommand(command[0]).unwrap().clone();
                let known = known.get_arguments().any(|option| option.get_env() == Some(variable.as_ref()));
                assert!(known, "tidemark {} does not take {variable}", command[0]);
            }
        }
        for option in ["listen", "metrics_listen"] {
            if let Ok(Some(address)) = call.try_get_one::<SocketAddr>(option) {
                assert!(address.ip().is_unspecified(), "{name}: {address} cannot be reached by others");
            }
        }
        for option in ["search_index", "state"] {
            if let Ok(Some(path)) = call.try_get_one::<PathBuf>(option) {
                assert!(
                    stays(service, path.to_str().unwrap()),
                    "{name}: {path:?} is lost with the container"
                );
            }
        }
        if !ends(service) {
            let test = words(&service["healthcheck"]["test"]);
            assert_eq!(test[..2], ["CMD", "tidemark"], "{name}");
            let url: Url =
                understand_all(&test[2..], &BTreeMap::new()).get_one::<Url>("url").unwrap().clone();
            let at = match url.path() {
                "/_clock" => "listen",
                "/readyz" => "metrics_listen",
                path => panic!("{name} is asked for {path}"),
            };
            let address: &SocketAddr = call.get_one(at).unwrap();
            assert_eq!((url.host_str(), url.port()), (Some("127.0.0.1"), Some(address.port())), "{name}");
        }
    }
    assert_eq!(called.into_iter().collect::<Vec<_>>(), ["migrate", "sandbox", "serve", "track"]);
}

#[test]
fn every_option_is_set_or_passed_on_and_the_example_lists_what_is() {
    // Options that make no sense in a container that runs for good.
    let left_out = [("TIDEMARK_JSON", "for commands that answer and end")];
    let compose = compose(&[], &["--no-interpolate"]);
    let (set, suggested) = variables(".env.example");
    let (of_sandbox, _) = variables("deploy/sandbox.env");
    let listed: BTreeSet<_> =
        set.iter().chain(&suggested).chain(&of_sandbox).map(|(name, _)| name.as_str()).collect();
    let mut known = tidemark::cli::command();
    known.build();
    for (service, command) in [("api", "serve"), ("tracker", "track")] {
        let environment = compose["services"][service]["environment"].as_object().unwrap();
        let command = known.find_subcommand(command).unwrap();
        defaults_are_suggested(command.get_arguments(), &suggested);
        let options: Vec<_> =
            command.get_arguments().filter_map(|option| option.get_env()?.to_str()).collect();
        assert!(options.len() > 5, "{options:?}");
        for option in options {
            let is_there =
                environment.contains_key(option) || left_out.iter().any(|(name, _)| *name == option);
            assert!(is_there, "{option} of .env does not reach the {service}");
        }
        for (name, _) in environment.iter().filter(|(_, value)| value.is_null()) {
            assert!(listed.contains(name.as_str()), ".env.example lacks {name}");
        }
    }
    // What is suggested is what the program understands.
    let values: Vec<_> = suggested.iter().filter(|(_, value)| !value.is_empty()).collect();
    assert!(values.len() > 10, "{values:?}");
    for (service, command) in [("api", "serve"), ("tracker", "track")] {
        let reached = compose["services"][service]["environment"].as_object().unwrap();
        let values = values.iter().filter(|(name, _)| reached.contains_key(name)).map(|pair| (*pair).clone());
        let mut environment: BTreeMap<_, _> = values.collect();
        environment.insert("TIDEMARK_DATABASE_URL".into(), "postgres://x/y".into());
        understand_all(&[command], &environment);
    }
}

/// What is suggested for an option that has a default is its default, and the manual says the same of the log's.
fn defaults_are_suggested<'a>(options: impl Iterator<Item = &'a Arg>, suggested: &[(String, String)]) {
    let mut compared = Vec::new();
    for option in options {
        let Some(variable) = option.get_env().and_then(|name| name.to_str()) else { continue };
        let value = suggested.iter().find(|(name, value)| name == variable && !value.is_empty());
        let default = option.get_default_values().first().and_then(|default| default.to_str());
        let default = default.filter(|default| !default.is_empty());
        if let Some(((_, value), default)) = value.zip(default) {
            assert_eq!(value, default, ".env.example: {variable}");
            compared.push((variable, default));
        }
    }
    assert!(compared.len() > 3, "{compared:?}");
    let (_, of_log) = compared.iter().find(|(variable, _)| *variable == "TIDEMARK_LOG").unwrap();
    assert!(text("docs/operating.md").contains(&format!("(`{of_log}` by")), "the log's default is another");
}

#[test]
fn who_speaks_to_whom_finds_them_and_has_their_secrets() {
    let services = services();
    let shares = |one: &str, other: &str| {
        let others = networks(&services[other]);
        assert!(
            networks(&services[one]).iter().any(|name| others.contains(name)),
            "{one} cannot reach {other}"
        );
    };
    let of_postgres = environment(&services["postgres"]);
    let of_clickhouse = environment(&services["clickhouse"]);
    let mut connections = 0;
    for name in ["migrate", "api", "tracker"] {
        let own = environment(&services[name]);
        let database = Url::parse(&own["TIDEMARK_DATABASE_URL"]).unwrap();
        assert_eq!((database.host_str(), database.port()), (Some("postgres"), Some(5432)));
        // The role that deploy/postgres/role.sql makes; the superuser is another.
        assert_eq!(database.username(), of_postgres["POSTGRES_DB"]);
        assert_ne!(database.username(), of_postgres["POSTGRES_USER"]);
        assert_eq!(database.password(), Some(of_postgres["POSTGRES_PASSWORD"].as_str()));
        assert_eq!(database.path().trim_start_matches('/'), of_postgres["POSTGRES_DB"]);
        let clickhouse = Url::parse(&own["TIDEMARK_CLICKHOUSE_URL"]).unwrap();
        assert_eq!((clickhouse.host_str(), clickhouse.port()), (Some("clickhouse"), Some(8123)));
        assert_eq!(own["TIDEMARK_CLICKHOUSE_PASSWORD"], of_clickhouse["TIDEMARK_CLICKHOUSE_PASSWORD"]);
        shares(name, "postgres");
        shares(name, "clickhouse");
        let pool = own.get("TIDEMARK_DATABASE_CONNECTIONS").map_or(0, |pool| pool.parse::<u32>().unwrap());
        // One that leads the relay, and one for a command run by hand.
        connections += pool + 2;
    }
    let command = words(&services["postgres"]["command"]);
    let most = command.iter().find_map(|option| option.strip_prefix("--max_connections=")).unwrap();
    assert!(
        connections <= most.parse::<u32>().unwrap() / 2,
        "{connections} of {most} leave nothing for others"
    );
    for name in ["api", "tracker"] {
        let collector = Url::parse(&environment(&services[name])["OTEL_EXPORTER_OTLP_ENDPOINT"]).unwrap();
        assert_eq!(collector.host_str(), Some("otel-collector"));
        let config = yaml("deploy/otel-collector.yaml");
        let listens = config["receivers"]["otlp"]["protocols"]["http"]["endpoint"].as_str().unwrap();
        assert_eq!(listens, format!("0.0.0.0:{}", collector.port().unwrap()));
        shares(name, "otel-collector");
        shares(name, "sandbox");
        shares("prometheus", name);
    }
    for (one, other) in
        [("otel-collector", "tempo"), ("grafana", "tempo"), ("grafana", "prometheus"), ("k6", "api")]
    {
        shares(one, other);
    }
    let space = environment(&services["space"]);
    assert_eq!((space["PGHOST"].as_str(), &space["PGUSER"]), ("postgres", &of_postgres["POSTGRES_DB"]));
    assert_eq!(space["PGPASSWORD"], of_postgres["POSTGRES_PASSWORD"]);
    shares("space", "postgres");
    // The guard looks at the disk of the one that it guards, by the script that is told so.
    let folder =
        services["space"]["volumes"].as_array().unwrap().iter().find(|mount| mount["source"] == "postgres");
    assert_eq!(folder.unwrap()["target"], space["SPACE_FOLDER"]);
    let script = mounted(&services["space"], "deploy/systemd/space");
    assert!(words(&services["space"]["command"])[0].contains(&script), "nobody runs {script}");
    for name in space.keys().filter(|name| name.starts_with("SPACE_")) {
        assert!(text("deploy/systemd/space").contains(&format!("${{{name}:-")), "{name} means nothing");
    }
    let load = environment(&services["k6"]);
    assert_eq!(load["TIDEMARK_BASE_URL"], "http://api:8080/v2");
    for name in ["TIDEMARK_BASE_URL", "TIDEMARK_API_KEY", "TIDEMARK_LOADTEST_RESULTS"] {
        let read = text("loadtest/lib/api.js") + &text("loadtest/lib/summary.js");
        assert!(read.contains(name), "k6 is told {name} for nothing");
    }
}

#[test]
fn only_the_api_and_grafana_are_published_and_only_on_this_machine() {
    let compose = compose(&SECRETS, &[]);
    let outside: Vec<_> = compose["networks"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, network)| network["internal"] != true)
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(outside, ["outside"]);
    for (name, service) in compose["services"].as_object().unwrap() {
        for port in service["ports"].as_array().into_iter().flatten() {
            assert!(["api", "grafana"].contains(&name.as_str()), "{name} is published");
            assert_eq!(port["host_ip"], "127.0.0.1", "{name}");
        }
        let reaches = networks(service).contains(&"outside");
        assert_eq!(reaches, ["api", "tracker", "grafana", "k6"].contains(&name.as_str()), "{name}");
    }
    let port = &compose["services"]["api"]["ports"][0]["target"];
    let listen = &environment(&compose["services"]["api"])["TIDEMARK_LISTEN"];
    assert_eq!(port.as_u64().unwrap(), u64::from(listen.parse::<SocketAddr>().unwrap().port()));
}

#[test]
fn what_is_mounted_is_there_and_cannot_be_written() {
    let compose = compose(&SECRETS, &[]);
    let mut used = BTreeSet::new();
    for (name, service) in compose["services"].as_object().unwrap() {
        for mount in service["volumes"].as_array().into_iter().flatten() {
            let source = mount["source"].as_str().unwrap();
            if mount["type"] == "volume" {
                // Others may look at what one writes.
                assert!(mount["read_only"] == true || used.insert(source), "{source} has two owners");
                continue;
            }
            assert!(
                source.starts_with(FOLDER) && Path::new(source).exists(),
                "{name}: {source} is not there"
            );
            assert_eq!(mount["read_only"], true, "{name}: {source}");
        }
    }
    let declared: BTreeSet<_> = compose["volumes"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(used, declared);
    let services = services();
    for (service, file, option) in [
        ("prometheus", "deploy/prometheus.yml", "--config.file="),
        ("tempo", "deploy/tempo.yaml", "-config.file="),
        ("otel-collector", "deploy/otel-collector.yaml", "--config="),
    ] {
        let read = format!("{option}{}", mounted(&services[service], file));
        assert!(
            words(&services[service]["command"]).contains(&read.as_str()),
            "{service} does not read {file}"
        );
    }
    let script = words(&services["k6"]["command"]).last().unwrap().to_string();
    let script = script.strip_prefix(&mounted(&services["k6"], "loadtest")).expect("k6 runs what is mounted");
    assert!(path("loadtest").join(script.trim_start_matches('/')).exists(), "{script}");
}

#[test]
fn the_page_says_how_much_memory_all_may_take() {
    let services = services();
    let lasting = services.values().filter(|service| !ends(service) && service["profiles"].is_null());
    let limit = |service: &Value| -> u64 {
        service["deploy"]["resources"]["limits"]["memory"].as_str().unwrap().parse().unwrap()
    };
    let gibibytes = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    let all = gibibytes(lasting.map(limit).sum());
    let ours = gibibytes(limit(&services["api"]) + limit(&services["tracker"]));
    let said = format!("{all} in all (`docker-compose.yml`), {ours} of it for the API and the tracker");
    assert!(text("docs/install.md").contains(&said), "docs/install.md does not say: {said}");
}

#[test]
fn services_get_the_time_to_stop_that_they_take() {
    let services = services();
    let grace = Duration::from_secs(tidemark::shutdown::DEFAULT_STOP_SECONDS + 5);
    assert!(seconds(&services["api"]["stop_grace_period"]) >= grace.as_secs());
    for name in ["tracker", "postgres", "clickhouse"] {
        assert!(seconds(&services[name]["stop_grace_period"]) >= 60, "{name}");
    }
}

#[test]
fn the_sandboxs_variables_are_those_of_the_sandbox() {
    let (set, _) = variables("deploy/sandbox.env");
    let mut expected = tidemark::sandbox::server::environment("http://sandbox:8480");
    expected.push(("TIDEMARK_TIKTOK_RESEARCH_DAILY_REQUESTS", u32::MAX.to_string()));
    let sorted = |pairs: Vec<(String, String)>| pairs.into_iter().collect::<BTreeMap<_, _>>();
    let expected = sorted(expected.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
    assert_eq!(sorted(set.clone()), expected);
    let all: Vec<_> =
        SECRETS.into_iter().chain(set.iter().map(|(name, value)| (name.as_str(), value.as_str()))).collect();
    let compose = compose(&all, &[]);
    for name in ["api", "tracker"] {
        let reached = environment(&compose["services"][name]);
        for (variable, value) in &expected {
            assert_eq!(reached.get(variable), Some(value), "{variable} does not reach the {name}");
        }
    }
    let listen = &environment(&compose["services"]["sandbox"])["TIDEMARK_SANDBOX_LISTEN"];
    assert_eq!(listen, "0.0.0.0:8480");
}
