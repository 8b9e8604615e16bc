//! The program of `docs/book/precompile.md` in Rust; `tamis precompile server.toml --emit rust` writes `server.rs`.

mod server;

use std::io::{Error, Write};
use std::net::UdpSocket;
use std::process::ExitCode;

use server::{Config, Network, Values};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let is_host = arguments.get(1).is_some_and(|text| text == "host");
    let network = if is_host { Network::Host } else { Network::None };
    let control_fd: i32 = arguments.get(2).map_or(-1, |text| text.parse().unwrap_or(-1));
    let values = Values { control_fd: control_fd as u32 };
    let Ok(filter) = server::bind(&Config { network, debug: false }, &values) else {
        return ExitCode::from(2); // no descriptor, or a combination without a filter
    };
    if filter.install(0, true).is_err() {
        return ExitCode::from(3);
    }
    if std::io::stdout().write_all(b"confined").and_then(|()| std::io::stdout().flush()).is_err() {
        return ExitCode::from(4);
    }
    let refused = |error: Error| error.raw_os_error() == Some(1);
    if !std::io::stderr().write(b"leak").is_err_and(refused) {
        return ExitCode::from(5);
    }
    if UdpSocket::bind("127.0.0.1:0").is_err_and(refused) {
        return ExitCode::from(6); // no network
    }
    ExitCode::SUCCESS
}
