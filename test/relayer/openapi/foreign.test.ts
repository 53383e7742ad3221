/**
 * The OpenAPI document in third-party tools: a linter's recommended rules, and two generators whose clients compile and
 * run the first-run flow.
 */
import { expect } from "chai";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { useStack } from "../../support/stack";

const ROOT = join(__dirname, "..", "..", "..");
const BIN = join(ROOT, "node_modules", ".bin");

const FETCH_CLIENT = `
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

export async function journey(baseUrl: string): Promise<unknown[]> {
  const open = createClient<paths>({ baseUrl });
  const body = { account_name: "Stranger", account_description: "" };
  const account = await open.POST("/core/v1/new_account", { body });
  const key = account.data?.api_key;
  if (key === undefined) throw new Error("no key");
  const client = createClient<paths>({ baseUrl, headers: { "X-Api-Key": key } });
  const group = await client.POST("/core/v1/add_group", { body: { group_name: "g", group_description: "" } });
  const id: string | undefined = group.data?.group_id;
  const list = await client.GET("/core/v1/list_groups", { params: { query: { page_size: 10 } } });
  const gone = await client.POST("/core/v1/remove_group", { body: { group_id: "99" } });
  const code: string | undefined = gone.error?.code;
  // @ts-expect-error there is no such member
  list.data?.[0]?.colour;
  return [id, list.data?.[0]?.name, list.data?.[0]?.pkp_count, code];
}
`;
const HEY_CLIENT = `
import { addGroup, listGroups, newAccount, removeGroup } from "./hey/sdk.gen.js";

export async function journey(baseUrl: string): Promise<unknown[]> {
  const account = await newAccount({ baseUrl, body: { account_name: "Stranger", account_description: "" } });
  const auth = () => account.data?.api_key ?? "";
  const group = await addGroup({ baseUrl, auth, body: { group_name: "g", group_description: "" } });
  const list = await listGroups({ baseUrl, auth, query: { page_size: 10 } });
  const gone = await removeGroup({ baseUrl, auth, body: { group_id: "99" } });
  return [group.data?.group_id, list.data?.[0]?.name, list.data?.[0]?.pkp_count, gone.error?.code];
}
`;
const OPTIONS = {
  target: "es2022",
  lib: ["es2023", "dom", "dom.iterable"],
  module: "nodenext",
  moduleResolution: "nodenext",
  strict: true,
  noEmitOnError: true,
  skipLibCheck: true,
  types: [],
};

describe("the OpenAPI document in third-party tools", function () {
  this.timeout(120_000);
  const stack = useStack();
  let folder: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "openapi-"));
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
    const answer = await fetch(`${stack().baseUrl}/core/v1/openapi.json`);
    writeFileSync(join(folder, "openapi.json"), await answer.text());
    writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  function run(command: string, ...args: string[]): void {
    const { status, stdout, stderr } = spawnSync(command, args, { cwd: folder, encoding: "utf8" });
    expect(status, stdout + stderr).to.equal(0);
  }
  async function compiledJourney(file: string, source: string): Promise<unknown[]> {
    writeFileSync(join(folder, `${file}.ts`), source);
    writeFileSync(join(folder, `${file}.json`), JSON.stringify({ compilerOptions: OPTIONS, files: [`${file}.ts`] }));
    run(process.execPath, join(ROOT, "node_modules", "typescript", "bin", "tsc"), "-p", `${file}.json`);
    const { journey } = (await import(join(folder, `${file}.js`))) as {
      journey: (baseUrl: string) => Promise<unknown[]>;
    };
    return journey(stack().baseUrl);
  }

  // The specified path of the evidence listing ends with a slash.
  it("passes the recommended rules of a linter, except for one path that the specification requires", () =>
    run(
      join(BIN, "redocly"),
      "lint",
      "--extends",
      "recommended",
      "--skip-rule",
      "no-path-trailing-slash",
      "openapi.json",
    ));

  it("gives a client by openapi-typescript that compiles and runs the first-run flow", async () => {
    run(join(BIN, "openapi-typescript"), "openapi.json", "-o", "schema.d.ts");
    expect(await compiledJourney("fetch", FETCH_CLIENT)).to.deep.equal(["1", "g", 0, "unknown_group"]);
  });

  it("gives a client by @hey-api/openapi-ts that compiles and runs the first-run flow", async () => {
    run(
      join(BIN, "openapi-ts"),
      "-i",
      "openapi.json",
      "-o",
      "hey",
      "-p",
      "@hey-api/typescript",
      "@hey-api/sdk",
      "@hey-api/client-fetch",
    );
    expect(await compiledJourney("heyClient", HEY_CLIENT)).to.deep.equal(["1", "g", 0, "unknown_group"]);
  });
});
