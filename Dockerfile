# One image for relayer and executor. The base is given by the builder and has to be pinned by digest: node:24-bookworm-slim@sha256:… (the build refuses
# anything else). docs/operations.md, "Images".
ARG NODE_IMAGE

FROM ${NODE_IMAGE} AS build
ARG NODE_IMAGE
RUN case "$NODE_IMAGE" in *@sha256:????????????????????????????????????????????????????????????????) ;; \
    *) echo "NODE_IMAGE must be pinned by digest: --build-arg NODE_IMAGE=node:24-bookworm-slim@sha256:<64 hex digits>" >&2; exit 1 ;; esac
RUN apt-get update && apt-get install -y --no-install-recommends python3 make g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --no-audit --no-fund
COPY . .
# The doubles of development are no part of an image.
RUN node scripts/build.mjs && rm -rf dist/scripts/dev/tee dist/scripts/dev/stripe && npm prune --omit=dev

FROM ${NODE_IMAGE} AS service
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY --from=build /app/deployments ./deployments

# Talks REST, the chain, the payment processor and PostgreSQL; holds no key. Group 61000 shares the executor's socket.
FROM service AS relayer
USER 61001:61000
EXPOSE 8000 9464
HEALTHCHECK --interval=10s --timeout=3s CMD ["node", "-e", "fetch('http://127.0.0.1:8000/health').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--enable-source-maps", "dist/relayer/main.js"]

# Starts as root to give each kind of process a user, a network namespace and no capabilities of its own; production refuses to start when that fails.
FROM service AS executor
CMD ["node", "--enable-source-maps", "dist/executor/main.js"]
