/** Whatever is written into an account, clients can read the whole list of an agent's tools. */
import { expect } from "chai";
import fc from "fast-check";
import { ListToolsResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { createClient } from "../../../client";
import { actionTools } from "../../../client/cli/mcpActions";
import { keyIdOf, type ApiKey } from "../../../protocol/ids";
import { SEED, count } from "../../support/counts";

const KEY = Buffer.alloc(32, 7).toString("base64");

interface Written {
  readonly name: string;
  readonly description: string;
}

interface Listed extends Written {
  readonly inputSchema: unknown;
}

/** The tools of these actions as a client receives them; the lists come from a service that has just these. */
async function listed(actions: readonly Written[]): Promise<Listed[]> {
  const lists: Record<string, unknown[]> = {
    list_api_keys: [{ api_key_hash: keyIdOf(KEY as ApiKey), execute_in_groups: ["1"] }],
    list_actions: actions.map((action, at) => ({ ...action, action_ipfs_cid: `Qm${String(at).padStart(44, "a")}` })),
  };
  const fetch = (url: unknown): Promise<Response> => {
    const items = lists[/\/core\/v1\/(\w+)/.exec(String(url))?.[1] ?? ""] ?? [];
    return Promise.resolve(Response.json(items, { headers: { "x-total-count": String(items.length) } }));
  };
  const tools = await actionTools(createClient({ baseUrl: "http://127.0.0.1", apiKey: KEY, fetch }), KEY);
  return JSON.parse(JSON.stringify(tools.map(({ tool }) => tool))) as unknown[] as Listed[];
}

/** As deep as parsers in other languages read, and of text that has a UTF-8 form. */
function problemOf(value: unknown, depth = 0): string | undefined {
  if (typeof value === "string") return value.isWellFormed() ? undefined : "half a surrogate pair";
  if (typeof value !== "object" || value === null) return undefined;
  if (depth > 100) return "nested too deeply";
  const parts = Object.entries(value).flatMap(([name, part]) => [name, part as unknown]);
  return parts.map((part) => problemOf(part, depth + 1)).find((problem) => problem !== undefined);
}

function expectReadable(tools: readonly Listed[]): void {
  const { error } = ListToolsResultSchema.safeParse({ tools });
  expect(error?.message).to.equal(undefined);
  expect(problemOf(tools)).to.equal(undefined);
  expect(new Set(tools.map(({ name }) => name)).size).to.equal(tools.length);
  for (const { name } of tools) expect(name).to.match(/^[a-zA-Z0-9_-]{1,64}$/);
}

const text = fc.string({ unit: "binary", maxLength: 80 });
const schemaLike = fc.record(
  {
    type: fc.oneof({ weight: 9, arbitrary: fc.constant("object") }, fc.jsonValue()),
    properties: fc.oneof(fc.dictionary(text, fc.jsonValue()), fc.jsonValue()),
    required: fc.oneof(fc.array(text), fc.jsonValue()),
    more: fc.jsonValue(),
  },
  { requiredKeys: ["type"] },
);
const described = fc.oneof(
  text,
  fc.tuple(text, schemaLike).map(([before, schema]) => `${before.replaceAll("{", "")} ${JSON.stringify(schema)}`),
);

describe("the tools of an account's actions", () => {
  it("can be read by clients, whatever the names and descriptions are", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ name: text, description: described }), { maxLength: 8 }),
        async (actions) => {
          const tools = await listed(actions);
          expect(tools.length).to.equal(actions.filter(({ name }) => name !== "").length);
          expectReadable(tools);
        },
      ),
      { seed: SEED, numRuns: count(300, 20_000) },
    ));

  it("have the parameters that a description states, and none where it states what is no schema", async () => {
    const nested = `${'{"type":"object","items":'.repeat(40)}{}${"}".repeat(40)}`;
    const stated = [
      ['{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"title":"t"}', true],
      ['{"type":"object"}', true],
      ['{"type":"object","properties":{"a":true}}', false],
      ['{"type":"object","properties":["a"]}', false],
      ['{"type":"object","properties":null}', false],
      ['{"type":"object","required":"a"}', false],
      ['{"type":"object","required":[1]}', false],
      ['{"type":"object","title":"\\ud800"}', false],
      ['{"type":"object","properties":{"\\udfff":{}}}', false],
      [nested, true],
      [`{"type":"object","default":${"[".repeat(200)}${"]".repeat(200)}}`, false],
      ['{"type":"array"}', false],
      ["{", false],
    ] as const;
    const tools = await listed(stated.map(([schema], at) => ({ name: `n${at}`, description: `Pays. ${schema}` })));
    expectReadable(tools);
    for (const [at, [schema, isOne]] of stated.entries()) {
      expect(tools[at]?.inputSchema, schema).to.deep.equal(isOne ? JSON.parse(schema) : { type: "object" });
      expect(tools[at]?.description.endsWith(' Description: "Pays.".'), schema).to.equal(isOne);
    }
  });
});
