#!/usr/bin/env python3
"""Proves that a wrong include does not compile: gui → engine → gpu → kernels, and never back.

Takes the real compiler command of one file of each library from compile_commands.json and gives it a tiny program
instead. Each forbidden header must be unknown there, and each allowed one must be found, or the proof would be empty.

SPDX-License-Identifier: LGPL-2.1-or-later
"""

import json
import os
import re
import shlex
import subprocess
import sys

# library: (headers that must compile, headers that must not be found)
RULES = {
    "kernels": (["ox-kernels.h"], ["oxinfer.h", "ox-backend.h", "glib.h", "gtk/gtk.h"]),
    "gpu": (["ox-backend.h", "ox-kernels.h"], ["oxinfer.h", "ox-ops.h", "glib.h", "gtk/gtk.h"]),
    "engine": (["oxinfer.h", "ox-ops.h", "ox-backend.h", "ox-kernels.h"], ["gtk/gtk.h", "adwaita.h", "ox-composer.h"]),
    "gui": (["oxinfer.h", "gtk/gtk.h"], ["ox-ops.h", "ox-kernels.h", "ox-backend.h", "io/ox-file.h", "text/ox-tokenizer.h"]),
}
MISSING = re.compile(r"No such file|file not found", re.IGNORECASE)


def command_of(library, build, source):
    """The compiler command of one file of the library, as a list that reads the program from standard input."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as stream:
        commands = json.load(stream)
    folder = os.path.join(os.path.realpath(source), library) + os.sep
    for entry in commands:
        path = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
        words = shlex.split(entry["command"])
        # engine/cli and engine/examples are programs with include folders of their own.
        if path.startswith(folder) and os.sep not in path[len(folder):] and "-c" in words:
            kept, skip = [], False
            for word in words:
                if skip or word in ("-c", "-MD", "-MMD", entry["file"]):
                    skip = False
                elif word in ("-o", "-MQ", "-MF", "-MT"):
                    skip = True
                else:
                    kept.append(word)
            return kept + ["-fsyntax-only", "-x", "c", "-"], entry["directory"]
    return None, None


def main():
    build, source = sys.argv[1:]
    headers = {os.path.relpath(os.path.join(folder, name), os.path.join(source, top))
               for top in RULES for folder, _, names in os.walk(os.path.join(source, top)) for name in names}
    number, failed = 0, 0
    print("TAP version 13")
    for library, (allowed, forbidden) in RULES.items():
        command, directory = command_of(library, build, source)
        for header, wanted in [(name, True) for name in allowed] + [(name, False) for name in forbidden]:
            number += 1
            title = f"{library} {'sees' if wanted else 'does not see'} {header}"
            if command is None:
                print(f"ok {number} {title} # SKIP {library} is not part of this build")
                continue
            program = f'#include "{header}"\nint ox_arrow;\n'
            result = subprocess.run(command, cwd=directory, input=program, capture_output=True, text=True, check=False)
            # A forbidden header that does not exist at all would prove nothing.
            if not wanted and header.split("/")[0] not in ("gtk", "glib.h", "adwaita.h") and header not in headers:
                result.stderr += f"{header} is not a header of the project: this rule proves nothing"
                result.returncode = 0
            right = result.returncode == 0 if wanted else result.returncode != 0 and MISSING.search(result.stderr)
            if not right:
                failed += 1
                for line in result.stderr.splitlines()[:6]:
                    print("#", line)
            print(f"{'ok' if right else 'not ok'} {number} {title}")
    print(f"1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
