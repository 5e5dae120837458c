// Pages with made data, to look at and to measure: node test/generate.mjs OUT.html [--slices N] [--tracks N] [--runs 2]
// [--deep N] [--hostile] [--empty] [--instructions] [--coarse].
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { deflateRawSync } from "node:zlib";

const args = process.argv.slice(2);
const option = (name, value) => (args.includes(`--${name}`) ? Number(args[args.indexOf(`--${name}`) + 1]) : value);
const flag = (name) => args.includes(`--${name}`);
const CHUNK = 131072;
const HOSTILE = [
  "<script>document.title='owned'</script>",
  "<img src=x onerror=\"document.title='owned'\">",
  "\"'`$(touch /tmp/owned)`'\"",
  "\u202egnirts\u202c",
  "a\0b\u001b[31mred",
  "</script><script>document.title='owned'</script>",
  "-x",
  "\u{1f600}\u200b",
  "line\nbreak",
  "]]>&lt;&amp;",
  "operator<<(std::ostream&, T*)",
];

let seed = 12345;
const random = () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 4294967296;

function planes(values, width) {
  const bytes = Buffer.alloc(values.length * width);
  for (let i = 0; i < values.length; i++) {
    let value = values[i];
    for (let b = 0; b < width; b++, value = Math.floor(value / 256)) bytes[b * values.length + i] = value % 256;
  }
  return bytes;
}

function encode(rows, names) {
  const columns = [];
  const parts = [];
  for (const [name, coding] of names) {
    let values = rows.map((row) => row[name]);
    if (values.every((value) => value === values[0])) {
      columns.push([name, "u32", "const", values[0]]);
      continue;
    }
    if (coding === "delta")
      values = values.map((value, i) => value - (i ? values[i - 1] : 0)).map((d) => (d >= 0 ? 2 * d : -2 * d - 1));
    const most = values.reduce((a, b) => Math.max(a, b), 0);
    const width = most < 256 ? 1 : most < 65536 ? 2 : most < 2 ** 32 ? 4 : 8;
    columns.push([name, `u${8 * width}`, coding]);
    parts.push(planes(values, width));
  }
  return { head: { rows: rows.length, columns }, text: deflateRawSync(Buffer.concat(parts)).toString("base64") };
}

// Calls of a track, callers first, at random; `length` units long.
function makeTrack(track, count, deepest, functions, start, coarse) {
  const rows = [];
  let id = track * 10_000_000;
  const stack = [];
  let now = start;
  const unit = coarse ? 40 : 1;
  const tick = (mean) => (now += Math.floor((-Math.log(1 - random()) * mean) / unit) * unit);
  const grow = deepest > 1000;
  while (rows.length < count || stack.length) {
    const isFull = rows.length >= count;
    const goal = grow
      ? Math.min(deepest, rows.length + 2)
      : 3 + (deepest - 4) * Math.abs(Math.sin(rows.length / (count / 7 + 1)));
    if (
      !isFull &&
      stack.length < deepest &&
      (stack.length < goal || random() < 0.35) &&
      (random() < 0.62 || !stack.length)
    ) {
      const fn =
        stack.length === 0
          ? 0
          : 1 + Math.floor((stack[stack.length - 1].function * 7 + random() * random() * 40) % (functions - 1));
      const calls = random() < 0.02 ? 2 + Math.floor(random() * 5000) : 1;
      const row = {
        track,
        depth: stack.length,
        begin: now,
        duration: 0,
        function: fn,
        calls,
        covered: 0,
        instructions: 0,
        branches: 0,
        begin_error: random() < 0.3 ? Math.floor(random() * 60) : 0,
        end_error: random() < 0.3 ? Math.floor(random() * 60) : 0,
        flags: random() < 0.9 ? 1 : 0,
        how: stack.length ? 1 : 0,
        end_how: 0,
        has_loss: random() < 0.001 ? 1 : 0,
        id: id++,
      };
      rows.push(row);
      stack.push(row);
      tick(random() < 0.002 ? 40000 : 30);
    } else {
      const row = stack.pop();
      tick(15);
      row.duration = now - row.begin;
      row.covered = row.calls > 1 ? Math.floor(row.duration * 0.7) : row.duration;
      row.instructions = Math.floor(row.duration * 1.7) + 3;
      row.branches = Math.floor(row.instructions / 6);
      if (!stack.length && random() < 0.5) tick(400);
    }
  }
  return { rows, end: now };
}

function firstOf(rows, depth, end) {
  const depths = Math.min(depth, 24);
  const best = new Float64Array(depths * 512).fill(-1);
  const out = new Uint16Array(depths * 512).fill(65535);
  for (const row of rows) {
    if (row.depth >= depths) continue;
    const last = Math.min(511, Math.floor(((row.begin + row.duration) * 512) / end));
    for (let c = Math.floor((row.begin * 512) / end); c <= last; c++) {
      const at = row.depth * 512 + c;
      if (row.duration > best[at]) [best[at], out[at]] = [row.duration, row.function];
    }
  }
  return { depths, rows: Buffer.from(out.buffer).toString("base64") };
}

