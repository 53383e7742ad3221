import { useQueryClient } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import type { Answer } from "../../../client";
import { readAgain, readerOf, useSigned } from "../../app/queries";
import { Button } from "../../components/Button";
import { DataTable, timeColumn, valueColumn, type Column } from "../../components/DataTable";
import { Dialog } from "../../components/Dialog";
import { Badge, CodeBlock, Facts, Id, When } from "../../components/elements";
import { RowMenu } from "../../components/RowMenu";
import { duration, plural } from "../../components/text";
import { useSession } from "../../session/context";
import type { Webhook } from "./WebhookForm";

type Delivery = Answer<"webhookDeliveries">[number];

const MOST = 100;
/** Time for a test or a replay to be sent before the list is read again. */
const SENT_MS = 2_500;

/** What was sent to one webhook, what came back, and how to send it again. */
export function Deliveries({ webhook: { id, url } }: { readonly webhook: Webhook }): ReactNode {
  const queries = useQueryClient();
  const client = readerOf(useSession());
  const [open, setOpen] = useState<Delivery>();
  const deliveries = useSigned(`deliveries-${id}`, (records) => records.webhookDeliveries({ id, limit: MOST }));
  const refresh = (): Promise<void> => readAgain(queries, { queryKey: ["signed", `deliveries-${id}`] });
  const sent = async (work: Promise<unknown>): Promise<void> => {
    await work;
    await new Promise((resolve) => setTimeout(resolve, SENT_MS));
    await refresh();
  };
  const replay = ({ message_id }: Delivery): Promise<void> =>
    sent(client.replayWebhook({ id, message_ids: [message_id] }));
  return (
    <section className="stack" aria-label="Deliveries">
      <div className="row-between">
        <h2>Deliveries to {url ?? "a client"}</h2>
        <span className="row">
          <Button onPress={() => sent(client.testWebhook({ id }))}>Send a test</Button>
          <Button onPress={() => sent(client.replayWebhook({ id }))}>Replay all that failed</Button>
          <Button variant="quiet" onPress={refresh}>
            Refresh
          </Button>
        </span>
      </div>
      <DataTable
        label="Deliveries"
        unit={["delivery", "deliveries"]}
        from={deliveries}
        rows={deliveries.data}
        none={["Nothing sent yet", "Send a test, or run an action."]}
        columns={columnsOf(setOpen, replay)}
        idOf={({ message_id }) => message_id}
        textOf={({ message_id, type, state, data: facts }) => `${message_id} ${type} ${state} ${JSON.stringify(facts)}`}
      />
      {open !== undefined && <DeliveryDialog delivery={open} onClose={() => setOpen(undefined)} />}
    </section>
  );
}

const KINDS = { delivered: "success", pending: "neutral", failed: "error" } as const;

const answerOf = ({ status, failure, attempts }: Delivery): string =>
  failure ?? (status === undefined ? (attempts === 0 ? "not sent yet" : "–") : String(status));

const columnsOf = (
  show: (delivery: Delivery) => void,
  replay: (delivery: Delivery) => Promise<void>,
): readonly Column<Delivery>[] => [
  timeColumn("When", "minmax(8rem, 1fr)", ({ created_at }) => created_at),
  {
    title: "Message",
    width: "minmax(0, 1.4fr)",
    cell: ({ type }) => <span className="code">{type}</span>,
    by: ({ type }) => type,
  },
  {
    title: "State",
    width: "minmax(0, 1fr)",
    cell: ({ state }) => <Badge kind={KINDS[state]}>{state}</Badge>,
    by: ({ state }) => state,
  },
  valueColumn("Answer", "minmax(0, 1.4fr)", answerOf),
  {
    title: "",
    width: "8rem",
    end: true,
    cell: (delivery) => (
      <div className="actions">
        <Button size="small" onPress={() => show(delivery)}>
          Details
        </Button>
        <RowMenu
          of={`${delivery.type} ${delivery.message_id}`}
          items={[{ name: "Replay", onChoose: () => replay(delivery) }]}
        />
      </div>
    ),
  },
];

function DeliveryDialog({
  delivery,
  onClose,
}: {
  readonly delivery: Delivery;
  readonly onClose: () => void;
}): ReactNode {
  const { message_id: id, type, data, attempts, attempted_at: at, next_attempt_at: next, duration_ms: ms } = delivery;
  return (
    <Dialog wide onClose={onClose} title={type}>
      <Facts
        items={[
          ["Message", <Id key="id" value={id} what="message id" />],
          ["Attempts", plural(attempts, "attempt")],
          ["Last attempt", at === undefined ? "–" : <When key="at" at={at} />],
          ["Next attempt", next === undefined ? "–" : <When key="next" at={next} />],
          ["Answer", ms === undefined ? answerOf(delivery) : `${answerOf(delivery)}, after ${duration(ms)}`],
        ]}
      />
      {delivery.answer !== undefined && delivery.answer !== "" && (
        <CodeBlock text={delivery.answer} what="Beginning of the answer" />
      )}
      <CodeBlock text={JSON.stringify(data, null, 2)} what="Data" />
    </Dialog>
  );
}
