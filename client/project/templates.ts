/** The files of a new project. */

export function newProject(
  name: string,
  versions: Readonly<Record<"keywright" | "ethers" | "isolatedVm" | "esbuild" | "typescript" | "mocha", string>>,
): Record<string, string> {
  const scripts = {
    build: "keywright build",
    dev: "keywright dev sign",
    test: "keywright test",
    deploy: "keywright deploy",
    types: "tsc --noEmit",
  };
  const devDependencies = {
    "@types/mocha": "^10.0.10",
    "@types/node": "^24.0.0",
    esbuild: versions.esbuild,
    ethers: versions.ethers,
    keywright: versions.keywright,
    mocha: versions.mocha,
    typescript: versions.typescript,
  };
  // Only for runs on this machine, and for Node 24: an older Node leaves it out and builds and deploys without it.
  const optionalDependencies = { "isolated-vm": versions.isolatedVm };
  const description = { name, private: true, type: "module", scripts, devDependencies, optionalDependencies };
  return {
    "package.json": `${JSON.stringify(description, null, 2)}\n`,
    ".gitignore": "node_modules\nkeywright.secrets.json\n",
    "tsconfig.json": `${JSON.stringify(TSCONFIG, null, 2)}\n`,
    "keywright.config.ts": CONFIG,
    "actions/sign.ts": ACTION,
    "test/sign.test.ts": TEST,
    ".github/workflows/check.yml": CI,
    "README.md": README.replace("NAME", name),
  };
}

const TSCONFIG = {
  compilerOptions: {
    target: "es2022",
    lib: ["es2023", "webworker"],
    module: "nodenext",
    moduleResolution: "nodenext",
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: ["keywright/action", "mocha", "node"],
  },
  include: ["keywright.config.ts", "actions", "test"],
};

const CONFIG = `import { defineConfig } from "keywright/config";

export default defineConfig({
  actions: { sign: { file: "actions/sign.ts", description: "signs greetings" } },
  pkps: { greeter: {} },
  groups: { greeting: { actions: ["sign"], pkps: ["greeter"] } },
  keys: { bot: { execute: ["greeting"] } },
});
`;

const ACTION = `export interface Params {
  pkpId: string;
  name: string;
}

/** Signs a greeting and nothing else, whatever its caller passes. */
export default async function main({ pkpId, name }: Params) {
  if (!/^[a-zA-Z ]{1,40}$/.test(name)) throw new Error("name must be 1 to 40 letters and spaces");
  const message = \`Hello, \${name}!\`;
  return { message, signature: await Actions.signMessage({ pkpId, message }) };
}
`;

const TEST = `import assert from "node:assert/strict";
import { verifyMessage } from "ethers";
import { localAction, type LocalAction } from "keywright/testing";
import type { Params } from "../actions/sign.ts";

describe("sign", () => {
  let sign: LocalAction<Params, { message: string; signature: string }>;
  before(async () => {
    sign = await localAction("sign");
  });
  after(() => sign.close());

  it("signs a greeting with the PKP", async () => {
    const { response, recorded } = await sign.run({ name: "World" });
    assert.equal(verifyMessage("Hello, World!", response.signature), sign.pkpId);
    assert.deepEqual(recorded.map((one) => one.kind), ["op"]);
  });

  it("signs nothing else", async () => {
    await assert.rejects(sign.run({ name: "0x00" }), /name must be/);
  });
});
`;

const CI = `on: [push, pull_request]
jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-node@v4
        with: { node-version: 24 }
      - run: npm ci
      - run: npm run types
      - run: npm test
      - run: npm run build
      - run: git diff --exit-code # built files, and with them the CIDs, are committed
`;

const README = `# NAME

Actions for Keywright.

| Command | Does |
| --- | --- |
| \`npx --no -- keywright dev sign --params '{"name": "World"}'\` | runs the action in the real sandbox on every save |
| \`npx --no -- keywright test\` | runs the tests, in the same sandbox |
| \`npx --no -- keywright build\` | makes \`build/*.js\`, whose CIDs are what groups list |
| \`npx --no -- keywright deploy\` | shows what \`keywright.config.ts\` changes in the account, and applies it |
`;
