//! One client: API and plain SQL alternate, query by query and organization by organization, so that other work on the
//! machine affects both equally.

use crate::ask::{Peers, Times};
use crate::questions::{Draw, QUESTIONS, Question};

/// One organization, with its key.
pub struct Tenant<'a> {
    pub name: &'a str,
    pub peers: Peers,
    pub draw: Draw<'a>,
}

#[derive(Default)]
struct Line {
    api: Times,
    sql: Times,
    rows: u64,
    bytes: u64,
}

/// Prints a table row for each query and organization.
pub async fn measure(tenants: &mut [Tenant<'_>], rounds: usize) {
    println!(
        "\n| Endpoint | Organization | API p50 | p99 | least | SQL p50 | p99 | least | p50 API − SQL | ratio | rows read | MB read |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    for question in QUESTIONS {
        let mut lines: Vec<Line> = tenants.iter().map(|_| Line::default()).collect();
        for round in 0..rounds + WARM {
            for (tenant, line) in tenants.iter_mut().zip(&mut lines) {
                let asked = tenant.draw.next(question);
                let sql_first = round % 2 == 0;
                let mut direct = None;
                if sql_first {
                    direct = Some(tenant.peers.sql(&asked).await.unwrap());
                }
                // Different ids and days, so that neither benefits from what the other has just read.
                let other = tenant.draw.next(question);
                let (took, _) = tenant.peers.api(&other.path, None).await.unwrap();
                let direct = match direct {
                    Some(direct) => direct,
                    None => tenant.peers.sql(&asked).await.unwrap(),
                };
                if round >= WARM {
                    line.api.add(took);
                    line.sql.add(direct.took);
                    (line.rows, line.bytes) = (line.rows + direct.rows, line.bytes + direct.bytes);
                }
            }
        }
        for (tenant, line) in tenants.iter().zip(&lines) {
            print(question, tenant.name, line);
        }
    }
}

/// Warm-up rounds, not counted.
const WARM: usize = 3;

fn print(question: Question, organization: &str, line: &Line) {
    let (api, sql, count) = (&line.api, &line.sql, line.api.len() as u64);
    println!(
        "| {} (≤ {}) | {organization} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:+.1} | {:.2} | {} | {:.2} |",
        question.name(),
        question.target(),
        api.within(50),
        api.within(99),
        api.within(0),
        sql.within(50),
        sql.within(99),
        sql.within(0),
        api.within(50) - sql.within(50),
        api.within(50) / sql.within(50),
        line.rows / count,
        line.bytes as f64 / count as f64 / 1e6,
    );
}

/// Repeats a GET, without and with its ETag, on the API with a response cache.
pub async fn repeats(peers: &Peers, draw: &mut Draw<'_>, times: usize) {
    println!(
        "\n| Repeated GET | first | p50 | p99 | with If-None-Match p50 | p99 |\n|---|---|---|---|---|---|"
    );
    for question in QUESTIONS {
        let asked = draw.next(question);
        let (first, tag) = peers.api(&asked.path, None).await.unwrap();
        let (mut again, mut unchanged) = (Times::default(), Times::default());
        for _ in 0..times {
            again.add(peers.api(&asked.path, None).await.unwrap().0);
            if let Some(tag) = &tag {
                unchanged.add(peers.api(&asked.path, Some(tag)).await.unwrap().0);
            }
        }
        let conditional = match tag {
            Some(_) => format!("{:.2} | {:.2}", unchanged.within(50), unchanged.within(99)),
            None => "no ETag | ".to_owned(),
        };
        println!(
            "| {} | {:.1} | {:.2} | {:.2} | {conditional} |",
            question.name(),
            first.as_secs_f64() * 1_000.0,
            again.within(50),
            again.within(99),
        );
    }
}
