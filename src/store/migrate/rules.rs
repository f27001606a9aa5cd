//! What a file of `migrations/` or `schemas/` may do while the version before goes on serving: only add, and hold no lock
//! for long that requests wait for. CONTRIBUTING.md says it in words; here the files themselves are held to it.

use super::{CLICKHOUSE, POSTGRES, numbered};

/// The last files that were written before there was a rule.
const BEFORE: (i64, u32) = (13, 7);

/// Tables whose rows are many: nothing that is as long as they are may be done under a lock.
const LARGE: [&str; 7] =
    ["accounts", "videos", "scrape_targets", "outbox", "search_changes", "caption_blocks", "post_days"];

/// How a file begins a line that says for which rule it is an exception, and why: `-- exempt: drop column: nobody reads it`.
const EXEMPT: &str = "-- exempt: ";

/// What an exemption may name.
const RULES: [&str; 9] =
    ["drop", "truncate", "rename", "not null", "type", "index", "check", "rewrite", "rows"];

/// What a file does against a rule.
struct Finding {
    rule: &'static str,
    what: String,
}

/// What a file does against the rules that it is not exempt from. An exemption that is none is told as well.
fn found(file: &str, all: Vec<Finding>) -> Vec<String> {
    let (mut told, mut exempt) = (Vec::new(), Vec::new());
    for line in file.lines().filter_map(|line| line.strip_prefix(EXEMPT)) {
        match line.split_once(": ") {
            Some((rule, why)) if RULES.contains(&rule) && !why.trim().is_empty() => exempt.push(rule),
            _ => {
                told.push(format!("exempt is one of {}, a colon, and why: {line:?} is not", RULES.join(", ")))
            }
        }
    }
    let held = all.into_iter().filter(|finding| !exempt.contains(&finding.rule));
    told.extend(held.map(|Finding { rule, what }| format!("{rule}: {what}")));
    told
}

fn statements(file: &str) -> Vec<String> {
    let code = without_comments_and_strings(&without_bodies(file)).to_lowercase();
    let statements = code.split(';').map(|one| one.split_whitespace().collect::<Vec<_>>().join(" "));
    statements.filter(|one| !one.is_empty()).collect()
}

/// A file without what functions do when they are called. What a `do` does is done at once, and stays.
fn without_bodies(file: &str) -> String {
    let (mut kept, mut rest) = (String::new(), file);
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        kept.push_str(before);
        let tag = from[1..].find('$').map(|end| &from[..end + 2]);
        let tag = tag.filter(|tag| !tag.contains(|c: char| c != '$' && c != '_' && !c.is_alphanumeric()));
        let body = tag.and_then(|tag| Some((tag, from[tag.len()..].find(tag)?)));
        let Some((tag, length)) = body else {
            kept.push('$');
            rest = &from[1..];
            continue;
        };
        let statement = without_comments_and_strings(kept.rsplit(';').next().unwrap_or_default());
        if statement.split_whitespace().next().is_some_and(|word| word.eq_ignore_ascii_case("do")) {
            let body = from[tag.len()..tag.len() + length].split_inclusive(char::is_whitespace);
            // Statements begin behind these words as well.
            for word in body {
                let begins = ["begin", "then", "else", "loop"];
                let begins = begins.iter().any(|known| word.trim_end().eq_ignore_ascii_case(known));
                kept.push_str(if begins { ";" } else { word });
            }
        }
        rest = &from[tag.len() * 2 + length..];
    }
    kept + rest
}

/// The table that comes behind a word, without what is written at once behind its name.
fn table_after<'a>(statement: &'a str, word: &str) -> Option<&'a str> {
    let names = statement.split_once(word)?.1;
    let names = names.strip_prefix("if exists ").unwrap_or(names);
    let names = names.strip_prefix("only ").unwrap_or(names);
    let name = names.split([' ', '(', ',']).find(|name| !name.is_empty())?;
    Some(name.trim_matches('"'))
}

/// What an `alter table` does, one thing after the other.
fn actions(statement: &str) -> Vec<&str> {
    let Some(rest) = statement.strip_prefix("alter table ") else { return Vec::new() };
    let rest = rest.strip_prefix("if exists ").unwrap_or(rest);
    let rest = rest.strip_prefix("only ").unwrap_or(rest);
    let Some((_, rest)) = rest.split_once(' ') else { return Vec::new() };
    let mut depth = 0;
    let between = |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    };
    rest.split(between).map(str::trim).collect()
}

