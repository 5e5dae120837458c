// Names and texts in two columns.
import { h } from "preact";

export function Facts({ facts }: { facts: [string, string][] }) {
  return (
    <dl class="facts">{facts.map(([name, text], i) => [<dt key={i}>{name}</dt>, <dd key={`${i}.`}>{text}</dd>])}</dl>
  );
}
