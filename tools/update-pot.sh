#!/usr/bin/env bash
# Writes the template of translations: ./tools/update-pot.sh OUT.pot. Without a date, so that it changes only with the texts.
# SPDX-License-Identifier: LGPL-2.1-or-later
set -euo pipefail
out=$(realpath -m "${1:?usage: update-pot.sh OUT.pot}")
cd "$(dirname "$0")/.."

version=$(sed -n "s/^ *version: '\(.*\)',$/\1/p" meson.build)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed '/^#/d; /^$/d' po/POTFILES.in >"$work/files"
# The keywords of GLib, and what Meson's preset 'glib' passes.
xgettext --files-from="$work/files" --output="$work/out.pot" --force-po --no-wrap --sort-by-file --add-location=file \
  --package-name=oxinfer --package-version="$version" --copyright-holder='The Oxinfer developers' \
  --from-code=UTF-8 --add-comments=Translators \
  --keyword=_ --keyword=N_ --keyword=C_:1c,2 --keyword=NC_:1c,2 --keyword=g_dcgettext:2 --keyword=g_dngettext:2,3 \
  --keyword=g_dpgettext2:2c,3 --keyword=ngettext:1,2 \
  --flag=N_:1:pass-c-format --flag=C_:2:pass-c-format --flag=NC_:2:pass-c-format \
  --flag=g_strdup_printf:1:c-format --flag=g_string_printf:2:c-format --flag=g_string_append_printf:2:c-format \
  --flag=g_set_error:4:c-format
sed -i '/^"POT-Creation-Date:/d; s/charset=CHARSET/charset=UTF-8/; s/^# SOME DESCRIPTIVE TITLE\.$/# The texts of Oxinfer, for translators. SPDX-License-Identifier: LGPL-2.1-or-later/' "$work/out.pot"
mkdir -p "$(dirname "$out")"
cp "$work/out.pot" "$out"
