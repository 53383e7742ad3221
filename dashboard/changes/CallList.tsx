import type { ReactNode } from "react";
import type { DecodedCall } from "../../client";
import { Facts } from "../components/elements";

type Arg = DecodedCall["args"][number];

/** Calls that are signed, each with its arguments by name. */
export function CallList({
  calls,
  show,
}: {
  readonly calls: readonly DecodedCall[];
  readonly show: (arg: Arg) => ReactNode;
}): ReactNode {
  return (
    <section className="stack-s" aria-label="What you sign">
      <h3>What you sign</h3>
      <ol className="stack-s">
        {calls.map(({ functionName, args }, at) => (
          <li key={`${at} ${functionName}`} aria-label={`Call ${at + 1}: ${functionName}`} className="stack-s">
            {calls.length > 1 && <code>{functionName}</code>}
            <Facts items={args.map((arg) => [arg.name, show(arg)] as const)} />
          </li>
        ))}
      </ol>
    </section>
  );
}
