//! Runs one statement on a blocking thread: settings, classification, permissions, then a buffered or streamed result.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use crate::access;
use crate::cancel::Cancellation;
use crate::credentials::Role;
use crate::engine::{Engine, MARKER_SETTING};
use crate::engine_types::{Counters, StatementClass};
use crate::exception::{Exception, Result};
use crate::ffi::{Connection, QueryOutput};
use crate::formatting::{format_query, quote, syntax_error};
use crate::logins::Login;
use crate::permits::{Permit, PermittedMemory};
use crate::request::QueryRequest;
use crate::reuse::ConnectionState;
use crate::session::Session;
use crate::settings::{self, Caller};
use crate::settings_clause;
use crate::settings_table;
use crate::sql::{self, InsertSource};
use crate::streaming::HeaderStripper;

/// How much of a result is buffered before it is streamed, so that an early exception becomes an HTTP status.
const MAX_BUFFERED_BYTES: usize = 4 << 20;
const INSERT_CHUNK_BYTES: usize = 1 << 20;

/// A statement with its context.
pub(crate) struct Statement {
    /// The SQL; for an insert, it may continue with data.
    pub text: Bytes,
    /// The request body, when the SQL is in the query string.
    body: Bytes,
    request: QueryRequest,
    role: Role,
    login: Option<Login>,
    safe_method: bool,
    /// Identifies a query that a disconnect cancels: the read-only user's and, as in ClickHouse, one that the request makes
    /// read-only and cancellable.
    pub marker: Option<String>,
    session: Option<Session>,
    /// Held until the result's memory is released, so that permits bound the memory of their user.
    pub result_permit: Option<Arc<Permit>>,
}

impl Statement {
    pub(crate) fn new(
        mut request: QueryRequest,
        mut body: Bytes,
        session: Option<Session>,
        (role, login): (Role, Option<Login>),
        safe_method: bool,
    ) -> Self {
        let mut text = match request.query.take() {
            Some(query) => Bytes::from(query),
            None => std::mem::take(&mut body),
        };
        if role == Role::Readonly {
            if !body.is_empty() {
                text = join(&text, &std::mem::take(&mut body));
            }
            if let Some((rest, settings)) = settings_clause::split(&text) {
                text = rest.into();
                request.settings.extend(settings);
            }
        }
        let in_session = session.is_some();
        // A new connection is in `default` already.
        request.database =
            request.database.filter(|name| !name.is_empty() && (in_session || name != "default"));
        let is_cancellable = role == Role::Readonly
            || request.cancel_readonly_on_close && (safe_method || request.is_readonly());
        Self {
            text,
            body,
            role,
            login,
            safe_method,
            marker: is_cancellable.then(|| Uuid::now_v7().to_string()),
            session,
            request,
            result_permit: None,
        }
    }

    fn result_bytes(&self, output: QueryOutput) -> Bytes {
        Bytes::from_owner(PermittedMemory::new(output, self.result_permit.clone()))
    }
}

/// As ClickHouse does: the statement is the query string, a line feed and the body.
fn join(query: &Bytes, body: &Bytes) -> Bytes {
    [&query[..], b"\n", &body[..]].concat().into()
}

/// The first chunks of a result, which are all of them unless `rest` is set.
#[derive(Default)]
pub(crate) struct QueryResult {
    pub chunks: Vec<Bytes>,
    pub rest: Option<mpsc::Receiver<Result<Bytes>>>,
    /// The output format, if the statement has output.
    pub format: Option<String>,
    pub counters: Counters,
}

type ResultSender = oneshot::Sender<Result<QueryResult>>;

/// Runs `statement` to its end. The result is sent as soon as the response can begin.
pub(crate) fn run(
    engine: &Engine,
    mut statement: Statement,
    sender: ResultSender,
    cancellation: &Cancellation,
) {
    let mut sender = Some(sender);
    if let Some(session) = statement.session.take() {
        let result = run_in_session(engine, session, &statement, &mut sender, cancellation);
        send(sender, result);
        return;
    }
    let opened = match statement.role {
        Role::Admin => engine.connect_for(&statement.request),
        Role::Readonly => engine.connect().map(|connection| (connection, ConnectionState::default())),
    };
    match opened {
        Ok((mut connection, mut state)) => {
            state.is_reusable = false;
            let context = (&mut connection, &mut state);
            let result = execute(engine, context, &statement, &mut sender, cancellation);
            send(sender, result);
            // The response is already on its way.
            if state.is_reusable && statement.role == Role::Admin && !cancellation.end() {
                engine.keep(connection, state);
            } else {
                drop(connection);
            }
            engine.refill();
        }
        Err(exception) => send(sender, Err(exception)),
    }
}

/// Sends the result, unless it was sent when streaming began.
fn send(sender: Option<ResultSender>, result: Result<Option<QueryResult>>) {
    if let (Some(sender), Some(result)) = (sender, result.transpose())
        && sender.send(result).is_err()
    {
        tracing::debug!("the client disconnected before its response");
    }
}

