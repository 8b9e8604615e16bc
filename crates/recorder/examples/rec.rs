//! x
fn main() {
    let t = std::time::Instant::now();
    let args: Vec<String> = std::env::args().collect();
    let options = tamis_recorder::ebpf::Options {
        values: args[1].contains('v'),
        times: args[1].contains('t'),
    };
    let recorder = tamis_recorder::ebpf::Recorder::new(options).unwrap_or_else(|e| {
        println!("{e}");
        if let tamis_recorder::ebpf::Unavailable::Program { error, .. } = &e {
            println!("{}", error.log);
        }
        std::process::exit(1)
    });
    let t1 = t.elapsed();
    let mut spawn = tamis_kernel::spawn::Spawn::new(args[2].clone());
    spawn.args = args[3..].iter().map(Into::into).collect();
    spawn.no_new_privs = false;
    let held = spawn.start().unwrap();
    recorder.record(held.pid(), tamis_recorder::ebpf::Start::AtExec);
    held.release().wait().unwrap();
    let r = recorder.recording().unwrap();
    eprintln!("{}", r.profile.to_json());
    eprintln!(
        "{:?} {:?} {:?} live {} start {t1:?} all {:?}",
        r.lost,
        r.unknown,
        r.signalled,
        recorder.live(),
        t.elapsed()
    );
}
