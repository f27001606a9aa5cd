//! Logins read the rows of their tenant alone: generated statements, limits, and the end of a login.

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use chdb_http::{Credentials, LOGIN_TABLE, LoginRights, ServerOptions, VIEW_DEFINER};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::client::{HttpClient, Response};
use crate::tenant_statements::Generator;
use crate::wait_until;

const OWN: &str = "11111111-1111-4111-8111-111111111111";
pub const OTHER: &str = "22222222-2222-4222-8222-222222222222";
/// Only hidden rows contain it, and no statement.
const FOREIGN: &str = "qfxhidden";
/// Names the data directory to the process that restarts the server.
const RESTARTED: &str = "CHDB_HTTP_LOGIN_DATA";
const STATEMENTS: usize = 600;

/// Runs `test` against a server of this process with the engine of `data`, then shuts it down.
fn serve(data: &Path, test: impl FnOnce(&str)) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = listener.local_addr().unwrap();
    drop(listener);
    let rights = LoginRights {
        views: "team".to_owned(),
        sources: ["`history`.posts", "`history`.accounts", "`public`.*"].map(str::to_owned).to_vec(),
        database: "history".to_owned(),
        tables: ["posts", "accounts"].map(str::to_owned).to_vec(),
        tenant_column: "org_id".to_owned(),
    };
    let options = ServerOptions {
        data: data.to_owned(),
        listen,
        libchdb: std::env::var_os("LIBCHDB").map(PathBuf::from),
        max_memory: None,
        max_queries: 16,
        max_body: 1 << 30,
        allow_remote: false,
        user: "default".to_owned(),
        readonly_user: "readonly".to_owned(),
        logins: Some(rights),
        display_name: "test".to_owned(),
    };
    let server = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(chdb_http::run(options, false)).unwrap();
    });
    wait_until("the server listens", || TcpStream::connect(listen).is_ok());
    let url = format!("http://{listen}");
    // Answered when the engine is open, and the handler of the signal below installed.
    HttpClient::anonymous(&url).path("GET", "/ping").ok();
    test(&url);
    kill(Pid::this(), Signal::SIGTERM).unwrap();
    server.join().unwrap();
}

fn admin(url: &str, data: &Path) -> HttpClient {
    let credentials = Credentials::read(data).unwrap();
    HttpClient::new(url, &credentials.user, &credentials.password)
}

/// Two tables and a join of them, in which hidden rows differ from the login's in every value.
fn create_history(admin: &HttpClient) {
    for database in ["history", "public", "team", "hidden", "logins"] {
        admin.post(&format!("CREATE DATABASE {database}")).ok();
    }
    for table in ["posts", "accounts"] {
        let columns = "org_id UUID, id UInt64, name String, views Int64, version UInt64";
        admin
            .post(&format!(
                "CREATE TABLE history.{table} ({columns}) ENGINE = ReplacingMergeTree(version) ORDER BY (org_id, id)"
            ))
            .ok();
        for version in [1, 2] {
            let row = |org, name, views| {
                format!("SELECT '{org}', number, {name}, {views}, {version} FROM numbers(50)")
            };
            let own = row(OWN, "toString(number)".to_owned(), "toInt64(number + 7)");
            let other = row(OTHER, format!("'{FOREIGN}' || toString(number)"), "-1 - toInt64(number)");
            admin.post(&format!("INSERT INTO history.{table} {own} UNION ALL {other}")).ok();
        }
        let view =
            format!("SQL SECURITY INVOKER AS SELECT org_id, id, name, views FROM history.{table} FINAL");
        admin.post(&format!("CREATE VIEW public.{table} {view}")).ok();
    }
    admin
        .post(
            "CREATE VIEW public.joined SQL SECURITY INVOKER AS SELECT p.org_id AS org_id, id, p.name AS name, a.views AS views
             FROM history.posts AS p FINAL ANY LEFT JOIN (SELECT * FROM history.accounts FINAL) AS a USING (org_id, id)",
        )
        .ok();
    for (view, columns) in [
        (
            "totals",
            "org_id, any(id) AS id, max(name) AS name, sum(p.views) AS views FROM history.posts AS p FINAL GROUP BY org_id",
        ),
        (
            "running",
            "org_id, id, name, sum(p.views) OVER (PARTITION BY org_id ORDER BY id) AS views FROM history.posts AS p FINAL",
        ),
    ] {
        admin.post(&format!("CREATE VIEW public.{view} SQL SECURITY INVOKER AS SELECT {columns}")).ok();
    }
    for view in ["posts", "accounts", "joined", "totals", "running"] {
        let definer = format!("DEFINER = {VIEW_DEFINER} SQL SECURITY DEFINER");
        admin.post(&format!("CREATE VIEW team.{view} {definer} AS SELECT * FROM public.{view}")).ok();
    }
    admin.post("CREATE TABLE hidden.notes (name String) ENGINE = MergeTree ORDER BY name").ok();
    admin.post(&format!("INSERT INTO hidden.notes VALUES ('{FOREIGN}')")).ok();
    admin
        .post(
            "CREATE DICTIONARY history.names (id UInt64, name String) PRIMARY KEY id
             SOURCE(CLICKHOUSE(DB 'history' TABLE 'posts')) LAYOUT(HASHED()) LIFETIME(0)",
        )
        .ok();
    admin
        .post(&format!(
            "CREATE TABLE {LOGIN_TABLE} (name String, tenant UUID, password_sha256 String)
             ENGINE = MergeTree ORDER BY name"
        ))
        .ok();
}

