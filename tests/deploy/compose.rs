//! docker-compose.yml: hardening, networks, secrets, and calls of the program.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Arg;
use serde_json::Value;
use url::Url;

use crate::call::{assert_documented, parse_strict};
use crate::containers::{
    SECRETS, compose, config, environment, is_in_volume, mounted, networks, seconds, services, words,
};
use crate::{ROOT, is_secret, output_text, path, text, variables, yaml};

/// Services whose images have no HTTP client for a health check. Prometheus monitors them.
const WITHOUT_HEALTH_CHECK: [&str; 2] = ["otel-collector", "tempo"];

fn runs_once(service: &Value) -> bool {
    service["restart"] == "no"
}

fn runs_tidemark(service: &Value) -> bool {
    service["image"].as_str().unwrap().starts_with("tidemark:")
}

#[test]
fn all_secrets_are_required() {
    for (missing, _) in SECRETS {
        let others: Vec<_> = SECRETS.into_iter().filter(|(name, _)| *name != missing).collect();
        let output = config(&others, &[]);
        assert!(!output.status.success(), "without {missing}");
        assert!(
            output_text(&output).contains(&format!("{missing} is missing a value: set it in .env")),
            "{missing}"
        );
    }
    let (example, _) = variables(".env.example");
    assert_eq!(
        example.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        SECRETS.map(|(name, _)| name)
    );
    let example: Vec<_> = example.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert!(!config(&example, &[]).status.success(), "the example has secrets");
}

#[test]
fn secrets_come_from_the_environment() {
    let raw = compose(&[], &["--no-interpolate"]);
    let (set, suggested) = variables(".env.example");
    let listed: BTreeSet<_> = set.iter().chain(&suggested).map(|(name, _)| name.as_str()).collect();
    let mut passed = 0;
    for (name, service) in raw["services"].as_object().unwrap() {
        for (variable, value) in service["environment"].as_object().into_iter().flatten() {
            if !is_secret(variable) {
                continue;
            }
            let required = value.as_str().is_some_and(|value| value.contains("${") && value.contains(":?"));
            assert!(value.is_null() || required, "{name} {variable}: {value}");
            assert!(!value.is_null() || listed.contains(variable.as_str()), ".env.example lacks {variable}");
            passed += usize::from(value.is_null());
        }
    }
    assert!(passed > 5, "{passed} secrets are passed on");
    // Only addresses and ports have defaults.
    let file = text("docker-compose.yml") + &text("deploy/compose-clickhouse.yml");
    let expressions: BTreeSet<_> =
        file.split("${").skip(1).map(|rest| rest.split('}').next().unwrap()).collect();
    for expression in expressions {
        let name = expression.split(':').next().unwrap();
        assert!(listed.contains(name), ".env.example lacks {name}");
        let has_default = expression.contains(":-");
        let is_address = ["_ADDRESS", "_PORT", "_SUBNET", "_GATEWAY"].iter().any(|end| name.ends_with(end));
        assert_eq!((has_default, expression.contains(":?")), (is_address, !is_address), "{expression}");
    }
    for (name, value) in suggested.iter().filter(|(name, _)| is_secret(name)) {
        assert_eq!(value, "", "{name} has a value in .env.example");
    }
    assert!(text(".gitignore").lines().any(|line| line == "/.env"), "git does not ignore .env");
}

#[test]
fn services_are_pinned_limited_and_hardened() {
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
        assert!(log["max-size"].is_string() && log["max-file"].is_string(), "{name}: its log has no limit");
        assert!(!networks(service).is_empty(), "{name} is in the default network");
        assert!(runs_once(service) || service["stop_grace_period"].is_string(), "{name}");
        let has_check = words(&service["healthcheck"]["test"]).first() == Some(&"CMD");
        if WITHOUT_HEALTH_CHECK.contains(&name.as_str()) {
            assert!(scraped.contains(&format!("{name}:")), "Prometheus does not scrape {name}");
        } else {
            assert_eq!(has_check, !runs_once(service), "{name}: health check");
        }
        for (other, wait) in service["depends_on"].as_object().into_iter().flatten() {
            let other = &services[other];
            match wait["condition"].as_str().unwrap() {
                "service_healthy" => assert_eq!(other["healthcheck"]["test"][0], "CMD", "{name}"),
                "service_completed_successfully" => assert!(runs_once(other), "{name}"),
                condition => panic!("{name} waits for {condition}"),
            }
            let optional = !other["profiles"].is_null();
            assert_eq!(wait["required"], !optional, "{name}: depends on a service of another profile");
        }
    }
}

