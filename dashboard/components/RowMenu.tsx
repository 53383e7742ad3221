import { DropdownMenu } from "radix-ui";
import type { ReactNode } from "react";
import { wordsOf } from "./failures";
import { Icon } from "./icons";
import { useMessages } from "./Messages";

export interface MenuItem {
  readonly name: string;
  readonly danger?: boolean;
  /** A failure is shown in a message. */
  readonly onChoose: () => unknown;
}

/** What can be done with one row; nothing where there is nothing to do. */
export function RowMenu({ of, items }: { readonly of: string; readonly items: readonly MenuItem[] }): ReactNode {
  const say = useMessages();
  if (items.length === 0) return null;
  const choose = async ({ onChoose }: MenuItem): Promise<void> => {
    try {
      await onChoose();
    } catch (error) {
      say(wordsOf(error));
    }
  };
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger className="icon-button" aria-label={`More for ${of}`}>
        <Icon name="more" />
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content className="menu" align="end" sideOffset={4}>
          {items.map((item) => (
            <DropdownMenu.Item
              key={item.name}
              className={`menu-item ${item.danger === true ? "danger" : ""}`}
              onSelect={() => void choose(item)}
            >
              {item.name}
            </DropdownMenu.Item>
          ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}
