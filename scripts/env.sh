# Every npm script begins with this: it installs missing or stale packages and puts the project's own Node into PATH.
KEYWRIGHT_NODE="$(node scripts/setup.mjs)" || exit 1
PATH="$KEYWRIGHT_NODE:$PWD/node_modules/.bin:$PATH"
export PATH
unset KEYWRIGHT_NODE
