# The catalog, and the runner of its jobs (node runner/main.ts). Node runs the TypeScript sources as they are, so the image has them and the
# packages that they need in production, and nothing was compiled.
#
#   docker build -t tiltyard-catalog .
#   docker run -p 2333:2333 -v tiltyard:/data -e TILTYARD_ALLOW_INSECURE=1 tiltyard-catalog

FROM node:24.21.0-trixie-slim@sha256:8ec5d7557396cfe32d21c3f9c13072355ceab22b584578ca4bb28af31120cffe AS packages
WORKDIR /app
COPY package.json package-lock.json ./
COPY protocol/package.json protocol/
COPY platform/package.json platform/
COPY console/package.json console/
COPY lance-worker/package.json lance-worker/
COPY service/package.json service/
COPY infra/package.json infra/
COPY client/package.json client/
COPY runner/package.json runner/
COPY tiltyard/package.json tiltyard/
COPY test/package.json test/
# Of the workspaces only what the two need.
RUN npm ci --omit=dev --workspace=service --workspace=runner --include-workspace-root=false \
    && npm cache clean --force
# Files that no program reads: types, maps, and SQLite's sources and its builds for other platforms.
RUN find node_modules -type f \( -name '*.map' -o -name '*.d.*ts' \) -delete \
    && find node_modules/better-sqlite3/prebuilds -type f ! -name "linux-$(node -p process.arch).node" -delete \
    && rm -r node_modules/better-sqlite3/deps

# The console is bundled by development dependencies, which the image does not contain.
FROM packages AS console
COPY protocol protocol
COPY console console
RUN npm ci --workspace=console --include-workspace-root=false && node console/build.ts

FROM node:24.21.0-trixie-slim@sha256:8ec5d7557396cfe32d21c3f9c13072355ceab22b584578ca4bb28af31120cffe
# The young generation of other programs, such as the runner.
ENV NODE_ENV=production \
    NODE_OPTIONS=--max-semi-space-size=8 \
    TILTYARD_HOST=0.0.0.0 \
    TILTYARD_PORT=2333 \
    TILTYARD_DATA_DIR=/data \
    MALLOC_ARENA_MAX=2
WORKDIR /app
# The packages of the root, and those of a workspace in another version.
COPY --from=packages /app ./
COPY protocol protocol
COPY console/package.json console/index.ts console/
COPY --from=console /app/console/assets console/assets
COPY lance-worker lance-worker
COPY platform platform
COPY service service
COPY client client
COPY runner runner
RUN mkdir /data && chown node:node /data
# The user `node`, by its number, so that Kubernetes can see that it is not root.
USER 1000:1000
VOLUME /data
EXPOSE 2333
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.TILTYARD_PORT}/health/ready`).then(({ok}) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Half of Node's young generation, and all of it from the start: a small one is collected four times as often. NODE_OPTIONS accepts
# only the maximum.
ENTRYPOINT ["node", "--min-semi-space-size=16", "--max-semi-space-size=16", "service/main.ts"]
CMD ["serve"]