function makeRun(index) {
  const isEmpty = flag("empty");
  const total = isEmpty ? 0 : option("slices", 10000);
  const count = isEmpty ? 0 : option("tracks", 4);
  const hostile = flag("hostile");
  const functions = 400;
  const byInstructions = flag("instructions");
  const name = Array.from({ length: functions }, (_, i) =>
    hostile
      ? `${HOSTILE[i % HOSTILE.length]}${i >= HOSTILE.length ? i : ""}`
      : i === 0
        ? "main"
        : `${["parse", "lookup", "insert", "hash", "copy_block", "store::Map::find"][i % 6]}_${i}`,
  );
  const tracks = [];
  const rows = [];
  let end = 1;
  for (let t = 0; t < count; t++) {
    const made = makeTrack(
      t,
      Math.max(1, Math.floor(total / count)),
      option("deep", 30),
      functions,
      Math.floor(random() * 1000),
      flag("coarse"),
    );
    for (const row of made.rows) rows.push(row);
    end = Math.max(end, made.end);
    tracks.push({ made: made.rows, end: made.end });
  }
  const trackHeads = tracks.map(({ made, end: last }, t) => {
    const depth = made.reduce((most, row) => Math.max(most, row.depth + 1), 0);
    const bands = byInstructions
      ? [[Math.floor(last * 0.5), Math.floor(last * 0.5), 2]]
      : [
          [last * 0.2, last * 0.23, 1],
          [last * 0.4, last * 0.46, 2],
          [last * 0.7, last * 0.71, 0],
          ...Array.from({ length: 60 }, (_, i) => [last * (0.8 + i / 1000), last * (0.8002 + i / 1000), 0]),
        ].map(([a, b, k]) => [Math.floor(a), Math.floor(b), k]);
    const counts = Array.from({ length: 500 }, (_, i) => [Math.floor((last * i) / 499), 0]);
    for (let i = 1; i < counts.length; i++)
      counts[i][1] = counts[i - 1][1] + Math.floor(random() * 1000 * (1 + Math.sin(i / 20)));
    return {
      name: hostile ? HOSTILE[t % HOSTILE.length] : `worker ${t}`,
      detail: `pid 5 tid ${7 + t}`,
      thread: t,
      pid: 5,
      tid: 7 + t,
      cpu: null,
      stream: t,
      stack: 0,
      selection: tracks.length > 1 ? [["tid", 7 + t]] : [],
      slices: made.length,
      depth,
      range: [0, last],
      bands,
      counts,
      ...(t < 64 ? { first: firstOf(made, depth, end) } : {}),
    };
  });
  const chunks = [];
  const names = [
    ["track", "raw"],
    ["depth", "delta"],
    ["begin", "delta"],
    ["duration", "raw"],
    ["function", "raw"],
    ["calls", "raw"],
    ["covered", "raw"],
    ...(byInstructions ? [] : [["instructions", "raw"]]),
    ["branches", "raw"],
    ["begin_error", "raw"],
    ["end_error", "raw"],
    ["flags", "raw"],
    ["how", "raw"],
    ["end_how", "raw"],
    ["has_loss", "raw"],
    ["id", "delta"],
  ];
  for (let at = 0; at < rows.length; at += CHUNK) chunks.push(encode(rows.slice(at, at + CHUNK), names));
  const sums = { calls: Array(functions).fill(0), self: Array(functions).fill(0), all: Array(functions).fill(0) };
  const open = [];
  for (const row of rows) {
    while (open.length > row.depth) open.pop();
    sums.calls[row.function] += row.calls;
    sums.self[row.function] += row.instructions;
    if (open.length) sums.self[open[open.length - 1].function] -= row.instructions;
    sums.all[row.function] += row.instructions;
    open.push(row);
  }
  const details = name.slice(0, 50).map((_, fn) => {
    const mine = rows.filter((row) => row.function === fn && row.calls === 1).sort((a, b) => b.duration - a.duration);
    return {
      function: fn,
      histogram: {
        edges: Array.from({ length: 21 }, (_, i) => Math.round(10 * 1.6 ** i)),
        counts: Array.from({ length: 20 }, (_, i) =>
          Math.round(1000 * Math.exp(-((i - 6) ** 2) / 8) + (i > 16 ? 5 : 0)),
        ),
        of: byInstructions ? "instructions" : "ns",
      },
      slowest: mine
        .slice(0, 20)
        .map(({ id, track, begin, duration, instructions }) => ({ id, track, begin, duration, instructions })),
      slow:
        fn % 3
          ? {
              text: `Slow calls of ${name[fn]} execute 4.2 times as many instructions, most of them in ${name[(fn + 3) % 400]}.`,
              unit: "instructions",
              rows: [0, 1, 2, 3].map((i) => ({
                name: name[(fn + i) % 400],
                slow: 4000 / (i + 1),
                fast: 900 / (i + 1),
                extra: 3100 / (i + 1),
              })),
            }
          : null,
      code: {
        bytes_missing: fn % 2,
        instructions: Array.from({ length: 120 }, (_, i) => [
          `0x${(0x401000 + fn * 512 + i * 4).toString(16)}`,
          i % 7 ? "mov rax, qword ptr [rbx+rcx*8]" : "jne 0x401020",
          i > 90 ? 0 : 1000 - i * 7,
          i >> 3,
          ...(i % 7 ? [] : [600, 400 - i * 3]),
        ]),
      },
      source: {
        path: "src/a.c",
        first: 10,
        lines: Array.from({ length: 15 }, (_, i) =>
          hostile ? HOSTILE[i % HOSTILE.length] : `\tfor (size_t i = ${i}; i < n; i++) total += table[i];`,
        ),
        counts: Array.from({ length: 15 }, (_, i) => (i % 4 ? i * 321 : null)),
      },
    };
  });
  const head = {
    title: hostile ? HOSTILE[0] : index ? "sort-slow.ptk" : "sort.ptk",
    command: hostile ? HOSTILE[5] : "sort README.md",
    facts: [
      ["program", hostile ? HOSTILE[1] : "sort README.md"],
      ["format", "bundle of ptkit"],
      ["threads", String(count)],
      ["trace", "12.1 MB"],
    ],
    notes: isEmpty
      ? ["no code: the recording has no programs", "12 errors: no PSB in the trace"]
      : ["times are those of the emulator", "2 times control flow was lost"],
    by: byInstructions ? "instructions" : "time",
    unit_ns: byInstructions ? null : 0.4167,
    other: "instructions",
    origin: byInstructions ? "0" : "8006353250785",
    first_time_ns: byInstructions ? null : "3335980000000",
    range: [0, end],
    reproduce: {
      file: hostile ? "it's <b>.ptk" : index ? "sort-slow.ptk" : "sort.ptk",
      options: ["--pid", "5"],
      query: "pid=5",
      selects_all: true,
    },
    tracks: trackHeads,
    functions: isEmpty
      ? {
          name: [],
          full: [],
          module: [],
          modules: [],
          calls: [],
          self_instructions: [],
          instructions: [],
          exact: [],
          detail: [],
        }
      : {
          name,
          full: name.map((text, i) => (i % 6 === 5 ? `int& ${text}<int, long>(int const&)` : null)),
          module: name.map((_, i) => (i % 50 === 49 ? -1 : i % 3)),
          modules: ["/usr/bin/sort", "/lib/x86_64-linux-gnu/libc.so.6", hostile ? HOSTILE[0] : "/lib/libm.so.6"],
          calls: sums.calls,
          self_instructions: sums.self,
          instructions: sums.all,
          exact: name.map(() => 1),
          detail: name.map((_, i) => (i < 50 ? 0 : -1)),
          least: name.map((_, i) => 10 + i),
          most: name.map((_, i) => 5000 + i * 3),
        },
    chunks: chunks.map((chunk) => chunk.head),
  };
  return { head, chunks, details: isEmpty ? null : deflateRawSync(JSON.stringify(details)).toString("base64") };
}