fn create_login(admin: &HttpClient, name: &str, tenant: &str, password: &str) {
    let hash: String = Sha256::digest(password).iter().map(|byte| format!("{byte:02x}")).collect();
    admin.post(&format!("INSERT INTO {LOGIN_TABLE} VALUES ('{name}', '{tenant}', '{hash}')")).ok();
}

#[test]
fn logins_read_their_tenant_alone() {
    if let Some(data) = std::env::var_os(RESTARTED) {
        return check_restart(Path::new(&data));
    }
    let directory = TempDir::new().unwrap();
    let data = directory.path().join("data");
    serve(&data, |url| {
        let admin = admin(url, &data);
        let login = HttpClient::new(url, "reports", "secret");
        login.post("SELECT 1").assert_exception(403, "516", "Authentication failed");
        create_history(&admin);
        create_login(&admin, "reports", OWN, "secret");
        check_rows(&login);
        check_rights(&admin, &login);
        check_limits(&login);
        check_settings(&admin, &login);
        check_filters(&login);
        check_statements(&admin, &login, &data);
    });
    // A process opens an engine once.
    let mut restart = Command::new(std::env::current_exe().unwrap());
    restart.args(["--exact", "logins::logins_read_their_tenant_alone", "--nocapture"]);
    assert!(restart.env(RESTARTED, &data).status().unwrap().success());
}

/// After a restart, which has another secret.
fn check_restart(data: &Path) {
    serve(data, |url| {
        let (admin, login) = (admin(url, data), HttpClient::new(url, "reports", "secret"));
        check_rows(&login);
        HttpClient::new(url, "reports", "other").post("SELECT 1").assert_exception(403, "516", "");
        create_login(&admin, "others", OTHER, "secret");
        let others =
            HttpClient::new(url, "others", "secret").post("SELECT max(views), any(org_id) FROM posts");
        assert_eq!(others.ok(), format!("-1\t{OTHER}\n"));
        check_end(&admin, &login);
    });
}

fn check_rows(login: &HttpClient) {
    for view in ["posts", "accounts", "joined", "team.posts"] {
        let sql = format!("SELECT count(), sum(views), uniqExact(org_id), any(org_id) FROM {view}");
        assert_eq!(login.post(&sql).ok(), format!("50\t1575\t1\t{OWN}\n"), "{view}");
    }
    assert_eq!(login.post("SHOW TABLES").ok(), "accounts\njoined\nposts\nrunning\ntotals\n");
    assert_eq!(login.post("SELECT name FROM system.databases").ok(), "team\n");
    // The row policy narrows the key, so that only the tenant's rows are read.
    let plan = login.post("EXPLAIN indexes = 1 SELECT * FROM posts WHERE views = 3 FORMAT TSVRaw").ok();
    assert!(plan.contains(&format!("org_id in ['{OWN}', '{OWN}']")), "{plan}");
    assert!(plan.contains("Row level filter"), "{plan}");
}

fn check_rights(admin: &HttpClient, login: &HttpClient) {
    for (sql, code) in [
        ("SELECT * FROM history.posts", "497"),
        ("SELECT * FROM public.posts", "497"),
        ("SELECT * FROM hidden.notes", "497"),
        ("SELECT * FROM logins.logins", "497"),
        ("SELECT * FROM system.processes", "164"),
        ("SELECT dictGet('history.names', 'name', toUInt64(1))", "497"),
        ("SELECT * FROM (SELECT * FROM posts SETTINGS max_threads = 1)", "164"),
        ("SELECT file('/etc/passwd')", "164"),
        ("SELECT * FROM url('http://127.0.0.1:1', 'LineAsString')", "164"),
        ("INSERT INTO posts SELECT * FROM posts", "164"),
        ("SET ROLE ALL", "164"),
        ("USE history", "164"),
        ("DROP VIEW posts", "164"),
        ("KILL QUERY WHERE 1", "164"),
    ] {
        login.post(sql).assert_exception(login.post(sql).status, code, "");
    }
    for database in ["history", "system", "public"] {
        login.post_with(&[("database", database)], "SELECT 1").assert_exception(400, "164", "team only");
    }
    for setting in ["promql_table", "additional_result_filter", "priority"] {
        login.post_with(&[(setting, "1")], "SELECT 1").assert_exception(400, "164", "cannot change");
    }
    // The service keeps its rights.
    assert_eq!(admin.post("SELECT count() FROM history.posts FINAL").ok(), "100\n");
    assert_eq!(admin.post("SELECT count() FROM system.processes").ok(), "1\n");
}

