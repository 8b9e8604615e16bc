//! A program whose own thread answers some of its calls: by a value, by a descriptor, and by a policy.

use std::env;
use std::error::Error;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::parent_id;
use std::sync::mpsc;
use std::thread;

use tamis::{Answer, Call, Install, Policy, install_with, supervise};

fn answer(call: &Call<'_>, rules: &Policy, spare: &mut Option<OwnedFd>) -> Answer {
    println!("{call}");
    match call.name() {
        Some("getppid") => Answer::Return(4242),
        Some("socket") if call.arg("family") == Some(1) => match spare.take() {
            Some(socket) => Answer::Fd(socket),
            None => Answer::Errno(24), // EMFILE
        },
        _ => call.answer_by(rules).unwrap_or(Answer::Errno(1)),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let filter = "default allow\nnotify getppid, chdir, socket";
    let filter = Policy::from_text("filter", filter)?.compile()?;
    let rules = Policy::from_text("rules", "default allow\nerrno(EXDEV) chdir")?;
    let (spare, other) = UnixDatagram::pair()?;
    let (give, take) = mpsc::channel();
    // This thread begins before the filter is installed, so it doesn't have it.
    thread::spawn(move || {
        let mut spare = Some(OwnedFd::from(spare));
        let Ok(listener) = take.recv() else { return };
        if let Err(error) = supervise(listener, |call| answer(call, &rules, &mut spare)) {
            eprintln!("{error}");
        }
    });
    let installed = install_with(&filter, &Install::default().wait_killable())?;
    give.send(installed.listener.ok_or("no listener")?)?;

    println!("parent {}", parent_id());
    let error = env::set_current_dir("/").expect_err("the rules deny it");
    println!("chdir {:?}", error.raw_os_error());
    let socket = UnixDatagram::unbound()?;
    other.send(b"through the descriptor of the supervisor")?;
    let mut text = [0; 64];
    let length = socket.recv(&mut text)?;
    println!("{}", String::from_utf8_lossy(&text[..length]));
    Ok(())
}
