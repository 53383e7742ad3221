/** Why a key may not run an action, by the contract's own decision, with the one change that would permit it. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState, type ReactNode } from "react";
import { actionHashOf, type Cid } from "../../../protocol/ids";
import {
  useAccount,
  useActions,
  useGroupNames,
  useGroups,
  useListing,
  useUsageKeys,
  type ListingGroup,
  type UsageKey,
} from "../../app/queries";
import type { Change } from "../../changes/change";
import { useChanges } from "../../changes/ChangesProvider";
import { addActionToGroup, changeGroupPkps, unfreezeAccount, updateUsageKey } from "../../changes/operations";
import { Button } from "../../components/Button";
import { Failure, Notice, Spinner } from "../../components/elements";
import { Select } from "../../components/Field";
import { listed, quoted } from "../../components/text";
import { useSession } from "../../session/context";
import { useMay } from "../../session/may";
import type { Session } from "../../session/types";
import { scopesOf } from "../usageKeys/scopesOf";
import { runsIn } from "../pkps/uses";
import { useNames } from "./names";

export interface Question {
  /** The key's hash; the account's id for its own key. */
  readonly keyId: string;
  readonly cid: string;
  readonly pkp?: string | undefined;
}

const explain = (session: Session, { keyId, cid, pkp }: Question) => {
  const question = {
    api_key_hash: keyId,
    hashed_cid: actionHashOf(cid as Cid),
    ...(pkp === undefined ? {} : { pkp_id: pkp }),
  };
  return session.kind === "key" ? session.client.explainExecution(question) : session.owner.explainExecution(question);
};

const REASONS: Readonly<Record<string, string>> = {
  unknown_key: "The key has been revoked, or it never was this account's. Create another one.",
  key_expired: "The key has expired.",
  account_chain_secured: "The account key ended when the account was converted: use a usage key.",
  no_execute_scope: "The key may not run actions in any group.",
  action_not_permitted: "No group in which this key may run lists this action.",
  unknown_pkp: "The account has no such PKP.",
  pkp_not_permitted: "No group in which this key may run lists both this action and this PKP.",
  account_frozen: "The account is frozen: no key can run anything.",
};

interface WhyProps {
  readonly question: Question;
  /** It ran, and ended otherwise than by a missing permission. */
  readonly ran?: boolean;
  /** Beside a question that can be changed. */
  readonly isPage?: boolean;
}

export function Why({ question, ran = false, isPage = false }: WhyProps): ReactNode {
  const session = useSession();
  const { data, error } = useQuery({
    queryKey: ["why", question],
    queryFn: () => explain(session, question),
  });
  return (
    <section className="card stack" aria-label="Why?">
      <div className="stack-s">
        <div className="row-between">
          <h2>Why?</h2>
          {!isPage && <LinkToWhy question={question} />}
        </div>
        <QuestionFields question={question} />
      </div>
      <Failure error={error} />
      {data === undefined && error === null && <Spinner label="Asking the contract" />}
      {data?.allowed === true && (
        <Notice kind="success">
          {ran
            ? "It is permitted: what failed is the code, or one of its limits."
            : "It is permitted: the same run would start now."}
        </Notice>
      )}
      {data?.allowed === false && (
        <>
          <Notice kind="error">{REASONS[data.reason] ?? "It is not permitted."}</Notice>
          <Remedy reason={data.reason} question={question} />
        </>
      )}
    </section>
  );
}

/** The page of a refused run, which leaves no record: its address asks the same again. */
const LinkToWhy = ({ question: { keyId, cid, pkp } }: Pick<WhyProps, "question">): ReactNode => (
  <Link to="/why" search={{ key: keyId, action: cid, ...(pkp === undefined ? {} : { pkp }) }}>
    Open as a page
  </Link>
);

function QuestionFields({ question: { keyId, cid, pkp } }: Pick<WhyProps, "question">): ReactNode {
  const names = useNames();
  const withPkp = pkp === undefined ? "" : ` with ${quoted(names.pkp(pkp), "this PKP")}`;
  return (
    <p className="soft">
      May {quoted(names.key(keyId), "this key")} run {quoted(names.action(cid), "this action")}
      {withPkp}? The contract’s answer at this moment.
    </p>
  );
}

interface Offer {
  /** Where it can be done: each with the change that does it. */
  readonly places: readonly {
    readonly id: string;
    readonly name: string;
    readonly change: Change;
    readonly button: string;
  }[];
  readonly may: boolean;
  /** What is missing, for somebody who may not change it. */
  readonly missing: string;
}

