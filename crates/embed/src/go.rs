//! A Go package that only needs the standard library.

use tamis_abi::Arch;
use tamis_bpf::Insn;
use tamis_rules::VariableWidth;

use crate::text::{self, Field, Key, Naming, Scope, Syntax, Value, camel};
use crate::{Language, Target};

/// Go.
pub(super) static LANGUAGE: Language = Language {
    name: "go",
    about: "A Go package: the filter, and functions to bind its variables and to install it",
    named: Some("the package is named by"),
    reserved: &RESERVED,
    target,
    write: text::write::<Go>,
};

/// Keywords, and package names that are reserved.
#[rustfmt::skip]
const RESERVED: [&str; 27] = [
    "_", "break", "case", "chan", "const", "continue", "default", "defer", "else", "fallthrough", "for", "func",
    "go", "goto", "if", "import", "init", "interface", "map", "package", "range", "return", "select", "struct",
    "switch", "type", "var",
];

fn target(arch: Arch) -> Option<&'static str> {
    Some(match arch {
        Arch::X86_64 => "amd64",
        Arch::X86 => "386",
        Arch::Aarch64 => "arm64",
        Arch::Arm => "arm",
        Arch::Riscv64 => "riscv64",
        Arch::Loongarch64 => "loong64",
        Arch::Ppc64le => "ppc64le",
        Arch::Ppc64 => "ppc64",
        Arch::S390x => "s390x",
        Arch::Mips => "mips",
        Arch::Mipsel => "mipsle",
        Arch::Mips64 => "mips64",
        Arch::Mipsel64 => "mips64le",
        Arch::X32
        | Arch::Riscv32
        | Arch::Ppc
        | Arch::S390
        | Arch::Mips64n32
        | Arch::Mipsel64n32
        | Arch::Parisc
        | Arch::Parisc64
        | Arch::M68k
        | Arch::Sh
        | Arch::Sheb => return None,
    })
}

struct Go;

impl Syntax for Go {
    const TEMPLATE: &'static str = TEMPLATE;
    const RESERVED: &'static [&'static str] = &RESERVED;

    /// Formatted as by gofmt.
    fn any_of(conditions: &[&str]) -> String {
        match conditions {
            [condition] => (*condition).to_owned(),
            _ => format!("({})", conditions.join(" || ")),
        }
    }

    fn seccomp_numbers(targets: &[Target]) -> Vec<String> {
        let widths = targets.iter().map(|target| target.condition.len());
        let width = widths.max().unwrap_or(0);
        let number = |target: &Target| {
            let key = format!("\"{}\":", target.condition);
            format!("{key:<0$} {1},", width + 3, target.seccomp_nr)
        };
        targets.iter().map(number).collect()
    }

    fn insn(insn: Insn) -> String {
        let Insn { code, jt, jf, k } = insn;
        format!("{{{code:#04x}, {jt}, {jf}, {k:#x}}},")
    }

    fn comment(text: &str) -> String {
        format!("// {text}")
    }

    fn tuple(numbers: &[usize]) -> String {
        let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
        format!("{{{}}},", numbers.join(", "))
    }

    fn ranges(ranges: &[(u64, u64)]) -> String {
        let ranges = ranges.iter();
        let ranges = ranges.map(|(first, last)| format!("{{{first}, {last}}}"));
        format!("{{{}}},", ranges.collect::<Vec<_>>().join(", "))
    }

    fn field_name(name: &str) -> String {
        exported(name)
    }

    fn field(field: &Field) -> String {
        let range = field.narrow_range();
        let range = range.map(|(first, last)| format!(", {first} to {last}"));
        let kind = match field.width {
            VariableWidth::U32 => "uint32",
            VariableWidth::U64 => "uint64",
        };
        let count = field.count.map(|count| format!("[{count}]"));
        format!(
            "// {identifier} is {}{}.\n{identifier} {}{kind}",
            field.name,
            range.unwrap_or_default(),
            count.unwrap_or_default(),
            identifier = field.identifier
        )
    }

    fn wide(value: &Value<'_>) -> String {
        match value.variable.width {
            VariableWidth::U32 => format!("uint64(values.{}),", value.place),
            VariableWidth::U64 => format!("values.{},", value.place),
        }
    }

    fn halves(value: &Value<'_>) -> String {
        let place = &value.place;
        match value.variable.width {
            VariableWidth::U32 => format!("values.{place}, 0,"),
            VariableWidth::U64 => {
                format!("uint32(values.{place}), uint32(values.{place} >> 32),")
            }
        }
    }

    fn check(value: &Value<'_>) -> Option<String> {
        let read = format!("values.{}", value.place);
        let condition = value.out_of_range(&read, "")?;
        let error = format!(
            "&OutOfRange{{{:?}, uint64({read})}}",
            value.variable.title()
        );
        Some(format!(
            "if {condition} {{\n\treturn Filter{{}}, {error}\n}}"
        ))
    }

    fn naming(name: &str) -> Naming {
        let taken = [
            "Config",
            "Values",
            "Filter",
            "FlagTsync",
            "ErrExcluded",
            "OutOfRange",
            "Bind",
        ];
        Naming {
            name: name.to_owned(),
            taken_types: Vec::new(),
            taken_constants: taken.map(str::to_owned).into(),
            scope: Scope::Common,
            type_name: |_, option| exported(option),
            constant: |kind, value| kind.to_owned() + &camel(value),
        }
    }

    fn option_type(key: &Key<'_>) -> String {
        let (kind, option) = (&key.kind, &key.option.name);
        let first = format!("\t{} {kind} = iota\n", key.values[0]);
        let others = key.values[1..].iter();
        let values = first
            + &others
                .map(|value| format!("\t{value}\n"))
                .collect::<String>();
        format!(
            "// {kind} is the option {option}.\ntype {kind} uint16\n\n// The values of {kind}.\nconst (\n{values})"
        )
    }

    /// Formatted as by gofmt.
    fn members(keys: &[Key<'_>]) -> Vec<String> {
        let width = keys.iter().map(|key| key.field.len()).max().unwrap_or(0);
        let member = |key: &Key<'_>| {
            let kind = match key.switch() {
                Some(_) => "bool",
                None => &key.kind,
            };
            format!("{:width$} {kind}", key.field)
        };
        keys.iter().map(member).collect()
    }

    fn index(key: &Key<'_>) -> String {
        let Key { field, option, .. } = key;
        let count = option.values.len();
        match key.switch() {
            Some((off, _)) => {
                let condition = if off == 0 { "" } else { "!" };
                format!("index *= 2\nif {condition}config.{field} {{\n\tindex++\n}}")
            }
            None => format!(
                "if config.{field} >= {count} {{\n\treturn Filter{{}}, ErrExcluded\n}}\nindex = index*{count} + \
                 int(config.{field})"
            ),
        }
    }
}

