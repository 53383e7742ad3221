import { useState, type ReactNode } from "react";
import { createAccount, type ChainSecuredClient, type DecodedCall } from "../../../client";
import { CallList } from "../../changes/CallList";
import { SignedRequest } from "../../changes/SignedRequest";
import { Choices, StringsFields, TextField, type Strings } from "../../components/Field";
import { Dialog, FormDialog } from "../../components/Dialog";
import { Facts, Failure } from "../../components/elements";
import { Address } from "../../components/explorer";
import { codeOf, wordsOf } from "../../components/failures";
import { attempted, endAttempt } from "../../session/attempts";
import { openClient, signInWithKey, useSessions } from "../../session/context";
import { secretOf } from "../../session/once";
import { useSecrets } from "../../session/secrets";
import type { Connection } from "../../session/types";
import { useWallets, walletTools } from "../../session/foundWallets";
import { OtherChain, WalletList } from "./WalletSignIn";
import { ORIGIN } from "../../session/origin";

type Mode = "api" | "wallet";
const MODES = [
  ["api", "With an API key"],
  ["wallet", "With my wallet"],
] as const;
const ABOUT: Readonly<Record<Mode, string>> = {
  api:
    "The service keeps the account for you and pays the network fees. You get one API key. You can hand the account " +
    "to a wallet later.",
  wallet:
    "ChainSecured: only your wallet can change the account, not even the operator can. Your wallet pays the network " +
    "fees, or your credit does where it holds no coin.",
};

type AccountBody = Parameters<typeof createAccount>[1];

/**
 * Creates an API-mode account, or asks again for the key of one whose answer was lost. The key is shown before anything
 * else is read.
 */
export function useCreateWithKey(): (strings: Strings & { readonly email?: string }) => Promise<void> {
  const { begin } = useSessions();
  const { show, during } = useSecrets();
  return async ({ name, description, ...email }) => {
    const body: AccountBody = { account_name: name, account_description: description, ...email };
    const attempt = JSON.stringify(["account", body]);
    const request = { kind: "account", account: "", label: name, body: { name, description, ...email } } as const;
    const { account } = await during(attempted(attempt, (options) => createAccount(ORIGIN, body, options), request));
    show({
      ...secretOf(request, account.api_key),
      onKept: async () => {
        endAttempt(attempt);
        begin(await signInWithKey(account.api_key, false));
      },
    });
  };
}

/** Creates an account of either mode. */
export function CreateAccount({
  mode: first,
  onClose,
}: {
  readonly mode: Mode;
  readonly onClose: () => void;
}): ReactNode {
  const makeWithKey = useCreateWithKey();
  const [mode, setMode] = useState<Mode>(first);
  const [strings, setStrings] = useState<Strings>({ name: "", description: "" });
  const [email, setEmail] = useState("");
  const [withWallet, setWithWallet] = useState(false);

  if (withWallet) return <CreateWithWallet strings={strings} onClose={onClose} />;
  return (
    <FormDialog
      onClose={onClose}
      title="Create an account"
      submit="Create account"
      onSubmit={async () => {
        if (mode === "api") return makeWithKey({ ...strings, ...(email === "" ? {} : { email }) });
        setWithWallet(true);
        return false;
      }}
    >
      <Choices legend="How you want to own it" value={mode} options={MODES} onChange={setMode} />
      <p className="soft small">{ABOUT[mode]}</p>
      <StringsFields value={strings} onChange={setStrings} placeholder="Acme" />
      {mode === "api" && (
        <TextField
          label="Email"
          type="email"
          value={email}
          onChange={setEmail}
          placeholder="Optional"
          hint="For payment receipts. Never on the blockchain."
        />
      )}
    </FormDialog>
  );
}