function Remedy({ reason, question }: { readonly reason: string; readonly question: Question }): ReactNode {
  const { places, may, missing } = useOffer(reason, question);
  const { perform } = useChanges();
  const [chosen, setChosen] = useState("");
  const place = places.find(({ id }) => id === chosen) ?? places[0];
  if (missing === "") return null;
  if (!may) return <p>Missing: {missing}. Ask the account’s owner for it.</p>;
  if (place === undefined)
    return (
      <p>
        Missing: {missing}. There is no group for it yet: <Link to="/groups">create one</Link> that lists the action and
        the PKP.
      </p>
    );
  return (
    <div className="stack-s">
      <p>Missing: {missing}.</p>
      <div className="row">
        {places.length > 1 && (
          <Select
            label="Where"
            value={place.id}
            options={places.map(({ id, name }) => [id, name] as const)}
            onChange={setChosen}
          />
        )}
        <Button variant="primary" onPress={() => perform(place.change)}>
          {place.button}
        </Button>
      </div>
    </div>
  );
}

const DAY_SECONDS = 86_400;
const RENEWED_DAYS = 30;

function useOffer(reason: string, { keyId, cid, pkp }: Question): Offer {
  const may = useMay();
  const names = useNames();
  const { data: account } = useAccount();
  const { items: groups } = useGroups();
  const groupNames = useGroupNames(groups);
  const key = useUsageKeys().items.find(({ id }) => id === keyId);
  const action = useActions().items.find(({ action_ipfs_cid }) => action_ipfs_cid === cid);
  const { data: listing = [] } = useListing({ hashed_cid: actionHashOf(cid as Cid) });
  const named = (id: string): string => groupNames.get(id) ?? `group ${id}`;
  const actionName = action?.name || names.action(cid);
  const runsHere = (id: string): boolean => key === undefined || runsIn(key, id);
  const mayIn = (where: readonly unknown[]): boolean => may.all || where.length > 0;
  const withPkp = (all: readonly ListingGroup[]): readonly ListingGroup[] =>
    pkp === undefined
      ? all
      : all.filter((group) => group.pkp_ids_permitted.some((one) => one.toLowerCase() === pkp.toLowerCase()));

  if (reason === "no_execute_scope" && key !== undefined) {
    const where = withPkp(listing).length > 0 ? withPkp(listing) : listing.length > 0 ? listing : groups;
    const places = where.map(({ id }) => ({
      id,
      name: named(id),
      button: `Let ${quoted(key.name, "the key")} run in ${quoted(named(id), id)}`,
      change: updateUsageKey(key.id, withGroup(key, id), groupNames),
    }));
    return { places, may: may.all, missing: "the permission to run actions in a group that lists this one" };
  }
  if (reason === "action_not_permitted" || (reason === "no_execute_scope" && key === undefined)) {
    const where = groups.filter(({ id }) => runsHere(id) && may.listActions(id));
    const places = where.map(({ id, name }) => ({
      id,
      name: named(id),
      button: `List ${quoted(actionName, "the action")} in ${quoted(named(id), id)}`,
      change: addActionToGroup(id, name, cid),
    }));
    return {
      places,
      may: mayIn(where),
      missing: "a group in which the key may run that lists this action",
    };
  }
  if (reason === "pkp_not_permitted" && pkp !== undefined) {
    const where = listing.filter(({ id }) => runsHere(id) && may.addPkps(id));
    const places = where.map(({ id, name }) => ({
      id,
      name: named(id),
      button: `List ${quoted(names.pkp(pkp), "the PKP")} in ${quoted(named(id), id)}`,
      change: changeGroupPkps(id, name, [pkp], []),
    }));
    return {
      places,
      may: mayIn(where),
      missing: listed(["this PKP in a group with the action"]),
    };
  }
  return otherOffer(reason, key, may.all, account.frozen);
}

function otherOffer(reason: string, key: UsageKey | undefined, isOwner: boolean, frozen: boolean): Offer {
  if (reason === "account_frozen" && frozen)
    return {
      places: [{ id: "account", name: "Account", button: "Unfreeze account", change: unfreezeAccount() }],
      may: isOwner,
      missing: "an account that is not frozen",
    };
  if (reason === "key_expired" && key !== undefined) {
    const expiration = String(Math.floor(Date.now() / 1000) + RENEWED_DAYS * DAY_SECONDS);
    const change = updateUsageKey(key.id, { ...scopesOf(key), expiration }, new Map());
    return {
      places: [{ id: key.id, name: key.name, button: `Renew for ${RENEWED_DAYS} days`, change }],
      may: isOwner,
      missing: "a later expiry",
    };
  }
  return { places: [], may: false, missing: "" };
}

const withGroup = (key: UsageKey, id: string) => ({
  ...scopesOf(key),
  execute_in_groups: [...key.execute_in_groups.map(String), id],
});
