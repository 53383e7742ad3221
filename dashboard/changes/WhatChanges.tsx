import type { ReactNode } from "react";
import type { DecodedCall } from "../../client";
import { useAccount, useGroupNames, useGroups, usePkps, useUsageKeys } from "../app/queries";
import { useNames } from "../screens/activity/names";
import { effectsOf } from "./effects";

/** Permissions before and after what is signed, in sentences. */
export function WhatChanges({ calls }: { readonly calls: readonly DecodedCall[] }): ReactNode {
  const names = useNames();
  const { data: account } = useAccount();
  const groups = useGroups().items;
  const groupNames = useGroupNames(groups);
  const keys = useUsageKeys();
  const pkps = usePkps().items;
  const effects = effectsOf(calls, {
    names,
    groupNames,
    groups,
    pkps,
    keys: keys.items,
    areKeysComplete: keys.isComplete,
    keyCount: account.usage_api_key_count,
    frozen: account.frozen,
    owner: account.owner,
  });
  if (effects.length === 0) return null;
  return (
    <section className="stack-s" aria-label="What changes">
      <h3>What changes</h3>
      <div className="scroll-x" tabIndex={0} role="region" aria-label="Before and after">
        <table className="plain-table effects">
          <thead>
            <tr>
              <th scope="col">Of</th>
              <th scope="col">Now</th>
              <th scope="col">Afterwards</th>
            </tr>
          </thead>
          <tbody>
            {effects.map(({ about, before, after }, at) => (
              <tr key={`${at} ${about}`}>
                <th scope="row">{about}</th>
                <td className="soft">{before || "–"}</td>
                <td>{after}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
