import { getAddress, isAddress } from "ethers/address";
import { useState, type ReactNode } from "react";
import { useAccount } from "../../app/queries";
import { ChangeDialog } from "../../changes/ChangeDialog";
import { transferOwnership } from "../../changes/operations";
import { Notice } from "../../components/elements";
import { Address } from "../../components/explorer";
import { Check, TextField } from "../../components/Field";
import { useSession, useSessions } from "../../session/context";

/** The address is checked, shown in full and confirmed before anything is sent: a wrong one is final. */
export function Transfer({ onClose }: { readonly onClose: () => void }): ReactNode {
  const { end } = useSessions();
  const { config } = useSession();
  const { data: account } = useAccount();
  const [address, setAddress] = useState("");
  const [lastDigits, setLastDigits] = useState("");
  const [understood, setUnderstood] = useState(false);
  const problem = problemOf(address.trim(), account.owner);
  const matches = problem === undefined && lastDigits.trim().toLowerCase() === address.trim().slice(-6).toLowerCase();
  return (
    <ChangeDialog
      onClose={onClose}
      title="Transfer ownership"
      submit="Transfer ownership"
      danger
      ready={matches && understood}
      change={() => transferOwnership(getAddress(address.trim()))}
      onDone={() => end("The account has a new owner. You have been signed out.")}
    >
      <Ends managed={account.managed} />
      <TextField
        label="Address of the new owner"
        code
        required
        value={address}
        onChange={setAddress}
        placeholder="0x…"
        hint="A wallet, a Safe, or a governance contract on this chain."
      />
      {address !== "" && problem !== undefined && <Notice kind="error">{problem}</Notice>}
      {problem === undefined && address !== "" && (
        <Notice>
          The account will belong to{" "}
          <Address whole value={getAddress(address.trim())} what="new owner" chain={config} />
        </Notice>
      )}
      <TextField
        label="Its last six characters, once more"
        code
        value={lastDigits}
        onChange={setLastDigits}
        hint="Read them from where the address comes from, not from above."
      />
      {problem === undefined && lastDigits.trim().length >= 6 && !matches && (
        <Notice kind="error">These are not the last six characters of that address.</Notice>
      )}
      <Check label="I understand that only the new owner can undo this" checked={understood} onChange={setUnderstood} />
    </ChangeDialog>
  );
}

export function Ends({ managed }: { readonly managed: boolean }): ReactNode {
  return (
    <div className="two sides">
      <div>
        <h3>What ends permanently</h3>
        <ul>
          {managed && <li>Your account key, everywhere, at once</li>}
          {managed && <li>Changes by the service on your behalf</li>}
          <li>Your own rights as the owner</li>
        </ul>
      </div>
      <div>
        <h3>What stays</h3>
        <ul>
          <li>PKPs, groups and actions</li>
          <li>Usage keys, with what they may do</li>
          <li>Credit and the account&apos;s id</li>
        </ul>
      </div>
    </div>
  );
}

function problemOf(text: string, owner: string): string | undefined {
  if (!isAddress(text))
    return "This is no address: 0x and 40 hex digits, with a right checksum if it has capital letters.";
  if (/^0x0{40}$/.test(text)) return "The zero address has no owner: the account would be lost.";
  if (getAddress(text) === owner) return "This is the present owner.";
  return undefined;
}
