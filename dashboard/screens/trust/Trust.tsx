import { useQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { useAccount, useLimits } from "../../app/queries";
import { Button } from "../../components/Button";
import { Badge, CodeBlock, Facts, Failure, Id, Notice, PageHead } from "../../components/elements";
import { Address } from "../../components/explorer";
import { wordsOf } from "../../components/failures";
import { openClient, useSession } from "../../session/context";
import type { Step } from "./verify";

export function Trust(): ReactNode {
  const info = useQuery({ queryKey: ["info"], queryFn: () => openClient.info(), staleTime: Infinity });
  return (
    <>
      <PageHead
        title="Trust"
        about="You need not trust this service: what it reports about itself can be verified, starting here."
      />
      {info.data !== undefined && <Tee tee={info.data.tee} />}
      <Failure error={info.error} />
      <ServiceClaims info={info.data} />
      <Checks />
      <Yourself />
    </>
  );
}

function Tee({ tee }: { readonly tee: "dstack" | "simulated" | "none" }): ReactNode {
  if (tee === "dstack") {
    return (
      <Notice kind="success">
        <strong>The service says it runs in a TEE.</strong> The steps below say how far that holds.
      </Notice>
    );
  }
  const [word, about] =
    tee === "simulated"
      ? [
          "SIMULATED",
          "The TEE of this service is simulated, for development. No hardware signs its quotes. Do not keep " +
            "anything of value here.",
        ]
      : ["NO TEE", "This service runs without a TEE. The operator of the machine can read the keys."];
  return (
    <div className="card large-warning" role="note">
      <p className="word">{word}</p>
      <p>{about}</p>
    </div>
  );
}

function ServiceClaims({
  info,
}: {
  readonly info: Awaited<ReturnType<typeof openClient.info>> | undefined;
}): ReactNode {
  const { config } = useSession();
  const { data: account } = useAccount();
  const { data: payers } = useQuery({
    queryKey: ["payers"],
    queryFn: () => openClient.getApiPayers(),
    staleTime: 60_000,
  });
  const { data: limits } = useLimits();
  return (
    <section className="card stack" aria-label="What the service states">
      <h2>What the service and the chain state</h2>
      <Facts
        items={[
          ["Chain", `${config.chain_name} (${config.chain_id})${config.testnet ? ", a test network" : ""}`],
          ["Account contract", <Address key="c" value={config.contract_address} what="contract" chain={config} />],
          ["Your account's owner", <Address key="o" value={account.owner} what="owner" chain={config} />],
          [
            "Who can change your account",
            account.managed
              ? "The service, on the word of your account key (API mode)"
              : "Your wallet or multisig only (ChainSecured)",
          ],
          ["Addresses that write for API-mode accounts", payers === undefined ? "…" : String(payers.length)],
          [
            "Application",
            info?.app_id === undefined ? "not stated" : <Id key="a" value={info.app_id} what="application id" />,
          ],
          [
            "Compose hash",
            info?.compose_hash === undefined ? (
              "not stated"
            ) : (
              <Id key="h" value={info.compose_hash} what="compose hash" />
            ),
          ],
          ["Isolation of actions", isolationOf(info?.sandbox)],
          [
            "Root key commitment",
            info === undefined ? "…" : <Id key="r" value={info.root_commitment} what="root key commitment" />,
          ],
          ["Key namespace", <Id key="n" value={config.key_namespace} what="key namespace" />],
          [
            "Actions may read private keys",
            limits === undefined ? "…" : limits.private_keys_allowed ? "yes, where a group allows the action" : "no",
          ],
        ]}
      />
    </section>
  );
}

/** As the service reports it: full, or what is missing. */
const isolationOf = (sandbox: { readonly level: string; readonly missing: readonly string[] } | undefined): string =>
  sandbox === undefined ? "…" : [sandbox.level, ...sandbox.missing.slice(0, 1)].join(": ");

const STATUS = {
  passed: ["passed", "success"],
  failed: ["failed", "error"],
  not_checked: ["not checked here", "warning"],
} as const;

function Checks(): ReactNode {
  const [steps, setSteps] = useState<readonly Step[]>();
  const [failure, setFailure] = useState<string>();
  const check = async (): Promise<void> => {
    setFailure(undefined);
    try {
      const { verifyHere } = await import("./verify");
      setSteps(await verifyHere());
    } catch (error) {
      setFailure(wordsOf(error));
    }
  };
  return (
    <section className="card stack" aria-label="Checks in this browser">
      <div className="row-between">
        <h2>Checks in this browser</h2>
        <Button onPress={check}>{steps === undefined ? "Check now" : "Check again"}</Button>
      </div>
      <p className="soft">
        A fresh random number is sent; the answer is taken apart here and every hash is computed again. This page came
        from the service, so treat what it finds as a first look.
      </p>
      <Failure error={failure} />
      {steps !== undefined && (
        <ol className="checks">
          {steps.map(({ id, title, status, detail }) => (
            <li key={id}>
              <Badge kind={STATUS[status][1]}>{STATUS[status][0]}</Badge>
              <div className="grow">
                <div className="name">{title}</div>
                <div className="soft small anywhere">{detail}</div>
              </div>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

function Yourself(): ReactNode {
  const { config } = useSession();
  const command =
    `npm run verify -- ${location.origin} --rpc <your own RPC endpoint> --measurements ` +
    "image.json --key-provider <its key management> --source .";
  return (
    <section className="card stack" aria-label="Check it yourself">
      <h2>Check all of it yourself</h2>
      <p>
        What a page cannot check, a program on your own machine can: the signature chain up to the processor's maker,
        the machine image, the allow-list contract on chain {config.chain_id}, that the images are what this source
        builds, and that this very connection ends inside the TEE.
      </p>
      <CodeBlock what="Command" text={command} />
    </section>
  );
}
