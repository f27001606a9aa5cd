//! The parameters of a path.

use salvo::Request;
use salvo_oapi::{Operation, ParameterIn};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::fields::parse_uuid;
use super::request_part::{RequestContext, RequestPart, impl_extractible};
use super::violations::Violations;
use crate::http::openapi::operation::add_parameters;
use crate::http::openapi::schema;
use crate::http::openapi::schema_recorder::{RecordedFields, SchemaRecorder};

/// The parameters of a path, parsed into `T`.
#[derive(Serialize)]
pub struct Path<T>(pub T);

/// A type that is read from the parameters of a path.
pub trait FromPath: Send {
    fn read(path: &mut PathParams<'_>) -> Self;
}

impl<T: FromPath> RequestPart for Path<T> {
    fn read(context: &RequestContext<'_>, violations: &mut Violations) -> Self {
        let recorder = SchemaRecorder::disabled();
        Path(T::read(&mut PathParams { request: context.request, violations, recorder }))
    }

    fn describe(operation: &mut Operation) {
        let (mut recorded, mut violations, request) =
            (RecordedFields::default(), Violations::default(), Request::new());
        let recorder = SchemaRecorder::new(&mut recorded);
        T::read(&mut PathParams { request: &request, violations: &mut violations, recorder });
        add_parameters(operation, ParameterIn::Path, recorded);
    }
}

impl_extractible!([T: FromPath] Path<T>);

pub struct PathParams<'a> {
    request: &'a Request,
    pub violations: &'a mut Violations,
    recorder: SchemaRecorder<'a>,
}

impl<'a> PathParams<'a> {
    /// Sets the description of the parameter that is read next.
    pub const fn describe(&mut self, text: &'static str) -> &mut Self {
        self.recorder.describe(text);
        self
    }

    /// Returns a parameter for the caller to parse.
    pub fn text(&mut self, name: &str, schema: impl FnOnce() -> Value) -> &'a str {
        self.recorder.record(name, schema);
        self.request.params().get(name).map_or("", String::as_str)
    }

    pub fn uuid(&mut self, name: &str) -> Uuid {
        parse_uuid(self.text(name, schema::uuid)).unwrap_or_else(|message| {
            self.violations.add(name, message);
            Uuid::nil()
        })
    }
}
