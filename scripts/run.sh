# Runs a program of this project on what the sources say now: packages installed, the project's own Node, dist/ built.
. ./scripts/env.sh
node scripts/build.mjs && exec "$@"
