#!/usr/bin/env bash
# Prints the files with text for people, one a line: what po/POTFILES.in has to name.
# A file has some when it calls _() or its kin, or marks text as translatable.
# SPDX-License-Identifier: LGPL-2.1-or-later
set -euo pipefail
cd "$(dirname "$0")/.."
files () { git ls-files --cached --others --exclude-standard -- "$@" | sort -u | while read -r file; do [ ! -f "$file" ] || echo "$file"; done; }
{
  files 'gui/*.c' 'gui/*.h' | xargs -r grep -lE '(^|[^a-zA-Z0-9_])(_|N_|C_|NC_|ngettext|g_dngettext|g_dpgettext2) ?\("' -- || true
  files 'gui/*.ui' | xargs -r grep -lE 'translatable="(yes|true)"' -- || true
  files 'data/*.desktop.in' 'data/*.metainfo.xml.in'
} | sort -u
