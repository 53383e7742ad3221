import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { Button } from "../../components/Button";
import { Choices, fieldOf, TextField } from "../../components/Field";
import { Dialog, FormDialog } from "../../components/Dialog";
import { Id, Notice, Spinner } from "../../components/elements";
import { openClient } from "../../session/context";
import { loadStripe, payWithDouble, payWithStripe, usesDouble, type Card } from "./cards";
import { addFunds, centsOf, type Payments } from "./payment";

const AMOUNTS = [
  ["500", "$5"],
  ["2000", "$20"],
  ["5000", "$50"],
  ["10000", "$100"],
  ["other", "Other"],
] as const;
type Amount = (typeof AMOUNTS)[number][0];

interface Props {
  readonly account: string;
  readonly payments: Payments;
  readonly onClose: () => void;
  readonly onPaid: (sentence: string) => void;
}

export function AddFunds({ account, payments, onClose, onPaid }: Props): ReactNode {
  const [amount, setAmount] = useState<Amount>("2000");
  const [other, setOther] = useState("");
  const { data: publishableKey, error } = useQuery({
    queryKey: ["stripe"],
    queryFn: async () => (await openClient.stripeConfig()).publishable_key,
  });
  const { fields, pay, question } = useCard(publishableKey);
  return (
    <>
      <FormDialog
        onClose={onClose}
        modal={usesDouble}
        title="Add funds"
        about="Credit pays for runs and changes. It does not expire."
        submit="Add funds"
        ready={publishableKey !== undefined}
        onSubmit={async () =>
          onPaid(await addFunds(account, payments, amount === "other" ? centsOf(other) : Number(amount), pay))
        }
      >
        <p>
          Paid into account <Id value={account} what="account id" />
        </p>
        <Choices legend="Amount" value={amount} options={AMOUNTS} onChange={setAmount} />
        {amount === "other" && (
          <TextField
            label="Other amount in dollars"
            inputMode="decimal"
            value={other}
            onChange={setOther}
            placeholder="5.00 or more"
          />
        )}
        {error !== null && <Notice kind="error">Payments are not available at the moment. Try again later.</Notice>}
        {fields}
      </FormDialog>
      {question}
    </>
  );
}

/** The card's fields and payment function: the processor's own, or the double's. */
function useCard(publishableKey: string | undefined) {
  const double = useDoubleCard();
  const stripe = useStripeCard(publishableKey);
  const pay = (clientSecret: string): Promise<void> =>
    usesDouble
      ? payWithDouble(publishableKey ?? "", double.card, clientSecret, double.askPayer)
      : stripe.pay(clientSecret);
  return { pay, fields: usesDouble ? double.fields : stripe.fields, question: usesDouble ? double.question : null };
}

function useStripeCard(publishableKey: string | undefined) {
  const place = useRef<HTMLDivElement>(null);
  const ready = useRef<Promise<(clientSecret: string) => Promise<void>>>(undefined);
  const [shown, setShown] = useState(false);
  useEffect(() => {
    if (usesDouble || publishableKey === undefined) return;
    let unmount = (): void => undefined;
    ready.current = loadStripe(publishableKey).then((stripe) => {
      const card = stripe.elements().create("card");
      if (place.current !== null) card.mount(place.current);
      unmount = () => card.unmount();
      setShown(true);
      return (clientSecret) => payWithStripe(stripe, card, clientSecret);
    });
    ready.current.catch(() => setShown(true));
    return () => unmount();
  }, [publishableKey]);
  const pay = async (clientSecret: string): Promise<void> => (await ready.current)?.(clientSecret);
  const fields = (
    <div className="field">
      <span className="label">Card</span>
      {!shown && <Spinner label="Loading the card form" />}
      <div className="input" ref={place} />
    </div>
  );
  return { pay, fields };
}

function useDoubleCard() {
  const [card, setCard] = useState<Card>({ number: "", expiry: "", cvc: "" });
  const field = fieldOf(card, (part) => setCard({ ...card, ...part }));
  const [question, setQuestion] = useState<(passed: boolean) => void>();
  const askPayer = (): Promise<boolean> => new Promise((resolve) => setQuestion(() => resolve));
  const answer = (passed: boolean): void => {
    question?.(passed);
    setQuestion(undefined);
  };
  const fields = (
    <fieldset className="stack">
      <legend className="soft small">A test card: no money moves here. Try 4242 4242 4242 4242, 12 / 34, 123.</legend>
      <TextField label="Card number" inputMode="numeric" required {...field("number")} />
      <div className="two">
        <TextField label="Expires" required placeholder="12 / 34" {...field("expiry")} />
        <TextField label="CVC" inputMode="numeric" required {...field("cvc")} />
      </div>
    </fieldset>
  );
  const dialog = question !== undefined && (
    <Dialog
      onClose={() => answer(false)}
      title="Your bank asks"
      about="A test of the bank's confirmation: choose its answer."
    >
      <div className="dialog-foot">
        <Button onPress={() => answer(false)}>Fail authentication</Button>
        <Button variant="primary" onPress={() => answer(true)}>
          Complete authentication
        </Button>
      </div>
    </Dialog>
  );
  return { card, askPayer, fields, question: dialog };
}
