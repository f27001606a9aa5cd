//! The rules for migrations ("Change the schema" in CONTRIBUTING.md): Squawk checks those of Postgres, this file the rest.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tidemark::store::clickhouse::cluster::Layout;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The Postgres migration of version 0.1.0, to which the rules do not apply; .squawk.toml excludes it, too.
const FIRST_VERSION: &str = "0001_first_version.sql";

/// The SQL files of a folder, by name.
fn sql_files(folder: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir(Path::new(ROOT).join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "sql")).collect();
    paths.sort();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// A statement without comments and strings, with single spaces.
fn code(sql: &str) -> String {
    let mut code = String::new();
    for line in sql.lines() {
        for outside_strings in line.split('\'').step_by(2) {
            let end = outside_strings.find("--");
            code += &outside_strings[..end.unwrap_or(outside_strings.len())];
            if end.is_some() {
                break;
            }
        }
        code.push(' ');
    }
    code.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs Squawk over migrations, relative to a folder, and returns its findings, a line each.
fn squawk(folder: &Path, files: &[String]) -> Vec<String> {
    let python = std::env::var_os("TIDEMARK_TEST_PYTHON").expect("no Squawk to test with: run `make test`");
    let output = Command::new(Path::new(&python).with_file_name("squawk"))
        .args(["--reporter", "gcc", "--no-error-on-unmatched-pattern", "--config"])
        .arg(Path::new(ROOT).join(".squawk.toml"))
        .args(files.iter().map(|name| format!("migrations/{name}")))
        .current_dir(folder)
        .output()
        .unwrap();
    let findings = String::from_utf8_lossy(&output.stdout);
    assert_ne!(output.status.success(), findings.starts_with("migrations/"), "{output:?}");
    findings.lines().filter(|line| line.starts_with("migrations/")).map(str::to_owned).collect()
}

/// The findings of Squawk in a migration after the first version.
fn findings(sql: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("migrations")).unwrap();
    fs::write(folder.path().join("migrations/0099_test.sql"), sql).unwrap();
    squawk(folder.path(), &["0099_test.sql".to_owned()])
}

/// A Postgres migration defines the schema and changes no rows: that would lock them, or lose them for the previous version.
fn changes_rows(sql: &str) -> bool {
    let outside_functions: String = sql.split("$$").step_by(2).collect();
    let statements = code(&outside_functions).to_lowercase();
    let defines =
        |one: &str| ["create ", "alter ", "drop ", "comment "].iter().any(|word| one.starts_with(word));
    statements.split(';').map(str::trim).any(|one| !one.is_empty() && !defines(one))
}

/// The statements of a ClickHouse migration may run twice and only add. They may redefine an alias, which stores nothing.
fn is_additive(sql: &str) -> bool {
    let statements = Layout::Single.statements(sql);
    !statements.is_empty() && statements.iter().all(|statement| is_statement_additive(statement))
}

fn is_statement_additive(sql: &str) -> bool {
    let code = code(sql);
    let count = |part: &str| code.matches(part).count();
    let creates = code.starts_with("CREATE TABLE IF NOT EXISTS ");
    let adds = code.starts_with("ALTER TABLE ") && count(" ADD ") > 0;
    let is_idempotent = count(" ADD ") == count(" ADD COLUMN IF NOT EXISTS ");
    let others = [" DROP ", " RENAME ", " CLEAR ", " UPDATE ", " DELETE ", ";"];
    let is_alias = |change: &str| change.starts_with("COLUMN ") && change.contains(" ALIAS ");
    (creates || adds)
        && is_idempotent
        && code.split(" MODIFY ").skip(1).all(is_alias)
        && others.iter().all(|other| count(other) == 0)
}

#[test]
fn later_postgres_migrations_follow_the_rules() {
    let files = sql_files("migrations");
    assert_eq!(files[0].0, FIRST_VERSION);
    let names: Vec<_> = files.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(squawk(Path::new(ROOT), &names), [""; 0], "see CONTRIBUTING.md");
    for (name, sql) in &files[1..] {
        assert!(!changes_rows(sql), "{name} changes rows: do it in the program, in batches");
    }
}

#[test]
fn breaking_postgres_migrations_are_found() {
    for (rule, sql) in [
        ("ban-drop-column", "alter table videos drop column url;"),
        ("ban-drop-table", "drop table links;"),
        ("renaming-column", "alter table creators rename column name to title;"),
        ("changing-column-type", "alter table creators alter column name type varchar(9);"),
        ("adding-required-field", "alter table creators add column b text not null;"),
        ("adding-field-with-default", "alter table videos add column a uuid default gen_random_uuid();"),
        ("require-concurrent-index-creation", "create index a on videos (url);"),
        ("constraint-missing-not-valid", "alter table videos add constraint c check (x > 0);"),
        ("disallowed-unique-constraint", "alter table videos add unique (url);"),
    ] {
        let findings = findings(sql);
        assert!(findings.iter().any(|finding| finding.contains(rule)), "{rule}: {findings:?}");
    }
    for sql in [
        "update videos set x = 1;",
        "DELETE FROM creators;",
        "truncate creators;",
        "do $$ begin delete from videos; end $$;",
        "create table x (id uuid); insert into x select id from videos;",
    ] {
        assert!(changes_rows(sql), "{sql}");
    }
}

