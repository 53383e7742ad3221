import { useState, type ComponentProps, type ReactNode } from "react";
import { ClientError } from "../../../client";
import { Button } from "../../components/Button";
import { Dialog, FormDialog } from "../../components/Dialog";
import { TextField } from "../../components/Field";
import { Failure, Notice, Spinner } from "../../components/elements";
import { wordsOf } from "../../components/failures";
import { short } from "../../components/text";
import { SignedRequest } from "../../changes/SignedRequest";
import { openClient, useSessions } from "../../session/context";
import type { ChainConfig, Connection, FoundWallet } from "../../session/types";
import { useWallets, walletTools } from "../../session/foundWallets";

type Step =
  | { readonly at: "idle" }
  | { readonly at: "choose"; readonly for: Purpose }
  | { readonly at: "busy"; readonly signing?: Omit<ComponentProps<typeof SignedRequest>, "type"> }
  | {
      readonly at: "otherChain";
      readonly connection: Connection;
      readonly config: ChainConfig;
      readonly chain: bigint;
      readonly for: Purpose;
    }
  | { readonly at: "noAccount" }
  | {
      readonly at: "which";
      readonly connection: Connection;
      readonly config: ChainConfig;
      readonly accounts: readonly string[];
      readonly given: readonly string[];
    }
  | { readonly at: "safe"; readonly connection: Connection; readonly config: ChainConfig };
type Purpose = "own" | "safe";

const idsIn = (fact: unknown): string[] => (Array.isArray(fact) ? fact.map(String) : []);

/** Wallet sign-in: choose the wallet, connect, switch to the right chain, sign once. */
export function WalletSignIn({ onCreate }: { readonly onCreate: () => void }): ReactNode {
  const { begin } = useSessions();
  const found = useWallets();
  const [step, setStep] = useState<Step>({ at: "idle" });
  const [failure, setFailure] = useState<string>();

  const attempt = async (work: () => Promise<Step>): Promise<void> => {
    setFailure(undefined);
    setStep({ at: "busy" });
    try {
      setStep(await work());
    } catch (error) {
      setFailure(wordsOf(error));
      setStep({ at: "idle" });
    }
  };
  const enter = async (connection: Connection, config: ChainConfig, purpose: Purpose): Promise<Step> => {
    const chain = await (await walletTools()).chainOf(connection);
    if (chain !== BigInt(config.chain_id)) return { at: "otherChain", connection, config, chain, for: purpose };
    if (purpose === "safe") return { at: "safe", connection, config };
    return signIn(connection, config);
  };
  /** A wallet that owns several accounts, or only what others gave to it, must name the account. */
  const signIn = async (connection: Connection, config: ChainConfig, accountId?: string): Promise<Step> => {
    setStep({ at: "busy", signing: { address: connection.address, config } });
    try {
      const session = await (await walletTools()).signInWithWallet(connection, config, accountId);
      if (session === undefined) return { at: "noAccount" };
      begin(session);
      return { at: "idle" };
    } catch (error) {
      if (!(error instanceof ClientError && error.code === "account_not_named")) throw error;
      const [accounts, given] = [idsIn(error.facts["accounts"]), idsIn(error.facts["given"])];
      return { at: "which", connection, config, accounts, given };
    }
  };
  const connect = (detail: FoundWallet, purpose: Purpose): Promise<void> =>
    attempt(async () =>
      enter(await (await walletTools()).connectWallet(detail), await openClient.getNodeChainConfig(), purpose),
    );
  const start = (purpose: Purpose): unknown => {
    const [only, ...others] = found;
    if (only !== undefined && others.length === 0) return connect(only, purpose);
    return setStep({ at: "choose", for: purpose });
  };

  return (
    <div className="stack">
      <Button onPress={() => start("own")}>Connect wallet</Button>
      {step.at === "busy" && <Waiting {...step} />}
      <Failure error={failure} />
      {step.at === "noAccount" && (
        <Notice>
          <div className="stack-s">
            <span>This wallet owns no account here yet.</span>
            <Button onPress={onCreate}>Make one with this wallet</Button>
          </div>
        </Notice>
      )}
      <Button variant="quiet" size="small" onPress={() => start("safe")}>
        My account belongs to a Safe
      </Button>
      <Dialog open={step.at === "choose"} onClose={() => setStep({ at: "idle" })} title="Choose a wallet">
        {found.length === 0 && (
          <p>You need no wallet to begin: create an account with an API key, and hand it to a wallet later.</p>
        )}
        <WalletList found={found} onChoose={(detail) => connect(detail, step.at === "choose" ? step.for : "own")} />
      </Dialog>
      {step.at === "otherChain" && (
        <OtherChain
          {...step}
          onClose={() => setStep({ at: "idle" })}
          onSwitched={() => attempt(() => enter(step.connection, step.config, step.for))}
        />
      )}
      {step.at === "which" && (
        <Dialog
          onClose={() => setStep({ at: "idle" })}
          title="Which account?"
          about={
            "This wallet owns these accounts. Whoever gave you one may know keys that can sign with it and spend its " +
            "credit: revoke all keys before you use it."
          }
        >
          <ul className="stack-s">
            {step.accounts.map((account) => (
              <li key={account}>
                <Button className="wallet" onPress={() => attempt(() => signIn(step.connection, step.config, account))}>
                  <span className="code">{short(account)}</span>
                  {step.given.includes(account) && <span>given to you</span>}
                </Button>
              </li>
            ))}
          </ul>
        </Dialog>
      )}
      {step.at === "safe" && <SafeSignIn {...step} onClose={() => setStep({ at: "idle" })} />}
    </div>
  );
}

