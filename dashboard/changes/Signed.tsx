import type { ReactNode } from "react";
import type { DecodedCall } from "../../client";
import { Id } from "../components/elements";
import { argumentText } from "../screens/activity/eventText";
import { useNames, type Names } from "../screens/activity/names";
import { useSession } from "../session/context";
import { CallList } from "./CallList";
import { WhatChanges } from "./WhatChanges";

/** What a signature will allow: every call with its decoded arguments, and the names behind ids and hashes. */
export function SignedCalls({ calls }: { readonly calls: readonly DecodedCall[] }): ReactNode {
  const names = useNames();
  const { account } = useSession();
  return (
    <>
      <WhatChanges calls={calls} />
      <CallList calls={calls} show={(arg) => <Argument arg={arg} {...{ names, account }} />} />
    </>
  );
}

interface ArgumentProps {
  readonly arg: DecodedCall["args"][number];
  readonly names: Names;
  readonly account: { readonly id: string };
}

const HEX = /^0x[0-9a-fA-F]{40,64}$/;

function Argument({ arg, names, account }: ArgumentProps): ReactNode {
  const { value, meaning } = argumentText(arg, names);
  const shown = HEX.test(value) ? <Id value={value} what={arg.name} /> : <span className="anywhere">{value}</span>;
  const said = value === account.id ? "This account" : meaning;
  return said === undefined ? (
    shown
  ) : (
    <span className="row">
      {said} {shown}
    </span>
  );
}
