//! Lists the ClickHouse statements of `schemas/` for `store::migrate`, the numbered ones and the views, and has Cargo build
//! again when a migration of either store or a view comes or goes.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=migrations");
    println!("cargo:rerun-if-changed=schemas");
    let out = env::var("OUT_DIR").expect("Cargo names a folder for what is generated");
    for (folder, list) in [("schemas", "schemas.rs"), ("schemas/views", "views.rs")] {
        fs::write(Path::new(&out).join(list), statements(folder)).expect("the list can be written");
    }
}

/// The statements of a folder as an array of names and texts, in the order of the names.
fn statements(folder: &str) -> String {
    let root = env::var("CARGO_MANIFEST_DIR").expect("Cargo names the folder of the package");
    let mut names: Vec<String> = match fs::read_dir(Path::new(&root).join(folder)) {
        Ok(entries) => entries
            .map(|entry| entry.expect("a folder can be listed").file_name().to_string_lossy().into_owned())
            .filter(|name| name.ends_with(".sql"))
            .collect(),
        Err(error) => panic!("{folder} cannot be listed: {error}"),
    };
    names.sort();
    let mut list = String::from("&[\n");
    for name in &names {
        list.push_str(&format!(
            "    ({name:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {:?}))),\n",
            format!("/{folder}/{name}")
        ));
    }
    list.push_str("]\n");
    list
}
