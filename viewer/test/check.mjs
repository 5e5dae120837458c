// Check of decoding, levels of detail, neighbours and sums of ranges against a plain reading of a page:
// node test/check.mjs PAGE.html
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { inflateRawSync } from "node:zlib";
import { build } from "esbuild";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const entry = `
  export { assemble } from "./src/decode/assemble";
  export { Slices } from "./src/model/slices";
  export { rangeSums } from "./src/model/sums";
  export { search, nextMatch } from "./src/model/search";
  export { Run } from "./src/model/run";
  export { cleaned } from "./src/text/names";
  export * from "./src/text/reproduce";`;
const bundled = await build({
  stdin: { contents: entry, resolveDir: root, loader: "ts" },
  bundle: true,
  write: false,
  format: "esm",
  platform: "node",
});
const m = await import(`data:text/javascript;base64,${Buffer.from(bundled.outputFiles[0].text).toString("base64")}`);

const page = readFileSync(process.argv[2], "utf8");
const element = (id) => page.match(new RegExp(`id="${id}">([^<]*)<`))[1];
const head = JSON.parse(element("head"));

function plainRows(run, chunk, text) {
  const bytes = inflateRawSync(Buffer.from(text, "base64"));
  const rows = Array.from({ length: chunk.rows }, () => ({}));
  let offset = 0;
  for (const [name, type, coding, value] of chunk.columns) {
    const width = coding === "const" ? 0 : Number(type.slice(1)) / 8;
    let sum = 0n;
    for (let i = 0; i < chunk.rows; i++) {
      let number = coding === "const" ? BigInt(value) : 0n;
      for (let b = width - 1; b >= 0; b--) number = number * 256n + BigInt(bytes[offset + b * chunk.rows + i]);
      if (coding === "delta") number = sum += number & 1n ? -((number + 1n) / 2n) : number / 2n;
      rows[i][name] = Number(number);
    }
    offset += width * chunk.rows;
  }
  for (const row of rows) {
    row.covered ??= row.duration;
    row.instructions ??= row.duration;
    row.end = row.begin + row.duration;
  }
  return rows;
}

