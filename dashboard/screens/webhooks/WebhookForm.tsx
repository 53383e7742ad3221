import { useState, type ReactNode } from "react";
import type { Answer } from "../../../client";
import { readerOf } from "../../app/queries";
import { FormDialog } from "../../components/Dialog";
import { TextField } from "../../components/Field";
import { centsIn } from "../../components/text";
import { attempted } from "../../session/attempts";
import { useSession } from "../../session/context";

export type Webhook = Answer<"listWebhooks">[number];

interface Props {
  readonly onClose: () => void;
  readonly onMade: (webhook: Webhook) => unknown;
}

export function WebhookForm({ onClose, onMade }: Props): ReactNode {
  const session = useSession();
  const [url, setUrl] = useState("");
  const [events, setEvents] = useState("*");
  const [description, setDescription] = useState("");
  const [low, setLow] = useState("1.00");
  const lowCents = centsIn(low);
  const wanted = events
    .split(/[\s,]+/)
    .map((type) => type.trim())
    .filter((type) => type !== "");
  return (
    <FormDialog
      onClose={onClose}
      title="Add a webhook"
      about="Messages are signed by the service's statement key. verifyWebhook of the SDK checks them."
      submit="Add webhook"
      ready={url.trim() !== "" && wanted.length > 0 && lowCents !== undefined && lowCents > 0}
      onSubmit={async () => {
        const values = { url: url.trim(), events: wanted, description, credit_low_cents: lowCents ?? 0 };
        const attempt = JSON.stringify([session.account.id, "createWebhook", values]);
        onMade(await attempted(attempt, (options) => readerOf(session).createWebhook(values, options)));
      }}
    >
      <TextField
        label="URL"
        code
        required
        value={url}
        onChange={setUrl}
        placeholder="https://example.com/keywright"
        hint="A public address. Redirects are not followed."
      />
      <TextField
        label="Messages"
        code
        value={events}
        onChange={setEvents}
        hint="* for everything, families such as run.* and account.*, or types such as credit.low, separated by commas."
      />
      <TextField
        label="Low credit, in dollars"
        value={low}
        onChange={setLow}
        inputMode="decimal"
        hint="credit.low is sent when the balance falls below this."
      />
      <TextField label="Description" value={description} onChange={setDescription} />
    </FormDialog>
  );
}
