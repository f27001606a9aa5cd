//! Times ordinary requests of the API without and with the heaviest queries that a login of embedded ClickHouse may run, in a
//! loop. Prints the table of docs/measurements/logins.md: `make bench-logins`.

mod history;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use harness::{Organization, Stack, http_client};
use serde_json::json;
use tidemark::store::clickhouse::logins;
use tidemark::store::clickhouse::users::NewUser;

/// Clients of the API, each with a pause after a request.
const CLIENTS: usize = 4;
const PAUSE: Duration = Duration::from_millis(25);
/// Queries that the login sends at once; those beyond its permits wait.
const QUERIES: usize = 3;
/// Longer than a query may run and wait.
const QUERY_TIMEOUT: Duration = Duration::from_secs(180);
/// Measurements of each kind, by turns without and with queries.
const ROUNDS: usize = 4;
const SECONDS: u64 = 15;
/// At most, with the query of a login beside (p99).
const TARGET_RATIO: f64 = 1.5;

/// What the login runs in a loop.
const HEAVY: [(&str, &str); 4] = [
    (
        "hashes of 2 billion numbers",
        "SELECT count() FROM numbers(2000000000) WHERE NOT ignore(sipHash128(number))",
    ),
    (
        "a sort that fills its memory",
        "SELECT groupArray(number) FROM (SELECT number FROM numbers(1000000000) ORDER BY sipHash64(number))",
    ),
    (
        "every pair of the organization's posts",
        "SELECT max(cityHash64(a.description, b.description)) FROM videos AS a CROSS JOIN videos AS b CROSS JOIN numbers(1000) AS n",
    ),
    ("every view", "SELECT uniqExact(tuple(*)) FROM video_daily_gains"),
];

#[tokio::main]
async fn main() {
    let stack = Stack::shared();
    let organization = stack.unlimited_organization().await;
    history::import(&organization).await;
    let requests = Requests::new(&organization).await;
    let login = Login::create(&organization).await;
    let seconds = std::env::var("TIDEMARK_BENCH_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    let round = Duration::from_secs(seconds.unwrap_or(SECONDS));
    requests.run(round / 2).await;

    println!(
        "| Beside the API | Requests | p50 ms | p99 | p99 without | Ratio (at most {TARGET_RATIO}) | Queries ended |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, sql) in HEAVY {
        let (mut without, mut with, mut ended) = (Vec::new(), Vec::new(), 0);
        for _ in 0..ROUNDS {
            without.extend(requests.run(round).await);
            let queries = login.start(sql);
            with.extend(requests.run(round).await);
            ended += queries.stop().await;
        }
        let [without, with] = [without, with].map(sorted);
        let (before, after) = (percentile(&without, 99), percentile(&with, 99));
        println!(
            "| {name} | {} | {:.1} | {after:.1} | {before:.1} | {:.2} | {ended} |",
            with.len(),
            percentile(&with, 50),
            after / before,
        );
    }
}

fn sorted(mut milliseconds: Vec<f64>) -> Vec<f64> {
    milliseconds.sort_unstable_by(f64::total_cmp);
    milliseconds
}

fn percentile(milliseconds: &[f64], percent: usize) -> f64 {
    milliseconds[(milliseconds.len() - 1) * percent / 100]
}

/// Ordinary requests: lists, rankings, series, searches, single records, and writes.
struct Requests {
    organization: Organization,
    account: String,
    number: AtomicU64,
}

impl Requests {
    async fn new(organization: &Organization) -> Self {
        let accounts = organization.get("/accounts?limit=1").await.ok(200);
        let account = accounts.text("/data/0/id").to_owned();
        Requests { organization: organization.clone(), account, number: AtomicU64::new(0) }
    }

    /// Sends requests for a while; returns the milliseconds of each.
    async fn run(&self, duration: Duration) -> Vec<f64> {
        let end = Instant::now() + duration;
        let client = || async {
            let mut milliseconds = Vec::new();
            while Instant::now() < end {
                let started = Instant::now();
                self.send().await;
                milliseconds.push(started.elapsed().as_secs_f64() * 1e3);
                tokio::time::sleep(PAUSE).await;
            }
            milliseconds
        };
        futures_util::future::join_all((0..CLIENTS).map(|_| client())).await.concat()
    }

    /// Sends the next request. Windows differ, so that few responses are cached.
    async fn send(&self) {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let end = history::today();
        let start = end - chrono::Days::new(1 + number / 10 % u64::from(history::DAYS));
        let window = format!("start_date={start}&end_date={end}");
        let path = match number % 10 {
            0 => format!("/overview?period=custom&{window}"),
            1 => format!("/accounts/top?period=custom&{window}&limit=20"),
            2 => format!("/content/top?period=custom&{window}&limit=20"),
            3 => format!("/analytics/timeseries?period=custom&{window}"),
            4 => "/accounts?limit=50".to_owned(),
            5 => "/content?limit=50&order_by=view_count".to_owned(),
            6 => format!("/accounts/{}", self.account),
            7 => format!("/search?q=tide+{}", number % 97),
            8 => format!("/accounts/{}/analytics?period=custom&{window}", self.account),
            _ => {
                let path = format!("/accounts/{}", self.account);
                let body = json!({"category": format!("tag {number}")});
                self.organization.patch(&path, body).await.ok(200);
                return;
            }
        };
        self.organization.get(&path).await.ok(200);
    }
}

struct Login {
    url: String,
    user: String,
    password: String,
}

/// Queries of a login that repeat until they are stopped.
struct Queries {
    tasks: Vec<tokio::task::JoinHandle<()>>,
    is_stopped: Arc<AtomicBool>,
    ended: Arc<Mutex<u64>>,
}

impl Login {
    async fn create(organization: &Organization) -> Self {
        let (stack, connection) = (&organization.stack, &organization.stack.connection);
        let database = &connection.clickhouse_database;
        let public = format!("{database}_public");
        let new = NewUser::generate(database, &public, organization.id, "heavy").unwrap();
        let client = stack.clickhouse().clone().with_database("default");
        logins::create(&client, database, &new).await.unwrap();
        Login {
            url: connection.clickhouse_url.clone(),
            user: new.user.user.clone(),
            password: new.password.reveal().to_owned(),
        }
    }

    fn start(&self, sql: &'static str) -> Queries {
        let (is_stopped, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(0)));
        let tasks = (0..QUERIES).map(|_| {
            let request = http_client().post(&self.url).basic_auth(&self.user, Some(&self.password));
            let request = request.timeout(QUERY_TIMEOUT).body(sql);
            let (is_stopped, ended) = (Arc::clone(&is_stopped), Arc::clone(&ended));
            tokio::spawn(async move {
                while !is_stopped.load(Ordering::Relaxed) {
                    // Those that reach a limit end with an error.
                    if let Ok(response) = request.try_clone().unwrap().send().await
                        && response.bytes().await.is_ok()
                    {
                        *ended.lock().unwrap() += 1;
                    }
                }
            })
        });
        Queries { tasks: tasks.collect(), is_stopped, ended }
    }
}

impl Queries {
    /// Disconnects, which cancels the queries. Returns how many ended by themselves.
    async fn stop(self) -> u64 {
        self.is_stopped.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.abort();
            drop(task.await);
        }
        *self.ended.lock().unwrap()
    }
}
