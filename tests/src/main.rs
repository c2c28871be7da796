//! The binary that the black-box tests start: the library's own main under a name that cargo tells the tests.
fn main() -> std::process::ExitCode {
    longshore_io_tokio::run(std::env::args_os())
}
