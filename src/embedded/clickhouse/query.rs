//! Runs one statement from beginning to end on a thread that may block: settings, classification, permission, execution.
//! It decides between buffering and streaming; how requests arrive and replies leave is not its business.

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::access;
use super::auth::Role;
use super::cancel::Run;
use super::engine::Engine;
use super::ffi::Connection;
use super::reply::Failure;
use super::session::Slot;
use super::statement::{self, InsertKind};
use super::streaming::Cutter;
use super::told::{Analysis, Class, Counters, Parameter};

/// How much of a result is gathered before it is streamed, so that an early error is a plain one.
const GATHERED: usize = 4 << 20;
/// How much of an insert's data is handed over at once.
const SLICE: usize = 1 << 20;
/// How long an analyst's query may run unless it says otherwise.
const ANALYST_SECONDS: u32 = 300;

/// One statement and everything that goes with it.
pub(super) struct Job {
    /// The statement; for an insert it may go on into its data.
    pub text: Bytes,
    /// What follows the text: the body of an insert whose statement is in the query string.
    pub body: Bytes,
    pub default_format: Option<String>,
    pub parameters: Vec<Parameter>,
    pub settings: Vec<(String, String)>,
    pub database: Option<String>,
    pub role: Role,
    /// The method is one that must not change anything.
    pub safe_method: bool,
    /// The whole result is wanted before the first byte.
    pub whole: bool,
    /// The comment put behind a read, by which it is found when it must end.
    pub mark: String,
    pub session: Option<Slot>,
}

/// A statement's answer: its first pieces, which are all of them unless `rest` gives more.
pub(super) struct Answer {
    pub pieces: Vec<Bytes>,
    pub rest: Option<mpsc::Receiver<Result<Bytes, Failure>>>,
    /// The format of the result; nothing for a statement that has none.
    pub format: Option<String>,
    pub counters: Counters,
}

/// Where the answer goes, once it can be told.
pub(super) type Waiting = oneshot::Sender<Result<Answer, Failure>>;

/// Runs `job` to its end and answers it through `waiting`.
pub(super) fn run(engine: &Engine, mut job: Job, waiting: Waiting, run: &Run) {
    let mut waiting = Some(waiting);
    match job.session.take() {
        Some(slot) => {
            let result = in_session(engine, slot, &job, &mut waiting, run);
            tell(waiting, result);
        }
        None => match engine.connect() {
            Ok(mut connection) => {
                let result = execute(&mut connection, &job, &mut waiting, run);
                tell(waiting, result);
                // closing it after its one statement takes along what a failure leaves in it;
                // the client has its answer by now, and the next one finds a connection ready
                drop(connection);
                engine.refill();
            }
            Err(failure) => tell(waiting, Err(failure)),
        },
    }
}

/// Answers a request that has no answer yet.
fn tell(waiting: Option<Waiting>, result: Result<Option<Answer>, Failure>) {
    let Some(waiting) = waiting else { return };
    let told = match result {
        Ok(Some(answer)) => waiting.send(Ok(answer)),
        Ok(None) => Ok(()),
        Err(failure) => waiting.send(Err(failure)),
    };
    if told.is_err() {
        tracing::debug!("the client went away before its answer");
    }
}

/// Runs a statement on a kept connection and leaves it as the next one expects it: with the
/// session's own settings, and without partial output of a statement that failed.
fn in_session(
    engine: &Engine,
    mut slot: Slot,
    job: &Job,
    waiting: &mut Option<Waiting>,
    run: &Run,
) -> Result<Option<Answer>, Failure> {
    if slot.is_none() {
        *slot = Some(engine.connect()?);
    }
    let Some(connection) = slot.as_mut() else { return Ok(None) };
    let before = remember(connection, &job.settings);
    let result = before.clone().and_then(|_| execute(connection, job, waiting, run));
    let mut clean = true;
    if result.is_err() {
        clean &= connection.query(b"SELECT 1 FORMAT Null", "Null", &[]).is_ok();
    }
    if let Ok(Some(before)) = before {
        clean &= connection.query(before.as_bytes(), "Null", &[]).is_ok();
    }
    if !clean {
        *slot = None;
    }
    result
}

/// The statement that brings back what `settings` are on this connection now.
fn remember(connection: &mut Connection, settings: &[(String, String)]) -> Result<Option<String>, Failure> {
    if settings.is_empty() {
        return Ok(None);
    }
    let names: Vec<String> = settings.iter().map(|(name, _)| quote(name)).collect();
    let sql = format!(
        "SELECT 'SET ' || arrayStringConcat(groupArray(name || '=' || if(changed, {}, 'DEFAULT')), ', ') \
         FROM system.settings WHERE name IN ({}) HAVING count() > 0",
        "'\\'' || replaceAll(replaceAll(value, '\\\\', '\\\\\\\\'), '\\'', '\\\\\\'') || '\\''",
        names.join(", ")
    );
    let found = connection.query(sql.as_bytes(), "TSVRaw", &[]).map_err(Failure::engine)?;
    let found = String::from_utf8_lossy(found.as_ref()).trim_end_matches('\n').to_owned();
    Ok((!found.is_empty()).then_some(found))
}