/// The exported name of a field: `control_fd` is `ControlFd`.
fn exported(name: &str) -> String {
    let joined = camel(name);
    match joined.starts_with(|c: char| c.is_ascii_uppercase()) {
        true => joined,
        false => format!("X{joined}"),
    }
}

const TEMPLATE: &str = r#"// Code generated by tamis @version@ from @input@. DO NOT EDIT.

//go:build linux && @targets@

// Package @name@ @options?has the seccomp filters|is the seccomp filter@ of @input@.
//
// @about@
package @name@

import (
@if options@
	"errors"
@end@
	"runtime"
@if variables@
	"strconv"
@end@
	"syscall"
	"unsafe"
)

// sockFilter is an instruction as the kernel takes it.
type sockFilter struct {
	code   uint16
	jt, jf uint8
	k      uint32
}

@if options@
@if option_types@
@option_types@

@end@
// Config is a combination of the options.
type Config struct {
	@config@
}
@else@
@if variables@
// insns is the filter with 0 in the place of all variables.
@else@
// insns is the filter.
@end@
var insns = [@max_insns@]sockFilter{
	@insns@
}
@end@

// Filter is a filter that can be installed.
type Filter struct {
@if options@
	insns  [@max_insns@]sockFilter
	length int
@else@
	insns [@max_insns@]sockFilter
@end@
}

// FlagTsync is the flag of seccomp(2) for all threads of the process instead of the calling one. The runtime moves
// goroutines between threads, so a filter for the whole program needs it.
const FlagTsync = 1
@if options@

// ErrExcluded says that there is no filter for a combination.
var ErrExcluded = errors.New("there is no filter for this combination of options")

var insns = [...]sockFilter{
	@insns@
}

@if words@
// words has the filters' instructions.
var words = [...]uint16{
	@words@
}

@end@
// pieces are stretches of @words?words|insns@: the first, shifted, and the number less one.
var pieces = [...]uint32{
	@pieces@
}

// ends says where the pieces@patches?, instructions and patches| and instructions@ of each filter end.
var ends = [...]struct{ piece, insn@patches?, patch@ uint32 }{
	@ends@
}

// members has the filter@variables? and the ranges@ of each combination.
var members = [...]struct{ filter@variables?, ranges@ uint16 }{
	@members@
}
@end@
@if variables@

