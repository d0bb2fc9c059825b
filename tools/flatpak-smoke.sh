#!/usr/bin/env bash
# Tries the installed Flatpak in its sandbox: flatpak-smoke.sh MODEL.gguf. The command line answers, and the window opens,
# gets a message and answers it. The home folder is a temporary one, so that nothing of the user's own is touched.
# SPDX-License-Identifier: LGPL-2.1-or-later
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
app=org.oxinfer.App
say () { printf '%s\n' "$*" >&2; }
die () { say "flatpak-smoke: $*"; exit 1; }

model=${1:?usage: flatpak-smoke.sh MODEL.gguf}
FLATPAK_USER_DIR=${XDG_DATA_HOME:-$HOME/.local/share}/flatpak
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export FLATPAK_USER_DIR HOME=$home
unset XDG_DATA_HOME XDG_CONFIG_HOME XDG_CACHE_HOME XDG_STATE_HOME
models=$home/.var/app/$app/data/models
mkdir -p "$models"
cp --reflink=auto "$model" "$models/"

answer=$(tools/headless.sh 640x480 flatpak run --user --command=oxinfer-cli $app generate --model "$models/$(basename "$model")" \
  --temperature 0 --max-tokens 32 'Write one sentence about cats.') || die "oxinfer-cli failed in the sandbox"
case $answer in
  *[Cc]at*) say "oxinfer-cli answers in the sandbox: $(echo "$answer" | head -n 1)" ;;
  *) die "oxinfer-cli was asked about cats in the sandbox and said: $answer" ;;
esac

cat >"$home/app" <<WRAPPER
#!/bin/sh
exec flatpak run --user --env=GSK_RENDERER=cairo --env=GTK_A11Y=atspi $app
WRAPPER
chmod +x "$home/app"
tools/headless.sh 1120x760 python3 tools/flatpak-smoke.py "$home/app"
