# Runs a program of this project from the present sources: installs packages, selects the project's Node, builds dist/.
. ./scripts/env.sh
node scripts/build.mjs && exec "$@"
