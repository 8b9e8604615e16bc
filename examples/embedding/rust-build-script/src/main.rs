//! A server that confines itself with a filter that the build script made of a policy.

#[expect(
    unreachable_pub,
    reason = "the module is written for any place in a program"
)]
mod server {
    include!(concat!(env!("OUT_DIR"), "/server.rs"));
}

use std::io::{Error, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let control_fd: i32 = std::env::args()
        .nth(1)
        .map_or(-1, |text| text.parse().unwrap_or(-1));
    let values = server::Values {
        control_fd: control_fd as u32,
    };
    let Ok(filter) = server::bind(&values) else {
        return ExitCode::from(2); // no descriptor
    };
    if filter.install(0, true).is_err() {
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
