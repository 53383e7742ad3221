// Import rules (ARCHITECTURE.md, "Import rules").
const never = (name, from, to, comment) => ({ name, severity: "error", comment, from, to });

module.exports = {
  forbidden: [
    never("executor-without-relayer", { path: "^executor/" }, { path: "^relayer/" }, "rule 1"),
    never("relayer-without-executor", { path: "^relayer/" }, { path: "^executor/" }, "rule 1: they share protocol"),
    never(
      "ingress-stands-alone",
      { path: "^ingress/" },
      { path: "^(relayer|executor|client|scripts)/" },
      "rule 1: the ingress shares protocol only",
    ),
    never(
      "guest-processes-hold-no-keys",
      { path: "^executor/(sandbox|fetcher)/" },
      { path: "^executor/(keys|ops)/" },
      "rule 2",
    ),
    never(
      "one-importer-of-isolated-vm",
      { pathNot: "^executor/sandbox/isolate\\.ts$" },
      { path: "node_modules/isolated-vm" },
      "rule 3",
    ),
    never(
      "tee-library-in-its-folder",
      { path: "^(relayer|protocol|executor)/", pathNot: "^executor/(keys|tee)/" },
      { path: "node_modules/@phala/dstack-sdk" },
      "rule 3",
    ),
    never(
      "root-key-in-its-folder",
      { path: "^executor/(sandbox|fetcher|chain)/" },
      { path: "^executor/keys/" },
      "rule 3",
    ),
    never(
      "koa-in-http-only",
      { path: "^(relayer|executor|protocol|client)/", pathNot: "^relayer/(app\\.ts|routes/|middleware/)" },
      { path: "node_modules/(koa|@koa)/" },
      "rule 4",
    ),
    never("credits-without-chain", { path: "^relayer/credits/" }, { path: "^relayer/chain/" }, "rule 5"),
    never("chain-without-credits", { path: "^relayer/chain/" }, { path: "^relayer/credits/" }, "rule 5"),
    never("routes-without-store", { path: "^relayer/routes/" }, { path: "^relayer/store/" }, "rule 7"),
    never("no-imports-of-scripts", { path: "^(relayer|executor|protocol|client)/" }, { path: "^scripts/" }, "rule 7"),
    never(
      "protocol-imports-no-component",
      { path: "^protocol/" },
      { path: "^(relayer|executor|client|scripts|test)/" },
      "rule 8",
    ),
    never(
      "client-stands-alone",
      { path: "^client/" },
      { path: "^(relayer|executor)/" },
      "the SDK shares protocol only",
    ),
    never("projects-below-the-program", { path: "^client/project/" }, { path: "^client/cli/" }, "a library of the CLI"),
    never("dashboard-over-the-sdk", { path: "^dashboard/" }, { path: "^(relayer|executor|scripts|test)/" }, "rule 9"),
    never(
      "dashboard-stands-alone",
      { path: "^(relayer|executor|protocol|client|scripts)/" },
      { path: "^dashboard/" },
      "rule 9",
    ),
    never("no-cycles", {}, { circular: true, viaOnly: { pathNot: "typechain-types" } }, "no import cycles"),
  ],
  options: {
    tsConfig: { fileName: "tsconfig.json" },
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    exclude: { path: "^(dist|artifacts|cache|typechain-types)/" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["require", "node", "import", "types", "default"],
    },
  },
};