/** The id comes from the owner's own address: where it is taken, an earlier attempt has made the account. */
async function makeOnce(client: ChainSecuredClient, fields: Parameters<typeof client.createAccount>[0]): Promise<void> {
  try {
    await client.createAccount(fields);
  } catch (error) {
    if (codeOf(error) !== "account_id_taken") throw error;
  }
}

/** The words of a declined signature say that nothing was sent. */
function afterMade(error: unknown): Error {
  const why = codeOf(error) === "wallet_declined" ? "You declined to sign in with your wallet." : wordsOf(error);
  return new Error(`The account was made. ${why}`);
}

type WalletStep = {
  readonly connection: Connection;
  readonly chain: bigint;
  readonly client?: ChainSecuredClient;
  readonly calls?: readonly DecodedCall[];
  readonly gas?: string;
};

function CreateWithWallet({
  strings,
  onClose,
}: {
  readonly strings: Strings;
  readonly onClose: () => void;
}): ReactNode {
  const { begin } = useSessions();
  const found = useWallets();
  const [step, setStep] = useState<WalletStep>();
  const [config, setConfig] = useState<Awaited<ReturnType<typeof openClient.getNodeChainConfig>>>();
  const [failure, setFailure] = useState<string>();
  const [isMade, setMade] = useState(false);
  const fields = { account_name: strings.name, account_description: strings.description };

  const ready = async (connection: Connection): Promise<void> => {
    const deployment = await openClient.getNodeChainConfig();
    setConfig(deployment);
    const { chainOf, clientWithoutAccount } = await walletTools();
    const chain = await chainOf(connection);
    if (chain !== BigInt(deployment.chain_id)) return setStep({ connection, chain });
    const client = await clientWithoutAccount(connection, deployment);
    const write = await client.prepare.createAccount(fields);
    const [{ gas }, { decodeCalls }] = await Promise.all([client.estimate(write), import("../../../client/calls")]);
    setStep({ connection, chain, client, calls: decodeCalls(write.data), gas: gas.toLocaleString("en-US") });
  };
  const choose = (detail: (typeof found)[number]): Promise<void> =>
    walletTools()
      .then(({ connectWallet }) => connectWallet(detail))
      .then(ready)
      .catch((error: unknown) => setFailure(wordsOf(error)));

  if (step === undefined || config === undefined) {
    return (
      <Dialog onClose={onClose} title="Choose a wallet" about="It becomes the owner of the account.">
        <Failure error={failure} />
        <WalletList found={found} onChoose={(detail) => void choose(detail)} />
      </Dialog>
    );
  }
  const { client, connection, calls = [] } = step;
  if (client === undefined)
    return (
      <OtherChain
        connection={connection}
        config={config}
        chain={step.chain}
        onClose={onClose}
        onSwitched={() => ready(connection)}
      />
    );
  const enter = async (): Promise<void> => {
    const session = await (await walletTools()).signInWithWallet(connection, config);
    if (session === undefined) throw new Error("Connect the wallet again to sign in.");
    begin(session);
  };
  return (
    <FormDialog
      onClose={onClose}
      title="Review: create the account"
      submit="Sign and send"
      onSubmit={async () => {
        if (!isMade) await makeOnce(client, fields);
        setMade(true);
        await enter().catch((error: unknown) => Promise.reject(afterMade(error)));
      }}
    >
      {isMade ? (
        <SignedRequest type="BillingAuth" address={connection.address} config={config} />
      ) : (
        <>
          <Facts
            items={[
              ["Function", <code key="f">newChainSecuredAccount</code>],
              ["Owner", <Address key="o" value={connection.address} what="owner" chain={config} />],
              ["Sent to", <Address key="c" value={client.contractAddress} what="contract" chain={config} />],
            ]}
          />
          <CallList calls={calls} show={({ value }) => value || "(empty)"} />
          <p>
            Your wallet pays the network fee: {step.gas} gas, or the service does where the wallet holds no coin. Then
            it signs once more, free of charge, to sign in.
          </p>
        </>
      )}
    </FormDialog>
  );
}
