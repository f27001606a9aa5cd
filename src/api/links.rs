//! Which accounts are a creator's.

use salvo::{Router, Writer, handler};
use uuid::Uuid;

use crate::app::App;
use crate::http::extract::{FromPath, PathParams};
use crate::http::route::read;
use crate::http::{Caller, Created, Data, NoContent, Path, Problem};
use crate::model::creator::Link;
use crate::store::{Write, links};

/// Below `creators/{creator_id}`.
pub(super) fn router() -> Router {
    Router::with_path("accounts/{account_id}")
        .push(read(get))
        .push(Router::new().put(put))
        .push(Router::new().delete(delete))
}

struct LinkPath {
    creator_id: Uuid,
    account_id: Uuid,
}

impl FromPath for LinkPath {
    fn read(path: &mut PathParams<'_>) -> Self {
        LinkPath { creator_id: path.uuid("creator_id"), account_id: path.uuid("account_id") }
    }
}

#[handler]
async fn get(app: App, caller: Caller, path: Path<LinkPath>) -> Result<Data<Link>, Problem> {
    let LinkPath { creator_id, account_id } = path.0;
    let data = links::get(&app.pg, caller.organization, creator_id, account_id).await?;
    Ok(Data { data })
}

#[handler]
async fn put(app: App, caller: Caller, path: Path<LinkPath>) -> Result<Created<Link>, Problem> {
    let LinkPath { creator_id, account_id } = path.0;
    let mut write = Write::begin(&app.pg, caller.organization).await?;
    let (link, new) = links::put(&mut write, creator_id, account_id).await?;
    if !new {
        return Created::already(&link);
    }
    write.commit().await?;
    Created::at(format!("/v2/creators/{creator_id}/accounts/{account_id}"), &link)
}

#[handler]
async fn delete(app: App, caller: Caller, path: Path<LinkPath>) -> Result<NoContent, Problem> {
    let LinkPath { creator_id, account_id } = path.0;
    let mut write = Write::begin(&app.pg, caller.organization).await?;
    links::remove(&mut write, creator_id, account_id).await?;
    write.commit().await?;
    Ok(NoContent)
}
