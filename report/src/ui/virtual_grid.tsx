// A table of any length of which only the rows in sight exist. Rows may differ in height, but their
// heights are known without rendering them.
//
// Keyboard: the body takes the focus once; arrows, Page Up/Down, Home and End move the active row,
// Enter or Space activates it. Screen readers follow through aria-activedescendant.
import type {ComponentChildren} from 'preact';
import {useEffect, useMemo, useRef, useState} from 'preact/hooks';
import type {Order} from '../model/view.ts';

export interface Column {
  key: string;
  title: string;
  hint?: string;
  sortable: boolean;
  numeric?: boolean;
}

export interface GridProps {
  id: string;
  label: string;
  columns: Column[];
  template: string; // of CSS grid columns
  rowCount: number;
  heightOf: (row: number) => number;
  heightKey: unknown; // changes when heights do
  maxHeight: number;
  order: Order;
  onOrder: (order: Order) => void;
  onActivate: (row: number) => void;
  classOf: (row: number) => string;
  isSelected?: (row: number) => boolean;
  isExpanded?: (row: number) => boolean;
  render: (row: number) => ComponentChildren;
  empty: string;
}

const kOverscan_px = 200;
const kLeastHeight_px = 44; // of the rows' part
const kHead_px = 31; // the head row, which stays in sight at the top

// offsets[i] is the top of row i; the last entry is the height of all.
export function offsetsOf(rowCount: number, heightOf: (row: number) => number): Float64Array {
  const offsets = new Float64Array(rowCount + 1);
  for (let i = 0; i < rowCount; ++i) offsets[i + 1] = offsets[i]! + heightOf(i);
  return offsets;
}

// The row that covers y.
export function rowAt(offsets: Float64Array, y: number): number {
  let low = 0;
  let high = offsets.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (offsets[middle + 1]! <= y) low = middle + 1;
    else high = middle;
  }
  return low;
}

function Header({columns, template, order, onOrder}: Pick<GridProps,
                'columns' | 'template' | 'order' | 'onOrder'>) {
  return (
    <div class="grid-head" role="row" style={{gridTemplateColumns: template}}>
      {columns.map((column) => {
        const sorted = order.column === column.key;
        const ariaSort = !column.sortable ? undefined
          : sorted ? (order.down ? 'descending' : 'ascending') : 'none';
        return (
          <div role="columnheader" aria-sort={ariaSort} key={column.key}
               class={column.numeric ? 'numeric' : ''} title={column.hint}>
            {column.sortable
              ? <button type="button" onClick={() => onOrder(
                  {column: column.key, down: sorted ? !order.down : column.numeric === true})}>
                  <span class="arrow" aria-hidden="true">
                    {sorted ? (order.down ? '▾ ' : '▴ ') : ''}</span>{column.title}
                </button>
              : column.title}
          </div>
        );
      })}
    </div>
  );
}

function movedRow(key: string, active: number, rowCount: number, page: number): number | null {
  switch (key) {
    case 'ArrowDown': return Math.min(rowCount - 1, active + 1);
    case 'ArrowUp': return Math.max(0, active - 1);
    case 'PageDown': return Math.min(rowCount - 1, active + page);
    case 'PageUp': return Math.max(0, active - page);
    case 'Home': return 0;
    case 'End': return rowCount - 1;
    default: return null;
  }
}

// How the table is scrolled and which row is active.
function useRows(props: GridProps) {
  const {rowCount, heightOf, maxHeight} = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [scrollTop, setScrollTop] = useState(0);
  const [active, setActive] = useState(0);
  const offsets = useMemo(() => offsetsOf(rowCount, heightOf), [rowCount, props.heightKey]);
  const height = Math.min(maxHeight, Math.max(offsets[rowCount]!, kLeastHeight_px));
  useEffect(() => { // another order or filter: back to the top
    setActive(0);
    if (scroller.current) scroller.current.scrollTop = 0;
  }, [rowCount, props.order.column, props.order.down]);
  const reveal = (row: number) => {
    const element = scroller.current!;
    if (offsets[row]! < element.scrollTop) element.scrollTop = offsets[row]!;
    const bottom = Math.min(offsets[row + 1]!, offsets[row]! + height);
    if (bottom > element.scrollTop + height) element.scrollTop = bottom - height;
  };
  const inSight: number[] = [];
  for (let i = rowCount > 0 ? rowAt(offsets, Math.max(0, scrollTop - kOverscan_px)) : 0;
       i < rowCount && offsets[i]! < scrollTop + height + kOverscan_px; ++i) {
    inSight.push(i);
  }
  const current = Math.min(active, Math.max(0, rowCount - 1));
  return {scroller, setScrollTop, offsets, height, current, setActive, reveal, inSight};
}

export function VirtualGrid(props: GridProps) {
  const {id, rowCount, heightOf} = props;
  const {scroller, setScrollTop, offsets, height, current, setActive, reveal, inSight} =
    useRows(props);
  const onKeyDown = (event: KeyboardEvent) => {
    if (rowCount === 0 || event.target !== scroller.current) return;
    const page = Math.max(1, Math.floor(height / heightOf(current)));
    const next = movedRow(event.key, current, rowCount, page);
    if (next !== null) {
      setActive(next);
      reveal(next);
    } else if (event.key === 'Enter' || event.key === ' ') {
      props.onActivate(current);
    } else {
      return;
    }
    event.preventDefault();
  };
  return (
    <div class="grid" id={id} ref={scroller} tabIndex={0} role="grid" aria-label={props.label}
         aria-rowcount={rowCount + 1} style={{height: `${height + kHead_px + 2}px`}}
         aria-activedescendant={rowCount > 0 ? `${id}-${current}` : undefined}
         onScroll={(event) => setScrollTop(event.currentTarget.scrollTop)} onKeyDown={onKeyDown}>
      <Header {...props} />
      {rowCount === 0 && <p class="grid-empty">{props.empty}</p>}
      <div class="grid-space" role="rowgroup" style={{height: `${offsets[rowCount]}px`}}>
        {inSight.map((row) => (
          <div key={row} id={`${id}-${row}`} role="row" aria-rowindex={row + 2}
               aria-selected={props.isSelected?.(row)} aria-expanded={props.isExpanded?.(row)}
               class={`grid-row ${row === current ? 'active' : ''} ${props.classOf(row)}`}
               style={{top: `${offsets[row]}px`, height: `${heightOf(row)}px`,
                       gridTemplateColumns: props.template}}
               onClick={() => { setActive(row); props.onActivate(row); }}>
            {props.render(row)}
          </div>
        ))}
      </div>
    </div>
  );
}
