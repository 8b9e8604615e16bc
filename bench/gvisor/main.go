// gVisor's compiler and interpreter of seccomp filters, for timing beside tamis.
//
// They are gVisor's packages pkg/seccomp and pkg/bpf (Apache-2.0), unchanged; go.mod has the version, and this repository
// has no part of them. `go mod download` in this directory fetches it and the three modules that it needs; after that
// building and running this program need no network. This program reads a policy in the JSON of the corpus, which has
// gVisor's rules before any optimisation, converts it back to gVisor's rules, and builds:
//
//	gvisor POLICY.json               one build per line on standard input; each prints a line:
//	                                 the nanoseconds, then the program in hexadecimal
//	gvisor -rounds 40 POLICY.json    40 builds; prints the shortest and the median time, and the length
//	gvisor -evaluate                 one round per line on standard input, see evaluate.go
//
// Build modifies its rules, so each build gets a copy of its own, made before the clock starts, as in gVisor's own
// benchmark. Garbage is collected between builds, so that no build starts with the garbage of another, and none runs
// in the background while the other side is measured.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"gvisor.dev/gvisor/pkg/bpf"
	"gvisor.dev/gvisor/pkg/seccomp"
)

func main() {
	rounds := flag.Int("rounds", 0, "so many builds, and no answers")
	evaluates := flag.Bool("evaluate", false, "evaluate a program that is on standard input")
	flag.Parse()
	if *evaluates && flag.NArg() == 0 {
		exitWith(evaluate(os.Stdin))
	}
	if flag.NArg() != 1 || *rounds < 0 {
		flag.Usage()
		os.Exit(2)
	}
	exitWith(run(flag.Arg(0), *rounds))
}

func exitWith(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(path string, rounds int) error {
	policy, err := readPolicy(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if rounds > 0 {
		return summarise(policy, rounds)
	}
	requests := bufio.NewScanner(os.Stdin)
	for requests.Scan() {
		program, duration, err := build(policy)
		if err != nil {
			return err
		}
		fmt.Printf("%d %s\n", duration.Nanoseconds(), hex.EncodeToString(raw(program)))
	}
	return requests.Err()
}

// build builds the program once, and returns the time it took.
func build(policy *seccomp.Program) ([]bpf.Instruction, time.Duration, error) {
	fresh := seccomp.Program{Options: policy.Options}
	for _, set := range policy.RuleSets {
		set.Rules = set.Rules.Copy()
		fresh.RuleSets = append(fresh.RuleSets, set)
	}
	runtime.GC()
	start := time.Now()
	program, _, err := fresh.Build()
	duration := time.Since(start)
	runtime.GC()
	return program, duration, err
}

func summarise(policy *seccomp.Program, rounds int) error {
	var program []bpf.Instruction
	durations := make([]time.Duration, rounds)
	for round := range durations {
		var err error
		if program, durations[round], err = build(policy); err != nil {
			return err
		}
	}
	slices.Sort(durations)
	fmt.Printf("shortest %v, median %v, %d instructions\n", durations[0], durations[rounds/2], len(program))
	return nil
}

// raw is the program as an array of struct sock_filter.
func raw(program []bpf.Instruction) []byte {
	var bytes []byte
	for _, insn := range program {
		bytes = binary.LittleEndian.AppendUint16(bytes, insn.OpCode)
		bytes = append(bytes, insn.JumpIfTrue, insn.JumpIfFalse)
		bytes = binary.LittleEndian.AppendUint32(bytes, insn.K)
	}
	return bytes
}