/// Whether a column that is added has a value that Postgres has to compute for every row there is.
fn is_computed(column: &str) -> bool {
    let default = column.split_once(" default ").map_or("", |(_, default)| default);
    let ends = [" not null", " unique", " check", " references", " primary key"];
    let end = ends.iter().filter_map(|word| default.find(word)).min().unwrap_or(default.len());
    let default = default[..end].replace("now()", "");
    let serial = column.split(' ').nth(1).is_some_and(|kind| kind.ends_with("serial"));
    default.contains('(') || serial || column.contains(" stored") || column.contains(" as identity")
}

/// What a file of `migrations/` does that the version before does not survive, or that requests would wait for.
fn of_postgres(file: &str) -> Vec<String> {
    let statements = statements(file);
    let made = |one: &&String| one.starts_with("create ") && one.contains(" table ");
    let made: Vec<_> = statements.iter().filter(made).filter_map(|one| table_after(one, " table ")).collect();
    let large = |table: Option<&str>| {
        table.filter(|table| LARGE.contains(table) && !made.contains(table)).map(str::to_owned)
    };
    let mut all = Vec::new();
    let mut add = |rule, what: String| all.push(Finding { rule, what });
    for one in &statements {
        if let Some(dropped) = one.strip_prefix("drop ") {
            let kind = dropped.split(' ').find(|word| *word != "materialized").unwrap_or_default();
            let article = if kind.starts_with('i') { "an" } else { "a" };
            add("drop", format!("takes {article} {kind} away that the version before uses"));
        }
        let emptied = table_after(one, "truncate ").filter(|_| one.starts_with("truncate "));
        if emptied.is_some() {
            add("truncate", "takes rows away that the version before may read".to_owned());
        }
        if format!(" {one} ").contains(" rename ") {
            add("rename", "renames what the version before knows by its old name".to_owned());
        }
        let table = large(table_after(one, "alter table "));
        for action in actions(one) {
            of_action(action, table.as_deref(), &mut add);
        }
        let is_index = one.starts_with("create index") || one.starts_with("create unique index");
        let is_concurrent = one.contains(" concurrently ");
        if is_index
            && !is_concurrent
            && let Some(table) = large(table_after(one, " on "))
        {
            add(
                "index",
                format!("builds an index on {table} while nobody may write there: build it concurrently"),
            );
        }
        if is_concurrent && (statements.len() > 1 || !file.starts_with("-- no-transaction\n")) {
            let what = "builds an index concurrently beside something else: a file for it alone, whose first line is -- no-transaction";
            add("index", what.to_owned());
        }
        let removed = one.starts_with("delete from ").then(|| table_after(one, "delete from ")).flatten();
        if removed.is_some() {
            add("rows", "takes rows away that the version before may read".to_owned());
        }
        let changed = one.starts_with("update ").then(|| table_after(one, "update ")).flatten();
        let read = one.starts_with("insert into ").then(|| table_after(one, " from ")).flatten();
        if let Some(table) = large(changed).or_else(|| large(read)).or_else(|| large(removed)) {
            add(
                "rows",
                format!(
                    "goes through all of {table} in one transaction: do it in the program, some at a time"
                ),
            );
        }
    }
    found(file, all)
}

