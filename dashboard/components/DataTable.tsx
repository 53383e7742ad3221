import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef, useState, type ReactNode } from "react";
import { Empty, Failure, Spinner, When } from "./elements";
import { plural } from "./text";

export interface Column<Row> {
  readonly title: string;
  /** As in grid-template-columns. */
  readonly width: string;
  readonly cell: (row: Row) => ReactNode;
  /** The sort value; without it the column is not sortable. */
  readonly by?: (row: Row) => string | number;
  readonly end?: boolean;
}

/** Sorted by a value that is shown; as it is, unless told otherwise. */
export const valueColumn = <Row, Value extends string | number>(
  title: string,
  width: string,
  by: (row: Row) => Value,
  show: (value: Value) => ReactNode = String,
): Column<Row> => ({ title, width, cell: (row) => show(by(row)), by });

export const numberColumn = <Row,>(
  title: string,
  width: string,
  by: (row: Row) => number,
  show: (value: number) => ReactNode = String,
): Column<Row> => ({
  ...valueColumn(title, width, by, (value) => <span className="number">{show(value)}</span>),
  end: true,
});

export const timeColumn = <Row,>(title: string, width: string, by: (row: Row) => number | string): Column<Row> =>
  valueColumn(title, width, by, (at) => <When at={at} />);

/** Of what its row is called by. */
export const nameColumn = <Row,>(title: string, width: string, by: (row: Row) => string): Column<Row> =>
  valueColumn(title, width, by, (name) => <span className="name">{name}</span>);

export const DESCRIPTION: Column<{ readonly description: string }> = valueColumn(
  "Description",
  "minmax(8rem, 1.6fr)",
  ({ description }) => description,
  (text) => <span className="soft">{text}</span>,
);

interface Props<Row> {
  readonly label: string;
  /** The rows' name in singular and plural: "key", "keys". */
  readonly unit: readonly [one: string, many: string];
  /** Absent until they were read. */
  readonly rows: readonly Row[] | undefined;
  /** The read of the rows: said while it lasts, and where it failed. */
  readonly from?: { readonly isLoading: boolean; readonly error: Error | null };
  readonly columns: readonly Column<Row>[];
  readonly idOf: (row: Row) => string;
  /** The searched text; without it there is no search. */
  readonly textOf?: (row: Row) => string;
  /** The total number, when not all rows are loaded. */
  readonly total?: number | undefined;
  readonly tools?: ReactNode;
  /** What chooses the rows: shown also when there are none. */
  readonly filters?: ReactNode;
  /** Said once there are known to be none: a title and paragraphs, or something else. */
  readonly none?: readonly [title: string, ...about: ReactNode[]];
  readonly empty?: ReactNode;
}

/** Fewer rows than this are all rendered; more are virtualized. */
const VIRTUAL_FROM = 60;
const ROW_PX = 24;

/** A list with what is said while it is read, where that fails and where it is empty. */
export function DataTable<Row>(props: Props<Row>): ReactNode {
  const { rows = [], from, filters } = props;
  const noRows = <NoRows {...props} />;
  return (
    <>
      <Failure error={from?.error} />
      {rows.length === 0 && filters === undefined ? noRows : <Table {...props} rows={rows} noRows={noRows} />}
    </>
  );
}

function NoRows<Row>({ rows, from, none, empty }: Props<Row>): ReactNode {
  if (from?.isLoading === true) return <Spinner />;
  if (rows === undefined || (from?.error ?? null) !== null) return null;
  if (none === undefined) return empty;
  const [title, ...about] = none;
  return (
    <Empty title={title}>
      {about.map((paragraph, at) => (
        <p key={at}>{paragraph}</p>
      ))}
    </Empty>
  );
}

/** Searchable, sortable, of any length. On a phone each row is a block. */
function Table<Row>(props: Props<Row> & { readonly rows: readonly Row[]; readonly noRows: ReactNode }): ReactNode {
  const { label, unit, rows, columns, idOf, textOf, total, tools, filters, noRows } = props;
  const [search, setSearch] = useState("");
  const [sort, setSort] = useState<{ readonly column: number; readonly down: boolean }>();
  const shown = useMemo(
    () => sorted(found(rows, search, textOf), columns, sort),
    [rows, search, textOf, columns, sort],
  );
  const template = columns.map(({ width }) => width).join(" ");
  const isEmpty = rows.length === 0;
  return (
    <div className="stack-s">
      {(textOf !== undefined || tools !== undefined) && (
        <div className="list-tools">
          {textOf !== undefined && !isEmpty && (
            <input
              className="input"
              type="search"
              aria-label={`Search ${label}`}
              placeholder="Search"
              value={search}
              onChange={(e) => setSearch(e.target.value)}
            />
          )}
          {filters}
          {!isEmpty && (
            <>
              <span className="soft small number" role="status">
                {counted(shown.length, search === "" ? (total ?? rows.length) : rows.length, unit)}
              </span>
              {tools}
            </>
          )}
        </div>
      )}
      {isEmpty ? (
        noRows
      ) : (
        <div
          className="table"
          role="table"
          aria-label={label}
          aria-rowcount={shown.length + 1}
          style={{ "--columns": template } as React.CSSProperties}
        >
          <div className="tr head" role="row" aria-rowindex={1}>
            {columns.map((column, at) => (
              <HeadCell
                key={column.title}
                column={column}
                sort={sort?.column === at ? sort.down : undefined}
                onSort={() => setSort(next(sort, at))}
              />
            ))}
          </div>
          <Rows shown={shown} columns={columns} idOf={idOf} label={label} />
        </div>
      )}
    </div>
  );
}

