import { DropdownMenu } from "radix-ui";
import type { ReactNode } from "react";
import { Icon } from "./icons";

export interface MenuItem {
  readonly name: string;
  readonly danger?: boolean;
  readonly onChoose: () => void;
}

/** What can be done with one row; nothing where there is nothing to do. */
export function RowMenu({ of, items }: { readonly of: string; readonly items: readonly MenuItem[] }): ReactNode {
  if (items.length === 0) return null;
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger className="icon-button" aria-label={`More for ${of}`}>
        <Icon name="more" />
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content className="menu" align="end" sideOffset={4}>
          {items.map(({ name, danger = false, onChoose }) => (
            <DropdownMenu.Item key={name} className={`menu-item ${danger ? "danger" : ""}`} onSelect={onChoose}>
              {name}
            </DropdownMenu.Item>
          ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}
