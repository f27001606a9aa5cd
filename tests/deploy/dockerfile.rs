//! The Dockerfile: hadolint, copied files, and calls of the program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use crate::call::{parse, parse_strict};
use crate::{ROOT, checker, output_text, path, text};

/// The instructions, each on one line.
fn instructions() -> Vec<(String, String)> {
    let file = text("Dockerfile").replace("\\\n", " ");
    let lines = file.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| line.split_once(' ').unwrap())
        .map(|(word, rest)| (word.to_owned(), rest.to_owned()))
        .collect()
}

/// The arguments of all instructions of a kind.
fn instructions_of(kind: &str) -> Vec<String> {
    instructions().into_iter().filter(|(word, _)| word == kind).map(|(_, rest)| rest).collect()
}

/// The paths that are copied into the build image.
fn copied() -> BTreeSet<String> {
    let mut sources = BTreeSet::new();
    for copy in instructions_of("COPY").iter().filter(|copy| !copy.starts_with("--from")) {
        let words: Vec<_> = copy.split_whitespace().collect();
        let (to, from) = words.split_last().unwrap();
        // COPY of a folder copies its content.
        assert!(*to == "./" || from == [*to], "COPY {copy}");
        sources.extend(from.iter().map(ToString::to_string));
    }
    sources
}

#[test]
fn hadolint_reports_nothing() {
    let output = checker("hadolint").arg(path("Dockerfile")).output().unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
    let bad = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(bad.path(), "FROM debian:latest\n").unwrap();
    assert!(
        !checker("hadolint").arg(bad.path()).output().unwrap().status.success(),
        "hadolint reports nothing for a bad file"
    );
}

#[test]
fn base_images_are_pinned_and_compatible() {
    let images: Vec<_> =
        instructions_of("FROM").iter().map(|from| from.split(' ').next().unwrap().to_owned()).collect();
    let [build, run] = &images[..] else { panic!("not two stages: {images:?}") };
    assert!(build.starts_with("rust:") && run.starts_with("debian:"), "{images:?}");
    // Both have one C library.
    assert!(images.iter().all(|image| image.contains("bookworm") && image.contains("-slim")), "{images:?}");
    assert!(run.split('-').any(|part| part.len() == 8 && part.parse::<u32>().is_ok()), "{run} has no date");
    let manifest = text("Cargo.toml");
    let rust_version =
        manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    assert!(build.starts_with(&format!("rust:{rust_version}.")), "{build} is not Rust {rust_version}");
}

#[test]
fn build_context_is_complete_and_minimal() {
    let copied = copied();
    for source in &copied {
        assert!(path(source).exists(), "{source} does not exist");
    }
    for needed in ["Cargo.toml", "Cargo.lock", "build.rs", "crates", "src", "migrations", "schemas"] {
        assert!(copied.contains(needed), "{needed} is not copied");
    }
    // Files that are embedded by include_str.
    let mut files = vec![path("src")];
    let mut found = 0;
    while let Some(file) = files.pop() {
        if file.is_dir() {
            files.extend(std::fs::read_dir(&file).unwrap().map(|entry| entry.unwrap().path()));
        } else if file.extension().is_some_and(|extension| extension == "rs") {
            for name in std::fs::read_to_string(&file).unwrap().split("include_str!(\"").skip(1) {
                let name = name.split('"').next().unwrap();
                let included = file.parent().unwrap().join(name).canonicalize().unwrap();
                let inside = included.strip_prefix(Path::new(ROOT).canonicalize().unwrap()).unwrap();
                let top = inside.iter().next().unwrap().to_str().unwrap();
                assert!(copied.contains(top), "{file:?} includes {inside:?}, which is not copied");
                found += usize::from(top != "src");
            }
        }
    }
    assert!(found > 0, "no include_str! found outside of src");
    // Cargo needs all targets of the manifest.
    for target in text("Cargo.toml").lines().filter_map(|line| line.strip_prefix("path = ")) {
        let top = target.trim_matches('"').split('/').next().unwrap();
        assert!(copied.contains(top), "{target} is in Cargo.toml and not copied");
    }
    let ignore = text(".dockerignore");
    let mut rules = ignore.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    assert_eq!(rules.next(), Some("*"), "the first rule excludes everything");
    let included: BTreeSet<_> = rules.map(|rule| rule.strip_prefix('!').unwrap().to_owned()).collect();
    assert_eq!(included, copied);
}

#[test]
fn image_runs_the_program_without_root() {
    let user = instructions_of("USER").pop().unwrap();
    let ids: Vec<u32> = user.split(':').map(|id| id.parse().unwrap()).collect();
    assert!(ids.len() == 2 && ids.iter().all(|id| *id >= 1000), "{user}");
    let list =
        |kind: &str| -> Vec<String> { serde_json::from_str(&instructions_of(kind).pop().unwrap()).unwrap() };
    assert_eq!(list("ENTRYPOINT"), ["tidemark"]);
    let build = instructions_of("RUN").into_iter().find(|run| run.contains("cargo build")).unwrap();
    assert!(build.contains("--locked") && build.contains("--release"), "{build}");
    let binary = instructions_of("COPY").into_iter().find(|copy| copy.starts_with("--from=build")).unwrap();
    assert_eq!(binary, "--from=build /src/target/release/tidemark /usr/local/bin/tidemark");

    let set = instructions_of("ENV").pop().unwrap();
    let environment = set.split_whitespace().map(|pair| pair.split_once('=').unwrap());
    let mut environment: BTreeMap<_, _> =
        environment.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    environment.insert("TIDEMARK_DATABASE_URL".into(), "postgres://x/y".into());
    let command = list("CMD");
    let command: Vec<_> = command.iter().map(String::as_str).collect();
    let call = parse_strict(&command, &environment);
    let listen: &std::net::SocketAddr = call.get_one("listen").unwrap();
    assert_eq!(instructions_of("EXPOSE"), [listen.port().to_string()]);
    let index: &std::path::PathBuf = call.get_one("search_index").unwrap();
    let install = instructions_of("RUN").into_iter().find(|run| run.contains("install --directory")).unwrap();
    assert!(install.split_whitespace().any(|word| Path::new(word) == index), "{index:?} is not created");

    let check = instructions_of("HEALTHCHECK").pop().unwrap();
    let check: Vec<String> = serde_json::from_str(check.split_once("CMD ").unwrap().1).unwrap();
    let arguments: Vec<_> = check[1..].iter().map(String::as_str).collect();
    assert_eq!(check[0], "tidemark");
    let probe = parse(&arguments, &BTreeMap::new());
    let url: &url::Url = probe.matches.get_one("url").unwrap();
    assert_eq!((url.port(), url.path()), (Some(listen.port()), "/v2/health"));
}

#[test]
fn image_has_all_shared_libraries() {
    let output = Command::new("ldd").arg(env!("CARGO_BIN_EXE_tidemark")).output().unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
    let listing = output_text(&output);
    let needed: BTreeSet<_> =
        listing.lines().filter_map(|line| line.split_whitespace().next()?.rsplit('/').next()).collect();
    assert!(needed.contains("libc.so.6"), "{listing}");
    // Libraries of libc6 and libgcc-s1, which Debian always has; the first is the kernel's.
    let present = ["linux-vdso.so", "ld-linux", "libc.so", "libm.so", "libgcc_s.so"];
    for library in needed {
        assert!(present.iter().any(|name| library.starts_with(name)), "{library} is not in the image");
    }
}
