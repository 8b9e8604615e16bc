use std::sync::atomic::*;
use tamis_abi::*;
use tamis_bpf::*;
use tamis_platform::*;
struct S {
    calls: AtomicU64,
}
impl Supervisor for S {
    fn call(&self, task: &mut dyn Task, call: &SeccompData) -> Answer {
        self.calls.fetch_add(1, Ordering::Relaxed);
        match call.nr {
            110 => Answer::Return(4711),
            0 if call.args[2] == 1 => match task.space().write(call.args[1], b"x") {
                Ok(_) => Answer::Return(1),
                Err(e) => Answer::Errno(e.0 as u16),
            },
            _ => Answer::Forward,
        }
    }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let platform = by_name(&a[1]).unwrap();
    let placement = match a[2].as_str() {
        "1" => Placement::Same(0),
        "2" => Placement::Apart {
            guest: 0,
            supervisor: 1,
        },
        _ => Placement::Free,
    };
    let spin = match a[3].as_str() {
        "never" => Spin::Never,
        "adaptive" => Spin::Adaptive,
        n => Spin::Bounded(n.parse().unwrap()),
    };
    let n = Action::new(ActionKind::Notify, 0).ret();
    let ops = [
        Op::LoadData(4),
        Op::branch(Test::Eq, Arch::X86_64.audit(), 1, 0),
        Op::RetImm(Action::KILL_PROCESS.ret()),
        Op::LoadData(0),
        Op::branch(Test::Eq, 110, 3, 0),
        Op::branch(Test::Eq, 0, 2, 0),
        Op::branch(Test::Eq, 121, 2, 0),
        Op::RetImm(Action::ALLOW.ret()),
        Op::RetImm(n),
        Op::RetImm(Action::errno(5).ret()),
    ];
    let filter = Program::new(ops.map(Into::into).to_vec(), Endian::Little).unwrap();
    let guest = Guest {
        program: a[4].clone().into(),
        args: a[5..].iter().map(|x| x.clone().into()).collect(),
        filter: &filter,
        has_results: false,
    };
    let s = S {
        calls: AtomicU64::new(0),
    };
    let t = std::time::Instant::now();
    let e = platform.run(
        &guest,
        &s,
        &Options {
            spin,
            placement,
            ..Options::default()
        },
    );
    eprintln!(
        "{} {:?} calls {} {:?}",
        a[1],
        e,
        s.calls.load(Ordering::Relaxed),
        t.elapsed()
    );
}
