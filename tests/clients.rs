//! The typed clients in `clients/`: what is generated is current, and both work as packages, with the recipes of their pages, against
//! the service.

use std::path::Path;
use std::process::Command;

use harness::Stack;
use tempfile::TempDir;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Runs a command at the root, which must succeed; returns what it prints.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.current_dir(ROOT).output().unwrap();
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{command:?}: {stdout}\n{stderr}");
    stdout.trim().to_owned()
}

/// Interpreter with the tools of clients/python.
fn python() -> String {
    run(&mut Command::new("scripts/install-client-tools"))
}

/// Paths and contents of the files of a package, sorted.
fn files(folder: &Path, prefix: &str) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}/{}", path.file_name().unwrap().display());
        if name.ends_with("__pycache__") || name.ends_with(".mypy_cache") {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path, &name));
        } else {
            found.push((name, std::fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn generated_types_are_current() {
    let folder = TempDir::new().unwrap();
    let committed = Path::new(ROOT).join("clients");
    run(Command::new("cp").arg("-r").arg(&committed).arg(folder.path()));
    let copy = folder.path().join("clients");
    run(Command::new("scripts/client-types").arg(&copy));
    let (expected, found) = (files(&copy, ""), files(&committed, ""));
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&found), names(&expected), "run make client-types");
    for ((name, expected), (_, found)) in expected.iter().zip(&found) {
        assert!(expected == found, "{name} is not current: run make client-types");
    }
    let format =
        "cd clients/typescript && ../../ui/node_modules/.bin/biome check --error-on-warnings src test";
    run(Command::new("sh").args(["-c", format]));
}

#[test]
fn clients_are_small() {
    let is_written = |name: &str| {
        let generated = ["schema.d.ts", "types.py", "operations.py"];
        let is_code = name.starts_with("/typescript/src/") || name.starts_with("/python/src/");
        (is_code || name.ends_with("generate.py")) && !generated.iter().any(|file| name.ends_with(file))
    };
    for language in ["typescript", "python"] {
        let files = files(&Path::new(ROOT).join("clients").join(language), &format!("/{language}"));
        let written = files.iter().filter(|(name, _)| is_written(name) && !name.ends_with("py.typed"));
        let lines: usize = written.map(|(_, text)| text.split(|byte| *byte == b'\n').count()).sum();
        assert!((100..600).contains(&lines), "{language}: {lines}");
    }
}

#[test]
fn clients_retry_time_out_and_resume() {
    run(Command::new("node").args(["--test", "clients/typescript/test/client.test.mjs"]));
    let python = python();
    let environment = [("PYTHONPATH", "clients/python/src"), ("PYTHONDONTWRITEBYTECODE", "1")];
    run(Command::new(&python).arg("clients/python/tests/test_client.py").envs(environment));
    let sources = ["src", "generate.py", "tests/test_client.py"].map(|name| format!("clients/python/{name}"));
    let config = ["--config-file", "clients/python/pyproject.toml", "--cache-dir=/dev/null"];
    run(Command::new(&python).args(["-m", "mypy"]).args(config).args(sources));
}

/// Packs both clients into a folder; returns it with the paths of the packages for TypeScript and Python.
fn pack() -> (TempDir, String, String) {
    let folder = TempDir::new().unwrap();
    let names = run(Command::new("scripts/pack-clients").arg(folder.path()));
    let paths = names.lines().map(|name| folder.path().join(name).display().to_string());
    let [tarball, wheel] = &paths.collect::<Vec<_>>()[..] else { panic!("{names}") };
    let (tarball, wheel) = (tarball.clone(), wheel.clone());
    (folder, tarball, wheel)
}

/// Runs the recipes of a page for an organization with posts, and checks what they print and save.
async fn check_recipes(recipes: &mut Command, folder: &Path) {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    organization.track(stack.sandbox_account("tiktok")).await;
    recipes.env("TIDEMARK_URL", &stack.connection.base_url).env("TIDEMARK_API_KEY", &organization.key);
    let printed = run(recipes);
    for part in [
        "recipe 10\n",
        " views\n",
        "low.tide 201 tracked",
        "succeeded 1 []",
        "import.ended",
        "VALIDATION_ERROR",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let export = std::fs::read_to_string(folder.join("content.csv")).unwrap();
    assert!(export.starts_with("id,") && export.lines().count() > 1, "{export}");
}

#[tokio::test]
async fn recipes_work_in_typescript() {
    let (folder, tarball, _) = pack();
    let folder = folder.path();
    std::fs::write(folder.join("package.json"), r#"{"type": "module"}"#).unwrap();
    let install = ["install", "--offline", "--no-audit", "--no-fund", "--prefix"];
    run(Command::new("npm").args(install).arg(folder).arg(tarball));
    let mut recipes = Command::new("node");
    recipes.arg("clients/typescript/test/recipes.mjs").arg(folder).arg(format!("{ROOT}/ui"));
    check_recipes(&mut recipes, folder).await;
}

#[tokio::test]
async fn recipes_work_in_python() {
    let (folder, _, wheel) = pack();
    let (folder, python) = (folder.path(), python());
    let install =
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--target"];
    run(Command::new(&python).args(install).arg(folder).arg(wheel));
    let mut recipes = Command::new(&python);
    recipes.arg("clients/python/tests/recipes.py").arg(folder);
    check_recipes(&mut recipes, folder).await;
}
