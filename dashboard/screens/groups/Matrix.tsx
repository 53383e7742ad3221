import type { ReactNode } from "react";
import type { Action, Group, Members, Pkp } from "../../app/queries";
import { useChanges } from "../../changes/ChangesProvider";
import { removeActionFromGroup, removePkpFromGroup } from "../../changes/operations";
import { Button } from "../../components/Button";
import { useMay, type May } from "../../session/may";
import { Empty, Notice } from "../../components/elements";
import { Icon } from "../../components/icons";
import { short } from "../../components/text";
import { ANY_ACTION, ANY_PKP } from "../pkps/uses";

/** More are not drawn one by one: a list of each says the same. */
const MOST_CELLS = 2_000;

interface MatrixProps {
  readonly group: Group;
  readonly members: Members;
  readonly onOpen: (open: "action" | "pkps") => void;
}

/** Actions down, PKPs across: every pair with a tick is allowed. */
export function Matrix({ group, members, onOpen }: MatrixProps): ReactNode {
  const { perform } = useChanges();
  const may = useMay();
  const { pkps, actions } = members;
  const isLarge = pkps.length * actions.length > MOST_CELLS;
  const remover = may.removePkps(group.id)
    ? (pkp: Pkp) => () => perform(removePkpFromGroup(group.id, group.name, pkp.wallet_address))
    : () => undefined;
  const isWide =
    pkps.some(({ wallet_address }) => wallet_address === ANY_PKP) ||
    actions.some(({ hashed_cid }) => hashed_cid === ANY_ACTION);
  return (
    <section className="stack" aria-label="What may use what">
      <div className="row-between">
        <h2>What may use what</h2>
        <div className="row">
          {may.listActions(group.id) && (
            <Button size="small" onPress={() => onOpen("action")}>
              List an action
            </Button>
          )}
          {may.addPkps(group.id) && may.removePkps(group.id) && (
            <Button size="small" onPress={() => onOpen("pkps")}>
              Choose PKPs
            </Button>
          )}
        </div>
      </div>
      {isWide && (
        <Notice kind="warning">
          This group lists anything: any {actions.some(({ hashed_cid }) => hashed_cid === ANY_ACTION) ? "code" : "PKP"}.
          Keys that may run in it are not restricted further.
        </Notice>
      )}
      {pkps.length + actions.length === 0 ? (
        <Empty title="An empty group allows nothing">
          <p>List at least one action and one PKP.</p>
        </Empty>
      ) : (
        <div className="card scroll-x" tabIndex={0} role="region" aria-label="Matrix of actions and PKPs">
          <table className="plain-table matrix">
            <thead>
              <tr>
                <th scope="col">Action</th>
                {(isLarge ? [] : pkps).map((pkp) => (
                  <th scope="col" key={pkp.wallet_address}>
                    <Member name={pkp.name || short(pkp.wallet_address)} onRemove={remover(pkp)} />
                  </th>
                ))}
                {pkps.length === 0 && <th scope="col">no PKP listed</th>}
                {isLarge && <th scope="col">May use</th>}
              </tr>
            </thead>
            <tbody>
              {actions.map((action) => (
                <MatrixRow
                  key={action.hashed_cid}
                  action={action}
                  group={group}
                  ticks={isLarge ? ["✓ every PKP below"] : pkps.map(() => "✓ may use")}
                  may={may}
                />
              ))}
              {actions.length === 0 && (
                <tr>
                  <td className="soft">no action listed</td>
                </tr>
              )}
            </tbody>
          </table>
          {isLarge && (
            <ul className="lines" aria-label="PKPs that each of these actions may use">
              {pkps.map((pkp) => (
                <li key={pkp.wallet_address}>
                  <Member name={pkp.name || short(pkp.wallet_address)} onRemove={remover(pkp)} />
                </li>
              ))}
            </ul>
          )}
        </div>
      )}
    </section>
  );
}

interface MemberProps {
  readonly name: string;
  /** Undefined where this credential may not remove it. */
  readonly onRemove: (() => Promise<unknown>) | undefined;
}

function Member({ name, onRemove }: MemberProps): ReactNode {
  return (
    <div className="member">
      <span className="name">{name}</span>
      {onRemove !== undefined && (
        <Button
          size="small"
          variant="quiet"
          className="square"
          onPress={onRemove}
          aria-label={`Remove ${name} from the group`}
          title="Remove from the group"
        >
          <Icon name="close" />
        </Button>
      )}
    </div>
  );
}

interface RowProps {
  readonly action: Action;
  readonly group: Group;
  readonly ticks: readonly string[];
  readonly may: May;
}

function MatrixRow({ action, group, ticks, may }: RowProps): ReactNode {
  const { perform } = useChanges();
  const isAny = action.hashed_cid === ANY_ACTION;
  const cid = short(action.action_ipfs_cid ?? action.hashed_cid);
  const name = isAny ? "Any code" : action.name || cid;
  return (
    <tr>
      <th scope="row">
        <Member
          name={name}
          onRemove={
            may.listActions(group.id)
              ? () => perform(removeActionFromGroup(group.id, group.name, action.hashed_cid, name))
              : undefined
          }
        />
        {!isAny && <div className="code small soft">{cid}</div>}
      </th>
      {ticks.map((tick, at) => (
        <td key={at}>
          <span className="tick">{tick}</span>
        </td>
      ))}
    </tr>
  );
}