/** `3 keys`, `1 of 3 keys`. */
function counted(shown: number, of: number, [one, many]: readonly [string, string]): string {
  const all = plural(of, one, many);
  return shown === of ? all : `${shown.toLocaleString("en-US")} of ${all}`;
}

const next = (sort: { column: number; down: boolean } | undefined, column: number) => ({
  column,
  down: sort?.column === column && !sort.down,
});

function HeadCell<Row>({
  column,
  sort,
  onSort,
}: {
  column: Column<Row>;
  sort: boolean | undefined;
  onSort: () => void;
}): ReactNode {
  const order = sort === undefined ? undefined : sort ? "descending" : "ascending";
  return (
    <div
      className={`th ${column.end ? "end" : ""}`}
      role="columnheader"
      aria-sort={column.by === undefined ? undefined : (order ?? "none")}
    >
      {column.by === undefined ? (
        column.title || <span className="hidden-visually">Actions</span>
      ) : (
        <button type="button" className="sort" onClick={onSort}>
          {column.title}
          <span aria-hidden="true">{sort === undefined ? "" : sort ? " ↓" : " ↑"}</span>
        </button>
      )}
    </div>
  );
}

function found<Row>(rows: readonly Row[], search: string, textOf: ((row: Row) => string) | undefined): readonly Row[] {
  const words = search.trim().toLowerCase();
  return words === "" || textOf === undefined ? rows : rows.filter((row) => textOf(row).toLowerCase().includes(words));
}

function sorted<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  sort: { column: number; down: boolean } | undefined,
): readonly Row[] {
  const by = sort === undefined ? undefined : columns[sort.column]?.by;
  if (by === undefined || sort === undefined) return rows;
  const sign = sort.down ? -1 : 1;
  return [...rows].sort((one, other) => sign * compared(by(one), by(other)));
}

function compared(one: string | number, other: string | number): number {
  return typeof one === "number" && typeof other === "number"
    ? one - other
    : String(one).localeCompare(String(other), undefined, { numeric: true });
}

interface RowsProps<Row> {
  readonly shown: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly idOf: (row: Row) => string;
  readonly label: string;
}

function Rows<Row>(props: RowsProps<Row>): ReactNode {
  if (props.shown.length >= VIRTUAL_FROM) return <VirtualRows {...props} />;
  return (
    <div role="rowgroup">
      {props.shown.map((row, at) => (
        <TableRow key={props.idOf(row)} row={row} at={at} columns={props.columns} />
      ))}
    </div>
  );
}

function VirtualRows<Row>({ shown, columns, idOf, label }: RowsProps<Row>): ReactNode {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
  });
  const items = virtual.getVirtualItems();
  return (
    <div className="rows" ref={scroller} tabIndex={0} role="rowgroup" aria-label={`${label}, scrollable`}>
      <div style={{ height: `${virtual.getTotalSize()}px` }} role="presentation">
        <div style={{ transform: `translateY(${items[0]?.start ?? 0}px)` }} role="presentation">
          {items.map(({ index }) => {
            const row = shown[index];
            return row === undefined ? null : (
              <TableRow key={idOf(row)} row={row} at={index} columns={columns} measure={virtual.measureElement} />
            );
          })}
        </div>
      </div>
    </div>
  );
}

interface RowProps<Row> {
  readonly row: Row;
  readonly at: number;
  readonly columns: readonly Column<Row>[];
  readonly measure?: (element: HTMLElement | null) => void;
}

function TableRow<Row>({ row, at, columns, measure }: RowProps<Row>): ReactNode {
  return (
    <div className="tr" role="row" aria-rowindex={at + 2} data-index={at} ref={measure}>
      {columns.map((column, place) => (
        <div
          key={column.title}
          role="cell"
          className={`td ${place === 0 ? "first" : ""} ${column.end ? "end" : ""}`}
          data-label={place === 0 || column.title === "" ? undefined : column.title}
        >
          {column.cell(row)}
        </div>
      ))}
    </div>
  );
}
