//! The Dockerfile: hadolint's opinion of it, what it copies, and how the image calls the program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use crate::call::{understand, understand_all};
use crate::{FOLDER, checker, path, text, told};

/// The instructions, each on one line.
fn instructions() -> Vec<(String, String)> {
    let file = text("Dockerfile").replace("\\\n", " ");
    let lines = file.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| line.split_once(' ').unwrap())
        .map(|(word, rest)| (word.to_owned(), rest.to_owned()))
        .collect()
}

/// What instructions of a kind say, in their order.
fn of_kind(kind: &str) -> Vec<String> {
    instructions().into_iter().filter(|(word, _)| word == kind).map(|(_, rest)| rest).collect()
}

/// What is copied from the project into the image that builds.
fn copied() -> BTreeSet<String> {
    let mut sources = BTreeSet::new();
    for copy in of_kind("COPY").iter().filter(|copy| !copy.starts_with("--from")) {
        let words: Vec<_> = copy.split_whitespace().collect();
        let (to, from) = words.split_last().unwrap();
        // A folder's content would land beside the other files.
        assert!(*to == "./" || from == [*to], "COPY {copy}");
        sources.extend(from.iter().map(ToString::to_string));
    }
    sources
}

#[test]
fn hadolint_objects_to_nothing() {
    let output = checker("hadolint").arg(path("Dockerfile")).output().unwrap();
    assert!(output.status.success(), "{}", told(&output));
    let bad = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(bad.path(), "FROM debian:latest\n").unwrap();
    assert!(
        !checker("hadolint").arg(bad.path()).output().unwrap().status.success(),
        "it objects to nothing at all"
    );
}

#[test]
fn base_images_are_pinned_and_fit_each_other() {
    let images: Vec<_> =
        of_kind("FROM").iter().map(|from| from.split(' ').next().unwrap().to_owned()).collect();
    let [build, run] = &images[..] else { panic!("two stages and not {images:?}") };
    assert!(build.starts_with("rust:") && run.starts_with("debian:"), "{images:?}");
    // One C library: what is linked there runs here.
    assert!(images.iter().all(|image| image.contains("bookworm") && image.contains("-slim")), "{images:?}");
    assert!(run.split('-').any(|part| part.len() == 8 && part.parse::<u32>().is_ok()), "{run} has no day");
    let manifest = text("Cargo.toml");
    let wanted =
        manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    assert!(build.starts_with(&format!("rust:{wanted}.")), "{build} is not Rust {wanted}");
}

#[test]
fn everything_is_copied_that_the_program_is_made_of_and_nothing_else_gets_in() {
    let copied = copied();
    for source in &copied {
        assert!(path(source).exists(), "{source} is not there");
    }
    for needed in ["Cargo.toml", "Cargo.lock", "build.rs", "crates", "src", "migrations", "schemas"] {
        assert!(copied.contains(needed), "{needed} is not copied");
    }
    // Files outside of src that are compiled in.
    let mut files = vec![path("src")];
    let mut found = 0;
    while let Some(file) = files.pop() {
        if file.is_dir() {
            files.extend(std::fs::read_dir(&file).unwrap().map(|entry| entry.unwrap().path()));
        } else if file.extension().is_some_and(|extension| extension == "rs") {
            for name in std::fs::read_to_string(&file).unwrap().split("include_str!(\"").skip(1) {
                let name = name.split('"').next().unwrap();
                let included = file.parent().unwrap().join(name).canonicalize().unwrap();
                let inside = included.strip_prefix(Path::new(FOLDER).canonicalize().unwrap()).unwrap();
                let top = inside.iter().next().unwrap().to_str().unwrap();
                assert!(copied.contains(top), "{file:?} includes {inside:?}, which is not copied");
                found += usize::from(top != "src");
            }
        }
    }
    assert!(found > 0, "no file outside of src is compiled in: is it still looked for as it is written?");
    // The manifest's targets have to be there, built or not.
    for target in text("Cargo.toml").lines().filter_map(|line| line.strip_prefix("path = ")) {
        let top = target.trim_matches('"').split('/').next().unwrap();
        assert!(copied.contains(top), "{target} is in Cargo.toml and not copied");
    }
    let ignore = text(".dockerignore");
    let mut rules = ignore.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    assert_eq!(rules.next(), Some("*"), "what is not named is let in");
    let let_in: BTreeSet<_> = rules.map(|rule| rule.strip_prefix('!').unwrap().to_owned()).collect();
    assert_eq!(let_in, copied);
}

#[test]
fn the_image_calls_the_program_as_it_is_and_not_as_root() {
    let user = of_kind("USER").pop().unwrap();
    let ids: Vec<u32> = user.split(':').map(|id| id.parse().unwrap()).collect();
    assert!(ids.len() == 2 && ids.iter().all(|id| *id >= 1000), "{user}");
    let list = |kind: &str| -> Vec<String> { serde_json::from_str(&of_kind(kind).pop().unwrap()).unwrap() };
    assert_eq!(list("ENTRYPOINT"), ["tidemark"]);
    let build = of_kind("RUN").into_iter().find(|run| run.contains("cargo build")).unwrap();
    assert!(build.contains("--locked") && build.contains("--release"), "{build}");
    let binary = of_kind("COPY").into_iter().find(|copy| copy.starts_with("--from=build")).unwrap();
    assert_eq!(binary, "--from=build /src/target/release/tidemark /usr/local/bin/tidemark");

    let set = of_kind("ENV").pop().unwrap();
    let environment = set.split_whitespace().map(|pair| pair.split_once('=').unwrap());
    let mut environment: BTreeMap<_, _> =
        environment.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    environment.insert("TIDEMARK_DATABASE_URL".into(), "postgres://x/y".into());
    let command = list("CMD");
    let command: Vec<_> = command.iter().map(String::as_str).collect();
    let call = understand_all(&command, &environment);
    let listen: &std::net::SocketAddr = call.get_one("listen").unwrap();
    assert_eq!(of_kind("EXPOSE"), [listen.port().to_string()]);
    let index: &std::path::PathBuf = call.get_one("search_index").unwrap();
    let made = of_kind("RUN").into_iter().find(|run| run.contains("install --directory")).unwrap();
    assert!(made.split_whitespace().any(|word| Path::new(word) == index), "nobody makes {index:?}");

    let check = of_kind("HEALTHCHECK").pop().unwrap();
    let check: Vec<String> = serde_json::from_str(check.split_once("CMD ").unwrap().1).unwrap();
    let arguments: Vec<_> = check[1..].iter().map(String::as_str).collect();
    assert_eq!(check[0], "tidemark");
    let probe = understand(&arguments, &BTreeMap::new());
    let url: &url::Url = probe.matches.get_one("url").unwrap();
    assert_eq!((url.port(), url.path()), (Some(listen.port()), "/v2/health"));
}

#[test]
fn the_program_needs_no_library_that_the_image_lacks() {
    let output = Command::new("ldd").arg(env!("CARGO_BIN_EXE_tidemark")).output().unwrap();
    assert!(output.status.success(), "{}", told(&output));
    let told = told(&output);
    let needed: BTreeSet<_> =
        told.lines().filter_map(|line| line.split_whitespace().next()?.rsplit('/').next()).collect();
    assert!(needed.contains("libc.so.6"), "{told}");
    // Of the packages libc6 and libgcc-s1, which every Debian has; the kernel brings the first.
    let there = ["linux-vdso.so", "ld-linux", "libc.so", "libm.so", "libgcc_s.so"];
    for library in needed {
        assert!(there.iter().any(|known| library.starts_with(known)), "{library} is not in the image");
    }
}