for (const [index, runHead] of head.runs.entries()) {
  const texts = runHead.chunks.map((_, n) => element(`r${index}-slices-${n}`));
  const rows = runHead.chunks.flatMap((chunk, n) => plainRows(runHead, chunk, texts[n]));
  const decoded = await m.assemble({
    run: index,
    chunks: runHead.chunks,
    texts: [...texts],
    depths: runHead.tracks.map((t) => t.depth),
    end: runHead.range[1],
  });
  const s = new m.Slices(decoded);
  const run = new m.Run(index, runHead);
  run.slices = s;
  assert.equal(s.count, rows.length);

  // Order by track, depth and begin, and callers.
  const open = [];
  rows.forEach((row, i) => {
    row.order = i;
    open.length = Math.min(open.length, row.depth);
    if (open.length && open[0].track !== row.track) open.length = 0;
    row.caller = row.depth ? open[row.depth - 1] : null;
    open[row.depth] = row;
  });
  const sorted = [...rows].sort((a, b) => a.track - b.track || a.depth - b.depth || a.order - b.order);
  sorted.forEach((row, i) => (row.index = i));
  sorted.forEach((row, i) => {
    for (const name of [
      "function",
      "duration",
      "calls",
      "covered",
      "instructions",
      "branches",
      "begin_error",
      "end_error",
      "flags",
      "how",
      "end_how",
      "has_loss",
      "id",
    ]) {
      assert.equal(s.value(name, i), row[name] ?? 0, `${name} of slice ${i}`);
    }
    assert.equal(s.begin[i], row.begin);
    assert.equal(s.caller(i), row.caller ? row.caller.index : -1);
  });
  for (let step = 0; step < 300 && rows.length; step++) {
    const row = sorted[Math.floor((step * rows.length) / 300)];
    assert.equal(s.trackOf(row.index), row.track);
    assert.equal(s.depthOf(row.index), row.depth);
    const callees = rows.filter((other) => other.caller === row);
    const [first, end] = s.callees(row.index);
    assert.equal(end - first, callees.length);
    if (callees.length) assert.equal(first, callees[0].index);
  }

  // Levels of detail: the top of a row sums up the row.
  const p = s.pyramid;
  for (let r = 0; r + 1 < s.rowStart.length; r++) {
    const [from, to] = [s.rowStart[r], s.rowStart[r + 1]];
    if (p.nodeStart[r] === p.nodeStart[r + 1]) continue;
    let base = p.nodeStart[r];
    let size = Math.ceil((to - from) / 8);
    while (size > 8) [base, size] = [base + size, Math.ceil(size / 8)];
    let [count, covered, most] = [0, 0, 0];
    for (let k = base; k < base + size; k++) {
      count += p.count[k];
      covered += p.covered[k];
      most = Math.max(most, s.duration(p.longest[k]));
    }
    const row = sorted.slice(from, to);
    assert.equal(
      count,
      row.reduce((sum, { calls }) => sum + calls, 0),
    );
    assert.ok(Math.abs(covered - row.reduce((sum, one) => sum + one.covered, 0)) <= 1e-5 * covered + 1);
    assert.equal(
      most,
      row.reduce((max, one) => Math.max(max, one.duration), 0),
    );
  }

  // Sums of ranges.
  const [low, high] = runHead.range;
  for (const [a, b] of [
    [0, 1],
    [0.1, 0.3],
    [0.33, 0.331],
    [0.5, 0.9],
  ]) {
    const [begin, end] = [Math.floor(low + (high - low) * a), Math.floor(low + (high - low) * b)];
    const sums = m.rangeSums(run, s, begin, end, null);
    const self = new Map();
    const total = new Map();
    const calls = new Map();
    const selfInstructions = new Map();
    const add = (map, key, value) => map.set(key, (map.get(key) ?? 0) + value);
    let slices = 0;
    for (const row of rows) {
      const isInside = row.begin < end && (row.end > begin || row.begin >= begin);
      if (!isInside) continue;
      slices++;
      const inside = Math.max(0, Math.min(row.end, end) - Math.max(row.begin, begin));
      const covered = Math.min(inside, row.duration ? (row.covered * inside) / row.duration : 0);
      add(self, row.function, covered);
      if (row.caller) add(self, row.caller.function, -covered);
      const isWhole = (one) => one.begin >= begin && one.end <= end;
      if (isWhole(row)) {
        add(selfInstructions, row.function, row.instructions);
        if (row.caller && isWhole(row.caller)) add(selfInstructions, row.caller.function, -row.instructions);
      }
      if (row.begin >= begin) add(calls, row.function, row.calls);
      let above = row.caller;
      while (above && above.function !== row.function) above = above.caller;
      if (!above) add(total, row.function, covered);
    }
    assert.equal(sums.slices, slices, `slices of ${a} to ${b}`);
    runHead.functions.name.forEach((_, fn) => {
      assert.ok(Math.abs(sums.self[fn] - (self.get(fn) ?? 0)) < 1e-3, `self of ${fn}`);
      assert.ok(Math.abs(sums.total[fn] - (total.get(fn) ?? 0)) < 1e-3, `total of ${fn}`);
      assert.equal(sums.selfInstructions[fn], selfInstructions.get(fn) ?? 0);
      assert.equal(sums.calls[fn], calls.get(fn) ?? 0);
    });
  }

  // Search visits all matches once, in order, and wraps.
  if (rows.length) {
    const text = run.names[rows[Math.floor(rows.length / 2)].function];
    const match = m.search(run, text);
    const expected = sorted.filter((row) => match.functions[row.function]);
    assert.equal(match.slices, expected.length);
    let at = -1;
    const seen = new Set();
    const steps = Math.min(expected.length, 200);
    for (let i = 1; i <= steps; i++) {
      const step = m.nextMatch(run, match, at, 1);
      assert.equal(step.number, i);
      assert.ok(!seen.has(step.slice));
      seen.add((at = step.slice));
    }
    for (let i = steps - 1; i >= 1; i--) assert.equal((at = m.nextMatch(run, match, at, -1).slice) >= 0, true);
    assert.equal(m.nextMatch(run, match, at, -1).number, expected.length === 1 ? 1 : expected.length);
  }
}

assert.equal(m.shellWord("a b"), "'a b'");
assert.equal(m.shellWord("it's"), `'it'"'"'s'`);
assert.equal(m.shellWord("a\u001bb'c"), "$'a\\u001bb\\'c'");
assert.equal(m.pythonText('a"\u{1f600}\n'), '"a\\"\\U0001f600\\n"');
assert.equal(m.cleaned("a\u202eb\0"), "a\\u202eb\\x00");
console.log(`${process.argv[2]}: as expected`);