fn execute(
    connection: &mut Connection,
    job: &Job,
    waiting: &mut Option<Waiting>,
    run: &Run,
) -> Result<Option<Answer>, Failure> {
    prepare(connection, job)?;
    let mut text = job.text.clone();
    let mut body = job.body.clone();
    let mut insert = statement::insert(&text);
    if !body.is_empty() && !matches!(insert, Some(InsertKind::Data(_))) {
        // as ClickHouse does: the statement is the query string, a line end and the body
        text = [&text[..], b"\n", &body[..]].concat().into();
        body = Bytes::new();
        insert = statement::insert(&text);
    }
    match insert {
        Some(InsertKind::FromFile) => Err(Failure::new(
            48,
            "NOT_IMPLEMENTED",
            "FROM INFILE reads files of the server's machine: send the data as the body",
        )),
        Some(InsertKind::Data(cut)) => {
            let (statement, rest) = (text.slice(..cut.data), text.slice(cut.data..));
            permit(connection, job, &statement)?;
            run.let_it_finish();
            insert_data(connection, job, &statement[..cut.head], &cut.format, [rest, body]).map(Some)
        }
        Some(InsertKind::Other) | None => {
            let analysis = permit(connection, job, &text)?;
            select(connection, job, &text, analysis.class, waiting, run)
        }
    }
}

/// Brings a connection to the settings and the database that the request names.
fn prepare(connection: &mut Connection, job: &Job) -> Result<(), Failure> {
    let mut set =
        |sql: String| connection.query(sql.as_bytes(), "Null", &[]).map(drop).map_err(Failure::engine);
    if let Some(database) = &job.database {
        set(format!("USE `{}`", database.replace('\\', "\\\\").replace('`', "\\`")))?;
    }
    let analyst = job.role == Role::Analyst;
    let mut changes = Vec::new();
    if analyst {
        changes.push(format!("max_execution_time={ANALYST_SECONDS}"));
        job.parameters.iter().try_for_each(|(_, value)| access::check_parameter(value))?;
    }
    for (name, value) in &job.settings {
        if name.is_empty() || !name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'.') {
            return Err(Failure::new(115, "UNKNOWN_SETTING", format!("Unknown setting {name:?}")));
        }
        if analyst {
            access::check_setting(name)?;
            if name == "readonly" {
                continue;
            }
        }
        changes.push(format!("{name}={}", quote(value)));
    }
    if !changes.is_empty() {
        set(format!("SET {}", changes.join(", ")))?;
    }
    if analyst {
        set("SET readonly=1".to_owned())?;
    }
    Ok(())
}

/// Refuses what is not exactly one statement, and what this user or this method may not run.
fn permit(connection: &mut Connection, job: &Job, text: &[u8]) -> Result<Analysis, Failure> {
    let analysis = connection.classify(text);
    match analysis.statements {
        0 => return Err(syntax_error(connection, text)),
        1 => {}
        _ => {
            let text = "Syntax error (Multi-statements are not allowed): send one statement per request";
            return Err(Failure::new(62, "SYNTAX_ERROR", text));
        }
    }
    if statement::output(text).into_file {
        return Err(Failure::new(
            48,
            "NOT_IMPLEMENTED",
            "INTO OUTFILE writes files of the server's machine: read the reply instead",
        ));
    }
    if job.role == Role::Analyst {
        access::check_statement(text, analysis.class)?;
    }
    if job.safe_method && analysis.class != Class::Read {
        return Err(Failure::readonly(
            "Cannot execute query in readonly mode: the method GET only reads, use POST",
        ));
    }
    Ok(analysis)
}

/// What the engine's parser says about a text that it does not take; nothing is run.
fn syntax_error(connection: &mut Connection, text: &[u8]) -> Failure {
    if text.iter().all(u8::is_ascii_whitespace) {
        return Failure::new(
            62,
            "SYNTAX_ERROR",
            "Syntax error: empty query; send one as `query=` or as the body",
        );
    }
    let sql = format!("SELECT formatQuery({})", quote(&String::from_utf8_lossy(text)));
    match connection.query(sql.as_bytes(), "Null", &[]) {
        Err(error) => Failure::engine(error),
        Ok(_) => {
            Failure::new(62, "SYNTAX_ERROR", "Syntax error: this is not a statement that can be sent alone")
        }
    }
}

