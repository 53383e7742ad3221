import { useMemo, useState, type ReactNode } from "react";
import { useQueryClient } from "@tanstack/react-query";
import { readAgain, readerOf, useSigned } from "../../app/queries";
import { useChanges } from "../../changes/ChangesProvider";
import { Button } from "../../components/Button";
import { DataTable, type Column } from "../../components/DataTable";
import { FormDialog } from "../../components/Dialog";
import { Badge, Notice, PageHead, When } from "../../components/elements";
import { RowMenu } from "../../components/RowMenu";
import { SafeNotice } from "../../components/SafeNotice";
import { codeOf } from "../../components/failures";
import { quoted, short } from "../../components/text";
import { attempted } from "../../session/attempts";
import { useIsReadable, useSession } from "../../session/context";
import { useMay, type May } from "../../session/may";
import type { Session } from "../../session/types";
import { CreateTrigger } from "./CreateTrigger";
import { Firings } from "./Firings";
import { deleteTrigger } from "./changes";
import { sentenceOf } from "./sentences";
import { stopped, type Trigger } from "./stopped";

const PAGE = 1_000;
type Open = { readonly what: "delete" | "firings"; readonly trigger: Trigger } | "create" | undefined;

export function Triggers(): ReactNode {
  const triggers = useSigned("triggers", (client) => client.listTriggers({ page_size: PAGE }), {
    isAboutToChange: ({ items }) => items.some(({ state }) => state === "unattached"),
  });
  const [open, setOpen] = useState<Open>();
  const may = useMay();
  const columns = useMemo(() => columnsOf(setOpen, may), [may]);
  const mayCreate = useIsReadable() && may.all;
  const close = (): void => setOpen(undefined);
  return (
    <>
      <PageHead
        title="Triggers"
        about="Actions that run by themselves: on a schedule, on an event of a contract, or when a URL is called."
      >
        {mayCreate && (
          <Button variant="primary" onPress={() => setOpen("create")}>
            Create trigger
          </Button>
        )}
      </PageHead>
      <SafeNotice what="triggers" />
      <Stopped triggers={triggers.data?.items} />
      <DataTable
        label="Triggers"
        unit={["trigger", "triggers"]}
        from={triggers}
        rows={triggers.data?.items}
        total={triggers.data?.total}
        none={[
          "No triggers yet",
          "A trigger has a key of its own that only the TEE knows, and runs one action with it, up to a cap you set.",
        ]}
        columns={columns}
        idOf={({ id }) => id}
        textOf={(trigger) => `${trigger.name} ${trigger.id} ${sentenceOf(trigger)}`}
      />
      {open === "create" && <CreateTrigger onClose={close} />}
      {typeof open === "object" && open.what === "firings" && <Firings trigger={open.trigger} onClose={close} />}
      {typeof open === "object" && open.what === "delete" && <Delete trigger={open.trigger} onClose={close} />}
    </>
  );
}

/** Those that the service paused, each with the reason. */
function Stopped({ triggers = [] }: { readonly triggers: readonly Trigger[] | undefined }): ReactNode {
  return stopped(triggers).map(({ id, name, reason }) => (
    <Notice kind="error" key={id}>
      {`${quoted(name, short(id))} is paused: ${reason ?? ""} Look at its firings, then resume it.`}
    </Notice>
  ));
}

