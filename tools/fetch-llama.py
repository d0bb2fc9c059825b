#!/usr/bin/env python3
"""Builds llama.cpp's llama-bench, which `./dev bench --compare llama.cpp` takes turns with, and prints where it is.

Its source comes with the source distribution of llama-cpp-python, which pip fetches: it knows the settings of this machine's network.
It is built for this processor, as its own instructions say, and kept. Fetching and building are two calls, since the network is the
host's and the compiler that of the project's environment.

SPDX-License-Identifier: LGPL-2.1-or-later
"""

import argparse
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

REQUIREMENT = "llama_cpp_python==0.3.36"
# Whatever else is set: only what runs on the processor, and nothing from the network.
OPTIONS = ["-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DBUILD_SHARED_LIBS=OFF", "-DLLAMA_OPENSSL=OFF", "-DLLAMA_BUILD_TESTS=OFF",
           "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_SERVER=OFF", "-DLLAMA_BUILD_APP=OFF", "-DLLAMA_USE_PREBUILT_UI=OFF"]
NO_AMX = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"


class FetchError(Exception):
    """What went wrong, in a sentence."""


def run(command, what):
    """Runs a command; its output is shown when it fails."""
    if shutil.which(command[0]) is None:
        raise FetchError(f"{command[0]} is missing; install it with your package manager")
    result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode != 0:
        print(result.stdout[-4000:], file=sys.stderr)
        if re.search(r"NewConnectionError|Name or service|Temporary failure|timed out|unreachable|ConnectionError|ProxyError", result.stdout):
            raise FetchError(f"no network: {what} failed")
        raise FetchError(f"{what} failed; what it said stands above")


def cpu_identity():
    """What a native build depends on: the processor's name and flags."""
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
        text = stream.read()
    found = [re.search(rf"^{key}\s*:\s*(.*)$", text, re.M) for key in ("model name", "flags", "Features")]
    return " ".join(match.group(1) for match in found if match)


def fetch(folder):
    """Unpacks llama.cpp to folder/source."""
    source = os.path.join(folder, "source")
    if os.path.isdir(source):
        return
    print(f"Fetching llama.cpp ({REQUIREMENT})", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        run([sys.executable, "-m", "pip", "download", "--no-binary=:all:", "--no-deps", "--no-cache-dir", "--progress-bar=off",
             "--dest", work, REQUIREMENT], f"fetching {REQUIREMENT}")
        archives = [name for name in os.listdir(work) if name.endswith(".tar.gz")]
        if len(archives) != 1:
            raise FetchError(f"pip left {len(archives)} source archives for {REQUIREMENT}, expected 1")
        with tarfile.open(os.path.join(work, archives[0])) as archive:
            archive.extractall(work, filter="data")
        root = os.path.join(work, archives[0].removesuffix(".tar.gz"), "vendor", "llama.cpp")
        if not os.path.isfile(os.path.join(root, "CMakeLists.txt")):
            raise FetchError(f"{archives[0]} holds no vendor/llama.cpp")
        os.replace(root, source)


def build(folder, no_amx):
    """Builds llama-bench from folder/source and returns its path."""
    source = os.path.join(folder, "source")
    # Where there is no AMX, both builds are the same.
    no_amx = no_amx and "amx_" in cpu_identity()
    folder = os.path.join(folder, "build-no-amx" if no_amx else "build")
    program = os.path.join(folder, "bin", "llama-bench")
    stamp = os.path.join(folder, ".cpu")
    identity = f"{REQUIREMENT} {cpu_identity()}"
    if os.path.exists(stamp) and os.path.exists(program):
        with open(stamp, encoding="utf-8") as stream:
            if stream.read() == identity:
                return program
    shutil.rmtree(folder, ignore_errors=True)
    print("Building llama-bench (once; some minutes)", file=sys.stderr, flush=True)
    flags = [f"-DCMAKE_C_FLAGS={NO_AMX}", f"-DCMAKE_CXX_FLAGS={NO_AMX}"] if no_amx else []
    run(["cmake", "-S", source, "-B", folder, "-G", "Ninja", *OPTIONS, *flags], "configuring llama.cpp")
    run(["cmake", "--build", folder, "--target", "llama-bench"], "building llama-bench")
    if not os.path.exists(program):
        raise FetchError(f"the build left no {program}")
    with open(stamp, "w", encoding="utf-8") as stream:
        stream.write(identity)
    return program


def main():
    parser = argparse.ArgumentParser(description="Fetch llama.cpp, and build its llama-bench and print where that is.")
    parser.add_argument("--into", required=True, metavar="FOLDER", help="where source and builds are kept")
    parser.add_argument("--no-amx", action="store_true", help="a build that does not use AMX")
    parser.add_argument("action", choices=["fetch", "build"])
    arguments = parser.parse_args()
    os.makedirs(arguments.into, exist_ok=True)
    try:
        with open(os.path.join(arguments.into, ".lock"), "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if arguments.action == "fetch":
                fetch(arguments.into)
            else:
                print(build(arguments.into, arguments.no_amx))
    except (FetchError, OSError) as error:
        print(f"fetch-llama: {error}. Running it again is safe.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("fetch-llama: stopped. Running it again is safe.")
