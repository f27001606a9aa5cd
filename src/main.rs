//! The `tidemark` program. Everything it does is in the library; its command line is `tidemark::cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    tidemark::cli::main()
}