/// Runs a statement on the session's connection, and removes its settings and partial output from the connection.
fn run_in_session(
    engine: &Engine,
    mut session: Session,
    statement: &Statement,
    sender: &mut Option<ResultSender>,
    cancellation: &Cancellation,
) -> Result<Option<QueryResult>> {
    let connection = match &mut *session {
        Some(connection) => connection,
        none => none.insert(engine.connect()?),
    };
    let restore = restore_statement(connection, &statement.request.settings);
    // Whatever the session has set, the request's settings are set again.
    let mut state = ConnectionState::default();
    let context = (&mut *connection, &mut state);
    let result = restore.clone().and_then(|_| execute(engine, context, statement, sender, cancellation));
    let mut clean = true;
    if result.is_err() {
        clean &= connection.execute("SELECT 1 FORMAT Null").is_ok();
    }
    if let Ok(Some(restore)) = restore {
        clean &= connection.execute(&restore).is_ok();
    }
    if !clean {
        *session = None;
    }
    result
}

/// The `SET` statement that restores the current values of `settings`.
fn restore_statement(connection: &mut Connection, settings: &[(String, String)]) -> Result<Option<String>> {
    let names = settings.iter().map(|(name, _)| name.as_str()).chain([MARKER_SETTING]).map(quote);
    let names: Vec<String> = names.collect();
    let sql = format!(
        "SELECT 'SET ' || arrayStringConcat(groupArray(name || '=' || if(changed, {}, 'DEFAULT')), ', ') \
         FROM system.settings WHERE name IN ({}) HAVING count() > 0",
        "'\\'' || replaceAll(replaceAll(value, '\\\\', '\\\\\\\\'), '\\'', '\\\\\\'') || '\\''",
        names.join(", ")
    );
    let output = connection.query(sql.as_bytes(), "TSVRaw", &[])?;
    let restore = String::from_utf8_lossy(output.as_ref()).trim_end_matches('\n').to_owned();
    Ok((!restore.is_empty()).then_some(restore))
}

fn execute(
    engine: &Engine,
    (connection, state): (&mut Connection, &mut ConnectionState),
    statement: &Statement,
    sender: &mut Option<ResultSender>,
    cancellation: &Cancellation,
) -> Result<Option<QueryResult>> {
    let mut text = statement.text.clone();
    let mut body = statement.body.clone();
    let mut insert = sql::parse_insert(&text);
    if !body.is_empty() && !matches!(insert, Some(InsertSource::Inline(_))) {
        text = join(&text, &std::mem::take(&mut body));
        insert = sql::parse_insert(&text);
    }
    let caller = Caller {
        readonly: statement.role == Role::Readonly,
        login: statement.login.as_ref(),
        marker: statement.marker.as_deref(),
    };
    let buffered = statement.request.buffer_all || output_format(&statement.request, &text).1.is_none();
    settings::apply(engine, connection, state, &statement.request, &caller, buffered)?;
    let is_insert = insert.is_some();
    match insert {
        Some(InsertSource::File) => Err(Exception::unsupported(
            "FROM INFILE reads files of the server's machine: send the data as the body",
        )),
        Some(InsertSource::Inline(insert)) => {
            let (with_format, inline) = (text.slice(..insert.data), text.slice(insert.data..));
            check(connection, statement, &with_format)?;
            cancellation.disable();
            let sql = &with_format[..insert.statement_end];
            let result = insert_data(connection, statement, sql, &insert.format, [inline, body])?;
            state.is_reusable = true;
            Ok(Some(result))
        }
        Some(InsertSource::Query) | None => {
            let class = check(connection, statement, &text)?;
            if caller.readonly
                && let Some(replaced) = settings_table::replace(&text, engine.settings_table())
            {
                text = replaced.into();
            }
            let result = query(connection, statement, &text, class, sender, cancellation)?;
            state.is_reusable = result.is_some() && (is_insert || class == StatementClass::Read);
            Ok(result)
        }
    }
}

/// Classifies a statement. Rejects several, and one that this role or this method may not run.
fn check(connection: &mut Connection, statement: &Statement, text: &[u8]) -> Result<StatementClass> {
    let analysis = connection.classify(text);
    match analysis.statements {
        0 => return Err(syntax_error(connection, text)),
        1 => {}
        _ => {
            let error = "Syntax error (Multi-statements are not allowed): send one statement per request";
            return Err(Exception::new(62, "SYNTAX_ERROR", error));
        }
    }
    if sql::parse_output(text).into_file {
        return Err(Exception::unsupported(
            "INTO OUTFILE writes files of the server's machine: read the response instead",
        ));
    }
    if statement.role == Role::Readonly {
        access::check_statement(text, analysis.class)?;
    }
    if statement.login.is_some() {
        access::check_login_statement(text)?;
        // As the engine's parser understands it.
        access::check_login_statement(&format_query(connection, text)?)?;
    }
    if statement.safe_method && analysis.class != StatementClass::Read {
        return Err(Exception::readonly("Cannot execute query in readonly mode: GET only reads, use POST"));
    }
    Ok(analysis.class)
}

