//! The properties in `fuzz/`, with fixed bytes instead of libFuzzer.

use std::collections::BTreeMap;

use tamis_policy::embedded;
use tamis_testkit::agreement;
use tamis_testkit::property::{self, InputClass};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_testkit::skip;

const ASSEMBLER: &str = "\
        ld [arch]
        jeq #0xc000003e, known
        ret #kill_process
known:  ld [nr]
        jge #0x40000000, deny
        jset #1, other
        ld [arg0.low] ; a comment
        tax
        ld [arg1.high]
        add x
        st M[3]
        jgt x, deny
other:  ret #allow
deny:   ret #errno(1)
";

const EXTENDED: &str = "\
start: r6 = r1
r2 = 0x1122334455667788 ll
r0 = *(u32 *)(r6 + 8)
*(u64 *)(r10 - 8) = r2
if w0 s> 5 goto far
lock *(u64 *)(r10 - 8) += r0
r0 = atomic_fetch_xor((u32 *)(r10 - 4), w0)
far: call pc+2
w0 %= w0
exit
r0 = 7 // the function
r0 = be16 r0
r0 = (s8)r0
exit
";

const PROFILE: &str = r#"{
  "defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 1,
  "archMap": [{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86"]}],
  "syscalls": [
    {"names": ["read", "write"], "action": "SCMP_ACT_ALLOW", "args": []},
    {"names": ["mount"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
    {"names": ["socket"], "action": "SCMP_ACT_ALLOW",
     "args": [{"index": 0, "value": 40, "op": "SCMP_CMP_GT"}]},
    {"names": ["clone"], "action": "SCMP_ACT_ALLOW",
     "args": [{"index": 0, "value": 2114060288, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]}
  ]
}"#;

const RESOURCE: &str = "\
apiVersion: security-profiles-operator.x-k8s.io/v1beta1 # ünique
kind: SeccompProfile
metadata: {name: 'a b', labels: {\"x\": on}}
spec:
  defaultAction: SCMP_ACT_ERRNO
  architectures:
  - SCMP_ARCH_NATIVE
  listenerMetadata: >-
    folded
    text
  syscalls:
  - action: SCMP_ACT_ALLOW
    names: [read, \"write\",
      exit_group]
  - names:
    - socket
    action: SCMP_ACT_ALLOW
    args:
    - index: 0
      value: 40
      op: SCMP_CMP_GT
    - {index: 1, valueTwo: 1, op: SCMP_CMP_MASKED_EQ}
---
kind: &a Pod
x: *a
";

const FILTER: &str = r#"{
  "vmm": {
    "mismatch_action": "trap", "match_action": "allow",
    "filter": [
      {"syscall": "read", "comment": "x"},
      {"syscall": "ioctl", "args": [
        {"index": 1, "type": "dword", "op": "eq", "val": 44672},
        {"index": 0, "type": "qword", "op": {"masked_eq": 255}, "val": 3, "comment": "y"}]}
    ]
  }
}"#;

const MINIJAIL: &str = "\
# A comment.
@default trap
@frequency ./counts
read: 1
{open, openat[arch=x86_64,arm64]}: return ENOENT
ioctl: arg1 == TCGETS || arg1 in ~(0x3|017) && \\
       arg2 & PROT_EXEC
socket: { arg0 == -1; kill, arg0 < 3, log }
";

const LIBRARY: &str = "\
read: arg0 == 0; return EBADF
write: 1
close: return
dup: arg0 != 1 && arg1 <= 0x10 || arg2 in 7
";

const TABLE: &str = r#"{
  "arch_nr": 3221225655, "arch_name": "arm64", "bits": 64,
  "syscalls": {"read": 63, "write": 64, "close": 57},
  "constants": {"TCGETS": 21505, "MINUS": -1},
  "syscall_groups": {"libc": {"io": ["read", "write"]}}
}"#;

const KAFEL: &str = "\
/* a first line */
#define STDERR 2 // a comment
POLICY output { LOG { write(a, b, c) { (a == 1 || a == STDERR) && !(c < 4) } }, USER_NOTIF {} }
POLICY more {
    USE output,
    ERRNO(0b11) { mmap { prot & 0x4 != 0, flags | 010 == -1 }, newuname ON { x86, x86_64 } },
    KILL { SYSCALL[-1] (x, y) { x & y <= 0xff00 } /* and */, ptrace { (request | addr) > data } }
}
#include \"itself\"; USE more DEFAULT TRAP(7)
";

/// Each file contains its name.
const KAFEL_IN_PIECES: &str = "\
ALLOW { read { fd ==
#include \"1\"
}, write {
#include \"(count\" \"&\"; 3 )
#include \"<= 2\"
}, close }
";

const UNIT: &str = "\
# A comment
[Unit]
Description=x
[Service]
SystemCallFilter=@system-service \\
; another
    mount
SystemCallFilter=~@privileged chroot:EPERM p\\trace:kill
SystemCallErrorNumber=38
SystemCallLog=~@file-system
SystemCallArchitectures=native x86
RestrictAddressFamilies=~AF_INET \"AF_INET6\"
RestrictNamespaces=~user net
Personality=x86
LockPersonality=on
MemoryDenyWriteExecute=1
DynamicUser=yes
ProtectClock=no
";

const FORMS: [&str; 5] = [
    "struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1]) + sizeof(__u32)),
    BPF_JUMP(BPF_JMP + BPF_JEQ + BPF_K, __NR_read, 1, 0), // why
    { .code = 6, .jt = 0, .jf = 0, .k = ~(1 << 3) & 0x7fff0000U },
};",
    "2\n32 0 0 4\n6 0 0 2147418112\n",
    "2000000004000000 060000000000ff7f",
    "A = arch\nA == ARCH_X86_64 ? next : 3\nif (!(A & 0x10)) goto no\nmem[1] = A\nX = mem[1]\n\
     A <<= X\nno: return ERRNO(1)\n",
    " line  CODE  JT   JF      K\n=====\n 0000: 0x06 0x00 0x00 0x7fff0000  return ALLOW\n",
];

const COUNTS: [&str; 4] = [
    "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.000300           3       100         2 read
 40.00    0.000200           2        90           write
------ ----------- ----------- --------- --------- ----------------
100.00    0.000500                   190         2 total
",
    "\
 Summary of events:

 cat (1234), 20 events, 100.0%

   syscall            calls  errors  total       min       avg       max       stddev
                                     (msec)    (msec)    (msec)    (msec)        (%)
   --------------- --------  ------ -------- --------- --------- ---------     ------
   read                   4      0     0.010     0.001     0.003     0.005     30.00%
   close                  6      0     0.005     0.001     0.001     0.001      5.00%
",
    "# measured\nread: 40\n{write, openat[arch=x86_64,arm64]}: 16\nread: 2\n",
    r#"{"schema": "tamis-profile/1", "calls": []}"#,
];

const MATRIX: &str = "\
policy = 'a.tamis'
arch = ['x86_64', 'x86']
kernel = \"5.11\"
let.MAX = 0x3f
[option.net]
none = {}
host = { include = ['n.tamis'], let.MAX = '1 << 4', set.more = ['connect', '@timer'] }
raw = { rules = \"\"\"allow socket(family == AF_PACKET)
deny bind\"\"\", let.MAX = [1, 'AF_UNIX'] }
[option.debug]
false.profile = 'counts'
true.rules = ['allow ptrace', 'allow kcmp']
[[exclude]]
net = ['raw', 'host']
debug = true
";

/// The number of inputs by class.
type Tally = BTreeMap<InputClass, u64>;

fn on_random_bytes(property: fn(&[u8]) -> InputClass, rounds: u64) -> Tally {
    let mut tally = Tally::new();
    for seed in seeds::selected(0..rounds) {
        let mut rng = Rng::new(seed);
        let bytes: Vec<u8> = (0..rng.range(0..=400))
            .map(|_| rng.next_u32() as u8)
            .collect();
        *tally.entry(property(&bytes)).or_default() += 1;
    }
    println!("{tally:?}");
    tally
}

/// Cuts, duplicates, overwrites and swaps pieces.
fn mutated(rng: &mut Rng, text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..rng.range(0..=4) {
        if bytes.is_empty() {
            break;
        }
        let start = rng.index(bytes.len());
        let end = (start + rng.range(1..=8) as usize).min(bytes.len());
        let piece = bytes[start..end].to_vec();
        let at = rng.index(bytes.len());
        match rng.range(0..=4) {
            0 => drop(bytes.drain(start..end)),
            1 => drop(bytes.splice(at..at, piece)),
            2 => bytes[at] = rng.next_u32() as u8,
            3 => bytes[at] = *rng.choose(b"0123456789(){}[],;:#!&|=<>.\"- \n"),
            _ => bytes.truncate(at),
        }
    }
    bytes
}

fn on_mutated_texts(property: fn(&[u8]) -> InputClass, texts: &[&str], rounds: u64) -> Tally {
    let mut tally = Tally::new();
    for seed in seeds::selected(0..rounds) {
        let mut rng = Rng::new(seed);
        let text = *rng.choose(texts);
        let bytes = mutated(&mut rng, text);
        *tally.entry(property(&bytes)).or_default() += 1;
    }
    println!("{tally:?}");
    tally
}

#[test]
fn prover_pairs() {
    let tally = on_random_bytes(property::prover_pairs, 500);
    assert!(
        tally["equal"] > seeds::least(20) && tally["different"] > seeds::least(20),
        "{tally:?}"
    );
}

#[test]
fn compile_ruleset() {
    on_random_bytes(property::compile_ruleset, 300);
}

#[test]
fn validator_kernel() {
    skip::unless_kernel();
    let tally = on_random_bytes(property::validator_kernel, 500);
    assert_eq!(tally["accepted"], seeds::share(500), "{tally:?}");
}

#[test]
fn interpreter_kernel() {
    skip::unless_kernel();
    let tally = on_random_bytes(property::interpreter_kernel, 500);
    assert_eq!(tally["the same"], seeds::share(500), "{tally:?}");
}

#[test]
fn extended() {
    let tally = on_mutated_texts(property::extended, &[EXTENDED], 3000);
    for class in ["refused", "assembled", "program", "safe"] {
        assert!(tally.contains_key(class), "{tally:?}");
    }
}

#[test]
fn assembler() {
    let tally = on_mutated_texts(property::assembler, &[ASSEMBLER], 3000);
    assert!(
        tally["assembled"] > seeds::least(100) && tally["refused"] > seeds::least(100),
        "{tally:?}"
    );
}

#[test]
fn policy_matrix() {
    let tally = on_mutated_texts(property::policy_matrix, &[MATRIX], 2000);
    assert!(
        tally["a matrix"] > seeds::least(50) && tally["refused"] > seeds::least(50),
        "{tally:?}"
    );
}

#[test]
fn policy_tamis() {
    let texts = embedded::ALL.map(|policy| policy.text);
    let tally = on_mutated_texts(property::policy_tamis, &texts, 500);
    assert!(
        tally["a policy"] > seeds::least(20) && tally["refused"] > seeds::least(20),
        "{tally:?}"
    );
}

#[test]
fn policy_oci() {
    let tally = on_mutated_texts(property::policy_oci, &[PROFILE], 3000);
    assert!(
        tally["a profile"] > seeds::least(100) && tally["refused"] > seeds::least(100),
        "{tally:?}"
    );
}

#[test]
fn policy_spo() {
    let single = &RESOURCE[..RESOURCE.find("---").expect("a second document")];
    let tally = on_mutated_texts(property::policy_spo, &[RESOURCE, single], 3000);
    assert!(
        tally["a profile"] > seeds::least(100) && tally["refused"] > seeds::least(100),
        "{tally:?}"
    );
    on_random_bytes(property::policy_spo, 300);
}

#[test]
fn policy_firecracker() {
    let tally = on_mutated_texts(property::policy_firecracker, &[FILTER], 3000);
    assert!(
        tally["a filter"] > seeds::least(100) && tally["refused"] > seeds::least(100),
        "{tally:?}"
    );
}

#[test]
fn policy_minijail() {
    let tally = on_mutated_texts(property::policy_minijail, &[MINIJAIL, LIBRARY], 3000);
    assert!(
        tally["a policy"] > seeds::least(100)
            && tally["refused"] > seeds::least(100)
            && tally["for the library only"] > seeds::least(10),
        "{tally:?}"
    );
    on_random_bytes(property::policy_minijail, 300);
}

#[test]
fn minijail_table() {
    let tally = on_mutated_texts(property::minijail_table, &[TABLE], 2000);
    assert!(
        tally["a table"] > seeds::least(100) && tally["refused"] > seeds::least(100),
        "{tally:?}"
    );
}

#[test]
fn policy_kafel() {
    let without_include = KAFEL.replace("#include", "//");
    let texts = [KAFEL, without_include.as_str(), KAFEL_IN_PIECES];
    let tally = on_mutated_texts(property::policy_kafel, &texts, 3000);
    assert!(
        tally["a policy"] > seeds::least(100) && tally["refused"] > seeds::least(100),
        "{tally:?}"
    );
    on_random_bytes(property::policy_kafel, 300);
}

#[test]
fn policy_systemd() {
    let tally = on_mutated_texts(property::policy_systemd, &[UNIT], 2000);
    assert!(
        tally["a unit"] > seeds::least(100) && tally["with warnings"] > seeds::least(100),
        "{tally:?}"
    );
    on_random_bytes(property::policy_systemd, 300);
}

#[test]
fn profile_text() {
    let tally = on_mutated_texts(property::profile_text, &COUNTS, 3000);
    for outcome in ["strace", "perf", "frequency", "refused"] {
        assert!(tally[outcome] > seeds::least(50), "{outcome}: {tally:?}");
    }
    on_random_bytes(property::profile_text, 300);
}

#[test]
fn program_forms() {
    let tally = on_mutated_texts(property::program_forms, &FORMS, 3000);
    assert!(
        tally["a program"] > seeds::least(100) && tally["refused"] > seeds::least(100),
        "{tally:?}"
    );
    on_random_bytes(property::program_forms, 300);
}

#[test]
fn policy_languages() {
    let tally = on_random_bytes(agreement::policy_languages, 200);
    assert!(
        tally["plain"] > seeds::least(50) && tally["any ruleset"] > seeds::least(30),
        "{tally:?}"
    );
}

#[test]
fn policy_exports() {
    let tally = on_random_bytes(agreement::policy_exports, 400);
    assert!(
        tally["the same"] > seeds::least(60) && tally["with losses"] > seeds::least(100),
        "{tally:?}"
    );
}

#[test]
fn optimiser() {
    let tally = on_random_bytes(agreement::optimiser, 200);
    assert!(tally["proved"] > seeds::least(50), "{tally:?}");
}

#[test]
fn prover_interpreter() {
    let tally = on_random_bytes(agreement::prover_interpreter, 100);
    assert!(tally["complete"] > seeds::least(30), "{tally:?}");
}

#[test]
fn evaluators() {
    on_random_bytes(agreement::evaluators, 1000);
}
