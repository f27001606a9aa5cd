//! Access to docker-compose.yml from outside: the published network, a proxy on the same machine, and ClickHouse for data teams.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;
use url::Url;

use crate::containers::{SECRETS, compose, environment, networks};
use crate::{text, variables};

/// docker-compose.yml with the secrets and further variables.
fn with(more: &[(&str, &str)]) -> Value {
    let all: Vec<_> = SECRETS.into_iter().chain(more.iter().copied()).collect();
    compose(&all, &[])
}

/// The suggested value in .env.example.
fn suggested(variable: &str) -> String {
    let (_, suggested) = variables(".env.example");
    let found = suggested.into_iter().find(|(name, _)| name == variable);
    found.unwrap_or_else(|| panic!(".env.example lacks {variable}")).1
}

#[test]
fn proxy_on_this_machine_has_the_documented_address() {
    let address = |compose: &Value| {
        let outside = &compose["networks"]["outside"]["ipam"]["config"];
        assert_eq!(outside.as_array().map(Vec::len), Some(1), "{outside}");
        let text = |key: &str| outside[0][key].as_str().unwrap().to_owned();
        (text("subnet"), text("gateway"))
    };
    let compose = with(&[]);
    let (subnet, gateway) = address(&compose);
    assert!(
        subnet.parse::<IpNet>().unwrap().contains(&gateway.parse::<IpAddr>().unwrap()),
        "{gateway} in {subnet}"
    );
    assert_eq!(suggested("TIDEMARK_TRUSTED_PROXIES"), gateway);
    let page = text("docs/install.md");
    assert!(page.contains(&format!("| `{gateway}`")), "docs/install.md lacks {gateway}");
    assert!(text(".env.example").contains(&subnet), ".env.example lacks {subnet}");
    // The API has no other external network.
    let api_networks = networks(&compose["services"]["api"]);
    let open: Vec<_> =
        api_networks.iter().filter(|name| compose["networks"][**name]["internal"] != true).collect();
    assert_eq!(open, [&"outside"]);
    // The subnet is configurable, and no proxy is trusted by default.
    let other = with(&[("OUTSIDE_SUBNET", "192.168.77.0/28"), ("OUTSIDE_GATEWAY", "192.168.77.1")]);
    assert_eq!(address(&other), ("192.168.77.0/28".to_owned(), "192.168.77.1".to_owned()));
    assert!(!environment(&compose["services"]["api"]).contains_key("TIDEMARK_TRUSTED_PROXIES"));
}

#[test]
fn clickhouse_is_published_by_one_line_on_loopback() {
    let line = suggested("COMPOSE_FILE");
    let page = text("docs/data-access.md");
    assert!(page.contains(&format!("COMPOSE_FILE={line}\n")), "docs/data-access.md lacks the line");
    let (without, published) = (with(&[]), with(&[("COMPOSE_FILE", &line), ("PUBLISH_ADDRESS", "0.0.0.0")]));
    for (name, service) in published["services"].as_object().unwrap() {
        let (mut service, mut before) = (service.clone(), without["services"][name].clone());
        assert_eq!(networks(&service).contains(&"readers"), name == "clickhouse", "{name}");
        let changed: &[&str] = match name.as_str() {
            "clickhouse" => &["ports", "networks"],
            "api" | "grafana" => &["ports"],
            _ => &[],
        };
        for key in changed {
            service.as_object_mut().unwrap().remove(*key);
            before.as_object_mut().unwrap().remove(*key);
        }
        assert_eq!(service, before, "{name}");
    }
    let clickhouse = |compose: &Value| {
        let service = &compose["services"]["clickhouse"];
        assert_eq!(networks(service), ["readers", "stores"]);
        let ports = service["ports"].as_array().unwrap();
        let [port] = &ports[..] else { panic!("{ports:?}") };
        let inside =
            Url::parse(&environment(&compose["services"]["api"])["TIDEMARK_CLICKHOUSE_URL"]).unwrap();
        assert_eq!(port["target"].as_u64(), inside.port().map(u64::from), "the HTTP interface");
        format!("{}:{}", port["host_ip"].as_str().unwrap(), port["published"].as_str().unwrap())
    };
    // Ports of an internal network are not published.
    assert_ne!(published["networks"]["readers"]["internal"], true);
    assert_eq!(clickhouse(&published), "127.0.0.1:8123", "without TLS, on loopback only");
    let more =
        [("COMPOSE_FILE", line.as_str()), ("CLICKHOUSE_ADDRESS", "10.1.2.3"), ("CLICKHOUSE_PORT", "18123")];
    assert_eq!(clickhouse(&with(&more)), "10.1.2.3:18123");
    for (name, _) in &more[1..] {
        assert!(page.contains(&format!("`{name}`")), "docs/data-access.md lacks {name}");
    }
}