// Values has the values of the policy's variables@options?; those that a combination doesn't have may be anything@.
type Values struct {
	@fields@
}

// OutOfRange says that a value is not one that its variable was declared for.
type OutOfRange struct {
	Variable string
	Value    uint64
}

func (e *OutOfRange) Error() string {
	return e.Variable + " was not declared for " + strconv.FormatUint(e.Value, 10)
}
@if options@

// ranges says which values may be bound, names what they are called.
var ranges = [...][@variables@][2]uint64{
	@ranges@
}
var names = [...]string{
	@titles@
}
@end@
@end@
@if patches@

// patches says where values belong: the instruction, and the half of a value that is its constant.
var patches = [...]struct {
	insn uint16
	half uint8
}{
	@patches@
}
@end@

@if options@
// Bind returns the filter of a combination@variables? for these values@. The error is [ErrExcluded]@variables? or an [*OutOfRange]@.
func Bind(config *Config@variables?, values *Values@) (Filter, error) {
	index := 0
	@index@
	member := members[index]
	if member.filter == @excluded@ {
		return Filter{}, ErrExcluded
	}
@if variables@
	bound := [...]uint64{
		@places@
	}
	for i, value := range bound {
		if allowed := ranges[member.ranges][i]; value < allowed[0] || value > allowed[1] {
			return Filter{}, &OutOfRange{names[i], value}
		}
	}
@end@
	first, last := ends[member.filter], ends[member.filter+1]
	var filter Filter
	behind := last.insn - first.insn
	for _, piece := range pieces[first.piece:last.piece] {
		at := piece >> @count_bits@
		end := at + piece&@count_mask@ + 1
		for _, @words?word|stored@ := range @words?words|insns@[at:end] {
			insn := @words?insns[word]|stored@
			behind--
			// Bits above the code say which skip is counted from the end.
			insn.jt += uint8(behind) * uint8(insn.code>>@jt_bit@&1)
			insn.jf += uint8(behind) * uint8(insn.code>>@jf_bit@&1)
			insn.code &= 0xff
			filter.insns[filter.length] = insn
			filter.length++
		}
	}
@if patches@
	for _, patch := range patches[first.patch:last.patch] {
		filter.insns[patch.insn].k = uint32(bound[patch.half/2] >> (patch.half % 2 * 32))
	}
@end@
	return filter, nil
}
@else@
@if variables@
// Bind returns the filter for these values. The error is an [*OutOfRange].
func Bind(values *Values) (Filter, error) {
	@checks@
@if patches@
	halves := [...]uint32{
		@halves@
	}
@end@
	filter := Filter{insns}
@if patches@
	for _, patch := range patches {
		filter.insns[patch.insn].k = halves[patch.half]
	}
@end@
	return filter, nil
}
@else@
// New returns the filter.
func New() Filter {
	return Filter{insns}
}
@end@
@end@

// sockFprog is a program as the kernel takes it.
type sockFprog struct {
	len   uint16
	insns *sockFilter
}

// sysSeccomp is the number of seccomp(2), which package syscall doesn't have.
var sysSeccomp = map[string]uintptr{
	@seccomp_numbers@
}[runtime.GOARCH]

// Install installs the filter. flags are those of seccomp(2), usually [FlagTsync]. With noNewPrivs, PR_SET_NO_NEW_PRIVS is
// set first, for good: programs that are executed later gain no privileges. Otherwise it must be set already, or the
// process have CAP_SYS_ADMIN. The result is the descriptor of the listener if a flag requests one, else 0. The error is
// a [syscall.Errno]; ESRCH means that [FlagTsync] could not synchronise all threads.
func (f Filter) Install(flags uint32, noNewPrivs bool) (int, error) {
	const (
		setNoNewPrivs = 38
		setModeFilter = 1
		newListener   = 1 << 3
	)
	// Both calls are about the calling thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if noNewPrivs {
		if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, setNoNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
			return -1, errno
		}
	}
	program := sockFprog{uint16(@options?f.length|len(f.insns)@), &f.insns[0]}
	result, _, errno := syscall.RawSyscall(sysSeccomp, setModeFilter, uintptr(flags), uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(&f)
	if errno != 0 {
		return -1, errno
	}
	if result != 0 && flags&newListener == 0 {
		return -1, syscall.ESRCH
	}
	return int(result), nil
}
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_exported() {
        let names = ["fd", "control_fd", "_fd", "a__b", "_9", "x86_fd"];
        let fields = ["Fd", "ControlFd", "Fd", "AB", "X9", "X86Fd"];
        assert_eq!(names.map(exported), fields);
    }
}
