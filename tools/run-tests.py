#!/usr/bin/env python3
"""Runs groups of tests and counts what they say, one by one.

A group is a suite of Meson's. The programs speak TAP, so every sub-test counts; a program that does not speak it counts
as one test. Output is shown for what failed, a reason for what was skipped, one line for each group, and in the end
`N passed, N failed, N skipped`.

SPDX-License-Identifier: LGPL-2.1-or-later
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time

GROUPS = ["lint", "kernels", "unit", "golden", "hub", "gui", "fuzz"]
# Groups that run in the sanitised build, too or only.
SANITISED = {"unit", "fuzz"}
SANITISED_ONLY = {"fuzz"}
# Groups that need the machine for themselves: they measure time or drive a window.
ALONE = {"gui"}

TAP_LINE = re.compile(r"^(ok|not ok)\b\s*(\d*)\s*-?\s*(.*?)\s*(?:#\s*(SKIP|TODO)\b\s*(.*))?$", re.IGNORECASE)
TAP_PLAN = re.compile(r"^1\.\.(\d+)\s*(?:#\s*SKIP\b\s*(.*))?$", re.IGNORECASE)
OUTPUT_LINES = 60

# Groups some tests of which a cross build for 64-bit Arm has, too, in suites emulated-….
EMULATED = {"kernels", "golden"}


class Tally:
    """What the tests of one group said."""

    def __init__(self):
        self.passed = 0
        self.failures = []
        self.skips = []

    def add(self, other):
        self.passed += other.passed
        self.failures += other.failures
        self.skips += other.skips

    def line(self):
        return f"{self.passed} passed, {len(self.failures)} failed, {len(self.skips)} skipped"


def tally_tap(program, record):
    """Counts one program's TAP. What the exit status says beyond it (a crash, a time-out) is one more failure."""
    tally = Tally()
    planned, seen, bailed = None, 0, None
    notes = []
    for line in record.get("stdout", "").splitlines():
        if match := TAP_PLAN.match(line):
            planned = int(match.group(1))
            if planned == 0:
                tally.skips.append((program, match.group(2) or "no reason given"))
        elif line.startswith("Bail out!"):
            bailed = line
        elif match := TAP_LINE.match(line):
            seen += 1
            name = f"{program}: {match.group(3) or match.group(2)}"
            if (match.group(4) or "").upper() == "SKIP":
                tally.skips.append((name, match.group(5) or "no reason given"))
            elif match.group(1) == "ok":
                tally.passed += 1
            else:
                tally.failures.append((name, "\n".join(notes[-OUTPUT_LINES:])))
                # What stands after the line belongs to it as well (TAP's diagnostics follow).
            notes = []
            continue
        notes.append(line)
    return tally, planned, seen, bailed


def tally_program(test, record):
    result = record["result"]
    program = record["name"].rsplit(" / ", 1)[-1]
    output = (record.get("stdout", "") + "\n" + record.get("stderr", "")).strip()
    tail = "\n".join(output.splitlines()[-OUTPUT_LINES:])
    if test.get("protocol") != "tap":
        tally = Tally()
        if result == "OK" or result == "EXPECTEDFAIL":
            tally.passed = 1
        elif result == "SKIP":
            tally.skips.append((program, output.splitlines()[-1] if output else "no reason given"))
        else:
            tally.failures.append((f"{program} ({result.lower()})", tail))
        return tally

    tally, planned, seen, bailed = tally_tap(program, record)
    if tally.failures:
        # The whole output stands once, with the last failure.
        name, _ = tally.failures[-1]
        tally.failures[-1] = (name, tail)
    elif result == "TIMEOUT":
        tally.failures.append((f"{program}: ran out of time after {record['duration']:.0f} s", tail))
    elif bailed or result not in ("OK", "SKIP"):
        tally.failures.append((f"{program}: ended early ({bailed or 'exit status ' + str(record.get('returncode'))})", tail))
    elif planned is None or (planned != seen and planned != 0):
        tally.failures.append((f"{program}: planned {planned} tests and ran {seen}", tail))
    return tally


def run_group(build, group, title, rebuild=False):
    """Runs one suite in one build folder; None when it has no tests there. Meson builds what the tests need where @rebuild says so."""
    listed = subprocess.run(["meson", "introspect", "--tests", build], capture_output=True, text=True, check=True)
    tests = {}
    for test in json.loads(listed.stdout):
        if any(suite.split(":")[-1] == group for suite in test["suite"]):
            tests[test["name"]] = test
    if not tests:
        return None

    log = os.path.join(build, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.unlink(log)
    command = ["meson", "test", "-C", build, "--quiet", "--no-suite", "bench", "--suite", group]
    if not rebuild:
        command += ["--no-rebuild"]
    if group in ALONE:
        command += ["--num-processes", "1"]
    started = time.monotonic()
    process = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    tally = Tally()
    ran = 0
    if os.path.exists(log):
        with open(log, encoding="utf-8", errors="replace") as stream:
            for line in stream:
                record = json.loads(line)
                name = record["name"].rsplit(" / ", 1)[-1]
                ran += 1
                tally.add(tally_program(tests.get(name, {}), record))
    if ran == 0 or (process.returncode != 0 and not tally.failures):
        tally.failures.append((f"meson test --suite {group}", process.stdout[-4000:]))

    for name, output in tally.failures:
        print(f"\n✗ {title}: {name}")
        if output:
            print("    " + output.replace("\n", "\n    "))
    reasons = {}
    for name, reason in tally.skips:
        reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        print(f"- {title}: skipped {shown}: {reason}")
    print(f"{title}: {tally.line()} ({time.monotonic() - started:.0f} s)", flush=True)
    return tally


def main():
    parser = argparse.ArgumentParser(description="Run groups of tests and count them.")
    parser.add_argument("--build", required=True, help="the build folder")
    parser.add_argument("--sanitised", help="the build folder with AddressSanitizer and UBSan")
    parser.add_argument("--arm", help="the build folder of the cross build for 64-bit Arm; only what its tests need is built there")
    parser.add_argument("--no-arm", metavar="REASON", help="why there is no such build")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=" ".join(GROUPS))
    arguments = parser.parse_args()
    unknown = [group for group in arguments.groups if group not in GROUPS]
    if unknown:
        parser.error(f"there is no group {' '.join(unknown)}; there are {' '.join(GROUPS)}")
    groups = [group for group in GROUPS if group in arguments.groups] or GROUPS

    os.environ.setdefault("ASAN_OPTIONS", "detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1")
    os.environ.setdefault("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
    total = Tally()
    for group in groups:
        runs = []
        if group not in SANITISED_ONLY:
            runs.append((arguments.build, group, group))
        if group in SANITISED and arguments.sanitised:
            runs.append((arguments.sanitised, group, group + " (sanitised)"))
        if group in EMULATED and arguments.arm:
            runs.append((arguments.arm, "emulated-" + group, group + " (Arm, emulated)", True))
        tallies = [tally for tally in [run_group(*run) for run in runs] if tally]
        if group in EMULATED and arguments.no_arm:
            tallies.append(Tally())
            tallies[-1].skips.append((f"{group} (Arm, emulated)", arguments.no_arm))
            print(f"- {group} (Arm, emulated): skipped: {arguments.no_arm}", flush=True)
        for tally in tallies:
            total.add(tally)
        if not tallies:
            print(f"{group}: no tests", flush=True)
            if arguments.groups:
                total.failures.append((group, "a group that was asked for has no tests"))

    if total.failures:
        print("\nFailed:")
        for name, _ in total.failures:
            print(f"  {name}")
    print()
    print(total.line())
    return 1 if total.failures or total.passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
