# Every npm script begins with this: packages are installed when they are missing or stale, and `node` is the project's own from here on.
KEYWRIGHT_NODE="$(node scripts/setup.mjs)" || exit 1
PATH="$KEYWRIGHT_NODE:$PWD/node_modules/.bin:$PATH"
export PATH
unset KEYWRIGHT_NODE
