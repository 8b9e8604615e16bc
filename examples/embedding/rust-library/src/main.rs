//! A server that compiles its policy when it starts, and confines all its threads.

use std::io::{Error, Write};
use std::process::ExitCode;

use tamis::{Install, Policy, install_program};

fn main() -> ExitCode {
    let control_fd: i32 = std::env::args()
        .nth(1)
        .map_or(-1, |text| text.parse().unwrap_or(-1));
    let policy = include_str!("../../server.tamis");
    let filter = Policy::from_text("server.tamis", policy).and_then(Policy::compile);
    let Ok(filter) = filter else {
        return ExitCode::from(6);
    };
    let values = filter
        .values()
        .set("control_fd", u64::from(control_fd as u32))
        .and_then(|values| values.bind());
    let Ok(program) = values else {
        return ExitCode::from(2); // no descriptor
    };
    if install_program(&program, &Install::default().all_threads()).is_err() {
        return ExitCode::from(3);
    }
    if std::io::stdout()
        .write_all(b"confined")
        .and_then(|()| std::io::stdout().flush())
        .is_err()
    {
        return ExitCode::from(4);
    }
    match std::io::stderr()
        .write(b"leak")
        .map_err(|error: Error| error.raw_os_error())
    {
        Err(Some(1)) => ExitCode::SUCCESS,
        _ => ExitCode::from(5),
    }
}
