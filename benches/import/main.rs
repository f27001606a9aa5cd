//! Times `tidemark import` into a running system until the rows are visible in /overview and /search, and measures memory of the
//! import and the API: `make bench-import`. TIDEMARK_BENCH_ROWS sets the rows of a file, TIDEMARK_BENCH_VIDEOS those of the file
//! with one row per video, by default a tenth of it.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use harness::{Organization, Stack, anonymous_memory, command, cpu_seconds, processes_in};
use serde_json::Value;
use tidemark::export::{self, ExportFormat};

const DEFAULT_ROWS: u64 = 600_000;
const VIDEOS_PER_ACCOUNT: u64 = 100;
/// The processes of the stack whose processor time is printed, with what their command lines contain.
const PROCESSES: [(&str, &str); 4] =
    [("Postgres", "postgres"), ("ClickHouse", " clickhouse "), ("API", " serve "), ("tracker", " track")];
const POLL_INTERVAL: Duration = Duration::from_millis(20);

const WORDS: &str = "dance,tutorial,มาดู,học,عرض,día,☀️🎉,vlog,morning routine,recipe,outfit of the day,#fyp,#foryou,100%,\
    storytime,giveaway,travel,đà nẵng,ตลก,behind the scenes,new song,cover,comedy,prank,review,unboxing";

/// A generated file, ordered by day or by video.
struct FileShape {
    rows: u64,
    rows_per_video: u64,
    by_day: bool,
}

impl FileShape {
    fn write_csv(&self, path: &Path) {
        let mut file = BufWriter::new(File::create(path).expect("create the file"));
        writeln!(
            file,
            "platform,username,external_id,observed_at,create_time,description,view_count,like_count,comment_count,\
             share_count,saved_count"
        )
        .expect("write the file");
        let words: Vec<_> = WORDS.split(',').collect();
        let videos = self.rows / self.rows_per_video;
        for n in 0..videos * self.rows_per_video {
            let (video, day) = if self.by_day {
                (n % videos, n / videos)
            } else {
                (n / self.rows_per_video, n % self.rows_per_video)
            };
            let word = |n: u64| words[(n % words.len() as u64) as usize];
            let views = video * 2_654_435_761 % 100_000 + day * 1_000;
            writeln!(
                file,
                "{},user{},{},2026-01-{:02},2026-01-{:02}T10:00:00Z,{} {} {} no {video},{views},{},{},{},{}",
                if (video / VIDEOS_PER_ACCOUNT).is_multiple_of(2) { "tiktok" } else { "instagram" },
                video / VIDEOS_PER_ACCOUNT,
                7_000_000_000_000_000_000 + video,
                day + 1,
                video % 28 + 1,
                word(video),
                word(video / 7),
                word(video / 31),
                views / 10,
                views / 100,
                views / 200,
                views / 300,
            )
            .expect("write the file");
        }
        file.flush().expect("write the file");
    }

    fn videos(&self) -> u64 {
        self.rows / self.rows_per_video
    }

    fn views(&self) -> i64 {
        let last = (self.rows_per_video - 1) * 1_000;
        (0..self.videos()).map(|video| (video * 2_654_435_761 % 100_000 + last) as i64).sum()
    }
}

#[tokio::main]
async fn main() {
    let rows = setting("TIDEMARK_BENCH_ROWS").unwrap_or(DEFAULT_ROWS);
    let stack = Stack::shared();
    let folder = tempfile::tempdir().expect("create a temporary folder");
    let processes = PROCESSES.map(|(name, _)| name).join(", ");
    println!(
        "| File | Rows | Rows per video | Rows/s until loaded | Rows/s until visible | CPU µs per row: all (import, {processes}) \
         | RssAnon of the import, MB | RssAnon of the API, MB |\n|---|---|---|---|---|---|---|---|"
    );
    let thirty_days = FileShape { rows, rows_per_video: 30, by_day: false };
    let csv = folder.path().join("videos.csv");
    thirty_days.write_csv(&csv);
    let organization = measure(&stack, "CSV", &thirty_days, &csv).await;
    for (name, format) in [("JSON Lines", ExportFormat::Jsonl), ("Parquet", ExportFormat::Parquet)] {
        let output = folder.path().join(name);
        let options = export::ExportOptions { format, output: output.clone(), progress: false };
        let files = export::write_files(&stack.databases, organization.id, &options)
            .await
            .expect("export the organization")
            .files;
        measure(&stack, &format!("{name}, as exported"), &thirty_days, &files[1]).await;
        std::fs::remove_dir_all(output).expect("remove the export");
    }
    let by_day = FileShape { by_day: true, ..thirty_days };
    by_day.write_csv(&csv);
    measure(&stack, "CSV, day by day", &by_day, &csv).await;
    let single = FileShape {
        rows: setting("TIDEMARK_BENCH_VIDEOS").unwrap_or(rows / 10),
        rows_per_video: 1,
        by_day: false,
    };
    single.write_csv(&csv);
    measure(&stack, "CSV", &single, &csv).await;
}

fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// Imports a file into a new organization and prints a table row.
async fn measure(stack: &Stack, name: &str, shape: &FileShape, file: &Path) -> Organization {
    let organization = stack.organization().await;
    let connection = &stack.connection;
    let before = stack_cpu();
    let start = Instant::now();
    let child = command()
        .args(["import", "--json", "--org", &organization.id.to_string()])
        .arg(file)
        .env("TIDEMARK_DATABASE_URL", &connection.database_url)
        .env("TIDEMARK_CLICKHOUSE_URL", &connection.clickhouse_url)
        .env("TIDEMARK_CLICKHOUSE_DATABASE", &connection.clickhouse_database)
        .env("TIDEMARK_CLICKHOUSE_USER", &connection.clickhouse_user)
        .env("TIDEMARK_CLICKHOUSE_PASSWORD", &connection.clickhouse_password)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("start the import");
    let import = child.id();
    let api = processes().into_iter().find(|(_, command)| command.contains(" serve ")).map(|(pid, _)| pid);
    let (mut loaded, mut version, mut import_cpu) = (Duration::ZERO, 0, 0.0);
    let (mut import_peak, mut api_peak) = (0, 0);
    let exit = tokio::task::spawn_blocking(move || child.wait_with_output());
    while !exit.is_finished() {
        import_peak = import_peak.max(anonymous_memory(import));
        api_peak = api_peak.max(api.map_or(0, anonymous_memory));
        import_cpu = cpu_seconds(import).max(import_cpu);
        // Every transaction updates the organization's row.
        let now: i64 = sqlx::query_scalar("select xmin::text::bigint from organizations where id = $1")
            .bind(organization.id)
            .fetch_one(stack.pg())
            .await
            .expect("query Postgres");
        if now != version {
            (version, loaded) = (now, start.elapsed());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let visible = start.elapsed();
    let output = exit.await.expect("join the waiting thread").expect("wait for the import");
    assert!(output.status.success(), "the import failed");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("the summary is JSON");
    assert_eq!(summary["videos"], shape.videos());
    let micros = |seconds: f64| seconds * 1e6 / shape.rows as f64;
    let (mut all, mut parts) = (micros(import_cpu), vec![format!("{:.1}", micros(import_cpu))]);
    for (after, before) in stack_cpu().into_iter().zip(before) {
        all += micros(after - before);
        parts.push(format!("{:.1}", micros(after - before)));
    }
    let rows_per_second = |time: Duration| (shape.rows as f64 / time.as_secs_f64()) as u64;
    println!(
        "| {name} | {} | {} | {} | {} | {all:.1} ({}) | {} | {} |",
        shape.rows,
        shape.rows_per_video,
        rows_per_second(loaded),
        rows_per_second(visible),
        parts.join(", "),
        import_peak >> 10,
        api_peak >> 10,
    );
    let overview = organization.get("/overview?start_date=2026-01-01&end_date=2026-02-28").await.ok(200);
    assert_eq!(overview.integer("/data/views/current"), shape.views(), "views in /overview");
    let last = shape.videos() - 1;
    let found = organization.get(&format!("/search?q=no%20{last}")).await.ok(200);
    assert!(!found.list("/data/videos").is_empty(), "the last video can be found");
    organization
}

/// Processor seconds of the processes of the stack so far, in the order of `PROCESSES`.
fn stack_cpu() -> [f64; PROCESSES.len()] {
    let mut seconds = [0.0; PROCESSES.len()];
    for (pid, command) in processes() {
        if let Some(kind) = PROCESSES.iter().position(|(_, part)| command.contains(part)) {
            seconds[kind] += cpu_seconds(pid);
        }
    }
    seconds
}

/// The processes of the stack, with their command lines.
fn processes() -> Vec<(u32, String)> {
    let file = std::env::var("TIDEMARK_TEST_STACK").expect("TIDEMARK_TEST_STACK is set");
    let folder = Path::new(&file).parent().expect("the file is in a folder");
    processes_in(folder)
}
