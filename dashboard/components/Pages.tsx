import type { ReactNode } from "react";
import { Button } from "./Button";

interface Props {
  readonly page: number;
  readonly size: number;
  readonly total: number;
  readonly onPage: (page: number) => void;
}

/** Navigates the pages of a list, newest first; renders nothing for a single page. */
export function Pages({ page, size, total, onPage }: Props): ReactNode {
  if (total <= size) return null;
  return (
    <div className="row">
      {page > 0 && <Button onPress={() => onPage(page - 1)}>Newer</Button>}
      {total > (page + 1) * size && <Button onPress={() => onPage(page + 1)}>Older</Button>}
    </div>
  );
}
