"""Runs the lines of a file with the module `seccomp` that Python finds; prints each with what it gave."""

import copy
import io
import os
import pickle
import sys
import tempfile

import seccomp as s


def pfc(rules):
    with tempfile.TemporaryFile("w+") as file:
        rules.export_pfc(file)
        file.seek(0)
        return file.read()


names = {"s": s, "pfc": pfc, "out": tempfile.TemporaryFile(), "copy": copy, "pickle": pickle}
for line in open(sys.argv[1], encoding="utf-8"):
    line = line.strip()
    if line.startswith("#"):
        continue
    try:
        code = compile(line, "case", "eval")
    except SyntaxError:
        code = compile(line, "case", "exec")
    try:
        outcome = repr(eval(code, names))
    except (TypeError, OverflowError, AttributeError, UnicodeError) as error:
        # What Python itself says of wrong use has no fixed words.
        outcome = type(error).__name__
    except Exception as error:
        outcome = repr(error)
    print(line.encode("unicode_escape").decode(), "=>", outcome)
