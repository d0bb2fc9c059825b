#!/usr/bin/env bash
# Runs a command with a screen of its own, a session bus and an accessibility bus, and takes them all away after it:
# headless.sh WIDTHxHEIGHT COMMAND…. The display's number is chosen by the server, so several can run at once.
# SPDX-License-Identifier: LGPL-2.1-or-later
set -euo pipefail
size=${1:?usage: headless.sh WIDTHxHEIGHT COMMAND…}
shift

run=$(mktemp -d)
processes=()
clean () {
  for process in "${processes[@]}"; do kill "$process" 2>/dev/null || true; done
  rm -rf "$run"
}
trap clean EXIT

Xvfb -displayfd 3 -screen 0 "${size}x24" -nolisten tcp -noreset 3>"$run/display" 2>"$run/Xvfb.log" &
processes+=($!)
for _ in $(seq 100); do
  [ ! -s "$run/display" ] || break
  sleep 0.1
done
[ -s "$run/display" ] || { cat "$run/Xvfb.log" >&2; echo 'headless: Xvfb did not start within 10 s' >&2; exit 1; }

# Not dbus-run-session: the daemon's remarks would stand between the output of the command.
dbus-daemon --session --nofork --print-address=4 4>"$run/bus" >"$run/dbus.log" 2>&1 &
processes+=($!)
for _ in $(seq 100); do
  [ ! -s "$run/bus" ] || break
  sleep 0.1
done
[ -s "$run/bus" ] || { cat "$run/dbus.log" >&2; echo 'headless: the session bus did not start within 10 s' >&2; exit 1; }

DISPLAY=:$(cat "$run/display")
DBUS_SESSION_BUS_ADDRESS=$(cat "$run/bus")
XDG_RUNTIME_DIR=$run
export DISPLAY DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR GDK_BACKEND=x11 GSK_RENDERER=cairo GDK_DISABLE=vulkan \
  GIO_USE_VFS=local GTK_IM_MODULE=none
unset WAYLAND_DISPLAY XAUTHORITY AT_SPI_BUS_ADDRESS
"$@"
