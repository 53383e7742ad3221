import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { keyHashOf } from "../../../client";
import { readAgain, usePkps } from "../../app/queries";
import { Button } from "../../components/Button";
import { Notice, PageHead } from "../../components/elements";
import { codeOf, wordsOf } from "../../components/failures";
import { Select, TextField } from "../../components/Field";
import { plural, short } from "../../components/text";
import { useSession } from "../../session/context";
import { cidOf } from "../actions/codes";
import { Why } from "../activity/Why";
import { draftOf, keepDraft, type Draft } from "./draft";
import { Editor } from "./Editor";
import { EXAMPLES } from "./examples";
import { AddToGroup, RunResult, useListable } from "./RunResult";
import { paramsOf, runOnce, useRan, useRunKeys } from "./run";

const ANOTHER = "another";

export function Runner(): ReactNode {
  const session = useSession();
  const queries = useQueryClient();
  const keys = useRunKeys();
  const [draft, setDraft] = useState<Draft>(() => draftOf(session.account.id));
  const [chosen, setChosen] = useState(keys[0]?.hash ?? ANOTHER);
  const [typed, setTyped] = useState("");
  const [ran, beginRun] = useRan();
  const [ranBefore] = useState(ran);
  const [isRunning, setRunning] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const [ranCode, setRanCode] = useState("");
  const change = (part: Partial<Draft>): void =>
    setDraft((now) => {
      const next = { ...now, ...part };
      keepDraft(session.account.id, next);
      return next;
    });
  const key = chosen === ANOTHER ? typed : (keys.find(({ hash }) => hash === chosen)?.key ?? typed);

  const run = async (): Promise<void> => {
    setFailure(undefined);
    setRanCode(draft.code);
    setRunning(true);
    const keepRan = beginRun();
    try {
      keepRan(await runOnce(key, draft.code, draft.params));
    } catch (error) {
      setFailure(error);
    } finally {
      setRunning(false);
    }
    const isFree = session.kind === "key";
    if (isFree)
      await readAgain(queries, { predicate: ({ queryKey }) => ["signed", "list"].includes(String(queryKey[0])) });
  };
  return (
    <>
      <PageHead
        title="Runner"
        about="Write an action, run it and see its result. A run costs the same here as through the API."
      >
        <Examples code={draft.code} onOpen={change} />
      </PageHead>
      <div className="runner">
        <section className="stack" aria-label="Action">
          <div className="stack-s">
            <div className="editor-head">
              <span className="label" aria-hidden="true">
                Code
              </span>
            </div>
            <Editor label="Code" language="javascript" value={draft.code} onChange={(code) => change({ code })} />
          </div>
        </section>
        <section className="stack" aria-label="Run it">
          <div className="stack-s">
            <div className="editor-head">
              <span className="label" aria-hidden="true">
                Parameters
              </span>
              <PkpInto params={draft.params} onChange={(params) => change({ params })} />
            </div>
            <Editor label="Parameters" language="json" value={draft.params} onChange={(params) => change({ params })} />
          </div>
          <Select
            label="Run with"
            value={chosen}
            options={[...keys.map(({ hash, name }) => [hash, name || short(hash)] as const), [ANOTHER, "Another key"]]}
            onChange={setChosen}
          />
          {chosen === ANOTHER && (
            <TextField
              label="Usage key"
              type="password"
              code
              value={typed}
              onChange={setTyped}
              hint="Stays in the memory of this tab."
            />
          )}
          <Button variant="primary" onPress={run}>
            Run
          </Button>
        </section>
      </div>
      {failure !== undefined && <RunRefused failure={failure} code={ranCode} apiKey={key} />}
      {ran !== null && failure !== undefined && (
        <div className="row">
          <Button onPress={() => setFailure(undefined)}>Show the last result again</Button>
        </div>
      )}
      {ran !== null && failure === undefined && !isRunning && <RunResult ran={ran} isNew={ran !== ranBefore} />}
    </>
  );
}

function RunRefused({
  failure,
  code,
  apiKey,
}: {
  readonly failure: unknown;
  readonly code: string;
  readonly apiKey: string;
}): ReactNode {
  const [adding, setAdding] = useState(false);
  const mayList = useListable().isOffered;
  const isDenied = DENIED.includes(codeOf(failure));
  const isOffered = isDenied && mayList;
  const { data: cid } = useQuery({ queryKey: ["cid", code], queryFn: () => cidOf(code), enabled: isDenied });
  return (
    <>
      <Notice kind="error">
        <div className="row-between">
          <span>
            {wordsOf(failure)} {isOffered && "List the action in a group where this key may run."}
          </span>
          {isOffered && (
            <Button size="small" onPress={() => setAdding(true)}>
              Add this action to a group
            </Button>
          )}
        </div>
        {adding && cid !== undefined && <AddToGroup cid={cid} onClose={() => setAdding(false)} />}
      </Notice>
      {isDenied && cid !== undefined && <Why question={{ keyId: keyHashOf(apiKey.trim()), cid }} />}
    </>
  );
}

const DENIED = ["no_execute_scope", "action_not_permitted", "pkp_not_permitted"];

interface ExamplesProps {
  readonly code: string;
  readonly onOpen: (draft: Draft) => void;
}

/** Names the example that is open, so that the arrow keys go from one to the next. */
function Examples({ code, onOpen }: ExamplesProps): ReactNode {
  const { items } = usePkps();
  const shown = EXAMPLES.find((one) => one.code === code)?.name ?? "";
  const open = (name: string): void => {
    const example = EXAMPLES.find((one) => one.name === name);
    if (example === undefined) return;
    const pkp = example.pkp ? { pkpId: items[0]?.wallet_address ?? "" } : {};
    onOpen({ code: example.code, params: JSON.stringify({ ...pkp, ...example.params }, null, 2) });
  };
  return (
    <select className="input" aria-label="Open an example" value={shown} onChange={(event) => open(event.target.value)}>
      <option value="">Open an example</option>
      {EXAMPLES.map(({ name }) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

/** Of PKPs to choose from. */
const SHOWN = 500;

/** Inserts a PKP's address into the parameters. */
function PkpInto({
  params,
  onChange,
}: {
  readonly params: string;
  readonly onChange: (params: string) => void;
}): ReactNode {
  const { items } = usePkps();
  const put = (pkpId: string): void => {
    try {
      onChange(JSON.stringify({ ...paramsOf(params), pkpId }, null, 2));
    } catch {
      onChange(JSON.stringify({ pkpId }, null, 2));
    }
  };
  if (items.length === 0) return null;
  return (
    <select className="input compact" aria-label="Use a PKP" value="" onChange={(event) => put(event.target.value)}>
      <option value="">Use a PKP</option>
      {items.slice(0, SHOWN).map(({ wallet_address: address, name }) => (
        <option key={address} value={address}>
          {name || short(address)}
        </option>
      ))}
      {items.length > SHOWN && <option disabled>{plural(items.length - SHOWN, "more PKP")}: write the address</option>}
    </select>
  );
}
