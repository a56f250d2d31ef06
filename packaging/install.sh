#!/bin/sh
# Installs mcpd for one user from the archive of a release; `--help` says how.
#
# An archive whose sum is not the one in SHA256SUMS is refused, and nothing is installed. The sums
# come from the same place: they detect damage, not a forged release.
#
# Tried with archives of `cargo xtask dist`, over HTTP on loopback and from a directory, on Linux
# x86_64. Not tried: macOS, arm64, and GitHub, where nothing is released yet.
set -eu

REPOSITORY=https://github.com/mcpd-project/mcpd

print_help() {
  cat <<'HELP'
Installs mcpd for one user, from the archive of a release.

  install.sh               installs ~/.local/bin/mcpd, or replaces an older one
  install.sh --uninstall   removes it; state and configuration stay

Variables:
  MCPD_VERSION        version, such as 0.1.0 [default: the latest release]
  MCPD_BASE_URL       place of the archives and of SHA256SUMS: https://…, http://… or file:///…
  MCPD_INSTALL_DIR    directory for the program [default: ~/.local/bin]
  MCPD_TARGET         target in the name of the archive [default: that of this machine]
HELP
}

fail() {
  echo "error: $*" >&2
  exit 1
}

has() {
  command -v "$1" >/dev/null 2>&1
}

# Prints the target of this machine.
target() {
  case $(uname -m) in
    x86_64 | amd64) processor=x86_64 ;;
    aarch64 | arm64) processor=aarch64 ;;
    *) fail "there is no archive for the processor $(uname -m); build mcpd from its source" ;;
  esac
  case $(uname -s) in
    Linux)
      # Only musl calls its loader so; glibc may be there too, and then either archive runs.
      if ! has getconf || ! getconf GNU_LIBC_VERSION >/dev/null 2>&1; then
        set -- /lib/ld-musl-*
        if [ -e "$1" ]; then
          echo "$processor-unknown-linux-musl"
          return
        fi
      fi
      echo "$processor-unknown-linux-gnu"
      ;;
    Darwin) echo "$processor-apple-darwin" ;;
    *) fail "there is no archive for $(uname -s); build mcpd from its source" ;;
  esac
}

# download URL FILE
download() {
  case $1 in
    file://*) cp "${1#file://}" "$2" ;;
    *)
      if has curl; then
        curl --fail --silent --show-error --location --output "$2" "$1"
      elif has wget; then
        wget -q -O "$2" "$1"
      else
        fail "neither curl nor wget is installed; install one of them"
      fi
      ;;
  esac || fail "$1 can't be downloaded"
}

# Prints the SHA-256 sum of a file.
sum() {
  if has sha256sum; then
    sha256sum "$1"
  elif has shasum; then
    shasum -a 256 "$1"
  elif has openssl; then
    openssl dgst -sha256 -r "$1"
  else
    fail "none of sha256sum, shasum and openssl is installed, and an archive must be checked"
  fi | cut -d ' ' -f 1
}

install_mcpd() {
  target=${MCPD_TARGET:-$(target)}
  temporary=$(mktemp -d)
  trap 'rm -rf "$temporary"' EXIT
  trap 'exit 1' HUP INT TERM

  download "$base/SHA256SUMS" "$temporary/SHA256SUMS"
  # The version is part of the name, and the latest one is not known before.
  line=$(grep -E "^[0-9a-f]{64}  mcpd-[^ /]*-$target\.tar\.gz\$" "$temporary/SHA256SUMS" | tail -n 1) ||
    fail "$base has no archive for $target"
  [ -n "$line" ] || fail "$base has no archive for $target"
  archive=${line#*  }
  download "$base/$archive" "$temporary/$archive"
  found=$(sum "$temporary/$archive")
  expected=${line%% *}
  [ "$found" = "$expected" ] ||
    fail "$archive is damaged or not the released one: its SHA-256 sum is $found, not $expected; nothing was installed"

  tar -xzf "$temporary/$archive" -C "$temporary"
  program=$temporary/${archive%.tar.gz}/mcpd
  version=$("$program" --version) ||
    fail "the mcpd of $archive does not start on this system; on an old Linux, MCPD_TARGET=${target%-gnu}-musl may"
  mkdir -p "$directory"
  # Moved into place: a running mcpd keeps its own file, and no half of one is ever there.
  cp "$program" "$directory/.mcpd.new"
  mv "$directory/.mcpd.new" "$directory/mcpd"
  echo "$version is installed in $directory"
  case :$PATH: in
    *":$directory:"*) ;;
    *) echo "$directory is not in PATH: add it in the profile of your shell" ;;
  esac
}

uninstall_mcpd() {
  [ -e "$directory/mcpd" ] || fail "there is no mcpd in $directory"
  rm "$directory/mcpd"
  # Only if nothing else is in it.
  rmdir "$directory" 2>/dev/null || true
  echo "mcpd is removed from $directory"
  state=${XDG_STATE_HOME:-$HOME/.local/state}/mcpd
  [ ! -e "$state" ] || echo "its state stays in $state: tokens, the cache of scripts, audit logs"
}

# All of the script is read before anything runs, in case its download was cut short.
main() {
  directory=${MCPD_INSTALL_DIR:-$HOME/.local/bin}
  if [ -n "${MCPD_BASE_URL:-}" ]; then
    base=${MCPD_BASE_URL%/}
  elif [ -n "${MCPD_VERSION:-}" ]; then
    base=$REPOSITORY/releases/download/v$MCPD_VERSION
  else
    base=$REPOSITORY/releases/latest/download
  fi
  case $#${1:-} in
    0) install_mcpd ;;
    1--uninstall) uninstall_mcpd ;;
    1--help | 1-h) print_help ;;
    *) fail "unknown arguments: $*; see --help" ;;
  esac
}

main "$@"
