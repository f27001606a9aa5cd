//! Imports: files that are uploaded, loaded one after the other, and reported on.

use chrono_tz::Tz;
use salvo::{Router, Writer};
use salvo_oapi::{RouterExt, endpoint};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::app::{App, InFlightKey, TransferGuard, UploadFolder};
use crate::http::input::violations::Violations;
use crate::http::input::{ListQuery, ListSort};
use crate::http::route::get_records;
use crate::http::{
    AcceptedAt, Args, Caller, Collection, Data, Deadline, FileBody, IdempotencyKey, NoContent, Path, Problem,
    Query, Result, in_transaction,
};
use crate::model::date_or_time::DateOrTime;
use crate::model::identifier::Username;
use crate::model::limits::{MAX_NAME_CHARS, MAX_TIME_ZONE_CHARS, MAX_USERNAME_CHARS};
use crate::model::platform::Platform;
use crate::model::upload::{Import, UploadOptions};
use crate::store::postgres::keyset::SortDirection;
use crate::store::records::uploads::{self, ImportFilter, ImportSort, NewUpload};

/// The route that takes files. Its path has no version.
pub(super) fn receiver() -> Router {
    Router::with_path("import").post(create).oapi_tag("Imports")
}

pub(super) fn router() -> Router {
    Router::with_path("imports")
        .push(get_records(list))
        .push(Router::with_path("{import_id}").push(get_records(get)).delete(cancel))
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct ImportPath {
    /// Import id.
    import_id: Uuid,
}

impl ListSort for ImportSort {
    const DEFAULT: (Self, SortDirection) = (ImportSort::CreatedAt, SortDirection::Desc);
}

/// What a file lacks, and what to do with it. Values in a row win.
#[derive(Serialize, Deserialize, JsonSchema)]
struct ImportQuery {
    /// Name of the file, to recognize the import by. Its format follows from its content.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    filename: Option<String>,
    /// Platform of rows that do not name one.
    platform: Option<Platform>,
    /// Username of rows that do not name one.
    #[schemars(length(min = 1, max = MAX_USERNAME_CHARS))]
    #[schemars(extend("pattern" = Platform::ALL.map(Username::pattern).join("|")))]
    username: Option<String>,
    /// When counters without a time were observed: a time, or a date as its first moment. Defaults to the time of the upload for
    /// formats whose counters are those of the export.
    observed_at: Option<DateOrTime>,
    /// Time zone of times without one, as an IANA name such as `Europe/Berlin`.
    #[schemars(length(min = 1, max = MAX_TIME_ZONE_CHARS))]
    time_zone: Option<String>,
    /// Whether `03/04/2026` is 3 April instead of 4 March.
    #[serde(default)]
    day_first: bool,
    /// Whether new accounts are tracked, instead of created as paused.
    #[serde(default)]
    track: bool,
    /// Whether to read the file and store nothing.
    #[serde(default)]
    dry_run: bool,
}

impl ImportQuery {
    fn into_options(self) -> Result<(Option<String>, UploadOptions)> {
        let mut violations = Violations::default();
        if let Some(username) = &self.username {
            let platforms = self.platform.map_or(Platform::ALL.to_vec(), |platform| vec![platform]);
            let parsed = platforms.into_iter().map(|platform| Username::parse(platform, username));
            // TikTok's rules, if it is of neither platform.
            if let Some(Err(error)) = parsed.reduce(Result::or) {
                violations.add("username", error.to_string());
            }
        }
        if self.time_zone.as_deref().is_some_and(|name| name.parse::<Tz>().is_err()) {
            violations.add("time_zone", "must be the IANA name of a time zone, such as Europe/Berlin");
        }
        if !violations.is_empty() {
            return Err(Problem::invalid(violations));
        }
        let options = UploadOptions {
            platform: self.platform,
            username: self.username,
            observed_at: self.observed_at.map(DateOrTime::first),
            time_zone: self.time_zone,
            day_first: self.day_first,
            track: self.track,
            dry_run: self.dry_run,
        };
        Ok((self.filename, options))
    }
}

/// Import a file
///
/// The body is the file of any tool, as it is: CSV, JSON, spreadsheets, Parquet, also compressed. The response comes when the
/// file is complete; `GET /v2/imports/{import_id}` tells how far its rows are. Repeating an import changes nothing. Imports
/// of the organization run one after the other, at most 20 wait.
#[endpoint(
    operation_id = "createImport",
    responses(
        (status_code = 409, description = "20 imports have not ended, or the first request with this key is in flight."),
        (status_code = 413, description = "The file exceeds the limit of the service, by default 256 MiB."),
        (status_code = 415, description = "The body is a form instead of the file."),
    )
)]
async fn create(
    app: App,
    caller: Caller,
    args: Args<(Query<ImportQuery>, IdempotencyKey)>,
    deadline: Deadline,
    body: FileBody,
) -> Result<AcceptedAt<Import>> {
    let Args((Query(query), idempotency)) = args;
    let organization = caller.organization;
    let admitted = admit(&app, organization, query, &idempotency).await;
    let (admission, filename, options) = match admitted {
        Ok(admitted) => admitted,
        Err(problem) => return Err(body.reject(problem, &deadline).await),
    };
    let folder = admission.folder;
    let (file, hash) = body.receive(folder, &deadline).await?;
    let idempotency = idempotency.with_file(hash, &(&filename, &options))?;
    let received_at = app.clock.now().await;
    let new = NewUpload { id: file.id(), process: folder.process(), filename, options, received_at };
    let accepted = in_transaction(&app, || async {
        let mut write = app.begin_write(organization).await?;
        if let Some(first) = idempotency.claim(&mut write).await? {
            return Ok((first, false));
        }
        uploads::create(&mut write, &new).await?;
        let import = uploads::get(write.connection(), organization, new.id).await?;
        let accepted = AcceptedAt::new(format!("/v2/imports/{}", new.id), &import)?;
        idempotency.store(&mut write, &accepted).await?;
        write.commit().await?;
        Ok((accepted, true))
    });
    let (accepted, is_new) = accepted.await?;
    if is_new {
        file.hand_over();
    }
    Ok(accepted)
}

