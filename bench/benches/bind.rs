//! The cost of binding run-time variables, which a program with an embedded filter pays at its start.
//!
//! One policy is `container-default` after two rules that compare with seven values, the other has some thousand
//! instructions. Prints the smallest time of several rounds for binding by place and by name, and the time of copying
//! the instructions for comparison.

use std::hint::black_box;
use std::time::Instant;

use tamis_abi::Arch;
use tamis_compiler::{CompileOptions, Compiled};
use tamis_diag::Sources;
use tamis_policy::loader::NoIncludes;
use tamis_policy::tamis;

const ROUNDS: u32 = 30;
const BINDS_PER_ROUND: u32 = 2000;

/// The variables of all policies in this file.
const DECLARATIONS: &str =
    "let control_fd: u32 in 0..0x7fffffff\nlet peers: u32[4]\nlet areas: u64[2]\n";

fn compile(policy: &str) -> Compiled {
    let mut sources = Sources::new();
    let source = sources.add("bench.tamis", policy);
    let options = tamis::TamisOptions::new(vec![Arch::X86_64]);
    let parsed = tamis::parse(&mut sources, source, &mut NoIncludes, &options);
    let ruleset = parsed.ruleset.expect("the policy is right");
    tamis_compiler::compile(&ruleset, &CompileOptions::default()).expect("it compiles")
}

/// The container's policy after rules about variables.
fn container() -> String {
    let embedded = tamis_policy::embedded("container-default").expect("it is embedded");
    format!(
        "{DECLARATIONS}errno(EPERM) write(fd != control_fd && !(fd in peers)), mmap(addr in areas)\n{}",
        embedded.text
    )
}

/// A policy with a long filter.
fn long() -> String {
    let values: Vec<String> = (0..1900).map(|index| (index * 7 + 3).to_string()).collect();
    format!(
        "{DECLARATIONS}default errno(EPERM)\nallow write(fd == control_fd || fd in peers), mmap(addr in areas)\n\
         allow ioctl(cmd in {{{}}})\n",
        values.join(", ")
    )
}

/// The smallest time of one run of an action, in nanoseconds.
fn smallest_ns<T>(action: impl Fn() -> T) -> f64 {
    let round = || {
        let start = Instant::now();
        for _ in 0..BINDS_PER_ROUND {
            black_box(action());
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(BINDS_PER_ROUND)
    };
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}

fn main() {
    println!("filter\tinsns\tplaces\tcopy_ns\tbind_ns\tbind_by_name_ns");
    for (name, policy) in [("container", container()), ("long", long())] {
        let filter = compile(&policy);
        let template = filter.template();
        let values = [5, 6, 7, 8, 9, 1 << 40, 2 << 40];
        let copy_ns = smallest_ns(|| template.unbound().clone());
        let bind_ns = smallest_ns(|| filter.bind(black_box(&values)).expect("they are in range"));
        let named_ns = smallest_ns(|| {
            let mut binding = filter.values();
            let set = binding.set("control_fd", black_box(values[0])).is_ok()
                && binding.set_all("peers", &values[1..5]).is_ok()
                && binding.set_all("areas", &values[5..]).is_ok();
            assert!(set, "they are in range");
            binding.bind().expect("all have values")
        });
        println!(
            "{name}\t{}\t{}\t{copy_ns:.0}\t{bind_ns:.0}\t{named_ns:.0}",
            template.unbound().len(),
            template.patches().len()
        );
    }
}
