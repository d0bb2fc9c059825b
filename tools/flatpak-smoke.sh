#!/usr/bin/env bash
# Tries the installed Flatpak in its sandbox: flatpak-smoke.sh MODEL.gguf. The command line answers, and the window opens,
# gets a message and answers it. The home folder is a temporary one, so that nothing of the user's own is touched.
# SPDX-License-Identifier: LGPL-2.1-or-later
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
app=org.oxinfer.App
say () { printf '%s\n' "$*" >&2; }
die () { say "flatpak-smoke: $*"; exit 1; }

# The second half: inside the screen and the buses of headless.sh.
if [ "${1:-}" = --in-session ]; then
  gsettings set org.gnome.desktop.interface toolkit-accessibility true 2>/dev/null || true
  flatpak run --user --env=GSK_RENDERER=cairo $app >"$HOME/app.log" 2>&1 &
  app_process=$!
  for _ in $(seq 300); do
    kill -0 $app_process 2>/dev/null || { cat "$HOME/app.log" >&2; die "the app ended before its window was there"; }
    xdotool search --onlyvisible --name Oxinfer >/dev/null 2>&1 && break
    sleep 0.1
  done
  xdotool search --onlyvisible --name Oxinfer >/dev/null 2>&1 || { cat "$HOME/app.log" >&2; die "no window within 30 s"; }
  say 'The window opens in the sandbox'
  status=0
  if [ -f tests/gui/flatpak_smoke.py ]; then
    python3 tests/gui/flatpak_smoke.py || status=$?
  fi
  flatpak kill $app 2>/dev/null || true
  wait $app_process 2>/dev/null || true
  exit $status
fi

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
  --max-tokens 16 'What is the capital of France?') || die "oxinfer-cli failed in the sandbox"
[ -n "$answer" ] || die "oxinfer-cli gave no answer in the sandbox"
say "oxinfer-cli answers in the sandbox: $(echo "$answer" | head -n 1)"
tools/headless.sh 1120x760 "$(readlink -f "$0")" --in-session
