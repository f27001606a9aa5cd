//! Embeds the SQL files of `schemas/` for `store::migrate`, and rebuilds when a migration is added or removed.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=migrations");
    println!("cargo:rerun-if-changed=schemas");
    let mut migrations = String::new();
    for (name, path) in sql_files("schemas")? {
        let number = name.split('_').next().unwrap_or_default();
        let version: u32 = number.parse().map_err(|_| format!("name schemas/{name} NNNN_subject.sql"))?;
        migrations += &format!("({version}, {name:?}, include_str!({path:?})),\n");
    }
    let views = sql_files("schemas/views")?;
    let views: String =
        views.iter().map(|(name, path)| format!("({name:?}, include_str!({path:?})),\n")).collect();
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("schemas.rs"), format!("&[\n{migrations}]\n"))?;
    fs::write(out.join("views.rs"), format!("&[\n{views}]\n"))?;
    Ok(())
}

/// The SQL files of a folder, by name, with their paths.
fn sql_files(folder: &str) -> Result<Vec<(String, PathBuf)>, Box<dyn Error>> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join(folder);
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let name = entry?.file_name().into_string().map_err(|name| format!("{name:?} is not UTF-8"))?;
        if name.ends_with(".sql") {
            files.push((name.clone(), folder.join(name)));
        }
    }
    files.sort();
    Ok(files)
}
