# Every npm script begins with this: it installs missing or stale packages and puts the project's own Node into PATH.
KEYWRIGHT_NODE="$(node scripts/setup.mjs)" || exit 1
PATH="$KEYWRIGHT_NODE:$PWD/node_modules/.bin:$PATH"
# Compiled code of packages is kept between processes: starting one takes half the time.
NODE_COMPILE_CACHE="${NODE_COMPILE_CACHE-$PWD/node_modules/.cache/compiled}"
export PATH NODE_COMPILE_CACHE
unset KEYWRIGHT_NODE
