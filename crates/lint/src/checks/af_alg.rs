//! Finds every way to a socket of AF_ALG: with any upper half of the family, as x32 or 32-bit call, through `socketcall`,
//! in a ring.
//!
//! Only advisories use it. Lint reports the family among others, and each detour as a kind of its own.

use crate::code::LINT_ADDRESS_FAMILIES;
use tamis_abi::{Arch, ArgIndex, Word, consts, signature, syscall};
use tamis_diag::words::joined;
use tamis_prover::{LimitReached, Limited};

use crate::context::{Access, Call, Context, is_executed};
use crate::finding::{Example, Finding};
use crate::registry::{Check, warning};
use tamis_analysis::with_word;

pub(crate) const CHECK: Check = warning(
    "af-alg",
    LINT_ADDRESS_FAMILIES,
    "sockets of AF_ALG can be made",
    run,
);

/// A way to the socket, with a call.
struct Way {
    text: String,
    example: Example,
}

fn run(context: &mut Context) -> Result<Vec<Finding>, LimitReached> {
    let mut ways: Vec<Way> = Vec::new();
    for arch in with_detours(context) {
        let found = ways_on(context, arch)?;
        let is_new = |way: &Way| ways.iter().all(|known| known.text != way.text);
        let new: Vec<Way> = found.into_iter().filter(is_new).collect();
        ways.extend(new);
    }
    if ways.is_empty() {
        return Ok(Vec::new());
    }
    let texts: Vec<String> = ways.iter().map(|way| way.text.clone()).collect();
    let examples: Vec<Example> = ways.iter().map(|way| way.example).collect();
    let place = context.place(&examples[0].call, "allowed here");
    let finding = Finding::new(
        (CHECK.code, CHECK.severity),
        format!(
            "sockets of `AF_ALG` can be made by {}",
            joined(&texts, "and")
        ),
        "few programs need the kernel's cryptography, and its code has been a source of privilege escalations",
        "list the families that the program needs and compare 32 bits: `allow socket(family in {AF_UNIX, AF_INET, AF_INET6})`; \
         deny `socketcall` and `io_uring_setup`",
    );
    Ok(vec![finding.examples(examples).places(place)])
}

/// The architectures of the filter, and the others of the same machines.
fn with_detours(context: &Context) -> Vec<Arch> {
    let mut all = context.arches.clone();
    for arch in context.arches.iter().flat_map(|arch| arch.with_compat()) {
        if !all.contains(arch) {
            all.push(*arch);
        }
    }
    all
}

fn ways_on(context: &mut Context, arch: Arch) -> Limited<Vec<Way>> {
    let mut ways = Vec::new();
    let calls = context.calls_of(arch)?;
    let named = |name: &str| calls.iter().find(|call| call.name == name).copied();
    if let Some(socket) = named("socket") {
        ways.extend(by_socket(context, arch, socket)?);
    }
    if let Some(by) = syscall::multiplexed(arch, "socket")
        && let Some(multiplexer) = calls.iter().find(|call| call.nr == by.nr)
    {
        let selected = context.with_argument(*multiplexer, ArgIndex::ALL[0], by.call)?;
        ways.extend(way(
            context,
            &selected,
            &format!("`{}` of {arch}", multiplexer.name),
        ));
    }
    if let Some(ring) = named("io_uring_setup") {
        ways.extend(way(
            context,
            &ring,
            "requests in a ring (`IORING_OP_SOCKET`)",
        ));
    }
    Ok(ways)
}

fn by_socket(context: &mut Context, arch: Arch, socket: Call) -> Limited<Option<Way>> {
    let family = signature::index(arch, "socket", "family");
    let Some((family, value)) = family.zip(consts::value(arch, "AF_ALG")) else {
        return Ok(None);
    };
    let proper = context.with_argument(socket, family, value as u32)?;
    if proper.access != Access::Refused {
        return Ok(way(context, &proper, &format!("`socket` of {arch}")));
    }
    // The kernel reads the lower half.
    let function = with_word(
        &mut context.space,
        socket.function,
        Word::arg_low(family),
        value as u32,
    )?;
    let found = context.data(&Call { function, ..socket }, is_executed)?;
    Ok(found.map(|mut data| {
        let argument = &mut data.args[family.index()];
        *argument = *argument >> 32 << 32 | value & u64::from(u32::MAX);
        Way {
            text: format!("`socket` of {arch} with upper bits of `family` set"),
            example: context.answer(&data),
        }
    }))
}

fn way(context: &Context, call: &Call, text: &str) -> Option<Way> {
    (call.access != Access::Refused).then_some(())?;
    let example = context.example(call, true)?;
    Some(Way {
        text: text.to_owned(),
        example,
    })
}
