package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/seccomp"
)

// number is a 64-bit number, written as a string with its prefix.
type number uint64

func (n *number) UnmarshalText(text []byte) error {
	value, err := strconv.ParseUint(string(text), 0, 64)
	*n = number(value)
	return err
}

// The JSON in the schema of the corpus.
type (
	policyJSON struct {
		Arch struct {
			AuditArch number `json:"audit_arch"`
		} `json:"arch"`
		BadArchAction actionJSON    `json:"bad_arch_action"`
		DefaultAction actionJSON    `json:"default_action"`
		RuleSets      []ruleSetJSON `json:"rule_sets"`
		HotSyscalls   []struct {
			Nr uint32 `json:"nr"`
		} `json:"hot_syscalls"`
	}
	actionJSON struct {
		Ret number `json:"ret"`
	}
	ruleSetJSON struct {
		Action       actionJSON `json:"action"`
		VsyscallOnly bool       `json:"vsyscall_only"`
		Syscalls     []struct {
			Nr    uint32   `json:"nr"`
			Match ruleJSON `json:"match"`
		} `json:"syscalls"`
	}
	ruleJSON struct {
		Rule               string        `json:"rule"`
		Of                 []ruleJSON    `json:"of"`
		Args               []matcherJSON `json:"args"`
		InstructionPointer *matcherJSON  `json:"instruction_pointer"`
	}
	matcherJSON struct {
		Op    string `json:"op"`
		Value number `json:"value"`
		Mask  number `json:"mask"`
	}
)

// readPolicy reads a policy for the architecture of this build, the only one that gVisor's compiler supports.
func readPolicy(path string) (*seccomp.Program, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var policy policyJSON
	if err := json.Unmarshal(text, &policy); err != nil {
		return nil, err
	}
	if policy.Arch.AuditArch != seccomp.LINUX_AUDIT_ARCH {
		return nil, fmt.Errorf("architecture %#x, and this compiler writes for %#x", policy.Arch.AuditArch, seccomp.LINUX_AUDIT_ARCH)
	}
	program := &seccomp.Program{}
	options := &program.Options
	if options.DefaultAction, err = policy.DefaultAction.action(); err != nil {
		return nil, err
	}
	if options.BadArchAction, err = policy.BadArchAction.action(); err != nil {
		return nil, err
	}
	for _, hot := range policy.HotSyscalls {
		options.HotSyscalls = append(options.HotSyscalls, sysno(hot.Nr))
	}
	for _, set := range policy.RuleSets {
		ruleSet, err := set.ruleSet()
		if err != nil {
			return nil, err
		}
		program.RuleSets = append(program.RuleSets, ruleSet)
	}
	return program, nil
}

// sysno is a number in gVisor's representation: -1 is the largest.
func sysno(nr uint32) uintptr {
	return uintptr(int32(nr))
}

func (a actionJSON) action() (seccomp.Action, error) {
	actions := map[linux.BPFAction]seccomp.Action{
		linux.SECCOMP_RET_ALLOW:        seccomp.Allow,
		linux.SECCOMP_RET_TRAP:         seccomp.Trap,
		linux.SECCOMP_RET_KILL_THREAD:  seccomp.KillThread,
		linux.SECCOMP_RET_KILL_PROCESS: seccomp.KillProcess,
		linux.SECCOMP_RET_USER_NOTIF:   seccomp.UserNotify,
		linux.SECCOMP_RET_ERRNO:        seccomp.ReturnError,
		linux.SECCOMP_RET_TRACE:        seccomp.Trace,
	}
	action, known := actions[linux.BPFAction(a.Ret)&linux.SECCOMP_RET_ACTION_FULL]
	if !known {
		return "", fmt.Errorf("no action %#x", a.Ret)
	}
	switch code := uint16(a.Ret); {
	case action == seccomp.ReturnError || action == seccomp.Trace:
		return action.Code(code), nil
	case code != 0:
		return "", fmt.Errorf("gVisor's %v has no data", action)
	}
	return action, nil
}

func (s ruleSetJSON) ruleSet() (seccomp.RuleSet, error) {
	set := seccomp.RuleSet{Rules: seccomp.NewSyscallRules(), Vsyscall: s.VsyscallOnly}
	var err error
	if set.Action, err = s.Action.action(); err != nil {
		return set, err
	}
	for _, syscall := range s.Syscalls {
		rule, err := syscall.Match.rule()
		if err != nil {
			return set, fmt.Errorf("number %d: %w", syscall.Nr, err)
		}
		set.Rules.Set(sysno(syscall.Nr), rule)
	}
	return set, nil
}

func (r ruleJSON) rule() (seccomp.SyscallRule, error) {
	switch r.Rule {
	case "match_all":
		return seccomp.MatchAll{}, nil
	case "or":
		parts, err := rules(r.Of)
		return seccomp.Or(parts), err
	case "and":
		parts, err := rules(r.Of)
		return seccomp.And(parts), err
	case "per_arg":
		return r.perArg()
	}
	return nil, fmt.Errorf("no rule %q", r.Rule)
}

func rules(list []ruleJSON) ([]seccomp.SyscallRule, error) {
	var parts []seccomp.SyscallRule
	for _, part := range list {
		rule, err := part.rule()
		if err != nil {
			return nil, err
		}
		parts = append(parts, rule)
	}
	return parts, nil
}

func (r ruleJSON) perArg() (seccomp.SyscallRule, error) {
	var perArg seccomp.PerArg
	if len(r.Args) > seccomp.RuleIP {
		return nil, fmt.Errorf("%d arguments", len(r.Args))
	}
	var err error
	for index, arg := range r.Args {
		if perArg[index], err = arg.matcher(); err != nil {
			return nil, err
		}
	}
	if r.InstructionPointer != nil {
		perArg[seccomp.RuleIP], err = r.InstructionPointer.matcher()
	}
	return perArg, err
}

func (m matcherJSON) matcher() (seccomp.ValueMatcher, error) {
	value := uintptr(m.Value)
	switch m.Op {
	case "any":
		return seccomp.AnyValue{}, nil
	case "eq":
		return seccomp.EqualTo(value), nil
	case "ne":
		return seccomp.NotEqual(value), nil
	case "gt":
		return seccomp.GreaterThan(value), nil
	case "ge":
		return seccomp.GreaterThanOrEqual(value), nil
	case "lt":
		return seccomp.LessThan(value), nil
	case "le":
		return seccomp.LessThanOrEqual(value), nil
	case "masked_eq":
		return seccomp.MaskedEqual(uintptr(m.Mask), value), nil
	case "non_negative_fd":
		return seccomp.NonNegativeFD{}, nil
	}
	return nil, fmt.Errorf("no operator %q", m.Op)
}
