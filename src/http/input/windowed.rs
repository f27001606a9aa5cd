//! Requests for numbers of a window, as extracted for handlers.

use chrono::{DateTime, NaiveDate, Utc};
use salvo::{Depot, Request};
use sqlx::PgPool;
use uuid::Uuid;

use super::body::Body;
use super::part::{Args, Part, impl_extractible, read};
use super::path::Path;
use super::query::Query;
use super::window::WindowParams;
use crate::app::App;
use crate::http::caller::Caller;
use crate::http::output::envelope::WindowMeta;
use crate::http::output::problem::Problem;
use crate::model::period::Window;
use crate::response_cache::ResponseCache;
use crate::store::analytics::HistoryReader;

/// Everything that the handler of a window may use, so that a response depends on nothing else: route, arguments, window
/// and organization are its cache key, and the databases have a version.
pub struct WindowedRequest<A> {
    pub pg: PgPool,
    pub history: HistoryReader,
    pub organization: Uuid,
    pub args: A,
    pub window: Window,
    /// The last complete day that is not after the window.
    pub complete_through: NaiveDate,
    pub(in crate::http) route: String,
    pub(in crate::http) history_since: Option<NaiveDate>,
    pub(in crate::http) responses: ResponseCache,
}

impl<A> WindowedRequest<A> {
    pub fn meta(&self, data_as_of: Option<DateTime<Utc>>) -> WindowMeta {
        WindowMeta {
            period: self.window.period,
            start_date: self.window.start,
            end_date: self.window.end,
            days: self.window.days(),
            complete_through: self.complete_through,
            data_as_of,
        }
    }
}

/// Arguments that name a window.
pub trait Windowed {
    fn window(&self, now: DateTime<Utc>) -> Result<Window, Problem>;
}

impl Windowed for WindowParams {
    fn window(&self, now: DateTime<Utc>) -> Result<Window, Problem> {
        self.resolve(now)
    }
}

impl<T: Windowed> Windowed for Query<T> {
    fn window(&self, now: DateTime<Utc>) -> Result<Window, Problem> {
        self.0.window(now)
    }
}

impl<T: Windowed> Windowed for Body<T> {
    fn window(&self, now: DateTime<Utc>) -> Result<Window, Problem> {
        self.0.window(now)
    }
}

impl<P, T: Windowed> Windowed for Args<(Path<P>, T)> {
    fn window(&self, now: DateTime<Utc>) -> Result<Window, Problem> {
        self.0.1.window(now)
    }
}

impl<A: Part + Windowed> WindowedRequest<A> {
    async fn from_request(req: &mut Request, depot: &mut Depot) -> Result<Self, Problem> {
        let App { pg, history, clock, responses, .. } = App::from_request(req, depot)?;
        let Caller { organization, history_since, .. } = Caller::from_depot(depot)?;
        let args: A = read(req, depot)?;
        let now = clock.now().await;
        let window = args.window(now)?;
        let (route, complete_through) = (req.matched_path().to_owned(), window.complete_through(now));
        Ok(WindowedRequest {
            pg,
            history,
            organization,
            args,
            window,
            complete_through,
            route,
            history_since,
            responses,
        })
    }
}

impl_extractible!(
    [A: Part + Windowed] WindowedRequest<A>,
    |req, depot| Self::from_request(req, depot).await,
    |operation| A::describe(operation)
);
