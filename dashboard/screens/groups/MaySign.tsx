import { useQueries } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Members } from "../../app/queries";
import { quoted, short } from "../../components/text";
import { codeOf } from "../actions/codes";
import { ANY_ACTION } from "../pkps/uses";

/** What the group's actions may sign: for policies their rules, for other code that it decides by itself. */
export function MaySign({ members }: { readonly members: Members }): ReactNode {
  const { actions, pkps } = members;
  const told = useQueries({
    queries: actions.map(({ action_ipfs_cid: cid }) => ({
      queryKey: ["rules", cid],
      queryFn: () => rulesOf(cid),
    })),
  });
  if (actions.length === 0 || pkps.length === 0) return null;
  return (
    <section className="stack" aria-label="What its actions may sign">
      <h2>What its actions may sign</h2>
      <ul className="lines">
        {actions.map(({ hashed_cid: hash, action_ipfs_cid: cid, name, description }, at) => (
          <li key={hash}>
            <Link className="name" to="/actions/$action" params={{ action: hash }}>
              {hash === ANY_ACTION ? "Any code" : name || short(cid ?? hash)}
            </Link>
            <span>{told[at]?.data ?? (hash === ANY_ACTION ? "Anything at all." : unknown(description))}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

const unknown = (description: string): string =>
  description === ""
    ? "Whatever its code decides. Open it to read the code."
    : `${quoted(description, "")}, says its description. Open it to read the code.`;

/** In this tab's knowledge of code only; null where that does not reach. */
async function rulesOf(cid: string | undefined): Promise<string | null> {
  const code = cid === undefined ? null : await codeOf(cid);
  if (code === null) return null;
  const { config } = await import("zod");
  // Without this zod probes for eval, which this page's CSP forbids and reports.
  config({ jitless: true });
  const { readPolicy } = await import("../../../client/policies");
  const policy = await readPolicy(code);
  if (policy === undefined) return "Whatever its code decides.";
  return (await import("../policies/sentences")).policySentences(policy).join(" ");
}