#[test]
fn versions_match_the_scripts() {
    let services = services();
    let tag = |name: &str| services[name]["image"].as_str().unwrap().rsplit_once(':').unwrap().1.to_owned();
    let version_in = |script: &str| {
        let script = text(script);
        let line = script.lines().find_map(|line| line.strip_prefix("version=")).unwrap();
        line.to_owned()
    };
    for name in ["migrate", "api", "tracker", "sandbox"] {
        assert_eq!(tag(name), env!("CARGO_PKG_VERSION"), "{name}");
    }
    assert_eq!(tag("k6"), version_in("scripts/install-k6"));
    let release = |version: &str| version.split('.').take(2).collect::<Vec<_>>().join(".");
    // Tests run on libchdb of the same release.
    assert_eq!(release(&tag("clickhouse")), release(&version_in("scripts/install-libchdb")));
    assert!(tag("postgres").starts_with("17."), "{}", tag("postgres"));
    assert_eq!(tag("space"), tag("postgres"));
}

#[test]
fn program_parses_all_calls() {
    let (mut called, mut checked) = (BTreeSet::new(), BTreeSet::new());
    for (name, service) in services().iter().filter(|(_, service)| runs_tidemark(service)) {
        let command = words(&service["command"]);
        let call = parse_strict(&command, &environment(service));
        called.insert(command[0].to_owned());
        assert_eq!(call.get_raw("log-format").unwrap().next().unwrap(), "json", "{name}");
        // Also variables without a value.
        for variable in service["environment"].as_object().unwrap().keys() {
            if variable.starts_with("OTEL_") {
                assert_documented(variable);
            } else {
                let mut cli = tidemark::cli::command();
                cli.build();
                let subcommand = cli.find_subcommand(command[0]).unwrap().clone();
                let known =
                    subcommand.get_arguments().any(|option| option.get_env() == Some(variable.as_ref()));
                assert!(known, "tidemark {} does not take {variable}", command[0]);
            }
        }
        for option in ["listen", "metrics_listen"] {
            if let Ok(Some(address)) = call.try_get_one::<SocketAddr>(option) {
                assert!(address.ip().is_unspecified(), "{name}: {address} cannot be reached by others");
                checked.insert(option);
            }
        }
        for option in ["search_index", "state"] {
            if let Ok(Some(path)) = call.try_get_one::<PathBuf>(option) {
                assert!(
                    is_in_volume(service, path.to_str().unwrap()),
                    "{name}: {path:?} is lost with the container"
                );
                checked.insert(option);
            }
        }
        if let Ok(Some(folder)) = call.try_get_one::<String>("media_dir") {
            assert!(is_in_volume(service, folder), "{name}: {folder} is lost with the container");
            checked.insert("media_dir");
        }
        if !runs_once(service) {
            let test = words(&service["healthcheck"]["test"]);
            assert_eq!(test[..2], ["CMD", "tidemark"], "{name}");
            let url: Url = parse_strict(&test[2..], &BTreeMap::new()).get_one::<Url>("url").unwrap().clone();
            let option = match url.path() {
                "/_clock" => "listen",
                "/readyz" => "metrics_listen",
                path => panic!("{name}: health check of {path}"),
            };
            let address: &SocketAddr = call.get_one(option).unwrap();
            assert_eq!((url.host_str(), url.port()), (Some("127.0.0.1"), Some(address.port())), "{name}");
        }
    }
    assert_eq!(called.into_iter().collect::<Vec<_>>(), ["migrate", "sandbox", "serve", "track"]);
    assert_eq!(
        checked.into_iter().collect::<Vec<_>>(),
        ["listen", "media_dir", "metrics_listen", "search_index", "state"]
    );
}

