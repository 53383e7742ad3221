/** One action: its code, the groups that list it, who may run it, its latest runs. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useState, type ReactNode } from "react";
import { useAccount, useActions, useListing, useSigned, useUsageKeys, type ListingGroup } from "../../app/queries";
import { Button } from "../../components/Button";
import {
  Absent,
  Badge,
  CodeBlock,
  Empty,
  Facts,
  Failure,
  Id,
  Notice,
  PageHead,
  Spinner,
  When,
} from "../../components/elements";
import { TextField } from "../../components/Field";
import { dollars, duration, plural } from "../../components/text";
import { useSession } from "../../session/context";
import { outcomeWord } from "../activity/outcomes";
import { usersOf } from "../pkps/uses";
import { draftOf, keepDraft } from "../runner/draft";
import { AddToGroup, useListable } from "../runner/RunResult";
import { codeOf, keepCode } from "./codes";

export function ActionPage(): ReactNode {
  const { action: hash } = useParams({ from: "/actions/$action" });
  const actions = useActions();
  const { isOffered } = useListable();
  const [listing, setListing] = useState(false);
  const action = actions.items.find(({ hashed_cid }) => hashed_cid === hash);
  if (action === undefined)
    return (
      <Absent from={actions}>
        <Gone />
      </Absent>
    );
  const { action_ipfs_cid: cid } = action;
  return (
    <>
      <Link to="/actions">All actions</Link>
      <PageHead title={action.name || "Action without a name"} about={action.description}>
        {isOffered && cid !== undefined && <Button onPress={() => setListing(true)}>Add this action to a group</Button>}
      </PageHead>
      <section className="card">
        <Facts
          items={[
            ["CID of the code", cid === undefined ? "not known here" : <Id key="c" whole value={cid} what="CID" />],
            ["Hash of the CID", <Id key="h" value={hash} what="hash of the CID" />],
          ]}
        />
      </section>
      <Groups hash={hash} />
      {cid !== undefined && <Code cid={cid} />}
      <LatestRuns hash={hash} />
      {listing && cid !== undefined && <AddToGroup cid={cid} onClose={() => setListing(false)} />}
    </>
  );
}

const Gone = (): ReactNode => (
  <>
    <PageHead title="Action" />
    <Empty title="Not in this account">
      <p>No action of this account has this hash.</p>
    </Empty>
  </>
);

function Groups({ hash }: { readonly hash: string }): ReactNode {
  const { data: groups, error } = useListing({ hashed_cid: hash });
  return (
    <section className="stack" aria-label="Groups that list it">
      <h2>Groups that list it</h2>
      <Failure error={error} />
      {groups === undefined && error === null && <Spinner />}
      {groups?.length === 0 && <p className="soft">None: no PKP may be used by it.</p>}
      {groups !== undefined && groups.length > 0 && <GroupTable groups={groups} />}
    </section>
  );
}

function GroupTable({ groups }: { readonly groups: readonly ListingGroup[] }): ReactNode {
  const { data: account } = useAccount();
  const keys = useUsageKeys();
  const accountKey = account.managed ? { id: account.id, name: "the account key" } : undefined;
  return (
    <div className="card scroll-x" tabIndex={0} role="region" aria-label="Groups with this action">
      <table className="plain-table">
        <thead>
          <tr>
            <th scope="col">Group</th>
            <th scope="col">It may use</th>
            <th scope="col">run with one of these keys</th>
          </tr>
        </thead>
        <tbody>
          {groups.map(({ id, name, pkp_count }) => (
            <tr key={id}>
              <td>
                <Link to="/groups/$group" params={{ group: id }}>
                  {name || `Group ${id}`}
                </Link>
              </td>
              <td>{plural(pkp_count, "PKP")}</td>
              <td>
                <span className="row">
                  {usersOf(id, keys.items, accountKey).map((user) => (
                    <Badge key={user.id}>{user.name}</Badge>
                  ))}
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <Absent from={keys}>{null}</Absent>
    </div>
  );
}

function Code({ cid }: { readonly cid: string }): ReactNode {
  const { account } = useSession();
  const navigate = useNavigate();
  const [pasted, setPasted] = useState("");
  const { data: code } = useQuery({ queryKey: ["code", cid, pasted], queryFn: () => codeFrom(cid, pasted) });
  const run = async (): Promise<void> => {
    if (typeof code !== "string") return;
    keepDraft(account.id, { ...draftOf(account.id), code });
    await navigate({ to: "/runner" });
  };
  return (
    <section className="stack" aria-label="Code">
      <div className="row-between">
        <h2>Code</h2>
        <Button variant="primary" disabled={typeof code !== "string"} onPress={run}>
          Run
        </Button>
      </div>
      {typeof code === "string" ? (
        <CodeBlock what="The code of this CID" text={code} />
      ) : (
        <>
          <p className="soft">
            The chain has the address of the code, not the code. Paste it: this browser compares it with the address.
          </p>
          <TextField label="Paste the code" code lines={6} value={pasted} onChange={setPasted} />
          {pasted !== "" && code === null && (
            <Notice kind="error">This is other code: its CID is a different one.</Notice>
          )}
        </>
      )}
    </section>
  );
}

async function codeFrom(cid: string, pasted: string): Promise<string | null> {
  if (pasted !== "") await keepCode(pasted);
  return codeOf(cid);
}

const LATEST = 5;

function LatestRuns({ hash }: { readonly hash: string }): ReactNode {
  const session = useSession();
  // A wallet would have to sign for them.
  if (session.kind === "wallet") return null;
  return <LatestRunsOf hash={hash} />;
}

function LatestRunsOf({ hash }: { readonly hash: string }): ReactNode {
  const { data } = useSigned(`runs-of-${hash}`, (client) => client.listRuns({ hashed_cid: hash, page_size: LATEST }));
  if (data === undefined || data.total === 0) return null;
  return (
    <section className="stack" aria-label="Latest runs">
      <h2>Latest runs</h2>
      <table className="plain-table">
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">Outcome</th>
            <th scope="col" className="end">
              Time
            </th>
            <th scope="col" className="end">
              Price
            </th>
          </tr>
        </thead>
        <tbody>
          {data.items.map((run) => (
            <tr key={run.request_id}>
              <td>
                <Link to="/activity/$run" params={{ run: `${run.started_at}-${run.request_id}` }}>
                  <When at={run.started_at * 1000} />
                </Link>
              </td>
              <td>{outcomeWord(run.outcome)}</td>
              <td className="end number">{duration(run.duration_ms)}</td>
              <td className="end number">{dollars(run.cost_cents)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
