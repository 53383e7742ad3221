/** Search for screens and records by name: opened by Ctrl+K or ⌘K on every screen. */
import { useNavigate } from "@tanstack/react-router";
import { useId, useMemo, useState, type KeyboardEvent, type ReactNode } from "react";
import { Dialog } from "../components/Dialog";
import { short } from "../components/text";
import { PLACES } from "./nav";
import { useActions, useGroups, usePkps, useUsageKeys } from "./queries";

interface Entry {
  readonly kind: string;
  readonly name: string;
  readonly hint?: string;
  readonly to: string;
}

const SHOWN = 12;
const REFUSED = { name: "Why was it refused?", to: "/why" };

export function Palette({ onClose }: { readonly onClose: () => void }): ReactNode {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const navigate = useNavigate();
  const list = useId();
  const entries = useEntries();
  const found = useMemo(() => matching(entries, text).slice(0, SHOWN), [entries, text]);
  const open = (entry: Entry | undefined): void => {
    if (entry === undefined) return;
    onClose();
    void navigate({ to: entry.to });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter") open(found[at]);
    if (step !== undefined) setAt((at + step + found.length) % Math.max(1, found.length));
    if (step !== undefined || event.key === "Enter") event.preventDefault();
  };
  return (
    <Dialog onClose={onClose} title="Go to">
      <input
        className="input"
        role="combobox"
        aria-label="Search screens, PKPs, groups, actions and keys"
        aria-expanded="true"
        aria-controls={list}
        aria-activedescendant={found.length === 0 ? undefined : `${list}-${at}`}
        placeholder="A screen, a name, an address"
        autoComplete="off"
        value={text}
        onChange={(event) => (setText(event.target.value), setAt(0))}
        onKeyDown={onKeyDown}
      />
      <ul className="palette" role="listbox" id={list} aria-label="Found">
        {found.map((entry, place) => (
          <li
            key={`${entry.kind} ${entry.to} ${entry.hint}`}
            id={`${list}-${place}`}
            role="option"
            aria-selected={place === at}
            onClick={() => open(entry)}
            onMouseMove={() => setAt(place)}
          >
            <span className="name">{entry.name}</span>
            <span className="soft small">
              {[entry.kind, entry.hint].filter((part) => part !== undefined).join(" · ")}
            </span>
          </li>
        ))}
      </ul>
      {found.length === 0 && (
        <p className="soft" role="status">
          Nothing has this name.
        </p>
      )}
    </Dialog>
  );
}

function useEntries(): readonly Entry[] {
  const pkps = usePkps().items;
  const groups = useGroups().items;
  const actions = useActions().items;
  const keys = useUsageKeys().items;
  return useMemo(
    () => [
      ...[...PLACES, REFUSED].map(({ name, to }) => ({ kind: "Screen", name, to })),
      ...pkps.map(({ name, wallet_address: address }) => ({
        kind: "PKP",
        name: name || short(address),
        hint: address,
        to: `/pkps/${address}`,
      })),
      ...groups.map(({ id, name }) => ({ kind: "Group", name: name || `Group ${id}`, to: `/groups/${id}` })),
      ...actions.map(({ hashed_cid: hash, action_ipfs_cid: cid, name }) => ({
        kind: "Action",
        name: name || short(cid ?? hash),
        hint: cid ?? hash,
        to: `/actions/${hash}`,
      })),
      ...keys.map(({ id, name }) => ({ kind: "Usage key", name: name || short(id), hint: id, to: "/usage-keys" })),
    ],
    [pkps, groups, actions, keys],
  );
}

/** Names that begin with the text come first. */
function matching(entries: readonly Entry[], text: string): readonly Entry[] {
  const words = text.trim().toLowerCase();
  if (words === "") return entries;
  const rank = ({ name, hint = "" }: Entry): number => {
    if (name.toLowerCase().startsWith(words)) return 0;
    if (name.toLowerCase().includes(words)) return 1;
    return hint.toLowerCase().includes(words) ? 2 : 3;
  };
  return entries
    .map((entry) => [rank(entry), entry] as const)
    .filter(([of]) => of < 3)
    .sort(([one], [other]) => one - other)
    .map(([, entry]) => entry);
}
