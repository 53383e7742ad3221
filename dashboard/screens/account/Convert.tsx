import { useState, type ReactNode } from "react";
import type { ChainConfig, Connection, FoundWallet, KeySession } from "../../session/types";
import { FormDialog, Dialog } from "../../components/Dialog";
import { Failure, Notice } from "../../components/elements";
import { Address } from "../../components/explorer";
import { wordsOf } from "../../components/failures";
import { Check } from "../../components/Field";
import { useWallets, walletTools } from "../../session/foundWallets";
import { useSessions } from "../../session/context";
import { OtherChain, WalletList } from "../signIn/WalletSignIn";
import { SignedRequest } from "../../changes/SignedRequest";
import { Ends } from "./Transfer";

type Step =
  | { readonly at: "wallet" }
  | { readonly at: "chain"; readonly connection: Connection; readonly chain: bigint }
  | { readonly at: "confirm"; readonly connection: Connection };

/** Steps: connect a wallet, review what ends, sign once; the service sends the conversion and pays for it. */
export function Convert({
  session,
  onClose,
}: {
  readonly session: KeySession;
  readonly onClose: () => void;
}): ReactNode {
  const found = useWallets();
  const [step, setStep] = useState<Step>({ at: "wallet" });
  const [failure, setFailure] = useState<string>();
  const ready = async (connection: Connection): Promise<void> => {
    const chain = await (await walletTools()).chainOf(connection);
    setStep(
      chain === BigInt(session.config.chain_id) ? { at: "confirm", connection } : { at: "chain", connection, chain },
    );
  };
  const choose = async (detail: FoundWallet): Promise<void> => {
    setFailure(undefined);
    try {
      await ready(await (await walletTools()).connectWallet(detail));
    } catch (error) {
      setFailure(wordsOf(error));
    }
  };
  if (step.at === "wallet") {
    return (
      <Dialog
        onClose={onClose}
        title="Convert to ChainSecured"
        about="Step 1 of 2: choose the wallet that will own the account."
      >
        <Failure error={failure} />
        <WalletList found={found} onChoose={(detail) => void choose(detail)} />
      </Dialog>
    );
  }
  if (step.at === "chain")
    return <OtherChain {...step} config={session.config} onClose={onClose} onSwitched={() => ready(step.connection)} />;
  return <Confirm session={session} connection={step.connection} onClose={onClose} />;
}

interface ConfirmProps {
  readonly session: KeySession;
  readonly connection: Connection;
  readonly onClose: () => void;
}

function Confirm({ session, connection, onClose }: ConfirmProps): ReactNode {
  const { begin } = useSessions();
  const [understood, setUnderstood] = useState(false);
  return (
    <FormDialog
      onClose={onClose}
      title="Convert to ChainSecured"
      about="Step 2 of 2: your wallet signs that it takes over the account. This cannot be undone."
      submit="Convert account"
      danger
      ready={understood}
      onSubmit={async () => {
        begin(await convert(session, connection, session.config));
      }}
    >
      <Notice>
        The account will belong to <Address whole value={connection.address} what="new owner" chain={session.config} />
      </Notice>
      <SignedRequest type="ConvertAccount" address={connection.address} config={session.config} />
      <Ends managed />
      <Check label="I understand that this cannot be undone" checked={understood} onChange={setUnderstood} />
    </FormDialog>
  );
}

async function convert(session: KeySession, connection: Connection, config: ChainConfig) {
  return (await walletTools()).convertWithWallet(connection, config, session.key);
}
