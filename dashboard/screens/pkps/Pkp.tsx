import { Link, useParams } from "@tanstack/react-router";
import { useMemo, useState, type ReactNode } from "react";
import { useAccount, useActions, useListing, usePkps, useUsageKeys, type UsageKey } from "../../app/queries";
import { RenameDialog } from "../../changes/ChangeDialog";
import { renamePkp } from "../../changes/operations";
import { Button } from "../../components/Button";
import { useMay } from "../../session/may";
import { Absent, Badge, Empty, Facts, Failure, Id, Notice, PageHead, Spinner } from "../../components/elements";
import { Address } from "../../components/explorer";
import { plural, short } from "../../components/text";
import { useSession } from "../../session/context";
import { RowMenu } from "../../components/RowMenu";
import { RevokeKey } from "../usageKeys/Revoke";
import { PkpOps } from "./PkpOps";
import { ANY_ACTION, usesOf, type Use, type User } from "./uses";

export function Pkp(): ReactNode {
  const { pkp: address } = useParams({ from: "/pkps/$pkp" });
  const { config } = useSession();
  const pkps = usePkps();
  const may = useMay();
  const [renaming, setRenaming] = useState(false);
  const pkp = pkps.items.find(({ wallet_address }) => wallet_address === address);
  if (pkp === undefined)
    return (
      <Absent from={pkps}>
        <PageHead title="PKP" />
        <Empty title="Not in this account">
          <p>No PKP of this account has this address.</p>
        </Empty>
      </Absent>
    );
  return (
    <>
      <Link to="/pkps">All PKPs</Link>
      <PageHead title={pkp.name || "PKP without a name"} about={pkp.description}>
        {may.all && <Button onPress={() => setRenaming(true)}>Rename</Button>}
      </PageHead>
      <section className="card">
        <Facts
          items={[
            ["Address", <Address key="a" whole value={address} what="address" chain={config} />],
            ["Number", pkp.id],
            ["Listed in", <ListedIn key="l" address={address} />],
            ["Derivation path", <Id key="d" value={pkp.derivation_path} what="derivation path" />],
          ]}
        />
      </section>
      <WhoCanUse address={address} />
      <PkpOps pkp={pkp} />
      {renaming && (
        <RenameDialog
          title="Rename the PKP"
          of={pkp}
          change={(strings) => renamePkp(pkp.wallet_address, pkp.name, strings)}
          onClose={() => setRenaming(false)}
        />
      )}
    </>
  );
}

/** The groups that name it, or list any PKP. */
function ListedIn({ address }: { readonly address: string }): ReactNode {
  const { data: groups } = useListing({ pkp_id: address });
  if (groups === undefined || groups.length === 0)
    return <span className="soft">{groups === undefined ? "…" : "no group"}</span>;
  return (
    <ul className="row" aria-label="Groups that list it">
      {groups.map(({ id, name }) => (
        <li key={id}>
          <Link to="/groups/$group" params={{ group: id }}>
            {name || `Group ${id}`}
          </Link>
        </li>
      ))}
    </ul>
  );
}

function useUses(address: string) {
  const { data: account } = useAccount();
  const { data: groups = [], error, isSuccess } = useListing({ pkp_id: address });
  const actions = useActions();
  const keys = useUsageKeys();
  const complete = isSuccess && keys.isComplete && actions.isComplete;
  const accountKey: User | undefined = account.managed ? { id: account.id, name: "the account key" } : undefined;
  const byHash = useMemo(() => new Map(actions.items.map((one) => [one.hashed_cid, one])), [actions.items]);
  const uses = usesOf(groups, byHash, keys.items, accountKey);
  return { groups, uses: complete ? uses : [], complete, error: error ?? actions.error ?? keys.error };
}

function WhoCanUse({ address }: { readonly address: string }): ReactNode {
  const { data: account } = useAccount();
  const { groups, uses, complete, error } = useUses(address);
  return (
    <section className="stack" aria-label="Who can use this PKP?">
      <h2>Who can use this PKP?</h2>
      {account.frozen && (
        <Notice kind="warning">The account is frozen: no one can, until the owner unfreezes it.</Notice>
      )}
      <Failure error={error} />
      {!complete && error === null && <Spinner label="Reading the groups" />}
      {complete && uses.length === 0 && (
        <Empty title="Nobody">
          <p>
            {groups.length === 0
              ? "No group lists this PKP, so no code can use it."
              : `The groups that list it list no action: ${groups.map(({ name }) => name).join(", ")}.`}
          </p>
        </Empty>
      )}
      {uses.length > 0 && <UsesTable uses={uses} />}
      {uses.some(({ action }) => action.hashed_cid === ANY_ACTION) && (
        <Notice kind="warning">
          A group here lists any action: every key that may run in it can sign anything with this PKP.
        </Notice>
      )}
    </section>
  );
}

function UsesTable({ uses }: { readonly uses: readonly Use[] }): ReactNode {
  const { all: mayRevoke } = useMay();
  return (
    <div className="card scroll-x" tabIndex={0} role="region" aria-label="Uses">
      <table className="plain-table">
        <thead>
          <tr>
            <th scope="col">This code</th>
            <th scope="col">in this group</th>
            <th scope="col">run with one of these keys</th>
          </tr>
        </thead>
        <tbody>
          {uses.map(({ group, action, who }) => (
            <tr key={`${group.id}-${action.hashed_cid}`}>
              <td>
                <span className="name">
                  {action.hashed_cid === ANY_ACTION ? "Any code at all" : action.name || "Without a name"}
                </span>
                {action.hashed_cid !== ANY_ACTION && (
                  <div className="small soft code">{short(action.action_ipfs_cid ?? action.hashed_cid)}</div>
                )}
              </td>
              <td>
                <Link to="/groups/$group" params={{ group: group.id }}>
                  {group.name || `Group ${group.id}`}
                </Link>
              </td>
              <td>
                <Users who={who} mayRevoke={mayRevoke} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Of the keys of one row, until all are asked for: each has a menu. */
const SHOWN = 20;

function Users({ who, mayRevoke }: { readonly who: readonly User[]; readonly mayRevoke: boolean }): ReactNode {
  const [revoking, setRevoking] = useState<UsageKey>();
  const [isLong, setLong] = useState(false);
  if (who.length === 0) return <span className="soft">no key may run here</span>;
  return (
    <>
      <ul className="row">
        {(isLong ? who : who.slice(0, SHOWN)).map(({ id, name, key }) => (
          <li key={id} className="row">
            <Badge kind={key === undefined ? "neutral" : "success"}>{name}</Badge>
            {mayRevoke && key !== undefined && (
              <RowMenu of={name} items={[{ name: "Revoke", danger: true, onChoose: () => setRevoking(key) }]} />
            )}
          </li>
        ))}
        {!isLong && who.length > SHOWN && (
          <li>
            <Button size="small" variant="quiet" onPress={() => setLong(true)}>
              {plural(who.length - SHOWN, "more key")}
            </Button>
          </li>
        )}
      </ul>
      {revoking !== undefined && <RevokeKey usageKey={revoking} onClose={() => setRevoking(undefined)} />}
    </>
  );
}
