"""What the module `seccomp` of libseccomp 2.6 has and that of 2.5 doesn't."""

import copy
import tempfile

import seccomp as s


def exported(rules):
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()


rules = s.SyscallFilter(s.ALLOW)
rules.add_rule(s.KILL, "reboot")
before = exported(rules)
rules.start_transaction()
rules.add_rule(s.KILL, "ptrace")
inside = exported(rules)
rules.reject_transaction()
print("rejected:", exported(rules) == before != inside)
rules.start_transaction()
rules.add_rule(s.KILL, "ptrace")
rules.commit_transaction()
print("committed:", exported(rules) == inside)
print("in memory:", rules.export_bpf_mem() == inside)
rules.precompute()
print("precomputed:", rules.export_bpf_mem() == inside)
try:
    copy.copy(rules)
except TypeError:
    print("no copies:", True)