/** What the wallet signs can be read beside its prompt. */
const Waiting = ({ signing }: Extract<Step, { at: "busy" }>): ReactNode => (
  <>
    <Spinner label="Waiting for your wallet" />
    {signing !== undefined && <SignedRequest type="BillingAuth" {...signing} />}
  </>
);

export function WalletList({
  found,
  onChoose,
}: {
  readonly found: readonly FoundWallet[];
  readonly onChoose: (detail: FoundWallet) => void;
}): ReactNode {
  if (found.length === 0)
    return (
      <p>
        No wallet was found in this browser. Install one, for example a browser extension, and load this page again.
      </p>
    );
  return (
    <ul className="stack-s">
      {found.map((detail) => (
        <li key={detail.info.uuid}>
          <Button className="wallet" onPress={() => onChoose(detail)}>
            <img src={detail.info.icon} alt="" width="20" height="20" />
            {detail.info.name}
          </Button>
        </li>
      ))}
    </ul>
  );
}

interface OtherChainProps {
  readonly connection: Connection;
  readonly config: ChainConfig;
  readonly chain: bigint;
  readonly onClose: () => void;
  readonly onSwitched: () => Promise<void>;
}

export function OtherChain({ connection, config, chain, onClose, onSwitched }: OtherChainProps): ReactNode {
  return (
    <FormDialog
      onClose={onClose}
      title="Your wallet is on another network"
      about={
        `${connection.detail.info.name} is on chain ${chain}. This service uses ${config.chain_name}, chain ` +
        `${config.chain_id}.`
      }
      submit="Switch network"
      onSubmit={async () => {
        await (await walletTools()).switchChain(connection, config);
        await onSwitched();
        // What comes next takes this dialog's place; closing would end it.
        return false;
      }}
    />
  );
}

function SafeSignIn({
  connection,
  config,
  onClose,
}: {
  readonly connection: Connection;
  readonly config: ChainConfig;
  readonly onClose: () => void;
}): ReactNode {
  const { begin } = useSessions();
  const [safe, setSafe] = useState("");
  const [account, setAccount] = useState("");
  return (
    <FormDialog
      onClose={onClose}
      title="An account that belongs to a Safe"
      about={
        "You prepare the changes here and save them as one file. The Safe's signers load it in the Transaction " +
        "Builder, sign it and execute it."
      }
      submit="Continue"
      onSubmit={async () =>
        begin(
          await (
            await walletTools()
          ).prepareForSafe(connection, config, safe.trim(), account.trim() === "" ? undefined : account.trim()),
        )
      }
    >
      <TextField label="Safe address" code required value={safe} onChange={setSafe} placeholder="0x…" />
      <TextField
        label="Account id"
        code
        value={account}
        onChange={setAccount}
        placeholder="0x…"
        hint="Only for an account that was handed over to the Safe."
      />
    </FormDialog>
  );
}
