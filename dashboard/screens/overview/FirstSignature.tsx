/** Guides a new account to its first signature by a PKP, each step in place. */
import { lazy, Suspense, useState, type ComponentProps, type ReactNode } from "react";
import { actionHashOf, type Cid } from "../../../protocol/ids";
import { useActions, useGroups, usePkps, useUsageKeys } from "../../app/queries";
import { Button } from "../../components/Button";
import { Id, Notice } from "../../components/elements";
import { Address } from "../../components/explorer";
import { Icon } from "../../components/icons";
import { useSession } from "../../session/context";
import { cidOf } from "../actions/codes";
import { SIGN_EXAMPLE } from "../runner/examples";
import { OtherClients } from "../runner/OtherClients";
import { Receipt } from "../runner/Receipt";
import { runOnce, useRunKeys } from "../runner/run";

const CreatePkp = lazy(async () => ({ default: (await import("../pkps/CreatePkp")).CreatePkp }));
const AddAction = lazy(async () => ({ default: (await import("../actions/AddAction")).AddAction }));
const GroupForm = lazy(async () => ({ default: (await import("../groups/GroupForm")).GroupForm }));
const UsageKeyForm = lazy(async () => ({ default: (await import("../usageKeys/UsageKeyForm")).UsageKeyForm }));

const MESSAGE = "My first signature";

interface Signed {
  readonly signature: string;
  readonly signer: string;
  readonly receipt: string | undefined;
  readonly snippet: ComponentProps<typeof OtherClients>;
}

type Open = "pkp" | "action" | "group" | "key" | undefined;

const STEPS = [
  ["Create a PKP", "A key pair whose private key stays in the TEE.", "Create PKP", "pkp"],
  ["Add an action", "The code that may use it. One that signs a message is filled in.", "Add action", "action"],
  ["Create a group", "It lets that action use that PKP.", "Create group", "group"],
  ["Create a usage key", "For the program that will run the action, and nothing more.", "Create usage key", "key"],
  ["Run it", "Sign a message with the PKP, and check who signed.", "Run", undefined],
] as const satisfies readonly (readonly [string, string, string, Open])[];

export function FirstSignature({
  hasRun,
  onHide,
}: {
  readonly hasRun: boolean;
  readonly onHide: () => void;
}): ReactNode {
  const [open, setOpen] = useState<Open>();
  const [signed, setSigned] = useState<Signed>();
  const [code, setCode] = useState<string>(SIGN_EXAMPLE.code);
  const pkps = usePkps().items;
  const actions = useActions().items;
  const groups = useGroups().items;
  const keys = useUsageKeys().items;
  const runKeys = useRunKeys();
  const { account } = useSession();
  const done = [
    pkps.length > 0,
    actions.length > 0,
    groups.length > 0,
    keys.length > 0,
    signed !== undefined || hasRun,
  ];
  const current = done.indexOf(false);
  const [pkp] = pkps;
  const [action] = actions;

  const run = async (): Promise<void> => {
    // The newest usage key made here, as a program would use; else the account's own key.
    const key = runKeys.at(-1);
    if (key === undefined || pkp === undefined)
      throw new Error("Open the Runner and give it the usage key you stored.");
    if (action?.hashed_cid !== actionHashOf((await cidOf(code)) as Cid))
      throw new Error("The action you added is not in this page any more: run its code in the Runner.");
    const params = { pkpId: pkp.wallet_address, message: MESSAGE };
    const { answer } = await runOnce(key.key, code, JSON.stringify(params));
    if (answer.has_error) throw new Error(answer.error?.message ?? "The action failed.");
    const { signature } = Object(answer.response) as { signature?: unknown };
    if (typeof signature !== "string") throw new Error("The action ran, but its answer has no signature.");
    const { verifyMessage } = await import("./recover");
    setSigned({
      signature,
      signer: verifyMessage(MESSAGE, signature),
      receipt: answer.receipt,
      // Never the account's own key, which may do everything.
      snippet: { code, params, apiKey: key.hash === account.id ? undefined : key.key },
    });
  };
  const close = (): void => setOpen(undefined);
  return (
    <section className="card stack" aria-label="Your first signature">
      <div className="row-between">
        <h2>{current === -1 ? "Your first signature" : "Five steps to your first signature"}</h2>
        <Button variant="quiet" size="small" onPress={onHide}>
          Hide these steps
        </Button>
      </div>
      <ol className="steps">
        {STEPS.map(([title, about, button, target], at) => (
          <Step key={title} title={title} about={about} at={at} isDone={done[at] === true} isCurrent={at === current}>
            <Button variant="primary" onPress={target === undefined ? run : () => setOpen(target)}>
              {button}
            </Button>
          </Step>
        ))}
      </ol>
      {signed !== undefined && <SignedNotice signed={signed} expected={pkp?.wallet_address ?? ""} />}
      <Suspense fallback={null}>
        {open === "pkp" && <CreatePkp onClose={close} />}
        {open === "action" && (
          <AddAction
            onClose={close}
            onMade={(_cid, added) => setCode(added)}
            code={SIGN_EXAMPLE.code}
            name={SIGN_EXAMPLE.name}
          />
        )}
        {open === "group" && (
          <GroupForm
            onClose={close}
            pkps={pkp === undefined ? [] : [pkp.wallet_address]}
            actions={action === undefined ? [] : [action.hashed_cid]}
          />
        )}
        {open === "key" && <UsageKeyForm onClose={close} groups={groups[0] === undefined ? [] : [groups[0].id]} />}
      </Suspense>
    </section>
  );
}

interface StepProps {
  readonly title: string;
  readonly about: string;
  readonly at: number;
  readonly isDone: boolean;
  readonly isCurrent: boolean;
  readonly children: ReactNode;
}

function Step({ title, about, at, isDone, isCurrent, children }: StepProps): ReactNode {
  return (
    <li className={isDone ? "done" : isCurrent ? "current" : ""} aria-current={isCurrent ? "step" : undefined}>
      <span className="mark" aria-hidden="true">
        {isDone ? <Icon name="done" /> : at + 1}
      </span>
      <div className="grow">
        <div className="name">
          {title}
          {isDone && <span className="hidden-visually"> (done)</span>}
        </div>
        <div className="soft small">{about}</div>
      </div>
      {isCurrent && children}
    </li>
  );
}

function SignedNotice({ signed, expected }: { readonly signed: Signed; readonly expected: string }): ReactNode {
  const { config } = useSession();
  const isByPkp = signed.signer === expected;
  return (
    <Notice kind={isByPkp ? "success" : "error"}>
      <div className="stack-s" role="status">
        <strong>{isByPkp ? "Your PKP signed." : "The signature is not the PKP's."}</strong>
        <span>
          This browser recovered the signer of “{MESSAGE}” from the signature:{" "}
          <Address value={signed.signer} what="signer" chain={config} />
        </span>
        <span className="row">
          Signature <Id value={signed.signature} what="signature" />
        </span>
        {signed.receipt !== undefined && <Receipt receipt={signed.receipt} />}
        <OtherClients {...signed.snippet} open />
      </div>
    </Notice>
  );
}
