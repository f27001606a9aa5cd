//! What a file of `migrations/` or `schemas/` may do while the version before goes on serving: only add, and hold no lock
//! for long that requests wait for. CONTRIBUTING.md says it in words; here the files themselves are held to it.

use super::{CLICKHOUSE, POSTGRES, numbered};

/// The last files that were written before there was a rule.
const BEFORE: (i64, u32) = (13, 7);

/// Tables whose rows are many: nothing that is as long as they are may be done under a lock.
const LARGE: [&str; 7] =
    ["accounts", "videos", "scrape_targets", "outbox", "search_changes", "caption_blocks", "post_days"];

/// How a file begins a line that says why a rule is not for it.
const EXEMPT: &str = "-- exempt: ";

fn statements(file: &str) -> Vec<String> {
    let code = without_comments_and_strings(file).to_lowercase();
    let statements = code.split(';').map(|one| one.split_whitespace().collect::<Vec<_>>().join(" "));
    statements.filter(|one| !one.is_empty()).collect()
}

/// The table that comes behind a word, without what is written at once behind its name.
fn table_after<'a>(statement: &'a str, word: &str) -> Option<&'a str> {
    let name = statement.split_once(word)?.1.split([' ', '(', ',']).find(|name| !name.is_empty())?;
    Some(name.trim_matches('"'))
}

/// What a file of `migrations/` does that the version before does not survive, or that requests would wait for.
fn of_postgres(file: &str) -> Vec<String> {
    if file.lines().any(|line| line.starts_with(EXEMPT)) {
        return Vec::new();
    }
    let statements = statements(file);
    let made = |one: &&String| one.starts_with("create ") && one.contains(" table ");
    let made: Vec<_> = statements.iter().filter(made).filter_map(|one| table_after(one, " table ")).collect();
    let large = |table: Option<&str>| {
        table.filter(|table| LARGE.contains(table) && !made.contains(table)).map(str::to_owned)
    };
    let mut found = Vec::new();
    for one in &statements {
        for (words, what) in [
            ("drop column ", "takes a column away that the version before reads"),
            ("drop table ", "takes a table away that the version before reads"),
            (" rename ", "renames what the version before knows by its old name"),
            (
                " set not null",
                "makes the version before fail where it writes no value, and reads the whole table",
            ),
        ] {
            if format!(" {one} ").contains(words) {
                found.push(what.to_owned());
            }
        }
        if one.starts_with("alter table ") && one.contains(" type ") {
            found.push(
                "changes the type of a column, which rewrites the table and breaks the version before".into(),
            );
        }
        for column in one.split("add column ").skip(1) {
            let column = column.split(", add ").next().unwrap_or_default();
            if column.contains(" not null") && !column.contains(" default ") {
                found.push("adds a column without default that the version before does not fill".into());
            }
        }
        let is_index = one.starts_with("create index") || one.starts_with("create unique index");
        let is_concurrent = one.contains(" concurrently ");
        if is_index
            && !is_concurrent
            && let Some(table) = large(table_after(one, " on "))
        {
            found.push(format!(
                "builds an index on {table} while nobody may write there: build it concurrently"
            ));
        }
        if is_concurrent && (statements.len() > 1 || !file.starts_with("-- no-transaction\n")) {
            found.push("builds an index concurrently beside something else: a file for it alone, whose first line is -- no-transaction".into());
        }
        let is_checked = one.contains(" add constraint ") || one.contains(" add foreign key");
        if is_checked
            && !one.contains(" not valid")
            && let Some(table) = large(table_after(one, "alter table "))
        {
            found.push(format!(
                "looks at every row of {table} while nobody may write there: add it not valid"
            ));
        }
        let changed = one.strip_prefix("update ").and_then(|rest| rest.split(' ').next());
        let read = one.starts_with("insert into ").then(|| table_after(one, " from ")).flatten();
        if let Some(table) = large(changed).or_else(|| large(read)) {
            found.push(format!(
                "goes through all of {table} in one transaction: do it in the program, some at a time"
            ));
        }
    }
    found
}

