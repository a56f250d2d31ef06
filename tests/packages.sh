# Sourced by what needs programs of the npm registry.

# npm_packages PROJECT DIRECTORY: installs into DIRECTORY what PROJECT/package-lock.json pins.
# What is there already is left alone, and then no network is needed.
npm_packages() {
  cmp -s "$1/package-lock.json" "$2/installed-from" && return
  rm -rf "${2:?}"
  mkdir "$2"
  cp "$1/package.json" "$1/package-lock.json" "$2"
  npm ci --prefix "$2" --ignore-scripts --no-audit --no-fund --silent >&2 || return
  cp "$1/package-lock.json" "$2/installed-from"
}
