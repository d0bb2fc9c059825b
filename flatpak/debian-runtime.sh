#!/usr/bin/env bash
# Exports the /usr of the isolated Debian root as a Flatpak runtime and SDK, for machines where the GNOME ones cannot be
# fetched: debian-runtime.sh ROOT WORK. Installs both for the user as org.oxinfer.Debian.{Platform,Sdk}.
# SPDX-License-Identifier: LGPL-2.1-or-later
set -euo pipefail
root=${1:?usage: debian-runtime.sh ROOT WORK}
work=${2:?usage: debian-runtime.sh ROOT WORK}
branch=13
arch=$(flatpak --default-arch)
stamp=$work/runtime-of-$(basename "$root")

# The name of the root says which packages are in it: nothing to do when that runtime is installed.
if [ -f "$stamp" ] && flatpak --user info "org.oxinfer.Debian.Sdk//$branch" >/dev/null 2>&1 \
   && flatpak --user info "org.oxinfer.Debian.Platform//$branch" >/dev/null 2>&1; then
  exit 0
fi
echo 'Exporting the Debian root as a Flatpak runtime and SDK' >&2
rm -rf "$work/runtime" "$work/runtime-repo" "$work"/runtime-of-*
mkdir -p "$work/runtime/files"

# The tree is only read: hard links cost neither time nor space, a copy where the file system has none.
cp -al "$root/usr" "$work/runtime/usr" 2>/dev/null || { rm -rf "$work/runtime/usr"; cp -a "$root/usr" "$work/runtime/usr"; }
rm -rf "$work/runtime/usr/local" "$work/runtime/usr/src" "$work/runtime/usr/share/doc" "$work/runtime/usr/share/info"
# Flatpak shows a runtime's /usr/etc as /etc, and adds who and where we are itself.
cp -a "$root/etc" "$work/runtime/usr/etc"
for file in passwd group shadow gshadow; do rm -f "$work/runtime/usr/etc/$file" "$work/runtime/usr/etc/$file-"; done
for file in machine-id resolv.conf hosts hostname localtime mtab ld.so.cache; do rm -f "$work/runtime/usr/etc/$file"; done
# Flatpak mounts extensions and the fonts of the host on folders that must be there.
mkdir -p "$work/runtime/usr/share/runtime/locale" "$work/runtime/usr/lib/extensions"

ostree init --repo="$work/runtime-repo" --mode=bare-user-only
# Platform and SDK are one tree: ostree stores it once.
for name in Platform Sdk; do
  cat >"$work/runtime/metadata" <<METADATA
[Runtime]
name=org.oxinfer.Debian.$name
runtime=org.oxinfer.Debian.Platform/$arch/$branch
sdk=org.oxinfer.Debian.Sdk/$arch/$branch
METADATA
  flatpak build-export --runtime "$work/runtime-repo" "$work/runtime" "$branch" >&2
done
rm -rf "$work/runtime"

flatpak --user remote-add --if-not-exists --no-gpg-verify --no-enumerate oxinfer-debian "file://$work/runtime-repo" >&2
flatpak --user remote-modify --url="file://$work/runtime-repo" oxinfer-debian >&2
for name in Platform Sdk; do
  flatpak --user uninstall -y --force-remove "org.oxinfer.Debian.$name//$branch" >/dev/null 2>&1 || true
  flatpak --user install -y --noninteractive oxinfer-debian "org.oxinfer.Debian.$name//$branch" >&2
done
touch "$stamp"
