//! The named schemas of response types, collected while operations are described.

use std::sync::{LazyLock, Mutex, PoisonError};

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

/// One generator for all types, so that no two schemas get the same name.
static SCHEMAS: LazyLock<Mutex<SchemaGenerator>> = LazyLock::new(|| {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    Mutex::new(settings.into_generator())
});

/// Returns the schema of a type, as a reference if the type has a name.
pub(super) fn schema_of<T: JsonSchema>() -> Value {
    SCHEMAS.lock().unwrap_or_else(PoisonError::into_inner).subschema_for::<T>().to_value()
}

/// Returns the named schemas that were referenced so far.
pub(super) fn named_schemas() -> Map<String, Value> {
    SCHEMAS.lock().unwrap_or_else(PoisonError::into_inner).definitions().clone()
}