#[test]
fn additive_postgres_migrations_pass() {
    for sql in [
        "alter table creators add column a int, add column b bigint not null default 0;",
        "-- no-transaction\ncreate index concurrently if not exists a on videos (url);",
        "create table notes (id uuid primary key, body text); create index notes_by_body on notes (body);",
        "alter table videos add constraint c check (x > 0) not valid;",
        "create function f() returns void language plpgsql as $$ begin delete from videos; end $$; -- delete",
        "-- nothing has read it since 2.0\n-- squawk-ignore ban-drop-column\nalter table creators drop column a;",
    ] {
        assert_eq!(findings(sql), [""; 0], "{sql}");
        assert!(!changes_rows(sql), "{sql}");
    }
}

#[test]
fn clickhouse_migrations_are_additive() {
    for (name, sql) in sql_files("schemas") {
        assert!(
            is_additive(&sql),
            "{name} must have CREATE TABLE or ADD COLUMN statements only, IF NOT EXISTS"
        );
    }
    assert!(is_additive("-- drops; nothing\nALTER TABLE videos ADD COLUMN IF NOT EXISTS x Nullable(String)"));
    assert!(is_additive(
        "ALTER TABLE a ADD COLUMN IF NOT EXISTS x Int64;\nALTER TABLE a ADD COLUMN IF NOT EXISTS y Int64;\n"
    ));
    assert!(is_additive(
        "ALTER TABLE a ADD COLUMN IF NOT EXISTS y Int64, MODIFY COLUMN all Array(Int64) ALIAS [x, y]"
    ));
    for sql in [
        "",
        "CREATE TABLE a (id UInt64) ENGINE = MergeTree ORDER BY id",
        "CREATE TABLE IF NOT EXISTS a (id UInt64) ENGINE = MergeTree ORDER BY id; SELECT 1",
        "CREATE TABLE IF NOT EXISTS a (id UInt64) ENGINE = MergeTree ORDER BY id;\nSELECT 1;\n",
        "ALTER TABLE videos ADD COLUMN x Nullable(String)",
        "ALTER TABLE videos ADD COLUMN IF NOT EXISTS x Nullable(String), ADD COLUMN y String",
        "ALTER TABLE videos ADD COLUMN IF NOT EXISTS x Nullable(String), DROP COLUMN y",
        "ALTER TABLE videos ADD COLUMN IF NOT EXISTS x Int64, MODIFY COLUMN y Int64",
        "ALTER TABLE videos DROP COLUMN IF EXISTS x",
        "RENAME TABLE a TO b",
        "TRUNCATE TABLE videos",
    ] {
        assert!(!is_additive(sql), "{sql}");
    }
}

#[test]
fn migration_versions_are_unique() {
    for folder in ["migrations", "schemas"] {
        let files = sql_files(folder);
        let versions: BTreeSet<_> = files.iter().map(|(name, _)| &name[..5]).collect();
        assert_eq!(versions.len(), files.len(), "{folder}");
    }
}

#[test]
fn triggers_are_few_and_described() {
    let architecture = fs::read_to_string(Path::new(ROOT).join("ARCHITECTURE.md")).unwrap();
    let (_, section) = architecture.split_once("## What Postgres does by itself").unwrap();
    let migrations: String = sql_files("migrations").into_iter().map(|(_, sql)| sql).collect();
    let triggers: Vec<_> = migrations.split("create trigger ").skip(1).collect();
    assert!(triggers.len() <= 10, "rules belong in `store::Write`");
    for trigger in triggers {
        let name = trigger.split_whitespace().next().unwrap();
        assert!(section.contains(&format!("`{name}`")), "ARCHITECTURE.md does not say why {name} is needed");
    }
}

/// With the rights of the definer a view would show the rows of all organizations.
#[test]
fn views_run_with_the_rights_of_the_invoker() {
    for (name, sql) in sql_files("schemas/views") {
        let [statement] = &Layout::Single.statements(&sql)[..] else {
            panic!("{name} has several statements")
        };
        let code = code(statement);
        let view =
            format!("CREATE OR REPLACE VIEW {{public:Identifier}}.{} (", name.trim_end_matches(".sql"));
        assert!(code.starts_with(&view), "{name} creates another view");
        assert!(code.contains(" SQL SECURITY INVOKER AS "), "{name}");
        assert!(!code.contains(';'), "{name} has several statements");
    }
}
