//! The `longshore` binary: a thin shell around [`longshore_io_tokio::run`].
fn main() -> std::process::ExitCode {
    longshore_io_tokio::run(std::env::args_os())
}
