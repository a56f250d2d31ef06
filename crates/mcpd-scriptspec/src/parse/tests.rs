//! Agreement of the published schema of sidecars with the parsed fields and their order.

use std::{fs, path::Path};

use serde_json::Value;

use super::{metadata, options, value_type::TypeFields};

#[track_caller]
fn check(pointer: &str, fields: &[&str]) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas/sidecar.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let properties = schema.pointer(pointer).unwrap().as_object().unwrap();
    // `$schema` is for editors, and `options` holds the content of stderr.
    let own = ["$schema", "options"];
    let published = properties.keys().map(String::as_str);
    let published: Vec<_> = published.filter(|name| !own.contains(name)).collect();
    assert_eq!(published, fields);
}

#[test]
fn published_schema_has_every_field() {
    check("/properties", metadata::FIELDS);
    check("/$defs/option/properties", options::FIELDS);
    let of_properties = &options::FIELDS[..options::FIELDS.len() - options::OPTION_ONLY];
    check("/$defs/property/properties", of_properties);
    check("/$defs/items/properties", TypeFields::NAMES);
}