/// What an upload holds while it is received.
struct Admission<'a> {
    folder: &'a UploadFolder,
    _incoming: TransferGuard,
    _in_flight: Option<InFlightKey>,
}

/// Checks everything that does not depend on the file.
async fn admit<'a>(
    app: &'a App,
    organization: Uuid,
    query: ImportQuery,
    idempotency: &IdempotencyKey,
) -> Result<(Admission<'a>, Option<String>, UploadOptions)> {
    let (filename, options) = query.into_options()?;
    let folder =
        app.uploads.as_ref().ok_or_else(|| Problem::files_unavailable("there is no folder for uploads"))?;
    let _incoming = app.incoming.begin(organization).ok_or_else(Problem::too_many_uploads)?;
    let _in_flight = idempotency.begin(app, organization)?;
    let _permit = app.writes.acquire(organization).await?;
    // A retry gets the first response, also if that import took the last place.
    if !idempotency.is_used(app, organization).await? {
        uploads::require_room(&app.pg, organization).await?;
    }
    Ok((Admission { folder, _incoming, _in_flight }, filename, options))
}

/// List imports
///
/// Newest first. Imports are kept for 30 days.
#[endpoint(operation_id = "listImports")]
async fn list(
    app: App,
    caller: Caller,
    query: ListQuery<ImportFilter, ImportSort>,
) -> Result<Collection<Import>> {
    let found = uploads::list(&app.pg, caller.organization, &query.params.page).await?;
    query.params.into_response(found)
}

/// Get an import
///
/// Numbers grow while it is `running`.
#[endpoint(operation_id = "getImport")]
async fn get(app: App, caller: Caller, path: Path<ImportPath>) -> Result<Data<Import>> {
    let data = uploads::get(&app.pg, caller.organization, path.0.import_id).await?;
    Ok(Data { data })
}

/// Cancel an import
///
/// What was saved remains.
#[endpoint(operation_id = "cancelImport", responses((status_code = 409, description = "The import has ended.")))]
async fn cancel(app: App, caller: Caller, path: Path<ImportPath>) -> Result<NoContent> {
    let (id, now) = (path.0.import_id, app.clock.now().await);
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        uploads::cancel(&mut write, id, now).await?;
        write.commit().await?;
        Ok(NoContent)
    })
    .await?;
    if let Some(folder) = &app.uploads {
        folder.notify();
    }
    Ok(NoContent)
}
