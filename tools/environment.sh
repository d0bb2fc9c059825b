# shellcheck shell=bash
# Where the project is built: on the host when its libraries are new enough, else in an isolated Debian 13 root.
# Sourced by ./dev. After choose_environment, `enter COMMAND…` runs a command there, in the current directory.
# SPDX-License-Identifier: LGPL-2.1-or-later

ox_cache=${XDG_CACHE_HOME:-$HOME/.cache}/oxinfer
# shellcheck disable=SC2034  # used by dev
ox_models=$ox_cache/models
ox_root_suite=trixie
ox_root_needs_mib=3072

say () { printf '%s\n' "$*" >&2; }
die () { say "dev: $*"; exit 1; }
have () { command -v "$1" >/dev/null 2>&1; }

# The floors: `pkg-config name version`. The same numbers stand in meson.build.
ox_libraries='glib-2.0 2.80
gtk4 4.18
libadwaita-1 1.7
gtksourceview-5 5.12
gstreamer-1.0 1.24
gstreamer-app-1.0 1.24
gstreamer-audio-1.0 1.24
json-glib-1.0 1.6
yyjson 0.9
gmp 6.2
libsoup-3.0 3.4
sqlite3 3.44
md4c 0.5
libsecret-1 0.20'
ox_programs='cc meson ninja pkg-config msgfmt glib-compile-resources desktop-file-validate appstreamcli'

# Prints what the host lacks, one thing a line; nothing when the project can be built on it.
host_lacks () {
  local name floor program
  for program in $ox_programs; do
    have "$program" || echo "$program"
  done
  have pkg-config || return 0
  while read -r name floor; do
    pkg-config --atleast-version="$floor" "$name" 2>/dev/null || echo "$name >= $floor"
  done <<<"$ox_libraries"
}

# The package list without its comments, on one line.
root_packages () {
  sed 's/#.*//' tools/debian-packages.txt | xargs -n 1 | grep -v ':arm64$' | xargs
}

# The libraries for Arm in it, for the tests that run emulated; none on such a machine, which tests itself.
root_arm_packages () {
  [ "$(uname -m)" != aarch64 ] || return 0
  sed 's/#.*//' tools/debian-packages.txt | xargs -n 1 | grep ':arm64$' | xargs
}

# Names the command that installs what the host lacks, where this release of the distribution has it new enough.
advise_host () {
  local id like version
  # shellcheck disable=SC1091
  { id=$(. /etc/os-release && echo "${ID:-}"); like=$(. /etc/os-release && echo "${ID_LIKE:-}"); version=$(. /etc/os-release && echo "${VERSION_ID:-0}"); } 2>/dev/null || return 0
  at_least () { [ "$(printf '%s\n%s\n' "$1" "$version" | sort -V | head -n 1)" = "$1" ]; }
  case " $id $like " in
    *' fedora '*)
      at_least 42 || return 0
      say "To build on Fedora itself:  sudo dnf install gcc clang compiler-rt clang-tools-extra meson ninja-build pkgconf gettext git \
gtk4-devel libadwaita-devel gtksourceview5-devel gstreamer1-devel gstreamer1-plugins-base-devel gstreamer1-plugins-good json-glib-devel \
yyjson-devel gmp-devel libsoup3-devel sqlite-devel sqlite md4c-devel libsecret-devel desktop-file-utils appstream ShellCheck xorg-x11-server-Xvfb \
dbus-daemon dbus-x11 at-spi2-core ImageMagick python3-pip python3-gobject python3-pyatspi python3-dogtail flatpak flatpak-builder" ;;
    *' ubuntu '*)
      at_least 25.04 || return 0
      say "To build on Ubuntu itself:  sudo apt-get install $(root_packages)" ;;
    *' debian '*)
      [ "$id" != debian ] || [ "$version" = 0 ] || at_least 13 || return 0
      say "To build on Debian itself:  sudo apt-get install $(root_packages)" ;;
    *' arch '*)
      say "To build on Arch itself:  sudo pacman -S --needed base-devel clang compiler-rt meson ninja pkgconf gettext git \
gtk4 libadwaita gtksourceview5 gstreamer gst-plugins-base gst-plugins-good json-glib yyjson gmp libsoup3 sqlite md4c libsecret \
desktop-file-utils appstream shellcheck xorg-server-xvfb dbus at-spi2-core imagemagick python-pip python-gobject python-atspi flatpak flatpak-builder" ;;
  esac
}