/// The same of one thing that an `alter table` does; the table's name where it has many rows.
fn of_action(action: &str, large: Option<&str>, add: &mut impl FnMut(&'static str, String)) {
    let rest = |prefix: &str| action.strip_prefix(prefix);
    if rest("drop ").is_some_and(|rest| !rest.starts_with("constraint ")) {
        add("drop", "takes a column away that the version before reads".to_owned());
    }
    if let Some(rest) = rest("alter ") {
        if rest.contains(" type ") {
            add(
                "type",
                "changes the type of a column, which rewrites the table and breaks the version before".into(),
            );
        }
        if rest.ends_with(" set not null") {
            let what = "makes the version before fail where it writes no value, and reads the whole table";
            add("not null", what.to_owned());
        }
        if rest.ends_with(" drop default") {
            add("not null", "makes the version before fail where it writes no value".to_owned());
        }
    }
    let Some(added) = rest("add ") else { return };
    let kinds = ["constraint ", "unique", "primary key", "foreign key", "check", "exclude"];
    let is_column = !kinds.iter().any(|kind| added.starts_with(kind));
    if is_column {
        let column = added.strip_prefix("column ").unwrap_or(added);
        let column = column.strip_prefix("if not exists ").unwrap_or(column);
        let filled = column.contains(" default ") || is_computed(column);
        if column.contains(" not null") && !filled {
            add("not null", "adds a column without default that the version before does not fill".to_owned());
        }
        if let Some(table) = large.filter(|_| is_computed(column)) {
            let what = format!("rewrites {table} while nobody may read it: fill the column in the program");
            add("rewrite", what);
        }
    }
    let Some(table) = large else { return };
    let keys = [" unique", " primary key", " exclude "];
    let is_key =
        keys.iter().any(|key| format!(" {added} ").contains(key)) && !added.contains(" using index ");
    if is_key {
        let what = format!(
            "builds a unique index on {table} while nobody may write there: build it concurrently, and add it using index"
        );
        add("index", what);
    } else if !is_column && !added.contains(" not valid") && !added.contains(" using index ") {
        add("check", format!("looks at every row of {table} while nobody may write there: add it not valid"));
    }
}

/// The same of a file of `schemas/`.
fn of_clickhouse(file: &str) -> Vec<String> {
    let taken = [
        ("drop", "drop column "),
        ("drop", "drop table "),
        ("rename", "rename column "),
        ("rename", "rename table "),
        ("truncate", "truncate "),
    ];
    let takes = |one: &String| taken.into_iter().find(|(_, words)| format!(" {one} ").contains(words));
    let statements = statements(file);
    let all = statements.iter().filter_map(takes).map(|(rule, words)| Finding {
        rule,
        what: format!("{words}takes away what the version before uses"),
    });
    found(file, all.collect())
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
        ("delete from videos where url is null;", "all of videos"),
        ("do $$ begin delete from videos; end $$;", "all of videos"),
        ("do $$\nbegin\nif x then update videos set y = 1; end if;\nend $$;", "all of videos"),
        ("alter table creators drop name;", "takes a column away"),
        ("DELETE FROM ONLY creators;", "takes rows away"),
        ("truncate creators;", "takes rows away"),
        ("drop function note_post();", "takes a function away"),
        ("drop trigger noted on videos;", "takes a trigger away"),
        ("drop type subscription;", "takes a type away"),
        ("drop index creators_by_name;", "takes an index away"),
        ("drop view shown;", "takes a view away"),
        ("drop sequence subject_ids;", "takes a sequence away"),
        ("drop schema public;", "takes a schema away"),
        ("alter table creators alter column x drop default;", "writes no value"),
        ("alter table videos add unique (url);", "unique index on videos"),
        ("alter table videos add primary key (id);", "unique index on videos"),
        ("alter table videos add constraint u unique (url);", "unique index on videos"),
        ("alter table videos add column a uuid not null unique default null;", "unique index on videos"),
        ("alter table videos add column a timestamptz default clock_timestamp();", "rewrites videos"),
        ("alter table videos add column a uuid default gen_random_uuid();", "rewrites videos"),
        ("alter table videos add a float default random();", "rewrites videos"),
        ("alter table videos add column a bigserial;", "rewrites videos"),
        ("alter table videos add column a int generated always as (x + 1) stored;", "rewrites videos"),
        ("alter table videos add column a bigint generated by default as identity;", "rewrites videos"),
        ("alter table only videos add exclude using gist (r with &&);", "unique index on videos"),
    ] {
        let found = of_postgres(file);
        assert!(found.iter().any(|what| what.contains(part)), "{file}: {found:?}");
        // The rule that it is against, and no other, can be said not to be for it.
        for rule in RULES {
            let exempt = of_postgres(&file.replacen('\n', &format!("\n-- exempt: {rule}: why\n"), 1));
            let exempt = if file.contains('\n') {
                exempt
            } else {
                of_postgres(&format!("-- exempt: {rule}: why\n{file}"))
            };
            let others: Vec<_> =
                found.iter().filter(|what| !what.starts_with(&format!("{rule}: "))).collect();
            assert_eq!(exempt.iter().collect::<Vec<_>>(), others, "{rule} {file}");
        }
    }
    for file in ["alter table videos drop column x", "DROP TABLE videos", "rename table a to b"] {
        assert_eq!(of_clickhouse(file).len(), 1, "{file}");
    }
    for exempt in ["nobody reads it since 0.9", "drop", "drop: ", "everything: it is late"] {
        let file = format!("-- exempt: {exempt}\ndrop table links;");
        let found = of_postgres(&file);
        assert!(found.len() == 2 && found[0].contains(exempt), "{found:?}");
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
        "alter table videos add column a timestamptz not null default now(), add b numeric(10, 2) default 1;",
        "alter table videos add constraint u unique using index videos_u, drop constraint c;",
        "create function f() returns void language plpgsql as $$ begin delete from videos; end $$;",
        "create function f() returns int language sql as $x$ select '$$' from videos; truncate y; $x$;",
    ] {
        assert_eq!(of_postgres(file), Vec::<String>::new(), "{file}");
    }
    let added = "alter table videos add column if not exists x Nullable(String)";
    assert_eq!(of_clickhouse(added), Vec::<String>::new());
}
