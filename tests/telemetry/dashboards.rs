//! The dashboards in deploy/grafana ask only for metrics and labels that the program exports.

use std::collections::BTreeSet;

use serde_json::Value;
use tidemark::telemetry::names::{ALL, Metric, MetricKind};

/// What Prometheus adds to the program's labels.
const OF_PROMETHEUS: [&str; 3] = ["le", "job", "instance"];
/// Prometheus' own metric of everything that it reads: whether it answered.
const ANSWERED: &str = "up";

/// Every string under a key, however deep.
fn under<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if name == key {
                    found.extend(field.as_str());
                }
                under(field, key, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| under(item, key, found)),
        _ => {}
    }
}

/// The names in an expression: outside of braces and quotes metrics and functions, inside braces and `by (…)` labels.
fn words(expression: &str) -> (Vec<String>, Vec<String>) {
    let (mut outside, mut labels) = (Vec::new(), Vec::new());
    let (mut braces, mut grouping, mut quoted) = (false, false, false);
    let mut word = String::new();
    for letter in expression.chars().chain([' ']) {
        let part = letter.is_ascii_alphanumeric() || "_:".contains(letter);
        if part && !quoted {
            word.push(letter);
            continue;
        }
        let ended = std::mem::take(&mut word);
        if !quoted && !ended.is_empty() {
            match ended.as_str() {
                "by" | "on" => grouping = true,
                _ if braces || grouping => labels.push(ended),
                _ => outside.push(ended),
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

/// The metric that a name in an expression is of.
fn metric(name: &str) -> Option<&'static Metric> {
    ALL.iter().find(|metric| {
        let known = metric.prometheus_name();
        match metric.kind {
            MetricKind::Histogram(_) => ["_bucket", "_sum", "_count"]
                .iter()
                .any(|part| name.strip_suffix(part) == Some(known.as_str())),
            _ => name == known,
        }
    })
}

/// The metrics that an expression asks for, which there are, as are its labels.
#[track_caller]
fn metrics_of(place: &str, expression: &str) -> Vec<&'static Metric> {
    let (outside, labels) = words(expression);
    let metrics: Vec<_> = outside.iter().filter_map(|word| metric(word)).collect();
    let has_one = !metrics.is_empty() || outside.iter().any(|word| word == ANSWERED);
    assert!(has_one, "{place}: no metric in {expression}");
    // Functions and units have no such beginnings.
    for word in outside.iter().filter(|word| metric(word).is_none()) {
        let alike = ["tidemark_", "http_", "db_", "process_"].iter().any(|start| word.starts_with(start));
        assert!(!alike, "{place}: no metric {word}, in {expression}");
    }
    for label in labels.iter().filter(|label| !OF_PROMETHEUS.contains(&label.as_str())) {
        let carried = |metric: &&Metric| metric.labels.iter().any(|known| known.replace('.', "_") == *label);
        assert!(metrics.iter().any(carried), "{place}: no label {label}, in {expression}");
    }
    metrics
}

#[test]
fn dashboards_ask_only_for_what_is_exported() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/grafana/dashboards");
    let mut shown = BTreeSet::new();
    let mut uids = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        let dashboard: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert!(uids.insert(dashboard["uid"].as_str().unwrap().to_owned()), "{name}: its uid is taken");
        let mut expressions = Vec::new();
        under(&dashboard["panels"], "expr", &mut expressions);
        assert!(expressions.len() >= 4, "{name} shows little: {expressions:?}");
        let mut variables = Vec::new();
        under(&dashboard["templating"], "definition", &mut variables);
        assert!(!variables.is_empty(), "{name} has no variable");
        for expression in expressions {
            shown.extend(metrics_of(&name, expression).iter().map(|metric| metric.name));
        }
    }
    let hidden: Vec<_> = ALL.iter().map(|metric| metric.name).filter(|name| !shown.contains(name)).collect();
    assert_eq!(hidden, Vec::<&str>::new(), "exported and shown nowhere");
}

#[test]
fn alerts_ask_only_for_what_is_exported() {
    let page = include_str!("../../docs/operating.md");
    let (_, alerts) = page.split_once("```promql\n").unwrap();
    let (alerts, _) = alerts.split_once("```").unwrap();
    let asked: Vec<_> = alerts.lines().map(|alert| metrics_of("docs/operating.md", alert)).collect();
    assert!(asked.len() > 4, "{alerts}");
}

#[test]
fn expressions_are_taken_apart() {
    let (outside, labels) =
        words(r#"sum by (le, http_route) (rate(a_bucket{job="x_y", b=~"5.."}[5m])) / b_count"#);
    assert_eq!(outside, ["sum", "rate", "a_bucket", "5m", "b_count"]);
    assert_eq!(labels, ["le", "http_route", "job", "b"]);
}
