#!/usr/bin/env bash
# Builds, installs and tries the Flatpak: flatpak.sh MODEL.gguf [ROOT]. Called by ./dev flatpak.
# Uses the GNOME SDK when it is installed or a remote of this machine offers it; else the Debian root as SDK and runtime.
# SPDX-License-Identifier: LGPL-2.1-or-later
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
model=${1:?usage: flatpak.sh MODEL.gguf [ROOT]}
root=${2:-}
work=${XDG_CACHE_HOME:-$HOME/.cache}/oxinfer/flatpak
app=org.oxinfer.App
say () { printf '%s\n' "$*" >&2; }
die () { say "flatpak: $*"; exit 1; }
for program in flatpak flatpak-builder ostree dbus-run-session Xvfb python3; do
  command -v $program >/dev/null || die "$program is missing; please install it"
done
mkdir -p "$work"

# For a plain user flatpak asks the system bus about parental controls, and fails where there is no such bus at all
# (in a container); an empty bus answers that nobody is there.
if [ ! -S /run/dbus/system_bus_socket ]; then
  bus=$(mktemp)
  dbus-daemon --session --nofork --print-address=4 4>"$bus" 2>/dev/null &
  trap 'kill '$!' 2>/dev/null || true; rm -f "$bus"' EXIT
  for _ in $(seq 50); do [ -s "$bus" ] || sleep 0.1; done
  DBUS_SYSTEM_BUS_ADDRESS=$(cat "$bus")
  export DBUS_SYSTEM_BUS_ADDRESS
fi

runtime=$(python3 -c 'import json; m = json.load(open("org.oxinfer.App.json")); print(m["runtime-version"])')
# Installs the GNOME runtime and SDK when a remote that is set up has them; fails when there is none.
gnome_sdk () {
  local remote name scope
  if flatpak info "org.gnome.Sdk//$runtime" >/dev/null 2>&1 && flatpak info "org.gnome.Platform//$runtime" >/dev/null 2>&1; then
    return 0
  fi
  while read -r remote scope; do
    [ "$remote" != oxinfer-debian ] && [ "$remote" != oxinfer-app ] || continue
    flatpak remote-info "--$scope" "$remote" "org.gnome.Sdk//$runtime" >/dev/null 2>&1 || continue
    for name in Platform Sdk; do
      flatpak install "--$scope" -y --noninteractive "$remote" "org.gnome.$name//$runtime" >&2 || return 1
    done
    return 0
  done < <(flatpak remotes --columns=name,options 2>/dev/null | awk '{ print $1, ($2 ~ /user/ ? "user" : "system") }')
  return 1
}

# The files of the project as they are now, without what was built from them.
source=$work/source
rm -rf "$source"
mkdir -p "$source"
git ls-files -z --cached --others --exclude-standard | grep -zvE '^tests/' \
  | while IFS= read -r -d '' file; do [ ! -f "$file" ] || printf '%s\0' "$file"; done | tar -c --null -T - | tar -x -C "$source"

if gnome_sdk; then
  say "Building against the GNOME runtime $runtime"
  python3 tools/flatpak-manifest.py --gnome org.oxinfer.App.json "$source" "$work/$app.json"
else
  [ -n "$root" ] || die "no remote of this machine offers org.gnome.Sdk//$runtime (Flathub does), and this environment is no Debian root"
  say "No remote of this machine offers org.gnome.Sdk//$runtime; building against the Debian root instead"
  flatpak/debian-runtime.sh "$root" "$work"
  python3 tools/flatpak-manifest.py org.oxinfer.App.json "$source" "$work/$app.json"
fi

flatpak-builder --user --disable-rofiles-fuse --force-clean --state-dir="$work/state" --repo="$work/repo" \
  "$work/build" "$work/$app.json" >&2 || die "the Flatpak could not be built"
flatpak --user remote-add --if-not-exists --no-gpg-verify --no-enumerate oxinfer-app "file://$work/repo" >&2
flatpak --user install -y --noninteractive --reinstall oxinfer-app "$app" >&2 || die "the Flatpak could not be installed"
flatpak build-bundle "$work/repo" oxinfer.flatpak "$app" >&2

tools/flatpak-smoke.sh "$model"
say "Installed for you: flatpak run $app. The bundle is oxinfer.flatpak ($(du -h oxinfer.flatpak | cut -f1))."
