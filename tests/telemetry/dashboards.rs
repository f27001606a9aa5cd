//! The dashboards in deploy/grafana and the documented alerts query only metrics and labels that are exported.

use std::collections::BTreeSet;

use serde_json::Value;
use tidemark::telemetry::names::{ALL, Metric, MetricKind};

/// Labels that Prometheus adds.
const PROMETHEUS_LABELS: [&str; 3] = ["le", "job", "instance"];
/// The metric that Prometheus records for each scrape target: whether it is reachable.
const UP: &str = "up";

/// Collects the strings with this key at any depth.
fn collect_strings<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if name == key {
                    found.extend(field.as_str());
                }
                collect_strings(field, key, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_strings(item, key, found)),
        _ => {}
    }
}

/// The names in an expression: outside of braces and quotes metrics and functions, inside braces and `by (…)` labels.
fn parse_names(expression: &str) -> (Vec<String>, Vec<String>) {
    let (mut outside, mut labels) = (Vec::new(), Vec::new());
    let (mut braces, mut grouping, mut quoted) = (false, false, false);
    let mut word = String::new();
    for letter in expression.chars().chain([' ']) {
        let in_word = letter.is_ascii_alphanumeric() || "_:".contains(letter);
        if in_word && !quoted {
            word.push(letter);
            continue;
        }
        let complete = std::mem::take(&mut word);
        if !quoted && !complete.is_empty() {
            match complete.as_str() {
                "by" | "on" => grouping = true,
                _ if braces || grouping => labels.push(complete),
                _ => outside.push(complete),
            }
        }
        match letter {
            '"' => quoted = !quoted,
            '{' if !quoted => braces = true,
            '}' if !quoted => braces = false,
            ')' if !quoted => grouping = false,
            _ => {}
        }
    }
    (outside, labels)
}

/// The metric that a name in an expression belongs to.
fn find_metric(name: &str) -> Option<&'static Metric> {
    ALL.iter().find(|metric| {
        let base = metric.prometheus_name();
        match metric.kind {
            MetricKind::Histogram(_) => ["_bucket", "_sum", "_count"]
                .iter()
                .any(|suffix| name.strip_suffix(suffix) == Some(base.as_str())),
            _ => name == base,
        }
    })
}

/// The metrics that an expression queries. Fails if a metric or a label is not exported.
#[track_caller]
fn queried_metrics(source: &str, expression: &str) -> Vec<&'static Metric> {
    let (outside, labels) = parse_names(expression);
    let metrics: Vec<_> = outside.iter().filter_map(|word| find_metric(word)).collect();
    let has_one = !metrics.is_empty() || outside.iter().any(|word| word == UP);
    assert!(has_one, "{source}: no metric in {expression}");
    // No function or unit has one of these prefixes.
    for word in outside.iter().filter(|word| find_metric(word).is_none()) {
        let has_metric_prefix =
            ["tidemark_", "http_", "db_", "process_"].iter().any(|prefix| word.starts_with(prefix));
        assert!(!has_metric_prefix, "{source}: no metric {word}, in {expression}");
    }
    for label in labels.iter().filter(|label| !PROMETHEUS_LABELS.contains(&label.as_str())) {
        let has_label = |metric: &&Metric| metric.labels.iter().any(|name| name.replace('.', "_") == *label);
        assert!(metrics.iter().any(has_label), "{source}: no label {label}, in {expression}");
    }
    metrics
}

#[test]
fn dashboards_query_all_exported_metrics_and_no_others() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/grafana/dashboards");
    let mut shown = BTreeSet::new();
    let mut uids = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        let dashboard: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert!(uids.insert(dashboard["uid"].as_str().unwrap().to_owned()), "{name}: duplicate uid");
        let mut expressions = Vec::new();
        collect_strings(&dashboard["panels"], "expr", &mut expressions);
        assert!(expressions.len() >= 4, "{name}: too few expressions: {expressions:?}");
        let mut variables = Vec::new();
        collect_strings(&dashboard["templating"], "definition", &mut variables);
        assert!(!variables.is_empty(), "{name}: no variable");
        for expression in expressions {
            shown.extend(queried_metrics(&name, expression).iter().map(|metric| metric.name));
        }
    }
    let hidden: Vec<_> = ALL.iter().map(|metric| metric.name).filter(|name| !shown.contains(name)).collect();
    assert_eq!(hidden, Vec::<&str>::new(), "exported but on no dashboard");
}

#[test]
fn alerts_query_only_exported_metrics() {
    let page = include_str!("../../docs/operating.md");
    let (_, alerts) = page.split_once("```promql\n").unwrap();
    let (alerts, _) = alerts.split_once("```").unwrap();
    let queried: Vec<_> = alerts.lines().map(|alert| queried_metrics("docs/operating.md", alert)).collect();
    assert!(queried.len() > 4, "{alerts}");
}

#[test]
fn expression_is_split_into_metrics_and_labels() {
    let (outside, labels) =
        parse_names(r#"sum by (le, http_route) (rate(a_bucket{job="x_y", b=~"5.."}[5m])) / b_count"#);
    assert_eq!(outside, ["sum", "rate", "a_bucket", "5m", "b_count"]);
    assert_eq!(labels, ["le", "http_route", "job", "b"]);
}