fn insert_data(
    connection: &mut Connection,
    job: &Job,
    head: &[u8],
    format: &str,
    data: [Bytes; 2],
) -> Result<Answer, Failure> {
    let [rest, body] = data;
    // between a statement in the query string and the body only blanks may stand; they are no data
    let blank = rest.iter().all(|&c| c.is_ascii_whitespace() || c == b';');
    let rest = if blank && !body.is_empty() { Bytes::new() } else { rest };
    let values = format.eq_ignore_ascii_case("Values");
    if values && statement::continues_after_semicolon(&[&rest[..], &body[..]].concat()) {
        let text = "Cannot read data after semicolon (Multi-statements are not allowed): send one statement per request";
        return Err(Failure::new(27, "CANNOT_PARSE_INPUT_ASSERTION_FAILED", text));
    }
    let nothing = body.is_empty() && (rest.is_empty() || values && blank);
    let mut insert = connection.insert(head, format, &job.parameters).map_err(Failure::engine)?;
    if nothing {
        insert.cancel();
        return Ok(Answer { pieces: Vec::new(), rest: None, format: None, counters: Counters::default() });
    }
    for slice in rest.chunks(SLICE).chain(body.chunks(SLICE)) {
        insert.append(slice).map_err(Failure::engine)?;
    }
    let output = insert.finish().map_err(Failure::engine)?;
    let counters = output.counters();
    Ok(Answer { pieces: Vec::new(), rest: None, format: None, counters })
}

/// Runs anything but an insert of data: streamed when the statement and the format allow it.
fn select(
    connection: &mut Connection,
    job: &Job,
    text: &[u8],
    class: Class,
    waiting: &mut Option<Waiting>,
    run: &Run,
) -> Result<Option<Answer>, Failure> {
    let says = statement::output(text);
    let format = says.format.as_deref().or(job.default_format.as_deref()).unwrap_or("TabSeparated");
    let mut sql = text.to_vec();
    if class == Class::Read {
        sql.push(b'\n');
        sql.extend_from_slice(job.mark.as_bytes());
    } else {
        run.let_it_finish();
    }
    if run.unwanted() {
        return Err(Failure::new(394, "QUERY_WAS_CANCELLED", "the client went away"));
    }
    let decorated = says.decorated || job.settings.iter().any(|(name, _)| statement::decorates(name));
    let cutter = Cutter::new(format).filter(|_| class == Class::Read && says.selects && !decorated);
    let shown = (class == Class::Read).then(|| format.to_owned());
    if let Some(cutter) = cutter {
        return stream(connection, job, &sql, format, cutter, waiting);
    }
    let output = connection.query(&sql, format, &job.parameters).map_err(Failure::engine)?;
    let counters = output.counters();
    Ok(Some(Answer { pieces: vec![Bytes::from_owner(output)], rest: None, format: shown, counters }))
}

/// Streams a result: gathers its beginning, then hands the rest over piece by piece as the client reads.
fn stream(
    connection: &mut Connection,
    job: &Job,
    sql: &[u8],
    format: &str,
    mut cutter: Cutter,
    waiting: &mut Option<Waiting>,
) -> Result<Option<Answer>, Failure> {
    let mut stream = connection.stream(sql, format, &job.parameters).map_err(Failure::engine)?;
    let mut counters = Counters::default();
    let (mut pieces, mut gathered) = (Vec::new(), 0);
    let format = Some(format.to_owned());
    loop {
        let Some(output) = stream.fetch().map_err(Failure::engine)? else {
            return Ok(Some(Answer { pieces, rest: None, format, counters }));
        };
        counters.add(output.counters());
        let piece = cutter.cut(Bytes::from_owner(output));
        gathered += piece.len();
        pieces.push(piece);
        if gathered >= GATHERED && !job.whole {
            break;
        }
    }
    let (sender, rest) = mpsc::channel(2);
    let answer = Answer { pieces, rest: Some(rest), format, counters };
    let told = waiting.take().map(|waiting| waiting.send(Ok(answer)));
    if !matches!(told, Some(Ok(()))) {
        return Ok(None);
    }
    loop {
        match stream.fetch() {
            Ok(None) => return Ok(None),
            Ok(Some(output)) => {
                if sender.blocking_send(Ok(cutter.cut(Bytes::from_owner(output)))).is_err() {
                    // the client went away: dropping the stream cancels it
                    return Ok(None);
                }
            }
            Err(error) => {
                let failure = Failure::engine(error);
                drop(sender.blocking_send(Err(failure.clone())));
                return Err(failure);
            }
        }
    }
}

/// An SQL string.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
