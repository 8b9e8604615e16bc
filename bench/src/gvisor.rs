//! gVisor's own compiler and interpreter, run beside tamis.
//!
//! They are packages of a Go module, so a small Go program around them, `bench/gvisor`, is built here. The program keeps
//! running for one policy, or for one filter and some calls; on each request it builds the filter again, or evaluates all
//! calls, and returns the result with the time. Nothing is downloaded. Without Go, or without the downloaded module, there is no compiler, and [`Compiler::open`] returns the
//! command that fetches it. There is none on machines other than x86-64 either: it writes filters for the
//! architecture for which it was built, and the corpus has its policies for x86-64.

use std::cell::RefCell;
use std::env;
use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use tamis_abi::Endian;
use tamis_bpf::Program;
use tamis_bpf::program::{insns_from_bytes, insns_to_bytes};
use tamis_testkit::corpus;

/// The command that fetches the module.
const FETCH: &str = "cd bench/gvisor && go mod download";

/// The built compiler.
#[derive(Clone, Debug)]
pub struct Compiler {
    executable: PathBuf,
}

impl Compiler {
    /// Builds the program around the compiler, beside the running executable, unless it already exists.
    ///
    /// # Errors
    /// The reason why there is none here, with the remedy.
    pub fn open() -> Result<Compiler, String> {
        if cfg!(not(target_arch = "x86_64")) {
            return Err("gVisor's compiler, which has policies for x86-64 only".to_owned());
        }
        let executable = env::current_exe().map(|own| own.with_file_name("gvisor-compiler"));
        let executable = executable.map_err(|error| error.to_string())?;
        match build(&executable) {
            Ok(Ok(())) => Ok(Compiler { executable }),
            Ok(Err(message)) => Err(format!("gVisor's compiler ({FETCH}): {message}")),
            Err(error) => Err(format!("gVisor's compiler, which needs Go: {error}")),
        }
    }

    /// The compiler with a policy of the corpus, such as `gvisor/gvisor-sentry-systrap.json`.
    ///
    /// # Errors
    /// If the program can't be started.
    ///
    /// # Panics
    /// Never: the process is started with a pipe.
    pub fn with_policy(&self, file: &str) -> io::Result<Builder> {
        let policy = corpus::repository().join("../shared/corpus").join(file);
        Running::start(Command::new(&self.executable).arg(policy)).map(Builder)
    }

    /// The interpreter with a program, and calls as they lie in the memory of a little-endian machine.
    ///
    /// # Errors
    /// If the program can't be started.
    pub fn interpreter(&self, program: &Program, calls: &[[u32; 16]]) -> io::Result<Interpreter> {
        let running = Running::start(Command::new(&self.executable).arg("-evaluate"))?;
        let words = calls.iter().flatten();
        running.send(&hex(insns_to_bytes(program.insns(), Endian::Little)))?;
        running.send(&hex(words.flat_map(|word| word.to_le_bytes())))?;
        Ok(Interpreter(running))
    }
}

/// Runs `go build`; returns the beginning of its error message, if there is one.
fn build(executable: &Path) -> io::Result<Result<(), String>> {
    // Tests and programs that start at the same time would write the same file.
    let lock = File::create(executable.with_extension("lock"))?;
    lock.lock()?;
    let settings = [
        ("GOPROXY", "off"),
        ("GOTOOLCHAIN", "local"),
        ("GOWORK", "off"),
        ("GOFLAGS", "-mod=readonly"),
        ("CGO_ENABLED", "0"),
    ];
    let output = Command::new("go")
        .args(["build", "-buildvcs=false", "-o"])
        .arg(executable)
        .arg(".")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("gvisor"))
        .envs(settings)
        .stdin(Stdio::null())
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let is_complaint = |line: &&str| !line.starts_with("go: downloading");
    let complaint = said.lines().find(is_complaint).unwrap_or_default();
    Ok(match output.status.success() {
        true => Ok(()),
        false => Err(complaint.to_owned()),
    })
}

/// The program around gVisor's packages, while it runs.
#[derive(Debug)]
struct Running {
    /// The pipes for requests and results; `None` once the program is to end.
    pipes: RefCell<Option<(ChildStdin, BufReader<PipeReader>)>>,
    child: Child,
}

impl Running {
    fn start(command: &mut Command) -> io::Result<Running> {
        let (answers, writer) = io::pipe()?;
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .spawn()?;
        let requests = child.stdin.take().expect("it was asked for");
        Ok(Running {
            pipes: RefCell::new(Some((requests, BufReader::new(answers)))),
            child,
        })
    }

    /// Sends a line. A program that failed at its start doesn't read; its answer has the error.
    fn send(&self, line: &str) -> io::Result<()> {
        match self.pipes.borrow_mut().as_mut() {
            Some((requests, _)) => match writeln!(requests, "{line}") {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
                _ => Ok(()),
            },
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Requests a round; returns its time by the program's own clock, and its result.
    fn ask(&self) -> Result<(Duration, String), String> {
        let said = |error: io::Error| error.to_string();
        self.send("").map_err(said)?;
        let mut pipes = self.pipes.borrow_mut();
        let (_, answers) = pipes.as_mut().ok_or("it has ended")?;
        let mut answer = String::new();
        answers.read_line(&mut answer).map_err(said)?;
        let parsed = answer.trim_end().split_once(' ');
        let parsed = parsed.and_then(|(ns, result)| Some((ns.parse().ok()?, result.to_owned())));
        let (ns, result) = parsed.ok_or_else(|| match answer.trim_end() {
            "" => "it has ended".to_owned(),
            said => said.to_owned(),
        })?;
        Ok((Duration::from_nanos(ns), result))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The program ends when its input ends; its exit status is not needed.
        self.pipes.replace(None);
        let _ = self.child.wait();
    }
}

/// A running compiler for one policy.
#[derive(Debug)]
pub struct Builder(Running);

impl Builder {
    /// Builds the filter again; returns it with the time of gVisor's `Build`, by the program's own clock.
    ///
    /// # Errors
    /// The program's error, if it can't read the policy or gVisor can't express it.
    pub fn build(&self) -> Result<(Program, Duration), String> {
        let (time, hex) = self.0.ask()?;
        let bytes = bytes(&hex).ok_or(hex)?;
        let insns = insns_from_bytes(&bytes, Endian::Little).ok_or("half an instruction")?;
        let program = Program::new(insns, Endian::Little).map_err(|invalid| invalid.to_string())?;
        Ok((program, time))
    }
}

/// A running interpreter of one program on some calls.
#[derive(Debug)]
pub struct Interpreter(Running);

impl Interpreter {
    /// Evaluates all calls once; returns the sum of the values, and the time by the program's own clock.
    ///
    /// # Errors
    /// The program's error, if gVisor doesn't take the filter.
    pub fn round(&self) -> Result<(u64, Duration), String> {
        let (time, sum) = self.0.ask()?;
        Ok((sum.parse().map_err(|_| sum)?, time))
    }
}

fn hex(bytes: impl IntoIterator<Item = u8>) -> String {
    let bytes = bytes.into_iter();
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(byte).collect()
}
