import { useState, type ReactNode } from "react";
import { createAccount, createClient, type ChainSecuredClient } from "../../../client";
import { Choices, StringsFields, TextField, type Strings } from "../../parts/Field";
import { Dialog, FormDialog } from "../../parts/Dialog";
import { SecretOnce } from "../../parts/SecretOnce";
import { Facts, Notice } from "../../parts/elements";
import { Address } from "../../parts/explorer";
import { keySession, openClient, useSessions } from "../../session/context";
import type { Connection, KeySession } from "../../session/types";
import { useWallets, walletTools } from "../../session/foundWallets";
import { OtherChain, WalletList } from "./WalletSignIn";

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

/**
 * Creates an account of either mode. The key of an API-mode account is shown once and must be stored before continuing.
 */
export function CreateAccount({
  mode: first,
  onClose,
}: {
  readonly mode: Mode;
  readonly onClose: () => void;
}): ReactNode {
  const { begin } = useSessions();
  const [mode, setMode] = useState<Mode>(first);
  const [strings, setStrings] = useState<Strings>({ name: "", description: "" });
  const [email, setEmail] = useState("");
  const [made, setMade] = useState<KeySession>();
  const [withWallet, setWithWallet] = useState(false);

  const makeWithKey = async (): Promise<void> => {
    const body = {
      account_name: strings.name,
      account_description: strings.description,
      ...(email === "" ? {} : { email }),
    };
    const { account } = await createAccount({ baseUrl: location.origin }, body);
    const client = createClient({ baseUrl: location.origin, apiKey: account.api_key });
    const [shown, config] = await Promise.all([client.account(), openClient.getNodeChainConfig()]);
    setMade(keySession(account.api_key, { account: shown, config }));
  };

  if (made !== undefined) {
    return (
      <Dialog
        open
        closable={false}
        onClose={() => undefined}
        title="Keep your API key"
        about={
          "This key controls your account: anyone who has it can do everything. It is shown once and cannot be " +
          "recovered."
        }
      >
        <SecretOnce
          secret={made.key}
          what="API key"
          file={`${made.account.name || "account"}-key.txt`}
          onKept={() => begin(made)}
        />
      </Dialog>
    );
  }
  if (withWallet) return <CreateWithWallet strings={strings} onClose={onClose} />;
  return (
    <FormDialog
      open
      onClose={onClose}
      title="Create an account"
      submit="Create account"
      onSubmit={async () => {
        if (mode === "wallet") setWithWallet(true);
        else await makeWithKey();
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

type WalletStep = {
  readonly connection: Connection;
  readonly chain: bigint;
  readonly client?: ChainSecuredClient;
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
  const fields = { account_name: strings.name, account_description: strings.description };

  const ready = async (connection: Connection): Promise<void> => {
    const deployment = await openClient.getNodeChainConfig();
    setConfig(deployment);
    const { chainOf, clientWithoutAccount } = await walletTools();
    const chain = await chainOf(connection);
    if (chain !== BigInt(deployment.chain_id)) return setStep({ connection, chain });
    const client = await clientWithoutAccount(connection, deployment);
    const { gas } = await client.estimate(await client.prepare.createAccount(fields));
    setStep({ connection, chain, client, gas: gas.toLocaleString("en-US") });
  };
  const choose = (detail: (typeof found)[number]): Promise<void> =>
    walletTools()
      .then(({ connectWallet }) => connectWallet(detail))
      .then(ready)
      .catch((error: unknown) => setFailure(error instanceof Error ? error.message : "The wallet did not answer."));

  if (step === undefined || config === undefined) {
    return (
      <Dialog open onClose={onClose} title="Choose a wallet" about="It becomes the owner of the account.">
        {failure !== undefined && <Notice kind="bad">{failure}</Notice>}
        <WalletList found={found} onChoose={(detail) => void choose(detail)} />
      </Dialog>
    );
  }
  const { client, connection } = step;
  if (client === undefined)
    return (
      <OtherChain
        connection={connection}
        config={config}
        chain={step.chain}
        onClose={onClose}
        onSwitched={() => void ready(connection)}
      />
    );
  return (
    <FormDialog
      open
      onClose={onClose}
      title="Review: create the account"
      submit="Sign and send"
      onSubmit={async () => {
        await client.createAccount(fields);
        const session = await (await walletTools()).signInWithWallet(connection, config);
        if (session === undefined) throw new Error("The account was made. Connect the wallet again to sign in.");
        begin(session);
      }}
    >
      <Facts
        items={[
          ["Function", <code key="f">newChainSecuredAccount</code>],
          ["Name", strings.name],
          ["Owner", <Address key="o" value={connection.address} what="owner" chain={config} />],
          ["Sent to", <Address key="c" value={client.contractAddress} what="contract" chain={config} />],
        ]}
      />
      <p>
        Your wallet pays the network fee: {step.gas} gas, or the service does where the wallet holds no coin. Then it
        signs once more, free of charge, to sign in.
      </p>
    </FormDialog>
  );
}
