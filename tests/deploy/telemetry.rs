//! The collector, Tempo, Prometheus and Grafana: ports, endpoints and data sources match each other.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use serde_json::Value;

use crate::containers::{environment, is_in_volume, mounted, services};
use crate::{path, yaml};

/// Job, host and port of everything that Prometheus scrapes.
fn targets() -> Vec<(String, String, u64)> {
    let config = yaml("deploy/prometheus.yml");
    let mut found = Vec::new();
    for job in config["scrape_configs"].as_array().unwrap() {
        let name = job["job_name"].as_str().unwrap();
        for lookup in job["dns_sd_configs"].as_array().into_iter().flatten() {
            assert_eq!(lookup["type"], "A", "{name}: a port comes from the file");
            let hosts = lookup["names"].as_array().unwrap().iter();
            found.extend(hosts.map(|host| {
                (name.to_owned(), host.as_str().unwrap().to_owned(), lookup["port"].as_u64().unwrap())
            }));
        }
        for list in job["static_configs"].as_array().into_iter().flatten() {
            for target in list["targets"].as_array().unwrap() {
                let (host, port) = target.as_str().unwrap().split_once(':').unwrap();
                found.push((name.to_owned(), host.to_owned(), port.parse().unwrap()));
            }
        }
    }
    found
}

#[test]
fn prometheus_scrapes_all_metrics_endpoints() {
    let services = services();
    let collector = yaml("deploy/otel-collector.yaml");
    let collector =
        &collector["service"]["telemetry"]["metrics"]["readers"][0]["pull"]["exporter"]["prometheus"];
    let tempo = yaml("deploy/tempo.yaml");
    let mut jobs = BTreeSet::new();
    for (job, host, port) in targets() {
        let expected = match host.as_str() {
            "otel-collector" => {
                assert_eq!(collector["host"], "0.0.0.0");
                collector["port"].as_u64().unwrap()
            }
            "tempo" => tempo["server"]["http_listen_port"].as_u64().unwrap(),
            "localhost" => 9090,
            host => {
                let listen = &environment(&services[host])["TIDEMARK_METRICS_LISTEN"];
                u64::from(listen.parse::<SocketAddr>().unwrap().port())
            }
        };
        assert_eq!(port, expected, "{job}");
        assert!(jobs.insert(job), "a job is listed twice");
    }
    // Every process with metrics is scraped.
    for (name, service) in &services {
        let has_metrics = environment(service).contains_key("TIDEMARK_METRICS_LISTEN");
        assert_eq!(has_metrics, jobs.contains(&format!("tidemark-{name}")), "{name}");
    }
}

#[test]
fn collector_sends_traces_to_tempo() {
    let config = yaml("deploy/otel-collector.yaml");
    let pipelines = config["service"]["pipelines"].as_object().unwrap();
    assert_eq!(pipelines.keys().collect::<Vec<_>>(), ["traces"], "the program exports traces only");
    for (kind, list) in pipelines["traces"].as_object().unwrap() {
        for name in list.as_array().unwrap() {
            assert!(!config[kind][name.as_str().unwrap()].is_null(), "there is no {name} among the {kind}");
        }
    }
    let used = pipelines["traces"]["exporters"][0].as_str().unwrap();
    let tempo = yaml("deploy/tempo.yaml");
    let listens =
        tempo["distributor"]["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"].as_str().unwrap();
    let (_, port) = listens.rsplit_once(':').unwrap();
    assert_eq!(config["exporters"][used]["endpoint"], format!("tempo:{port}"));
    // Below the container's limit.
    let limit = services()["otel-collector"]["deploy"]["resources"]["limits"]["memory"].clone();
    let limit: u64 = limit.as_str().unwrap().parse().unwrap();
    assert!(config["processors"]["memory_limiter"]["limit_mib"].as_u64().unwrap() << 20 < limit);
    for folder in [&tempo["storage"]["trace"]["local"]["path"], &tempo["storage"]["trace"]["wal"]["path"]] {
        assert!(
            is_in_volume(&services()["tempo"], folder.as_str().unwrap()),
            "{folder} is lost with the container"
        );
    }
}

/// All values of a key, recursively.
fn values_of<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if name == key {
                    found.push(field);
                }
                values_of(field, key, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| values_of(item, key, found)),
        _ => {}
    }
}

#[test]
fn grafana_has_dashboards_and_data_sources() {
    let services = services();
    let grafana = &services["grafana"];
    let variables = environment(grafana);
    let mut types = BTreeSet::new();
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(path("deploy/grafana/provisioning/datasources")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let config = yaml(&format!("deploy/grafana/provisioning/datasources/{name}"));
        for source in config["datasources"].as_array().unwrap() {
            let variable = source["url"].as_str().unwrap().strip_prefix('$').unwrap();
            let url = url::Url::parse(&variables[variable]).unwrap();
            let host = url.host_str().unwrap();
            assert!(services.contains_key(host), "{variable}: no service {host}");
            let port = match host {
                "tempo" => yaml("deploy/tempo.yaml")["server"]["http_listen_port"].as_u64().unwrap(),
                _ => targets().iter().find(|(job, ..)| job == host).unwrap().2,
            };
            assert_eq!(url.port().map(u64::from), Some(port), "{variable}");
            let kind = source["type"].as_str().unwrap().to_owned();
            if source["isDefault"] == true {
                assert_eq!(kind, "prometheus", "the default data source");
            }
            assert!(names.insert(source["uid"].as_str().unwrap().to_owned()), "a uid is listed twice");
            types.insert(kind);
        }
    }
    assert_eq!(types.into_iter().collect::<Vec<_>>(), ["prometheus", "tempo"]);
    let provider = yaml("deploy/grafana/provisioning/dashboards/tidemark.yaml");
    let folder = provider["providers"][0]["options"]["path"].as_str().unwrap();
    assert_eq!(mounted(grafana, "deploy/grafana/dashboards"), folder);
    assert_eq!(mounted(grafana, "deploy/grafana/provisioning"), "/etc/grafana/provisioning");
    let (mut panels, mut expressions) = (0, Vec::new());
    for entry in std::fs::read_dir(path("deploy/grafana/dashboards")).unwrap() {
        let file = entry.unwrap().path();
        let dashboard: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let mut values = Vec::new();
        values_of(&dashboard["panels"], "expr", &mut values);
        expressions.extend(values.into_iter().map(|expression| expression.as_str().unwrap().to_owned()));
        let mut sources = Vec::new();
        values_of(&dashboard, "datasource", &mut sources);
        for source in sources {
            let uid = source["uid"].as_str().unwrap();
            // The variable selects any Prometheus.
            let is_known = uid == "${datasource}" && source["type"] == "prometheus" || names.contains(uid);
            assert!(is_known, "{file:?} uses {source}");
            panels += 1;
        }
    }
    assert!(panels > 10, "{panels}");
    // Shows services without a health check.
    assert!(
        expressions.iter().any(|expression| expression == "min by (job) (up)"),
        "no panel shows failed jobs"
    );
}
