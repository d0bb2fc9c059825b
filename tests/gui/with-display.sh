#!/bin/sh
# Runs a command on a virtual display and a message bus of its own. Exit status 77 when Xvfb is missing.
# SPDX-License-Identifier: LGPL-2.1-or-later
set -eu

command -v Xvfb > /dev/null || exit 77
command -v dbus-run-session > /dev/null || exit 77
dir=$(mktemp -d)
mkfifo "$dir/display"
Xvfb -displayfd 3 -screen 0 1280x1000x24 -nolisten tcp 3> "$dir/display" > /dev/null 2>&1 &
xvfb=$!
trap 'kill "$xvfb" 2> /dev/null || true; rm -rf "$dir"' EXIT
read -r number < "$dir/display"

export DISPLAY=":$number" GDK_BACKEND=x11 XDG_RUNTIME_DIR="$dir" LC_ALL=C.UTF-8
unset WAYLAND_DISPLAY
status=0
dbus-run-session -- "$@" || status=$?
exit "$status"
