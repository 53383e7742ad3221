import { useEffect, useRef, useState, type ReactNode } from "react";
import { useGroups, type Group, type Listed } from "../../app/queries";
import { ChangeDialog } from "../../changes/ChangeDialog";
import { addActionToGroup } from "../../changes/operations";
import { Button } from "../../components/Button";
import { useMay } from "../../session/may";
import { Absent, Badge, CodeBlock, Facts, Id } from "../../components/elements";
import { Select } from "../../components/Field";
import { dollars, duration } from "../../components/text";
import { AddAction } from "../actions/AddAction";
import { Why } from "../activity/Why";
import { OtherClients } from "./OtherClients";
import { Receipt } from "./Receipt";
import type { Ran } from "./run";

interface ResultProps {
  readonly ran: Ran;
  /** False for one that was there when the screen was opened: that does not scroll to it. */
  readonly isNew: boolean;
}

export function RunResult({ ran, isNew }: ResultProps): ReactNode {
  const { answer, cid } = ran;
  const [open, setOpen] = useState<"group" | "name">();
  const { error, usage } = answer;
  const place = useRef<HTMLElement>(null);
  useEffect(() => void (isNew && place.current?.scrollIntoView({ block: "nearest" })), [ran, isNew]);
  return (
    <section className="card stack fade-in result" aria-label="Result" ref={place}>
      <div className="row-between">
        <div className="row">
          <h2>Result</h2>
          {answer.has_error ? (
            <Badge kind="error">{error?.code.replaceAll("_", " ") ?? "failed"}</Badge>
          ) : (
            <Badge kind="success">succeeded</Badge>
          )}
        </div>
        <ResultButtons onOpen={setOpen} />
      </div>
      {answer.has_error && (
        <CodeBlock
          what="Error"
          text={[error?.message, error?.stack].filter((part) => part !== undefined).join("\n\n")}
        />
      )}
      <CodeBlock what="Response" text={JSON.stringify(answer.response, null, 2)} />
      {answer.logs !== "" && <CodeBlock what="Logs" text={answer.logs} />}
      <Facts
        items={[
          ["Time", duration(usage.duration_ms)],
          ["Price", dollars(usage.cost_cents)],
          ["CID of the code", <Id key="c" value={cid} what="CID" />],
        ]}
      />
      {answer.receipt !== undefined && <Receipt receipt={answer.receipt} />}
      {error?.code === "permission_denied" && <Why question={{ keyId: ran.keyId, cid, pkp: pkpIn(ran.params) }} />}
      <OtherClients code={ran.code} params={ran.params} />
      {open === "group" && <AddToGroup cid={cid} onClose={() => setOpen(undefined)} />}
      {open === "name" && <AddAction code={ran.code} onClose={() => setOpen(undefined)} />}
    </section>
  );
}

function ResultButtons({ onOpen }: { readonly onOpen: (open: "group" | "name") => void }): ReactNode {
  const may = useMay();
  const { isOffered } = useListable();
  return (
    <div className="row">
      {may.all && (
        <Button size="small" onPress={() => onOpen("name")}>
          Name this action
        </Button>
      )}
      {isOffered && (
        <Button size="small" onPress={() => onOpen("group")}>
          Add this action to a group
        </Button>
      )}
    </div>
  );
}

/** The groups in which this credential may list an action; the owner may make one first. */
export function useListable(): {
  readonly all: Listed<Group>;
  readonly groups: readonly Group[];
  readonly isOffered: boolean;
} {
  const may = useMay();
  const all = useGroups();
  const groups = all.items.filter(({ id }) => may.listActions(id));
  return { all, groups, isOffered: may.all || groups.length > 0 };
}

const pkpIn = ({ pkpId }: Ran["params"]): string | undefined =>
  typeof pkpId === "string" && /^0x[0-9a-fA-F]{40}$/.test(pkpId) ? pkpId : undefined;

export function AddToGroup({ cid, onClose }: { readonly cid: string; readonly onClose: () => void }): ReactNode {
  const { all, groups: items } = useListable();
  const [chosen, setChosen] = useState("");
  // The groups may still be loading when this opens. No other takes the place of the one chosen when that is removed.
  const group = chosen === "" ? items[0] : items.find(({ id }) => id === chosen);
  return (
    <ChangeDialog
      onClose={onClose}
      title="Add this action to a group"
      about="Exactly this code may then use the group's PKPs. Changed code is another action."
      submit="Add to group"
      ready={group !== undefined}
      change={() => addActionToGroup(group?.id ?? "", group?.name ?? "", cid)}
    >
      {items.length === 0 ? (
        <Absent from={all}>
          <p>There are no groups yet.</p>
        </Absent>
      ) : (
        <Select
          label="Group"
          value={group?.id ?? ""}
          options={[
            ...(group === undefined ? [["", "Choose a group"] as const] : []),
            ...items.map(({ id, name: label }) => [id, label || `Group ${id}`] as const),
          ]}
          onChange={setChosen}
        />
      )}
    </ChangeDialog>
  );
}
