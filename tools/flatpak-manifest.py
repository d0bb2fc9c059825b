#!/usr/bin/env python3
"""Writes a copy of the manifest for a local build: flatpak-manifest.py IN SOURCE OUT.

Against the Debian runtime, without the modules that Debian has as libraries; with --gnome against the one it names.
The source of the app is the folder SOURCE.

SPDX-License-Identifier: LGPL-2.1-or-later
"""

import json
import sys

IN_DEBIAN = {"yyjson", "md4c"}


def main():
    gnome = "--gnome" in sys.argv
    manifest_path, source, out = [word for word in sys.argv[1:] if word != "--gnome"]
    with open(manifest_path, encoding="utf-8") as stream:
        manifest = json.load(stream)
    if not gnome:
        manifest["runtime"] = "org.oxinfer.Debian.Platform"
        manifest["sdk"] = "org.oxinfer.Debian.Sdk"
        manifest["runtime-version"] = "13"
        manifest["modules"] = [module for module in manifest["modules"] if module["name"] not in IN_DEBIAN]
    for module in manifest["modules"]:
        if module["name"] == "oxinfer":
            module["sources"] = [{"type": "dir", "path": source}]
    with open(out, "w", encoding="utf-8") as stream:
        json.dump(manifest, stream, indent=2)


if __name__ == "__main__":
    main()