#[test]
fn all_options_can_be_set_in_env_file() {
    // Options of commands that run once.
    let excluded = ["TIDEMARK_JSON"];
    let compose = compose(&[], &["--no-interpolate"]);
    let (set, suggested) = variables(".env.example");
    let (of_sandbox, _) = variables("deploy/sandbox.env");
    let listed: BTreeSet<_> =
        set.iter().chain(&suggested).chain(&of_sandbox).map(|(name, _)| name.as_str()).collect();
    let mut cli = tidemark::cli::command();
    cli.build();
    for (service, command) in [("api", "serve"), ("tracker", "track")] {
        let environment = compose["services"][service]["environment"].as_object().unwrap();
        let command = cli.find_subcommand(command).unwrap();
        assert_defaults_suggested(command.get_arguments(), &suggested);
        let options: Vec<_> =
            command.get_arguments().filter_map(|option| option.get_env()?.to_str()).collect();
        assert!(options.len() > 5, "{options:?}");
        for option in options {
            let is_passed = environment.contains_key(option) || excluded.contains(&option);
            assert!(is_passed, "{option} of .env does not reach the {service}");
        }
        for (name, _) in environment.iter().filter(|(_, value)| value.is_null()) {
            assert!(listed.contains(name.as_str()), ".env.example lacks {name}");
        }
    }
    // The program parses the suggested values.
    let values: Vec<_> = suggested.iter().filter(|(_, value)| !value.is_empty()).collect();
    assert!(values.len() > 10, "{values:?}");
    for (service, command) in [("api", "serve"), ("tracker", "track")] {
        let reached = compose["services"][service]["environment"].as_object().unwrap();
        let values = values.iter().filter(|(name, _)| reached.contains_key(name)).map(|pair| (*pair).clone());
        let mut environment: BTreeMap<_, _> = values.collect();
        environment.insert("TIDEMARK_DATABASE_URL".into(), "postgres://x/y".into());
        parse_strict(&[command], &environment);
    }
}

/// .env.example suggests the defaults, and docs/operating.md has the one of the log.
fn assert_defaults_suggested<'a>(options: impl Iterator<Item = &'a Arg>, suggested: &[(String, String)]) {
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
    let (_, log_filter) = compared.iter().find(|(variable, _)| *variable == "TIDEMARK_LOG").unwrap();
    assert!(
        text("docs/operating.md").contains(&format!("(`{log_filter}` by")),
        "docs/operating.md has another default"
    );
}

#[test]
fn connected_services_share_networks_and_secrets() {
    let services = services();
    let assert_connected = |one: &str, other: &str| {
        let others = networks(&services[other]);
        assert!(
            networks(&services[one]).iter().any(|name| others.contains(name)),
            "{one} cannot reach {other}"
        );
    };
    let postgres = environment(&services["postgres"]);
    let clickhouse = environment(&services["clickhouse"]);
    let mut connections = 0;
    for name in ["migrate", "api", "tracker"] {
        let own = environment(&services[name]);
        let database = Url::parse(&own["TIDEMARK_DATABASE_URL"]).unwrap();
        assert_eq!((database.host_str(), database.port()), (Some("postgres"), Some(5432)));
        // The role of deploy/postgres/role.sql, which is not the superuser.
        assert_eq!(database.username(), postgres["POSTGRES_DB"]);
        assert_ne!(database.username(), postgres["POSTGRES_USER"]);
        assert_eq!(database.password(), Some(postgres["POSTGRES_PASSWORD"].as_str()));
        assert_eq!(database.path().trim_start_matches('/'), postgres["POSTGRES_DB"]);
        let clickhouse_url = Url::parse(&own["TIDEMARK_CLICKHOUSE_URL"]).unwrap();
        assert_eq!((clickhouse_url.host_str(), clickhouse_url.port()), (Some("clickhouse"), Some(8123)));
        assert_eq!(own["TIDEMARK_CLICKHOUSE_PASSWORD"], clickhouse["TIDEMARK_CLICKHOUSE_PASSWORD"]);
        assert_connected(name, "postgres");
        assert_connected(name, "clickhouse");
        let pool = own.get("TIDEMARK_DATABASE_CONNECTIONS").map_or(0, |pool| pool.parse::<u32>().unwrap());
        // One for the relay lock, one for a manual command.
        connections += pool + 2;
    }
    let command = words(&services["postgres"]["command"]);
    let max = command.iter().find_map(|option| option.strip_prefix("--max_connections=")).unwrap();
    assert!(connections <= max.parse::<u32>().unwrap() / 2, "{connections} of {max} connections");
    for name in ["api", "tracker"] {
        let collector = Url::parse(&environment(&services[name])["OTEL_EXPORTER_OTLP_ENDPOINT"]).unwrap();
        assert_eq!(collector.host_str(), Some("otel-collector"));
        let config = yaml("deploy/otel-collector.yaml");
        let listens = config["receivers"]["otlp"]["protocols"]["http"]["endpoint"].as_str().unwrap();
        assert_eq!(listens, format!("0.0.0.0:{}", collector.port().unwrap()));
        assert_connected(name, "otel-collector");
        assert_connected(name, "sandbox");
        assert_connected("prometheus", name);
    }
    for (one, other) in
        [("otel-collector", "tempo"), ("grafana", "tempo"), ("grafana", "prometheus"), ("k6", "api")]
    {
        assert_connected(one, other);
    }
    let space = environment(&services["space"]);
    assert_eq!((space["PGHOST"].as_str(), &space["PGUSER"]), ("postgres", &postgres["POSTGRES_DB"]));
    assert_eq!(space["PGPASSWORD"], postgres["POSTGRES_PASSWORD"]);
    assert_connected("space", "postgres");
    // The disk guard watches the volume of Postgres.
    let folder =
        services["space"]["volumes"].as_array().unwrap().iter().find(|mount| mount["source"] == "postgres");
    assert_eq!(folder.unwrap()["target"], space["SPACE_FOLDER"]);
    let script = mounted(&services["space"], "deploy/systemd/space");
    assert!(words(&services["space"]["command"])[0].contains(&script), "{script} is not run");
    for name in space.keys().filter(|name| name.starts_with("SPACE_")) {
        assert!(text("deploy/systemd/space").contains(&format!("${{{name}:-")), "{name} is not read");
    }
    let load = environment(&services["k6"]);
    assert_eq!(load["TIDEMARK_BASE_URL"], "http://api:8080/v2");
    for name in ["TIDEMARK_BASE_URL", "TIDEMARK_API_KEY", "TIDEMARK_LOADTEST_RESULTS"] {
        let read = text("loadtest/lib/api.js") + &text("loadtest/lib/summary.js");
        assert!(read.contains(name), "k6 does not read {name}");
    }
}

