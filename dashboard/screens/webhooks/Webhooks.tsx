import { useQueryClient } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { readAgain, readerOf, useSigned } from "../../app/queries";
import { Button } from "../../components/Button";
import { DataTable, type Column } from "../../components/DataTable";
import { FormDialog } from "../../components/Dialog";
import { Badge, Notice, PageHead, When } from "../../components/elements";
import { RowMenu } from "../../components/RowMenu";
import { useSession } from "../../session/context";
import { Deliveries } from "./Deliveries";
import { WebhookForm, type Webhook } from "./WebhookForm";

export function Webhooks(): ReactNode {
  const session = useSession();
  const isAllowed = session.kind === "key" ? session.isOwner : !session.wallet.forSafe;
  if (isAllowed) return <OwnersWebhooks />;
  return (
    <>
      <PageHead title="Webhooks" about={ABOUT} />
      <Notice>
        Only the account's owner manages webhooks, with the account key, an identity or its own wallet, and no usage
        key. A multisig does so from the SDK, with a signature of its own.
      </Notice>
    </>
  );
}

const ABOUT = "Signed messages to your server about runs, writes, payments and changes of this account.";

function OwnersWebhooks(): ReactNode {
  const [adding, setAdding] = useState(false);
  const [deleting, setDeleting] = useState<Webhook>();
  const [shownId, setShownId] = useState<string>();
  const queries = useQueryClient();
  const client = readerOf(useSession());
  const webhooks = useSigned("webhooks", (records) => records.listWebhooks());
  const refresh = (): Promise<void> => readAgain(queries, { queryKey: ["signed"] });
  const shown = webhooks.data?.find(({ id }) => id === shownId);
  const columns = columnsOf({
    show: ({ id }) => setShownId(id),
    remove: setDeleting,
    turn: async ({ id, state }) => {
      await client.updateWebhook({ id, state: state === "on" ? "off" : "on" });
      await refresh();
    },
  });
  return (
    <>
      <PageHead title="Webhooks" about={ABOUT}>
        <Button variant="primary" onPress={() => setAdding(true)}>
          Add webhook
        </Button>
      </PageHead>
      <DataTable
        label="Webhooks"
        unit={["webhook", "webhooks"]}
        from={webhooks}
        rows={webhooks.data}
        none={NO_WEBHOOKS}
        columns={columns}
        idOf={({ id }) => id}
        textOf={({ url, description, events }) => `${url ?? ""} ${description} ${events.join(" ")}`}
      />
      {shown !== undefined && <Deliveries key={shown.id} webhook={shown} />}
      {adding && <WebhookForm onClose={() => setAdding(false)} onMade={({ id }) => (setShownId(id), refresh())} />}
      {deleting !== undefined && (
        <FormDialog
          onClose={() => setDeleting(undefined)}
          title="Delete the webhook"
          about={`${deleting.url ?? "It"} gets no more messages, and its deliveries are deleted.`}
          submit="Delete webhook"
          danger
          onSubmit={async () => {
            await client.deleteWebhook({ id: deleting.id });
            await refresh();
          }}
        />
      )}
    </>
  );
}

const NO_WEBHOOKS = [
  "No webhooks yet",
  "Add your server's URL to be told what happens, instead of asking again and again.",
  <>
    To try it on your own machine: <code>keywright webhooks listen --forward-to http://localhost:3000/…</code>
  </>,
] as const;

interface Acts {
  readonly show: (webhook: Webhook) => void;
  readonly remove: (webhook: Webhook) => void;
  readonly turn: (webhook: Webhook) => Promise<void>;
}

const REASONS: Readonly<Record<NonNullable<Webhook["off_reason"]>, string>> = {
  owner: "switched off by the owner",
  owner_changed: "switched off when the account changed hands",
  unreachable: "switched off: nothing arrived for three days",
  gone: "switched off: the receiver answered 410 Gone",
  too_many: "switched off: too many messages waited",
};

const columnsOf = ({ show, remove, turn }: Acts): readonly Column<Webhook>[] => [
  {
    title: "URL",
    width: "minmax(0, 2fr)",
    cell: ({ url, description }) => (
      <div title={url ?? undefined}>
        <div className="code cut">{url ?? "fetched by a client"}</div>
        {description !== "" && <div className="soft small cut">{description}</div>}
      </div>
    ),
    by: ({ url }) => url ?? "",
  },
  { title: "Messages", width: "minmax(0, 1.2fr)", cell: ({ events }) => events.join(", ") },
  {
    title: "State",
    width: "minmax(0, 1.2fr)",
    cell: (webhook) => <State webhook={webhook} />,
    by: ({ state }) => state,
  },
  {
    title: "",
    width: "9rem",
    end: true,
    cell: (webhook) => (
      <div className="actions">
        <Button size="small" onPress={() => show(webhook)}>
          Deliveries
        </Button>
        <RowMenu
          of={webhook.url ?? "this webhook"}
          items={[
            { name: webhook.state === "on" ? "Turn off" : "Turn on", onChoose: () => turn(webhook) },
            { name: "Delete", danger: true, onChoose: () => remove(webhook) },
          ]}
        />
      </div>
    ),
  },
];

function State({ webhook: { state, off_reason: reason, failing_since: failing } }: { webhook: Webhook }): ReactNode {
  if (state === "off")
    return (
      <div>
        <Badge kind="warning">off</Badge>
        {reason !== undefined && (
          <div className="soft small cut" title={REASONS[reason]}>
            {REASONS[reason]}
          </div>
        )}
      </div>
    );
  if (failing === undefined) return <Badge kind="success">on</Badge>;
  return (
    <div>
      <Badge kind="error">failing</Badge>
      <div className="soft small">
        since <When at={failing} />
      </div>
    </div>
  );
}
