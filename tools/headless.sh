#!/usr/bin/env bash
# Runs a command with a screen of its own, a session bus and an accessibility bus, and takes them all away after it:
# headless.sh WIDTHxHEIGHT COMMAND…. The display's number is chosen by the server, so several can run at once.
# SPDX-License-Identifier: LGPL-2.1-or-later
set -euo pipefail
size=${1:?usage: headless.sh WIDTHxHEIGHT COMMAND…}
shift

number=$(mktemp)
Xvfb -displayfd 3 -screen 0 "${size}x24" -nolisten tcp -noreset 3>"$number" 2>/dev/null &
server=$!
trap 'kill $server 2>/dev/null || true; rm -f "$number"' EXIT
for _ in $(seq 100); do
  [ ! -s "$number" ] || break
  kill -0 $server 2>/dev/null || { echo 'headless: Xvfb did not start' >&2; exit 1; }
  sleep 0.1
done
[ -s "$number" ] || { echo 'headless: Xvfb did not start within 10 s' >&2; exit 1; }

DISPLAY=:$(cat "$number")
export DISPLAY GDK_BACKEND=x11 GSK_RENDERER=cairo GDK_DISABLE=vulkan GIO_USE_VFS=local GTK_IM_MODULE=none NO_AT_BRIDGE=0
unset WAYLAND_DISPLAY XAUTHORITY DBUS_SESSION_BUS_ADDRESS AT_SPI_BUS_ADDRESS
dbus-run-session -- "$@"
