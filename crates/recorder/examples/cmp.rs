//! x
use std::process::Command;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let recorder = tamis_recorder::ebpf::Recorder::new(Default::default()).unwrap();
    let mut spawn = tamis_kernel::spawn::Spawn::new(args[1].clone());
    spawn.args = args[2..].iter().map(Into::into).collect();
    spawn.no_new_privs = false;
    let held = spawn.start().unwrap();
    let mut strace = Command::new("strace")
        .args([
            "-f",
            "-c",
            "-U",
            "calls,errors,name",
            "-o",
            "/tmp/w/st.out",
            "-p",
        ])
        .arg(held.pid().to_string())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(700));
    recorder.record(held.pid(), tamis_recorder::ebpf::Start::Now);
    held.release().wait().unwrap();
    strace.wait().unwrap();
    let r = recorder.recording().unwrap();
    let mut ours = std::collections::BTreeMap::new();
    for (arch, nr, call) in r.profile.calls() {
        ours.insert(
            tamis_abi::syscall::name(arch, nr).unwrap_or("?").to_owned(),
            (call.count, call.errors.values().sum::<u64>()),
        );
    }
    let text = std::fs::read_to_string("/tmp/w/st.out").unwrap();
    let mut theirs = std::collections::BTreeMap::new();
    for line in text.lines().skip(2) {
        let w: Vec<&str> = line.split_whitespace().collect();
        match w.as_slice() {
            [c, n] => {
                if let Ok(c) = c.parse() {
                    theirs.insert(n.to_string(), (c, 0));
                }
            }
            [c, e, n] => {
                if let (Ok(c), Ok(e)) = (c.parse::<u64>(), e.parse::<u64>()) {
                    theirs.insert(n.to_string(), (c, e));
                }
            }
            _ => {}
        }
    }
    theirs.remove("total");
    let mut same = 0;
    let names: std::collections::BTreeSet<_> = ours.keys().chain(theirs.keys()).cloned().collect();
    for n in names {
        let (a, b) = (ours.get(&n), theirs.get(&n));
        if a == b {
            same += 1
        } else {
            println!("{n}: ours {a:?} strace {b:?}");
        }
    }
    println!(
        "same {same}; lost {:?} {:?} live {}",
        r.lost,
        r.signalled,
        recorder.live()
    );
}
