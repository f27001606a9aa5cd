//! The `tidemark` program: `tidemark::cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    tidemark::cli::main()
}