const runs = Array.from({ length: option("runs", 1) }, (_, i) => makeRun(i));
const head = {
  version: 1,
  ptkit: "1.0.0",
  runs: runs.map((run) => run.head),
  notes: ["The page embeds names of functions and threads, the command line, disassembly and source."],
  words: {
    how: ["ROOT", "CALL", "TAIL", "PLT", "SIGNAL", "INTERRUPT", "SYSCALL", "INLINED", "THREAD", "RESUMED"],
    end_how: ["RETURN", "UNWIND", "LONGJMP", "TAIL", "ABORT", "SWITCH", "GAP", "END"],
    flags: { EXACT: 1 },
  },
};
const json = JSON.stringify(head).replace(
  /[<>&\u007f-\uffff]/g,
  (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
);
const parts = [`<script type="application/json" id="head">${json}</script>`];
runs.forEach((run, r) => {
  run.chunks.forEach((chunk, n) =>
    parts.push(`<script type="application/octet-stream" class="chunk" id="r${r}-slices-${n}">${chunk.text}</script>`),
  );
  if (run.details)
    parts.push(`<script type="application/octet-stream" class="chunk" id="r${r}-details-0">${run.details}</script>`);
});
const shell = readFileSync(join(dirname(fileURLToPath(import.meta.url)), "../../python/ptkit/view/page.html"), "utf8");
writeFileSync(
  args[0],
  shell.replace("<!--PTKIT-DATA-->", () => parts.join("\n")),
);
