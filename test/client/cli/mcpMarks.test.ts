/** What agents are told not to follow: each member of a tool's answer that somebody else may have written. */
import { expect } from "chai";
import { z } from "zod";
import { routeOf, type RouteName } from "../../../protocol/http";
import { agentTools, WRITTEN_BY_OTHERS } from "../../../client/cli/mcpServer";
import type { JsonSchema } from "../../../client/cli/spec";

/** Texts that the service makes itself or takes in a closed form only: ids, times, hashes, codes, statements. */
const OWN = new Set([
  ...["id", "request_id", "trigger_id", "cursor", "next", "publishable_key"],
  ...["action_ipfs_cid", "params_sha256", "receipt_sha256", "receipt", "statement", "hook_secret"],
  ...["created_at", "last_fired_at", "next_due_at", "due_at", "started_at", "ended_at", "day"],
  ...["kind", "cause", "outcome", "last_outcome", "reason", "code", "result", "error", "denied_ops", "balance_display"],
  // Of a trigger's definition: validated when it is made.
  ...["cron", "time_zone", "missed", "address", "topics", "verification", "path"],
  ...["ethereum", "solana", "bitcoin_p2tr", "bitcoin_testnet_p2tr"],
  // The answer itself, of getActionIpfsId: a CID.
  "",
]);

/** What the operator says of the service, the same for every account. */
const ABOUT_THE_SERVICE = new Set(["Service", "Configuration"]);

/** The members in which any text may stand; in a map or a list it stands in the member that holds it. */
function freeTexts(schema: JsonSchema, name = ""): string[] {
  const { properties = {}, items, additionalProperties, anyOf = [] } = schema;
  const parts = [items, additionalProperties, ...(anyOf as JsonSchema[])].filter(
    (part): part is JsonSchema => typeof part === "object" && part !== null,
  );
  const inner = [
    ...Object.entries(properties).flatMap(([member, part]) => freeTexts(part, member)),
    ...parts.flatMap((part) => freeTexts(part, name)),
  ];
  const isClosed = ["pattern", "format", "enum", "const", "anyOf"].some((key) => key in schema);
  const takesText = [schema.type ?? "string"].flat().includes("string");
  return takesText && !isClosed ? [name, ...inner] : inner;
}

const answerOf = (name: string): JsonSchema =>
  z.toJSONSchema(routeOf(name as RouteName).response, { io: "output", unrepresentable: "any" }) as JsonSchema;

describe("the mark of what others wrote", () => {
  const free = new Map<string, string[]>();
  before(() => {
    for (const { name } of agentTools(true))
      if (!ABOUT_THE_SERVICE.has(routeOf(name as RouteName).tag))
        for (const member of freeTexts(answerOf(name))) free.set(member, [...(free.get(member) ?? []), name]);
  });

  it("is given for every member of free text, in the answers of all tools", () => {
    expect([...free.keys()]).to.include.members(["name", "error_message", "origins", "response", "logs"]);
    for (const [member, tools] of free) {
      const isMarked = WRITTEN_BY_OTHERS.test(JSON.stringify({ items: [{ [member]: "x" }] }, null, 2));
      expect(isMarked || OWN.has(member), `${member} of ${tools.join(", ")}`).to.equal(true);
    }
  });

  it("is left out only for members that exist", () => {
    for (const member of OWN) expect([...free.keys()]).to.include(member);
  });
});