# Installs or names the programs that build and enter the root.
need_root_tools () {
  local wanted=() packages=()
  have mmdebstrap || { wanted+=(mmdebstrap); packages+=(mmdebstrap); }
  have bwrap || { wanted+=(bwrap); packages+=(bubblewrap); }
  if [ "$(id -u)" != 0 ] && ! have newuidmap; then
    wanted+=(newuidmap); packages+=(uidmap)
  fi
  [ ${#wanted[@]} -gt 0 ] || return 0

  if have apt-get && [ "$(id -u)" = 0 ]; then
    say "Installing ${packages[*]}, needed for the isolated Debian root"
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${packages[@]}"; } >&2 \
      || die "apt-get could not install ${packages[*]}: is the network there? Running ./dev again is safe."
    return 0
  fi
  if have apt-get; then
    die "missing ${wanted[*]}. Please run:  sudo apt-get install ${packages[*]}"
  elif have dnf; then
    die "missing ${wanted[*]}. Please run:  sudo dnf install ${packages[*]/uidmap/shadow-utils}  (or install the libraries named above)"
  elif have pacman; then
    die "missing ${wanted[*]}. Please install the libraries named above; mmdebstrap itself is in the user repository of Arch only."
  fi
  die "missing ${wanted[*]}, which build and enter the isolated Debian root. Please install ${packages[*]} with your package manager."
}

# The Debian mirror that this machine is set up to use; nothing where it is not Debian, and mmdebstrap then takes its default.
debian_mirror () {
  local id codename
  # shellcheck disable=SC1091
  { id=$(. /etc/os-release && echo "${ID:-}"); codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}"); } 2>/dev/null || return 0
  [ "$id" = debian ] && have apt-get || return 0
  # shellcheck disable=SC2016
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null \
    | awk -v release="$codename" '$2 == release && $3 == "main" && $1 ~ /^http/ { print $1; exit }'
}

# Turns the log of a failed build of the root into one sentence.
explain_root_failure () {
  local log=$1
  if grep -qiE 'no space left|not enough free space' "$log"; then
    die "the disk filled up while the Debian root was built in $ox_cache. Free some space and run ./dev again."
  elif grep -qiE 'temporary failure|could not resolve|could not connect|unable to connect|network is unreachable|connection (timed out|refused|failed)|no route' "$log"; then
    die "no network: Debian's packages could not be fetched. Nothing is half done; run ./dev again when you are connected."
  elif grep -qiE 'hash sum mismatch|unexpected size|size mismatch|connection reset|unexpected end of file|failed to fetch' "$log"; then
    die "a download broke off or arrived damaged. Nothing is half done; run ./dev again."
  elif grep -qiE 'newuidmap|newgidmap|subuid|unshare|operation not permitted|uid map' "$log"; then
    die "this machine does not let a plain user create user namespaces, or /etc/subuid has no line for $(id -un).
Either allow it (sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $(id -un); on Ubuntu also
sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0), or run ./dev as root. The whole log: $log"
  elif grep -qiE 'gpg|public key|keyring|not signed' "$log"; then
    die "Debian's signing key is not on this machine: install debian-archive-keyring (Fedora: debian-keyring) and run ./dev again. The whole log: $log"
  fi
  tail -n 15 "$log" >&2
  die "the Debian root could not be built. The whole log: $log. Running ./dev again is safe."
}

# Prints a hook of mmdebstrap that puts the Arm packages beside the others. They are not installed: their scripts could not run
# here, and only the folders that no other architecture has are taken.
unpack_arm_hook () {
  printf '%s\n' 'set -e; mkdir "$1/var/cache/arm"; cd "$1/var/cache/arm"' \
    "APT_CONFIG=\"\$MMDEBSTRAP_APT_CONFIG\" apt-get download -q $1" \
    'for deb in *.deb; do dpkg-deb --fsys-tarfile "$deb" >data.tar; tar -C "$1" -xf data.tar --wildcards "./usr/*/aarch64-linux-gnu/*"; done' \
    'cd /; rm -r "$1/var/cache/arm"'
}

# build_root ROOT: everything happens in ROOT.tmp, which gets its name only when it is complete.
build_root () {
  local root=$1 tmp=$1.tmp log=$1.log free mirror proxy packages arm status
  local -a command
  mkdir -p "$ox_cache"
  need_root_tools
  exec 9>"$ox_cache/root.lock"
  flock -n 9 || { say "Another ./dev is building the Debian root; waiting for it"; flock 9; }
  [ ! -d "$root" ] || return 0

  remove_tree "$tmp"
  free=$(df -Pm "$ox_cache" | awk 'NR == 2 { print $4 }')
  [ "$free" -ge $ox_root_needs_mib ] \
    || die "the isolated Debian root needs $((ox_root_needs_mib / 1024)) GB in $ox_cache, and only $free MB are free there. Free some space, or set XDG_CACHE_HOME to a folder on a larger disk."

  say "Building an isolated Debian 13 root with GTK 4.18 in $root (once; some minutes, about 500 MB to fetch)"
  packages=$(root_packages)
  arm=$(root_arm_packages)
  mirror=$(debian_mirror)
  command=(mmdebstrap --variant=apt --include="$packages" --components=main
           --aptopt='Acquire::Retries "3"'
           --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright'
           --customize-hook='for l in en_US ar_EG; do chroot "$1" localedef -i $l -f UTF-8 $l.UTF-8; done'
           --customize-hook='rm -f "$1/etc/localtime" && touch "$1/etc/localtime"'
           ${arm:+--architectures="$(dpkg --print-architecture),arm64" --customize-hook="$(unpack_arm_hook "$arm")"}
           --customize-hook='rm -rf "$1"/var/cache/apt/archives/*.deb "$1"/var/lib/apt/lists/*')
  if have apt-config; then
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
    [ -z "${proxy:-}" ] || command+=(--aptopt="Acquire::http::Proxy \"$proxy\"")
  fi

  mkdir "$tmp"
  status=0
  # What is started here holds the lock as well: when this script is killed, the next one waits until nobody writes into the tree.
  if [ "$(id -u)" = 0 ]; then
    "${command[@]}" "$ox_root_suite" "$tmp" ${mirror:+"$mirror"} 2>&1 </dev/null | tee "$log" >&2 || status=1
  else
    # Unpacked from a tar file, so that all files belong to the user: the root can be entered and removed without help.
    # In /var/tmp, since /tmp is often a piece of the memory, and the home folder is closed to the user ids inside.
    { TMPDIR=/var/tmp "${command[@]}" --mode=unshare --format=tar "$ox_root_suite" - ${mirror:+"$mirror"} </dev/null \
        | tar -C "$tmp" -x --no-same-owner --exclude='./dev/*'; } 2>&1 | tee "$log" >&2 || status=1
  fi
  if [ $status != 0 ]; then
    remove_tree "$tmp"
    explain_root_failure "$log"
  fi
  # mmdebstrap leaves it empty at its very end; D-Bus wants one.
  printf '%s\n' "$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')" >"$tmp/etc/machine-id"
  mv "$tmp" "$root"
  rm -f "$log"
  flock -u 9
}

# Removes a root, finished or not, folders without write permission included. What a killed build has left mounted in it is
# taken out first, and never entered.
remove_tree () {
  local mounted
  [ -e "$1" ] || return 0
  if [ "$(id -u)" = 0 ]; then
    awk -v tree="$1/" 'index($5, tree) == 1 { print $5 }' /proc/self/mountinfo | sort -r | while read -r mounted; do
      umount -l "$mounted" || true
    done
  fi
  chmod -R u+rwX "$1" 2>/dev/null || true
  rm -rf --one-file-system "$1"
}

# Sets ox_environment (host or root), ox_root and ox_environment_id, and builds the root when it is needed and not there.
choose_environment () {
  local lacks
  case ${OX_DEV_ENVIRONMENT:-} in
    host|root) ox_environment=$OX_DEV_ENVIRONMENT ;;
    '')
      lacks=$(host_lacks)
      if [ -z "$lacks" ]; then ox_environment=host; else ox_environment=root; fi ;;
    *) die "OX_DEV_ENVIRONMENT is $OX_DEV_ENVIRONMENT; it can be host or root" ;;
  esac
  ox_environment_id=host
  [ $ox_environment = root ] || return 0

  ox_environment_id=root-$(printf '%s %s' "$ox_root_suite" "$(root_packages) $(root_arm_packages)" | sha256sum | cut -c1-12)
  ox_root=$ox_cache/$ox_environment_id
  if [ ! -d "$ox_root" ]; then
    if [ -n "${lacks:-}" ]; then
      say "This machine's own libraries are too old or missing ($(echo "$lacks" | paste -sd, | sed 's/,/, /g'))."
      advise_host
    fi
    build_root "$ox_root"
  fi
  have bwrap || need_root_tools
}