/// The same of a file of `schemas/`.
fn of_clickhouse(file: &str) -> Vec<String> {
    if file.lines().any(|line| line.starts_with(EXEMPT)) {
        return Vec::new();
    }
    let statements = statements(file);
    let taken = ["drop column ", "drop table ", "rename column ", "rename table ", "truncate "];
    let takes = |one: &String| taken.into_iter().find(|words| format!(" {one} ").contains(words));
    statements
        .iter()
        .filter_map(takes)
        .map(|words| format!("{words}takes away what the version before uses"))
        .collect()
}

/// The code of a statement alone.
pub(super) fn without_comments_and_strings(statement: &str) -> String {
    let mut code = String::new();
    for line in statement.lines() {
        for (index, part) in line.split('\'').enumerate() {
            let (part, comment) = part.split_once("--").map_or((part, false), |(part, _)| (part, true));
            if index % 2 == 0 {
                code.push_str(part);
                if comment {
                    break;
                }
            }
        }
        code.push('\n');
    }
    code
}

#[test]
fn the_files_of_this_version_leave_the_version_before_at_work() {
    let postgres = POSTGRES.iter().filter(|file| file.version > BEFORE.0);
    let postgres = postgres.map(|file| (file.description.to_string(), of_postgres(file.sql.as_str())));
    let files = numbered(CLICKHOUSE).unwrap().into_iter().filter(|file| file.0 > BEFORE.1);
    let clickhouse = files.map(|(_, name, statement)| (name.to_owned(), of_clickhouse(statement)));
    let found: Vec<_> = postgres.chain(clickhouse).filter(|(_, found)| !found.is_empty()).collect();
    assert!(found.is_empty(), "see \"Changing the stores\" in CONTRIBUTING.md: {found:#?}");
}

#[test]
fn what_does_harm_is_seen() {
    for (file, part) in [
        ("alter table videos drop column url;", "takes a column away"),
        ("drop table links;", "takes a table away"),
        ("alter table creators rename column name to title;", "renames"),
        ("alter table creators alter column name type varchar(9);", "type of a column"),
        ("alter table creators alter column x set not null;", "writes no value"),
        ("alter table creators add column a int default 1, add column b text not null;", "without default"),
        ("create index a on videos (url);", "index on videos"),
        ("create unique index a on outbox(x);", "index on outbox"),
        ("create index concurrently a on videos (url);", "a file for it alone"),
        ("-- no-transaction\ncreate index concurrently a on videos (url); select 1;", "a file for it alone"),
        ("alter table videos add constraint c check (x > 0);", "add it not valid"),
        ("update videos set x = 1 where x is null;", "all of videos"),
        ("insert into y select x from accounts group by 1;", "all of accounts"),
    ] {
        let found = of_postgres(file);
        assert!(found.iter().any(|what| what.contains(part)), "{file}: {found:?}");
        assert_eq!(
            of_postgres(&format!("-- exempt: nobody reads it since 0.9\n{file}")),
            Vec::<String>::new()
        );
    }
    for file in ["alter table videos drop column x", "DROP TABLE videos", "rename table a to b"] {
        assert_eq!(of_clickhouse(file).len(), 1, "{file}");
    }
}

#[test]
fn what_only_adds_is_let_through() {
    for file in [
        "alter table creators add column a int, add column b bigint not null default 0;",
        "-- drop table x\ncreate table x (id int not null, y text default 'drop table y');\ncreate index x_y on x (y);",
        "-- no-transaction\ncreate index concurrently a on videos (url);",
        "create table videos_of_week (id uuid); create index a on videos_of_week (id);",
        "alter table videos add constraint c check (x > 0) not valid;",
        "update sources set name = 'http' where name = 'Http';",
    ] {
        assert_eq!(of_postgres(file), Vec::<String>::new(), "{file}");
    }
    let added = "alter table videos add column if not exists x Nullable(String)";
    assert_eq!(of_clickhouse(added), Vec::<String>::new());
}
