//! Random assembler text in the grammar of the kernel's `bpf_asm`, with instructions that filters may not have, and
//! damaged.

use crate::generate::damage::damaged;
use crate::rng::Rng;

const NUMBERS: [&str; 22] = [
    "0",
    "1",
    "4",
    "8",
    "15",
    "16",
    "60",
    "64",
    "255",
    "0x3c",
    "0x10",
    "010",
    "0b101",
    "-1",
    "+5",
    "4294967295",
    "0xffffffff",
    "2147483647",
    "0xc000003e",
    "-2147483648",
    "08",
    "0x",
];
/// The last four take two labels.
const COMPARISONS: [&str; 8] = ["jne", "jneq", "jlt", "jle", "jeq", "jgt", "jge", "jset"];
const OPERATIONS: [&str; 10] = [
    "add", "sub", "mul", "div", "mod", "and", "or", "xor", "lsh", "rsh",
];
/// Instructions of packet filters, and invalid ones.
const OTHERS: [&str; 20] = [
    "ldh [12]",
    "ldb [0]",
    "ld [x + 4]",
    "ldx 4*([14]&0xf)",
    "ldxb 4*([14]&0xf)",
    "ld #proto",
    "ld vlan_tci",
    "ldh #ifidx",
    "ret",
    "ret x",
    "ret %x",
    "ld x",
    "ldx a",
    "tax 1",
    "neg x",
    "st #1",
    "ld M[16]",
    "ldx [4]",
    "jmp #1",
    "nop",
];

/// The replacements of a damaged character.
const SIGNS: [char; 12] = ['#', '[', ']', ',', ':', 'x', 'M', '0', ' ', '\n', ';', '%'];

/// A text.
pub fn assembly(rng: &mut Rng) -> String {
    let count = rng.range(1..=8);
    let labels: Vec<String> = (0..=count).map(|index| format!("l_{index}")).collect();
    let mut text = String::new();
    for index in 0..count {
        let ahead = &labels[index as usize + 1..];
        if rng.chance(1, 6) {
            text.push_str(rng.choose::<&str>(&[
                "; a comment\n",
                "/* a comment */\n",
                "# a line\n",
                "\n",
                "/* a\n line */",
                "/***/\n",
            ]));
        }
        text.push_str(&format!("{}:{}", labels[index as usize], blank(rng)));
        let insn = insn(rng, ahead);
        text.push_str(&match rng.chance(1, 20) {
            true => insn.to_uppercase().replace("L_", "l_"),
            false => insn,
        });
        text.push_str(if rng.chance(1, 40) { " ; end\n" } else { "\n" });
    }
    let last = *rng.choose(&["ret #0x7fff0000", "ret a", "ret %a", "ret #0", "ret #-1"]);
    text.push_str(&format!("{}: {last}\n", labels[count as usize]));
    match rng.chance(1, 5) {
        true => damaged(rng, &text, &SIGNS),
        false => text,
    }
}

fn blank(rng: &mut Rng) -> &'static str {
    rng.choose::<&'static str>(&[" ", "\t", "  ", "", "\n"])
}

fn number(rng: &mut Rng) -> String {
    let most = if rng.chance(1, 25) {
        NUMBERS.len()
    } else {
        NUMBERS.len() - 2
    };
    NUMBERS[rng.index(most)].to_owned()
}

fn insn(rng: &mut Rng, ahead: &[String]) -> String {
    let gap = *rng.choose(&["", " "]);
    let slot = format!("M[{}]", rng.range(0..=15));
    let target = |rng: &mut Rng| rng.choose(ahead).clone();
    let operand = |rng: &mut Rng| match rng.range(0..=3) {
        0 => "x".to_owned(),
        1 => "%x".to_owned(),
        _ => format!("#{}", number(rng)),
    };
    match rng.range(0..=29) {
        0..=6 => format!("ld{gap} [{}]", rng.range(0..=15) * 4),
        7 => format!("ld [{}]", number(rng)),
        8 => format!("ld #{}", number(rng)),
        9 => format!("ldi {}{}", rng.choose(&["#", ""]), number(rng)),
        10 => format!("ld {slot}"),
        11 => format!("ldx #{}", number(rng)),
        12 => format!("ldxi {}{}", rng.choose(&["#", ""]), number(rng)),
        13 => format!("ldx {slot}"),
        14 => format!(
            "{} {}",
            rng.choose(&["ld", "ldx"]),
            rng.choose(&["len", "#len"])
        ),
        15 => format!("{} {slot}", rng.choose(&["st", "stx"])),
        16..=17 => format!("{} {}", rng.choose(&OPERATIONS), operand(rng)),
        18 => (*rng.choose(&["neg", "tax", "txa"])).to_owned(),
        19 => format!("{} {}", rng.choose(&["ja", "jmp"]), target(rng)),
        20..=23 => {
            let (op, operand) = (*rng.choose(&COMPARISONS), operand(rng));
            format!("{op} {operand},{gap}{}", target(rng))
        }
        24..=27 => {
            let (op, operand) = (*rng.choose(&COMPARISONS[4..]), operand(rng));
            format!("{op} {operand},{}{gap},{}", target(rng), target(rng))
        }
        28 => format!("ret #{}", number(rng)),
        _ if rng.chance(1, 6) => (*rng.choose(&OTHERS)).to_owned(),
        _ => "ret a".to_owned(),
    }
}
