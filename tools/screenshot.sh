#!/usr/bin/env bash
# Takes a picture of the real app in a scene: screenshot.sh SCENE OUT.png [OPTION…]; the options stand in ./dev help.
# The app runs on a screen and buses of its own in a temporary home; OXINFER_SCENE tells it which library to prepare and
# what to show, and it writes the file OXINFER_SCENE_READY names when that is on the screen.
# SPDX-License-Identifier: LGPL-2.1-or-later
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
die () { echo "screenshot: $*" >&2; exit 1; }

# The second half: inside the screen and the buses of headless.sh.
if [ "${1:-}" = --in-session ]; then
  out=$2
  _build/gui/oxinfer >"$HOME/app.log" 2>&1 &
  app=$!
  for _ in $(seq 600); do
    [ ! -e "$OXINFER_SCENE_READY" ] || break
    kill -0 $app 2>/dev/null || { cat "$HOME/app.log" >&2; die "the app ended before the scene $OXINFER_SCENE was ready"; }
    sleep 0.1
  done
  [ -e "$OXINFER_SCENE_READY" ] || { cat "$HOME/app.log" >&2; kill $app; die "the scene $OXINFER_SCENE was not ready within 60 s"; }
  # The file is written when the frame is drawn; the server shows it a moment later.
  sleep 0.3
  import -silent -window root "$out" || { kill $app; die "the picture could not be taken"; }
  kill $app 2>/dev/null || true
  wait $app 2>/dev/null || true
  [ ! -s "$HOME/app.log" ] || sed 's/^/app: /' "$HOME/app.log" >&2
  exit 0
fi

[ $# -ge 2 ] || die "usage: screenshot.sh SCENE OUT.png [--dark] [--narrow] [--rtl] [--high-contrast] [--text-scale N] [--scale N]"
scene=$1
out=$(realpath -m "$2")
shift 2
width=1120
height=760
scale=1
while [ $# -gt 0 ]; do
  case $1 in
    --dark) export ADW_DEBUG_COLOR_SCHEME=prefer-dark ;;
    --narrow) width=400; height=720 ;;
    --rtl) export LANG=ar_EG.UTF-8 LC_ALL=ar_EG.UTF-8 LANGUAGE=ar OXINFER_SCENE_RTL=1 ;;
    --high-contrast) export ADW_DEBUG_HIGH_CONTRAST=1 ;;
    --text-scale) export OXINFER_SCENE_TEXT_SCALE=${2:?--text-scale needs a number}; shift ;;
    --scale) scale=${2:?--scale needs a number}; shift ;;
    *) die "there is no option $1" ;;
  esac
  shift
done
[ -x _build/gui/oxinfer ] || die "the app is not built: _build/gui/oxinfer"

home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export HOME=$home OXINFER_SCENE=$scene OXINFER_SCENE_READY=$home/ready
export XDG_CONFIG_HOME=$home/config XDG_DATA_HOME=$home/data XDG_CACHE_HOME=$home/cache XDG_STATE_HOME=$home/state
export GSETTINGS_BACKEND=keyfile GSETTINGS_SCHEMA_DIR=$PWD/_build/data GDK_DEBUG=no-portals GDK_SCALE=$scale GTK_A11Y=none
mkdir -p "$XDG_CONFIG_HOME/glib-2.0/settings" "$XDG_CONFIG_HOME/gtk-4.0" "$(dirname "$out")"
# The window as the user would have left it: as large as the screen, since there is no window manager.
cat >"$XDG_CONFIG_HOME/glib-2.0/settings/keyfile" <<SETTINGS
[org/oxinfer/App]
window-width=$width
window-height=$height
SETTINGS
cat >"$XDG_CONFIG_HOME/gtk-4.0/settings.ini" <<SETTINGS
[Settings]
gtk-enable-animations=false
gtk-cursor-blink=false
gtk-font-name=Inter 11
SETTINGS
tools/headless.sh $((width * scale))x$((height * scale)) "$(readlink -f "$0")" --in-session "$out"
