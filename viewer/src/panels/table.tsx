// Table of which only the rows that are seen are in the document.
import { h, type ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export interface ColumnSpec {
  title: string;
  hint?: string;
  isNumber?: boolean;
  width?: string;
  sort?: () => void;
  sorted?: "ascending" | "descending" | null;
}

interface Props {
  label: string;
  columns: ColumnSpec[];
  count: number;
  cells: (row: number) => ComponentChildren[];
  onSelect?: (row: number) => void;
  selected?: number;
  rowClass?: (row: number) => string;
}

const ROW = 22;
const MORE = 8; // rows beyond those that are seen

export function Table({ label, columns, count, cells, onSelect, selected = -1, rowClass }: Props) {
  const root = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(400);
  const [active, setActive] = useState(-1);
  useEffect(() => {
    const element = root.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const id = label.replaceAll(" ", "-");
  const first = Math.max(0, Math.floor(top / ROW) - MORE);
  const last = Math.min(count, Math.ceil((top + height) / ROW) + MORE);
  const onKey = (event: KeyboardEvent): void => {
    const page = Math.max(1, Math.floor(height / ROW) - 2);
    const steps: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -count,
      End: count,
    };
    const element = root.current;
    if (!element || event.target !== element) return;
    if (event.key in steps && count) {
      const next = Math.max(0, Math.min(count - 1, (active < 0 ? Math.max(-1, selected) : active) + steps[event.key]));
      setActive(next);
      const at = next * ROW;
      if (at < element.scrollTop) element.scrollTop = at;
      else if (at + 2 * ROW > element.scrollTop + height) element.scrollTop = at + 2 * ROW - height;
    } else if (event.key === "Enter" && count) onSelect?.(Math.max(active, 0));
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const rows = [];
  for (let row = first; row < last; row++) {
    const isSelected = row === selected;
    rows.push(
      <tr
        key={row}
        id={`${id}-${row}`}
        role="row"
        aria-rowindex={row + 2}
        aria-selected={isSelected}
        class={[
          isSelected ? "selected" : "",
          row === active ? "active" : "",
          onSelect ? "link" : "",
          rowClass?.(row) ?? "",
        ].join(" ")}
        onClick={() => {
          setActive(row);
          onSelect?.(row);
        }}
      >
        {cells(row).map((cell, i) => (
          <td
            role="gridcell"
            key={i}
            class={columns[i].isNumber ? "number" : ""}
            title={typeof cell === "string" ? cell : undefined}
          >
            {cell}
          </td>
        ))}
      </tr>,
    );
  }
  return (
    <div
      class="table"
      ref={root}
      tabIndex={0}
      role="grid"
      aria-label={label}
      aria-rowcount={count + 1}
      onKeyDown={onKey}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      aria-activedescendant={active >= first && active < last ? `${id}-${active}` : undefined}
    >
      <table role="presentation">
        <colgroup>
          {columns.map((column, i) => (
            <col key={i} style={{ width: column.width ?? "auto" }} />
          ))}
        </colgroup>
        <thead>
          <tr role="row">
            {columns.map((column, i) => (
              <th
                role="columnheader"
                key={i}
                class={column.isNumber ? "number" : ""}
                aria-sort={column.sorted ?? undefined}
                title={column.hint}
              >
                {column.sort ? (
                  <button onClick={column.sort}>
                    {column.title}
                    {column.sorted ? (column.sorted === "ascending" ? " \u25b4" : " \u25be") : ""}
                  </button>
                ) : (
                  column.title
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <tr style={{ height: `${first * ROW}px` }} aria-hidden="true" />
          {rows}
          <tr style={{ height: `${(count - last) * ROW}px` }} aria-hidden="true" />
        </tbody>
      </table>
    </div>
  );
}
