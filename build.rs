//! Lists the numbered ClickHouse statements of `schemas/` for `store::migrate`, and has Cargo build again when a
//! migration of either store comes or goes.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=migrations");
    println!("cargo:rerun-if-changed=schemas");
    let root = env::var("CARGO_MANIFEST_DIR").expect("Cargo names the folder of the package");
    let out = env::var("OUT_DIR").expect("Cargo names a folder for what is generated");
    let mut names: Vec<String> = match fs::read_dir(Path::new(&root).join("schemas")) {
        Ok(entries) => entries
            .map(|entry| entry.expect("schemas can be listed").file_name().to_string_lossy().into_owned())
            .filter(|name| name.ends_with(".sql"))
            .collect(),
        Err(error) => panic!("schemas cannot be listed: {error}"),
    };
    names.sort();
    let mut list = String::from("&[\n");
    for name in &names {
        list.push_str(&format!(
            "    ({name:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {:?}))),\n",
            format!("/schemas/{name}")
        ));
    }
    list.push_str("]\n");
    fs::write(Path::new(&out).join("schemas.rs"), list).expect("the list can be written");
}
