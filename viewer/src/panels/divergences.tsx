// Where two runs part.
import { h } from "preact";
import type { Divergence } from "../data/head";
import type { Store } from "../store";
import { cleaned } from "../text/names";
import { Table } from "./table";

export function DivergencesPanel({ store }: { store: Store }) {
  const numbers = store.divergences();
  const sides = store.runs.map(
    (run) => new Map((run.head.divergences ?? []).map((one): [number, Divergence] => [one[2], one])),
  );
  const where = (number: number): string => cleaned(sides.find((side) => side.has(number))?.get(number)?.[3] ?? "");
  return (
    <section class="divergences" aria-label="Divergences">
      <Table
        label="divergences"
        columns={[{ title: "both at" }, { title: "run 1" }, { title: "run 2" }]}
        count={numbers.length}
        selected={numbers.indexOf(store.divergence)}
        rowClass={(row) => (sides.some((side) => side.get(numbers[row])?.[5]) ? "" : "muted")}
        cells={(row) => [
          where(numbers[row]),
          ...sides.map((side) => {
            const one = side.get(numbers[row]);
            return one ? cleaned(one[4]) : "not in this part";
          }),
        ]}
        onSelect={(row) => store.showDivergence(numbers[row])}
      />
    </section>
  );
}
