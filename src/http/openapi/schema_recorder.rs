//! Records the parameters and fields that a reader reads, with schema and description, for the OpenAPI document. While
//! a request is read, it is disabled.

use serde_json::{Map, Value, json};

/// A parameter or body field.
#[derive(Debug)]
pub struct RecordedField {
    pub name: String,
    pub description: String,
    pub schema: Value,
}

/// All parameters or fields of one part of a request.
#[derive(Debug, Default)]
pub struct RecordedFields {
    pub fields: Vec<RecordedField>,
    pub required: Vec<&'static str>,
    /// Schemas of which exactly one matches all fields together.
    pub one_of: Vec<Value>,
}

impl RecordedFields {
    /// Returns the schema of an object with these fields and no others.
    pub fn into_schema(self) -> Value {
        let mut properties = Map::new();
        for RecordedField { name, description, mut schema } in self.fields {
            if let Some(schema) = schema.as_object_mut().filter(|_| !description.is_empty()) {
                schema.insert("description".to_owned(), description.into());
            }
            properties.insert(name, schema);
        }
        let mut object = json!({"type": "object", "properties": properties, "additionalProperties": false});
        if !self.required.is_empty() {
            object["required"] = json!(self.required);
        }
        if !self.one_of.is_empty() {
            object["oneOf"] = self.one_of.into();
        }
        object
    }
}

#[derive(Debug)]
pub struct SchemaRecorder<'a> {
    recorded: Option<&'a mut RecordedFields>,
    /// Description of the next field.
    description: &'static str,
}

impl<'a> SchemaRecorder<'a> {
    pub const fn new(recorded: &'a mut RecordedFields) -> Self {
        SchemaRecorder { recorded: Some(recorded), description: "" }
    }

    pub const fn disabled() -> Self {
        SchemaRecorder { recorded: None, description: "" }
    }

    pub const fn is_recording(&self) -> bool {
        self.recorded.is_some()
    }

    pub const fn describe(&mut self, text: &'static str) {
        self.description = text;
    }

    pub fn record(&mut self, name: &str, schema: impl FnOnce() -> Value) {
        let description = std::mem::take(&mut self.description);
        if let Some(recorded) = &mut self.recorded {
            let (name, description) = (name.to_owned(), description.to_owned());
            recorded.fields.push(RecordedField { name, description, schema: schema() });
        }
    }

    /// Adds a sentence to the description of the last field.
    pub fn add_to_description(&mut self, sentence: impl FnOnce() -> String) {
        if let Some(field) = self.recorded.as_mut().and_then(|recorded| recorded.fields.last_mut()) {
            field.description = format!("{} {}", field.description, sentence());
        }
    }

    pub fn require(&mut self, name: &'static str) {
        if let Some(recorded) = &mut self.recorded {
            recorded.required.push(name);
        }
    }

    pub fn one_of(&mut self, schemas: impl FnOnce() -> Vec<Value>) {
        if let Some(recorded) = &mut self.recorded {
            recorded.one_of = schemas();
        }
    }

    /// Allows null for the last field.
    pub fn set_nullable(&mut self) {
        let last = self.recorded.as_mut().and_then(|recorded| recorded.fields.last_mut());
        if let Some(kind) = last.and_then(|field| field.schema.get_mut("type")) {
            *kind = json!([kind.take(), "null"]);
        }
    }

    /// Sets a keyword, such as `pattern`, in the schema of the last field.
    pub fn set_keyword(&mut self, keyword: &str, value: impl FnOnce() -> Value) {
        let last = self.recorded.as_mut().and_then(|recorded| recorded.fields.last_mut());
        if let Some(schema) = last.and_then(|field| field.schema.as_object_mut()) {
            schema.insert(keyword.to_owned(), value());
        }
    }
}