#[test]
fn only_api_and_grafana_are_published_on_loopback() {
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
        let is_outside = networks(service).contains(&"outside");
        assert_eq!(is_outside, ["api", "tracker", "grafana", "k6"].contains(&name.as_str()), "{name}");
    }
    let port = &compose["services"]["api"]["ports"][0]["target"];
    let listen = &environment(&compose["services"]["api"])["TIDEMARK_LISTEN"];
    assert_eq!(port.as_u64().unwrap(), u64::from(listen.parse::<SocketAddr>().unwrap().port()));
}

#[test]
fn mounts_exist_and_are_read_only() {
    let compose = compose(&SECRETS, &[]);
    let mut used = BTreeSet::new();
    for (name, service) in compose["services"].as_object().unwrap() {
        for mount in service["volumes"].as_array().into_iter().flatten() {
            let source = mount["source"].as_str().unwrap();
            if mount["type"] == "volume" {
                // One writer per volume.
                assert!(mount["read_only"] == true || used.insert(source), "{source} has two writers");
                continue;
            }
            assert!(
                source.starts_with(ROOT) && Path::new(source).exists(),
                "{name}: {source} does not exist"
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
        let argument = format!("{option}{}", mounted(&services[service], file));
        assert!(
            words(&services[service]["command"]).contains(&argument.as_str()),
            "{service} does not read {file}"
        );
    }
    let script = words(&services["k6"]["command"]).last().unwrap().to_string();
    let script = script.strip_prefix(&mounted(&services["k6"], "loadtest")).expect("a mounted script");
    assert!(path("loadtest").join(script.trim_start_matches('/')).exists(), "{script}");
}

#[test]
fn install_page_has_the_memory_limits() {
    let services = services();
    let long_running =
        services.values().filter(|service| !runs_once(service) && service["profiles"].is_null());
    let limit = |service: &Value| -> u64 {
        service["deploy"]["resources"]["limits"]["memory"].as_str().unwrap().parse().unwrap()
    };
    let gibibytes = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    let all = gibibytes(long_running.map(limit).sum());
    let ours = gibibytes(limit(&services["api"]) + limit(&services["tracker"]));
    let expected = format!("{all} in all (`docker-compose.yml`), {ours} of it for the API and the tracker");
    assert!(text("docs/install.md").contains(&expected), "docs/install.md lacks: {expected}");
}

#[test]
fn stop_grace_periods_are_sufficient() {
    let services = services();
    let grace = Duration::from_secs(tidemark::shutdown::DEFAULT_STOP_SECONDS + 5);
    assert!(seconds(&services["api"]["stop_grace_period"]) >= grace.as_secs());
    for name in ["tracker", "postgres", "clickhouse"] {
        assert!(seconds(&services[name]["stop_grace_period"]) >= 60, "{name}");
    }
}

#[test]
fn sandbox_variables_match_the_program() {
    let (set, _) = variables("deploy/sandbox.env");
    let mut expected = sandbox::server::environment("http://sandbox:8480");
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
            if name == "api" && variable == "TIDEMARK_MEDIA_ALLOWED_HOSTS" {
                continue;
            }
            assert_eq!(reached.get(variable), Some(value), "{variable} does not reach the {name}");
        }
    }
    let listen = &environment(&compose["services"]["sandbox"])["TIDEMARK_SANDBOX_LISTEN"];
    assert_eq!(listen, "0.0.0.0:8480");
}