# enter COMMAND…: run in the environment, current directory kept.
enter () {
  local -a flags=()
  local entry name
  if [ "$ox_environment" = host ]; then
    "$@"
    return
  fi
  # The host's own /proc, and no process namespace: a sandbox inside (flatpak) may then mount one too, and the lock files of X servers,
  # which name processes in the /tmp that all share, stay true.
  flags=(--bind "$ox_root" / --dev-bind /dev /dev --bind /proc /proc --die-with-parent --ro-bind-try /sys /sys --bind /tmp /tmp
         --ro-bind-try /run/dbus /run/dbus --bind-try "/run/user/$(id -u)" "/run/user/$(id -u)")
  # The host's folders of people's files, at the same paths; of its system nothing but who and where we are.
  for entry in /*; do
    name=${entry#/}
    case $name in
      bin|boot|dev|etc|lib|lib32|lib64|libx32|lost+found|proc|run|sbin|snap|sys|tmp|usr|var) ;;
      *) if [ -d "$entry" ] && [ ! -L "$entry" ]; then flags+=(--bind-try "$entry" "$entry"); fi ;;
    esac
  done
  for entry in "$HOME" "$PWD" "$ox_cache"; do
    if [ -d "$entry" ]; then flags+=(--bind "$(readlink -f "$entry")" "$entry"); fi
  done
  for entry in /etc/resolv.conf /etc/hosts /etc/passwd /etc/group /etc/localtime /etc/ssl/certs/ca-certificates.crt /etc/pip.conf; do
    if [ -f "$entry" ]; then flags+=(--ro-bind "$(readlink -f "$entry")" "$entry"); fi
  done
  for entry in LD_LIBRARY_PATH LD_PRELOAD PYTHONPATH PYTHONHOME GTK_PATH GTK_MODULES GIO_MODULE_DIR GIO_EXTRA_MODULES GSETTINGS_SCHEMA_DIR \
               GST_PLUGIN_PATH GST_PLUGIN_SYSTEM_PATH GDK_PIXBUF_MODULE_FILE PKG_CONFIG_PATH XDG_DATA_DIRS XDG_CONFIG_DIRS LC_ALL; do
    flags+=(--unsetenv "$entry")
  done
  # A locale that the root lacks would make every program in it complain.
  case ${LC_ALL:-${LANG:-}} in
    en_US.UTF-8|ar_EG.UTF-8|C.UTF-8) flags+=(--setenv LANG "${LC_ALL:-$LANG}") ;;
    *) flags+=(--setenv LANG C.UTF-8) ;;
  esac
  flags+=(--setenv PATH /usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin --chdir "$PWD")
  bwrap "${flags[@]}" -- "$@"
}
