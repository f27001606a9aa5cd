//! Latency with one client. API and plain SQL alternate by query and by organization, so that other load on the machine
//! affects both equally.

use crate::endpoints::{Endpoint, Filter};
use crate::queries::QueryGenerator;
use crate::targets::{Targets, Times};

/// One organization, with its key.
pub struct Tenant<'a> {
    pub name: &'a str,
    pub targets: Targets,
    pub generator: QueryGenerator<'a>,
}

#[derive(Default)]
struct Measurements {
    api: Times,
    querying_api: Times,
    sql: Times,
    rows: u64,
    bytes: u64,
}

/// Pages before the measured ones, and how many of these there are.
const DEEP_PAGE: usize = 100;
const DEEP_PAGES: usize = 20;

/// Tries each endpoint once and returns those that respond; prints the others.
pub async fn measurable(tenant: &mut Tenant<'_>, endpoints: &[Endpoint]) -> Vec<Endpoint> {
    let mut measurable = Vec::new();
    for endpoint in endpoints {
        match try_once(tenant, *endpoint).await {
            Ok(()) => measurable.push(*endpoint),
            Err(error) => {
                println!(
                    "not measured: {}: {}",
                    endpoint.name(),
                    error.chars().take(300).collect::<String>()
                );
            }
        }
    }
    measurable
}

async fn try_once(tenant: &mut Tenant<'_>, endpoint: Endpoint) -> Result<(), String> {
    if matches!(endpoint, Endpoint::ContentTop { filter: Filter::DeepPage, .. }) {
        let first = tenant.generator.first_page();
        tenant.generator.deep_pages = tenant.targets.pages(&first, DEEP_PAGE, DEEP_PAGES).await?;
    }
    let query = tenant.generator.next(endpoint);
    tenant.targets.api(&query.path, None).await?;
    tenant.targets.without_rollups().api(&query.path, None).await?;
    tenant.targets.sql(&query).await?;
    Ok(())
}

/// Prints a table row for each endpoint and organization.
pub async fn measure(tenants: &mut [Tenant<'_>], endpoints: &[Endpoint], rounds: usize) {
    println!(
        "\n| Endpoint | Organization | API p50 | p99 | min | without rollups p50 | p99 | SQL p50 | p99 | min | p50 API − SQL | ratio | rows read | MB read |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for endpoint in endpoints.iter().copied() {
        let mut results: Vec<Measurements> = tenants.iter().map(|_| Measurements::default()).collect();
        for round in 0..rounds + WARMUP_ROUNDS {
            for (tenant, result) in tenants.iter_mut().zip(&mut results) {
                let query = tenant.generator.next(endpoint);
                let sql_first = round % 2 == 0;
                let mut sql_response = None;
                if sql_first {
                    sql_response = Some(tenant.targets.sql(&query).await.unwrap());
                }
                // Different ids and days, so that neither benefits from pages cached by the other.
                let api_query = tenant.generator.next(endpoint);
                let (took, _) = tenant.targets.api(&api_query.path, None).await.unwrap();
                let query_again = tenant.generator.next(endpoint);
                let (querying, _) =
                    tenant.targets.without_rollups().api(&query_again.path, None).await.unwrap();
                let sql_response = match sql_response {
                    Some(response) => response,
                    None => tenant.targets.sql(&query).await.unwrap(),
                };
                if round >= WARMUP_ROUNDS {
                    result.api.add(took);
                    result.querying_api.add(querying);
                    result.sql.add(sql_response.took);
                    (result.rows, result.bytes) =
                        (result.rows + sql_response.rows, result.bytes + sql_response.bytes);
                }
            }
        }
        for (tenant, result) in tenants.iter().zip(&results) {
            print_row(endpoint, tenant.name, result);
        }
    }
}

/// Warm-up rounds, not counted.
pub const WARMUP_ROUNDS: usize = 3;

fn print_row(endpoint: Endpoint, organization: &str, measurements: &Measurements) {
    let (api, sql, count) = (&measurements.api, &measurements.sql, measurements.api.len() as u64);
    println!(
        "| {}{} | {organization} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:+.1} | {:.2} | {} | {:.2} |",
        endpoint.name(),
        endpoint.target_ms().map(|target| format!(" (≤ {target})")).unwrap_or_default(),
        api.percentile(50),
        api.percentile(99),
        api.percentile(0),
        measurements.querying_api.percentile(50),
        measurements.querying_api.percentile(99),
        sql.percentile(50),
        sql.percentile(99),
        sql.percentile(0),
        api.percentile(50) - sql.percentile(50),
        api.percentile(50) / sql.percentile(50),
        measurements.rows / count,
        measurements.bytes as f64 / count as f64 / 1e6,
    );
}

/// Repeats a GET, without and with its ETag, on the API with a response cache.
pub async fn measure_repeats(
    targets: &Targets,
    generator: &mut QueryGenerator<'_>,
    endpoints: impl Iterator<Item = &Endpoint>,
    times: usize,
) {
    println!(
        "\n| Repeated GET | first | p50 | p99 | with If-None-Match p50 | p99 |\n|---|---|---|---|---|---|"
    );
    for endpoint in endpoints.copied() {
        let query = generator.next(endpoint);
        let (first, tag) = targets.api(&query.path, None).await.unwrap();
        let (mut repeated, mut unchanged) = (Times::default(), Times::default());
        for _ in 0..times {
            repeated.add(targets.api(&query.path, None).await.unwrap().0);
            if let Some(tag) = &tag {
                unchanged.add(targets.api(&query.path, Some(tag)).await.unwrap().0);
            }
        }
        let conditional = match tag {
            Some(_) => format!("{:.2} | {:.2}", unchanged.percentile(50), unchanged.percentile(99)),
            None => "no ETag | ".to_owned(),
        };
        println!(
            "| {} | {:.1} | {:.2} | {:.2} | {conditional} |",
            endpoint.name(),
            first.as_secs_f64() * 1_000.0,
            repeated.percentile(50),
            repeated.percentile(99),
        );
    }
}