fn check_limits(login: &HttpClient) {
    let sql = "SELECT getSetting('max_execution_time'), getSetting('max_rows_to_read'), getSetting('max_result_rows'), \
               getSetting('priority'), getSetting('readonly')";
    for value in ["0", "100000000000"] {
        let settings =
            ["max_execution_time", "max_rows_to_read", "max_result_rows"].map(|name| (name, value));
        assert_eq!(login.post_with(&settings, sql).ok(), "60\t2000000000\t10000000\t2\t1\n", "{value}");
    }
    assert_eq!(login.post(sql).ok(), "60\t2000000000\t10000000\t2\t1\n");
    login.post("SELECT count() FROM numbers(2000000001)").assert_exception(500, "158", "");
    login.post("SELECT length(groupArray(number)) FROM numbers(1000000000)").assert_exception(500, "241", "");
}

/// Harmless settings are accepted, and shown as changeable to clients that ask; limits can only be lowered.
fn check_settings(admin: &HttpClient, login: &HttpClient) {
    let settings = [
        ("session_timezone", "Asia/Tokyo"),
        ("join_use_nulls", "1"),
        ("date_time_input_format", "best_effort"),
        ("output_format_json_named_tuples_as_objects", "1"),
        ("mutations_sync", "2"),
        ("insert_distributed_sync", "1"),
        ("cancel_http_readonly_queries_on_client_close", "1"),
    ];
    let in_request = "SELECT timezone(), getSetting('join_use_nulls')";
    assert_eq!(login.post_with(&settings, in_request).ok(), "Asia/Tokyo\ttrue\n");
    let in_statement = "SELECT getSetting('max_execution_time'), getSetting('join_use_nulls') \
               SETTINGS max_execution_time = 3600, join_use_nulls = 1 FORMAT CSV";
    assert_eq!(login.post(in_statement).ok(), "60,true\n");
    for refused in [
        "SELECT 1 SETTINGS promql_table = ''",
        "SELECT 1 SETTINGS allow_introspection_functions = 1",
        "SELECT * FROM posts SETTINGS max_threads = 1 UNION ALL SELECT * FROM posts",
    ] {
        login.post(refused).assert_exception(400, "164", "this user cannot");
    }
    let changeable = "SELECT name FROM system.settings WHERE NOT readonly ORDER BY name";
    let names = login.post(changeable).ok();
    for (name, _) in settings.into_iter().chain([("max_threads", ""), ("additional_table_filters", "")]) {
        assert!(names.lines().any(|line| line == name), "{name}: {names}");
    }
    for name in ["readonly", "promql_table", "additional_result_filter", "priority", "allow_ddl"] {
        assert!(!names.lines().any(|line| line == name), "{name}");
    }
    // Each of them is accepted with the value that it has.
    let values = "SELECT name, value FROM system.settings WHERE NOT readonly AND value NOT IN ('', 'auto') FORMAT TSVRaw";
    for line in login.post(values).ok().lines() {
        let (name, value) = line.split_once('\t').unwrap();
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        let value = if name.starts_with("max_") && !is_number { "1" } else { value };
        assert_eq!(login.post_with(&[(name, value)], "SELECT 1").ok(), "1\n", "{name}={value}");
    }
    assert!(admin.post(changeable).ok().lines().any(|line| line == "promql_table"));
}