const columnsOf = (onOpen: (open: Open) => void, may: May): readonly Column<Trigger>[] => [
  {
    title: "Name",
    width: "minmax(14rem, 1fr)",
    cell: (trigger) => (
      <div title={trigger.id}>
        <div className="cut">
          <span className="name">{trigger.name || "Without a name"}</span>
        </div>
        <div className="small soft cut" title={sentenceOf(trigger)}>
          {sentenceOf(trigger)}
        </div>
      </div>
    ),
    by: ({ name }) => name,
  },
  { title: "State", width: "6.5rem", cell: (trigger) => <State trigger={trigger} /> },
  {
    title: "Next",
    width: "9rem",
    cell: ({ next_due_at: next }) => (next === undefined ? <span className="soft">–</span> : <When at={next} />),
    by: ({ next_due_at: next }) => next ?? "",
  },
  {
    title: "Last",
    width: "9rem",
    cell: ({ last_fired_at: last, last_outcome: outcome }) =>
      last === undefined ? (
        <span className="soft">never</span>
      ) : (
        <div>
          <When at={last} />
          <div className={`small ${outcome === "succeeded" ? "soft" : ""}`}>{outcome}</div>
        </div>
      ),
  },
  {
    title: "",
    width: "14rem",
    end: true,
    cell: (trigger) => (
      <div className="actions">
        {may.run && <RunNow trigger={trigger} />}
        {may.all && <Pause trigger={trigger} />}
        <RowMenu
          of={trigger.name || "this trigger"}
          items={[
            { name: "Firings", onChoose: () => onOpen({ what: "firings", trigger }) },
            ...(may.all ? [{ name: "Delete", danger: true, onChoose: () => onOpen({ what: "delete", trigger }) }] : []),
          ]}
        />
      </div>
    ),
  },
];

function State({ trigger: { state, reason } }: { readonly trigger: Trigger }): ReactNode {
  const kind = state === "active" ? "success" : reason === undefined ? "warning" : "error";
  return (
    <span title={reason}>
      <Badge kind={kind}>{state === "unattached" ? "not attached" : state}</Badge>
    </span>
  );
}

function useAgain(): () => Promise<void> {
  const queries = useQueryClient();
  return () => readAgain(queries, { queryKey: ["signed"] });
}

/** Needs a key: a wallet's session has none. */
function RunNow({ trigger }: { readonly trigger: Trigger }): ReactNode {
  const session = useSession();
  const again = useAgain();
  if (session.kind !== "key" || trigger.state === "unattached") return null;
  const run = async (): Promise<void> => {
    const attempt = JSON.stringify([session.account.id, "runTrigger", trigger.id]);
    await attempted(attempt, (options) => session.client.runTrigger({ id: trigger.id }, options));
    await again();
  };
  return (
    <Button size="small" onPress={run}>
      Run now
    </Button>
  );
}

function Pause({ trigger: { id, state } }: { readonly trigger: Trigger }): ReactNode {
  const session = useSession();
  const again = useAgain();
  if (state === "unattached") return null;
  const paused = state === "active";
  const change = async (): Promise<void> => {
    await readerOf(session).updateTrigger({ id, paused });
    await again();
  };
  return (
    <Button size="small" onPress={change}>
      {paused ? "Pause" : "Resume"}
    </Button>
  );
}

/**
 * Whether its key can be revoked. The chain is asked: the service may not have seen yet that the key was attached, and
 * does not say that it was revoked.
 */
async function isAttached(session: Session, { api_key_hash }: Trigger): Promise<boolean> {
  if (session.kind === "key") return true;
  const { owner } = session;
  const revoke = await owner.prepare.removeUsageApiKey({ usage_api_key: api_key_hash });
  return owner.check(revoke).then(
    () => true,
    (error: unknown) => codeOf(error) !== "unknown_usage_key",
  );
}

function Delete({ trigger, onClose }: { readonly trigger: Trigger; readonly onClose: () => void }): ReactNode {
  const { perform } = useChanges();
  const session = useSession();
  const again = useAgain();
  const submit = async (): Promise<boolean> => {
    const state = (await isAttached(session, trigger)) ? (await perform(deleteTrigger(trigger))).state : "done";
    if (state !== "done") return state !== "cancelled";
    // The wallet has revoked the key, or there is none: the service then forgets the trigger.
    if (session.kind === "wallet") await session.owner.deleteTrigger(trigger);
    await again();
    return true;
  };
  return (
    <FormDialog
      danger
      onClose={onClose}
      title={`Delete the trigger ${quoted(trigger.name, short(trigger.id))}?`}
      submit="Delete trigger"
      onSubmit={submit}
    >
      <p>Its key is revoked at once and permanently. To stop it for a while only, pause it.</p>
    </FormDialog>
  );
}
