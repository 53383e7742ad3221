import tseslint from "typescript-eslint";

/** Written by tests: each holds whole programs as strings. */
const GENERATED = ["client/policyTemplates.ts", "client/standardActions.ts"];

export default tseslint.config(
  {
    ignores: [
      "node_modules",
      "dist",
      "artifacts",
      "cache",
      "typechain-types",
      "examples",
      "policies",
      "client/standard",
      "coverage",
      "**/*.cjs",
    ],
  },
  ...tseslint.configs.strict,
  {
    rules: {
      "@typescript-eslint/no-explicit-any": "error",
      "@typescript-eslint/no-non-null-assertion": "error",
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
      "@typescript-eslint/consistent-type-imports": ["error", { fixStyle: "inline-type-imports" }],
      "max-lines-per-function": ["error", { max: 70, skipBlankLines: true, skipComments: true }],
      complexity: ["error", 14],
      "max-len": ["error", { code: 120 }],
      eqeqeq: "error",
      "prefer-const": "error",
      "no-empty": "error",
      "no-restricted-syntax": [
        "error",
        {
          selector:
            ":matches(TSParameterProperty, PropertyDefinition, MethodDefinition[kind!='constructor'])" +
            "[accessibility='private']",
          message: "Private members are # members.",
        },
      ],
    },
  },
  {
    files: GENERATED,
    rules: { "max-len": "off" },
  },
  {
    // Only config.ts reads the environment.
    files: ["relayer/**/*.ts", "executor/**/*.ts", "protocol/**/*.ts", "client/**/*.ts"],
    ignores: ["**/config.ts"],
    rules: {
      "no-restricted-properties": [
        "error",
        { object: "process", property: "env", message: "Only config.ts reads the environment." },
      ],
      "no-console": "error",
    },
  },
  {
    files: ["test/**/*.ts"],
    ignores: ["test/support/needs.ts"],
    rules: {
      "no-restricted-properties": [
        "error",
        ...["skip", "only"].map((property) => ({ property, message: "Tests are left out by needs() alone." })),
      ],
    },
  },
  {
    // The bundler loads a module lazily where it is required.
    files: ["executor/sandbox/guest/web/globals.ts"],
    rules: { "@typescript-eslint/no-require-imports": "off" },
  },
  {
    // Modules that only one command needs are loaded when it runs.
    files: ["client/cli/{mcp,policy,receipt,run,verify}.ts", "client/project/build.ts"],
    rules: { "@typescript-eslint/no-require-imports": "off" },
  },
  {
    // The length of a component is mostly markup.
    files: ["dashboard/**/*.tsx"],
    rules: { "max-lines-per-function": ["error", { max: 100, skipBlankLines: true, skipComments: true }] },
  },
  {
    // Describe blocks contain whole test suites.
    files: ["test/**/*.ts"],
    rules: { "max-lines-per-function": "off", "@typescript-eslint/no-unused-expressions": "off" },
  },
);
