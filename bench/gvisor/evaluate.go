package main

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"gvisor.dev/gvisor/pkg/bpf"
)

// The size of struct seccomp_data.
const inputBytes = 64

// evaluate reads a program and inputs, each a line of hexadecimal bytes in this machine's byte order. For each further
// line it runs the program on all inputs, as gVisor's kernel does for its guests, and prints a line: the nanoseconds,
// then the sum of the values in 64 bits.
func evaluate(standardInput io.Reader) error {
	requests := bufio.NewReader(standardInput)
	rawProgram, err := readBytes(requests)
	if err != nil {
		return err
	}
	program, err := bpf.Compile(instructions(rawProgram), false /* optimize */)
	if err != nil {
		return err
	}
	inputs, err := readBytes(requests)
	if err != nil {
		return err
	}
	runtime.GC()
	for {
		if _, err := requests.ReadString('\n'); err != nil {
			return nil
		}
		var sum uint64
		start := time.Now()
		for rest := inputs; len(rest) >= inputBytes; rest = rest[inputBytes:] {
			value, err := bpf.Exec[bpf.NativeEndian](program, bpf.Input(rest[:inputBytes]))
			if err != nil {
				return err
			}
			sum += uint64(value)
		}
		fmt.Printf("%d %d\n", time.Since(start).Nanoseconds(), sum)
	}
}

func readBytes(requests *bufio.Reader) ([]byte, error) {
	line, err := requests.ReadString('\n')
	if err != nil {
		return nil, err
	}
	return hex.DecodeString(strings.TrimSpace(line))
}

// instructions reads an array of struct sock_filter.
func instructions(raw []byte) []bpf.Instruction {
	var insns []bpf.Instruction
	for ; len(raw) >= 8; raw = raw[8:] {
		insns = append(insns, bpf.Instruction{
			OpCode:      binary.NativeEndian.Uint16(raw),
			JumpIfTrue:  raw[2],
			JumpIfFalse: raw[3],
			K:           binary.NativeEndian.Uint32(raw[4:]),
		})
	}
	return insns
}
