#!/usr/bin/env bash
# Checks of style and structure, as TAP: ./tools/lint.sh. One numbered line a check, what is wrong below it as comments.
# SPDX-License-Identifier: LGPL-2.1-or-later
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1

# The checkout may belong to somebody else (continuous integration); its files are only listed.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0="$PWD"

number=0
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# report NAME FILE: passes when the file of findings is empty.
report () {
  number=$((number + 1))
  if [ -s "$2" ]; then
    echo "not ok $number $1"
    sed 's/^/# /' "$2" | head -n 60
    failed=1
  else
    echo "ok $number $1"
  fi
}
skip () {
  number=$((number + 1))
  echo "ok $number $1 # SKIP $2"
}
have () { command -v "$1" >/dev/null 2>&1; }
# The files of the project, as git sees them: tracked, or new and not ignored.
files () { git ls-files --cached --others --exclude-standard -- "$@" | sort -u | while read -r file; do [ ! -f "$file" ] || echo "$file"; done; }

echo 'TAP version 13'
if ! git rev-parse --git-dir >/dev/null 2>&1; then
  echo '1..0 # SKIP this is not a git checkout, so the files of the project are not known'
  exit 0
fi

if have clang-format && clang-format --version | grep -qE 'version (19|[2-9][0-9])\.'; then
  files '*.c' '*.h' | xargs -r -P 2 -n 20 clang-format --dry-run --Werror 2>&1 | grep -E 'error|warning' >"$work/format"
  report 'C files are laid out by .clang-format (./dev format does it)' "$work/format"
else
  skip 'C files are laid out by .clang-format' 'clang-format 19 or newer is not here'
fi

files '*.c' '*.h' '*.ui' '*.css' '*.py' '*.sh' '*.build' '*.options' '*.svg' '*.in' '*.xml' dev .ci/run \
  | grep -vxE 'po/(POTFILES|LINGUAS).*' | xargs -r grep -L 'SPDX-License-Identifier: LGPL-2.1-or-later' >"$work/spdx"
report 'each source file names its licence' "$work/spdx"

files | xargs -r -d '\n' grep -nIE '\b(TODO|FIXME|XXX)\b' -- 2>/dev/null | grep -vE '^(tools/(lint\.sh|run-tests\.py):|tests/(golden|fixtures)/|po/)' >"$work/todo"
report 'nothing is left for later' "$work/todo"

files '*.c' '*.h' '*.py' '*.sh' dev | while read -r file; do
  lines=$(wc -l <"$file")
  [ "$lines" -le 800 ] || echo "$file has $lines lines, at most 800"
done >"$work/long"
report 'no source file is over 800 lines' "$work/long"

# Arrows go one way: gui → engine → gpu → kernels. Here by reading; tests/lint/arrows.sh proves it by compiling.
{
  files 'engine/*' 'gpu/*' 'kernels/*' | xargs -r grep -nE '#[ ]*include *[<"](gtk|gdk|gsk|adwaita|gui/)' --
  files 'gpu/*' 'kernels/*' | xargs -r grep -nE '#[ ]*include *[<"](glib|gio|gobject|engine/|oxinfer\.h|ox-ops)' --
  files 'kernels/*' | xargs -r grep -nE '#[ ]*include *[<"](ox-backend|gpu/)' --
  files 'gui/*' | xargs -r grep -nE '#[ ]*include *[<"](ox-kernels|ox-ops|ox-backend|io/|text/|models/|engine/|kernels/|gpu/|\.\./)' --
} >"$work/arrows" 2>/dev/null
report 'includes follow the arrows' "$work/arrows"

files 'engine/*.c' 'gpu/*.c' 'kernels/*.c' | grep -vE '^engine/(cli|examples)/' \
  | xargs -r grep -nE '(^|[^a-z_.>])(printf|puts|putchar|g_print|g_printerr|exit|_exit|abort|g_error|g_assert|g_assert_not_reached|assert) *\(' -- \
  | grep -vE ':[0-9]+: *(\*|//|/\*)' >"$work/prints"
report 'the engine does not print, exit or assert' "$work/prints"

files '*.py' | grep -vE '^(tools|tests)/' >"$work/python"
report 'Python is in tools/ and tests/ only' "$work/python"

if have shellcheck; then
  { echo dev; echo .ci/run; files '*.sh'; } | while read -r file; do [ ! -f "$file" ] || echo "$file"; done \
    | xargs -r shellcheck --severity=warning --external-sources --format=gcc >"$work/shell" 2>&1
  report 'shellcheck finds nothing in dev and the scripts' "$work/shell"
else
  skip 'shellcheck finds nothing in dev and the scripts' 'shellcheck is not here'
fi

tools/list-potfiles.sh >"$work/with-text"
sed '/^#/d; /^$/d' po/POTFILES.in | sort >"$work/potfiles"
{
  comm -23 "$work/with-text" "$work/potfiles" | sed 's/$/: has text for people and is not in po\/POTFILES.in/'
  comm -13 "$work/with-text" "$work/potfiles" | sed 's/$/: is in po\/POTFILES.in and has no text for people, or is not there/'
} >"$work/potdiff"
report 'po/POTFILES.in names each file with text for people' "$work/potdiff"

if have xgettext; then
  tools/update-pot.sh "$work/new.pot" >"$work/xgettext" 2>&1 || true
  if [ -f "$work/new.pot" ]; then
    diff -u po/oxinfer.pot "$work/new.pot" >"$work/pot" 2>&1 || echo './dev format renews it' >>"$work/pot"
  else
    cp "$work/xgettext" "$work/pot"
  fi
  report 'po/oxinfer.pot is current' "$work/pot"
else
  skip 'po/oxinfer.pot is current' 'xgettext is not here'
fi

# Each .ui file and picture of the app is in the bundle, or nobody can open it.
files 'gui/*.ui' 'gui/*.css' | while read -r file; do
  grep -qs "$(basename "$file")" gui/*.gresource.xml || echo "$file: is in no gresource.xml"
done >"$work/resources"
report 'each .ui and .css file is in the resource bundle' "$work/resources"

# Files speak of the project alone.
files | grep -vE '^(tests/golden|tests/fixtures|tests/models)/' \
  | xargs -r -d '\n' grep -nIE '(/work/(main|shared|steering)|/tmp/(models|wheels|bash_jobs)|/root/)|//[a-z.-]*(pypi|debian)[.]' -- 2>/dev/null | grep -v '^tools/lint\.sh:' >"$work/paths"
report 'no path of one machine and no registry host is in a file' "$work/paths"

echo "1..$number"
exit $failed