fn insert_data(
    connection: &mut Connection,
    statement: &Statement,
    sql: &[u8],
    format: &str,
    data: [Bytes; 2],
) -> Result<QueryResult> {
    let [inline, body] = data;
    // White space between the statement in the query string and the body is not data.
    let blank = inline.iter().all(|&c| c.is_ascii_whitespace() || c == b';');
    let inline = if blank && !body.is_empty() { Bytes::new() } else { inline };
    let values = format.eq_ignore_ascii_case("Values");
    if values && sql::continues_after_semicolon(&[&inline[..], &body[..]].concat()) {
        let text = "Cannot read data after semicolon (Multi-statements are not allowed): send one statement per request";
        return Err(Exception::new(27, "CANNOT_PARSE_INPUT_ASSERTION_FAILED", text));
    }
    let no_data = body.is_empty() && (inline.is_empty() || values && blank);
    let mut insert = connection.insert(sql, format, &statement.request.parameters)?;
    if no_data {
        insert.cancel();
        return Ok(QueryResult::default());
    }
    for chunk in inline.chunks(INSERT_CHUNK_BYTES).chain(body.chunks(INSERT_CHUNK_BYTES)) {
        insert.append(chunk)?;
    }
    Ok(QueryResult { counters: insert.finish()?.counters(), ..QueryResult::default() })
}

/// Runs any statement but an insert of data, and streams the result if statement and format allow it.
fn query(
    connection: &mut Connection,
    statement: &Statement,
    text: &[u8],
    class: StatementClass,
    sender: &mut Option<ResultSender>,
    cancellation: &Cancellation,
) -> Result<Option<QueryResult>> {
    let (format, stripper) = output_format(&statement.request, text);
    let reads = class == StatementClass::Read;
    if !reads {
        cancellation.disable();
    }
    if cancellation.is_requested() {
        return Err(Exception::new(394, "QUERY_WAS_CANCELLED", "the client disconnected"));
    }
    if reads && let Some(stripper) = stripper {
        return stream(connection, statement, text, &format, stripper, sender);
    }
    let result = connection.query(text, &format, &statement.request.parameters)?;
    let counters = result.counters();
    let chunks = vec![statement.result_bytes(result)];
    Ok(Some(QueryResult { chunks, rest: None, format: reads.then_some(format), counters }))
}

/// The output format of a text, and how to join its chunks if it can be streamed.
fn output_format(request: &QueryRequest, text: &[u8]) -> (String, Option<HeaderStripper>) {
    let output = sql::parse_output(text);
    let format = output.format.as_deref().or(request.default_format.as_deref()).unwrap_or("TabSeparated");
    let rows_only = output.is_select
        && !output.has_totals
        && !request.settings.iter().any(|(name, _)| sql::is_extra_output_setting(name));
    (format.to_owned(), HeaderStripper::new(format).filter(|_| rows_only))
}

/// Buffers the beginning of a result, then sends the rest chunk by chunk as the client reads.
fn stream(
    connection: &mut Connection,
    statement: &Statement,
    sql: &[u8],
    format: &str,
    mut stripper: HeaderStripper,
    sender: &mut Option<ResultSender>,
) -> Result<Option<QueryResult>> {
    let mut stream = connection.stream(sql, format, &statement.request.parameters)?;
    let mut counters = Counters::default();
    let (mut chunks, mut buffered) = (Vec::new(), 0);
    let format = Some(format.to_owned());
    loop {
        let Some(output) = stream.fetch()? else {
            return Ok(Some(QueryResult { chunks, rest: None, format, counters }));
        };
        counters += output.counters();
        let chunk = stripper.strip(statement.result_bytes(output));
        buffered += chunk.len();
        chunks.push(chunk);
        if buffered >= MAX_BUFFERED_BYTES && !statement.request.buffer_all {
            break;
        }
    }
    let (chunk_sender, rest) = mpsc::channel(2);
    let result = QueryResult { chunks, rest: Some(rest), format, counters };
    let sent = sender.take().map(|sender| sender.send(Ok(result)));
    if !matches!(sent, Some(Ok(()))) {
        return Ok(None);
    }
    loop {
        match stream.fetch() {
            Ok(None) => return Ok(None),
            Ok(Some(output)) => {
                // After a disconnect, dropping the stream cancels the query.
                if chunk_sender.blocking_send(Ok(stripper.strip(statement.result_bytes(output)))).is_err() {
                    return Ok(None);
                }
            }
            Err(exception) => {
                drop(chunk_sender.blocking_send(Err(exception.clone())));
                return Err(exception);
            }
        }
    }
}