/// Filters of tables as settings restrict what the login sees, and are evaluated on no other row.
fn check_filters(login: &HttpClient) {
    let count_posts = "SELECT count() FROM posts";
    for filter in [
        "{'posts': 'views < 10'}",
        "{'team.posts': 'views < 10'}",
        "{'posts' : ' name = \\'1\\' OR views IN (7, 9) '}",
    ] {
        assert_eq!(
            login.post_with(&[("additional_table_filters", filter)], count_posts).ok(),
            "3\n",
            "{filter}"
        );
        let grafana = format!("{count_posts} settings additional_table_filters={filter}");
        assert_eq!(login.post(&grafana).ok(), "3\n", "{filter}");
    }
    for view in ["posts", "accounts", "joined", "running", "totals"] {
        for condition in
            ["throwIf(views < 0) = 0", "toUInt64(name) < 100 AND intDiv(1, if(views < 0, 0, 1)) = 1"]
        {
            let filter = format!("{{'{view}': '{condition}'}}");
            let rows = if view == "totals" { 1 } else { 50 };
            for from in [view.to_owned(), format!("(SELECT * FROM {view} FINAL)")] {
                let sql = format!("SELECT count() FROM {from}");
                let response = login.post_with(&[("additional_table_filters", &filter)], &sql);
                assert_eq!(response.ok(), format!("{rows}\n"), "{filter} {from}");
            }
        }
    }
    for (filter, part) in [
        ("{'history.posts': '1'}", "views of team only"),
        ("{'p': '1', 'public.posts': '1'}", "views of team only"),
        ("{'posts': 'id IN (SELECT id FROM accounts)'}", "subqueries into the statement"),
        ("{'posts': 'file(\\'/etc/passwd\\') = name'}", "cannot call file()"),
        ("{'posts': 'id IN system.processes'}", "reads of system"),
        ("views < 10", "not a map such as"),
    ] {
        login
            .post_with(&[("additional_table_filters", filter)], count_posts)
            .assert_exception(400, "164", part);
    }
    login
        .post_with(&[("additional_table_filters", "{'posts': '1) OR (1'}")], count_posts)
        .assert_exception(400, "62", "");
}

/// A login without a row ends at once, and `KILL QUERY` finds its queries by name.
fn check_end(admin: &HttpClient, login: &HttpClient) {
    let endless = "SELECT count() FROM numbers(1900000000) WHERE NOT ignore(sipHash64(sipHash64(number)))";
    let running = login.open("POST", &[("max_threads", "1")], endless.len());
    std::io::Write::write_all(&mut &running, endless.as_bytes()).unwrap();
    let of_login = "position(Settings['http_response_headers'], '\\'reports\\'') > 0";
    let count = || {
        admin.post(&format!("SELECT count() FROM system.processes WHERE query_kind = 'Select' AND {of_login} AND query LIKE '%sipHash64%' AND query NOT LIKE '%system.processes%'")).ok()
    };
    wait_until("the query of the login runs", || count() == "1\n");
    admin.post(&format!("DELETE FROM {LOGIN_TABLE} WHERE name = 'reports'")).ok();
    login.post("SELECT 1").assert_exception(403, "516", "Authentication failed");
    admin.post(&format!("KILL QUERY WHERE {of_login} ASYNC FORMAT Null")).ok();
    wait_until("the query of the login ends", || count() == "0\n");
    drop(running);
}

/// No response to a generated statement shows a hidden row, nor that an expression was evaluated on one.
fn check_statements(admin: &HttpClient, login: &HttpClient, data: &Path) {
    let rounds = std::env::var("CHDB_HTTP_LOGIN_STATEMENTS").ok().and_then(|rounds| rounds.parse().ok());
    let rounds = rounds.unwrap_or(STATEMENTS);
    let users = std::fs::read_to_string(data.join("users.xml")).unwrap();
    let secret = users.split("concat('").nth(1).and_then(|rest| rest.split('\'').next()).unwrap();
    let seed = u64::from(std::process::id());
    let (mut generator, mut answered, mut codes) =
        (Generator { state: seed, explains: false }, 0, BTreeMap::new());
    for round in 0..rounds {
        let (settings, sql) = (generator.settings(), generator.statement());
        let response = login.post_with(&settings, &sql);
        let text = response.text();
        let context = format!("seed {seed}, round {round}: {settings:?} {sql}\n{text}");
        assert!(!text.contains(FOREIGN) && !text.contains(secret), "{context}");
        let code = response.headers.get("x-clickhouse-exception-code").map_or("0", String::as_str).to_owned();
        // FUNCTION_THROW_IF_VALUE_IS_NON_ZERO, ILLEGAL_DIVISION: not on rows of the login.
        assert!(!["395", "153"].contains(&&*code), "{context}");
        if response.status == 200 {
            answered += 1;
            let shows_history = !generator.explains && !sql.contains("system.") && !sql.contains("schema.");
            assert!(!shows_history || !shows_negative(&response), "{context}");
        }
        *codes.entry(code).or_insert(0) += 1;
    }
    assert!(answered > rounds / 20, "{answered} of {rounds} statements were answered: {codes:?}");
    assert_eq!(
        admin.post(&format!("SELECT count() FROM public.posts WHERE name LIKE '{FOREIGN}%'")).ok(),
        "50\n"
    );
}

/// Whether a result contains a number below zero, which only hidden rows have.
fn shows_negative(response: &Response) -> bool {
    let text = response.text();
    let mut before = '\n';
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let begins = before.is_whitespace() || "[(,\":".contains(before);
        if character == '-' && begins && characters.peek().is_some_and(char::is_ascii_digit) {
            return true;
        }
        before = character;
    }
    false
}
