//! Checks the type of a body that is a file, and parses the query string. The handler receives the body.

use salvo::http::Mime;
use salvo::http::header::CONTENT_TYPE;
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Writer, async_trait};

use super::parse_request::parse_query;
use super::shutdown::close_connection;
use crate::http::input::request_part::ParsedRequest;
use crate::http::output::problem::Problem;

/// Types of bodies that contain a file besides other things.
const FORMS: [&str; 2] = ["multipart/form-data", "application/x-www-form-urlencoded"];

pub struct ParseFileRequest;

impl ParseFileRequest {
    fn parse(req: &Request) -> Result<ParsedRequest, Problem> {
        let mime =
            req.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()?.parse::<Mime>().ok());
        if mime.is_some_and(|mime| FORMS.iter().any(|form| mime.essence_str().eq_ignore_ascii_case(form))) {
            let detail = "the body must be the file itself, not a form: send it as application/octet-stream";
            return Err(Problem::unsupported_media_type(detail));
        }
        Ok(ParsedRequest { query: parse_query(req)?, body: None })
    }
}

#[async_trait]
impl Handler for ParseFileRequest {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        match Self::parse(req) {
            Ok(parsed) => {
                depot.insert_typed(parsed);
                ctrl.call_next(req, depot, res).await;
            }
            Err(problem) => {
                problem.write(req, depot, res).await;
                ctrl.skip_rest();
            }
        }
        // The rest of the body must not be read as the next request.
        if res.status_code.is_some_and(|status| !status.is_success()) {
            close_connection(req, res);
        }
    }
}
