// Begin of the script: of the page, and of the worker that the page makes of it.
import { h, render } from "preact";
import { App } from "./app";
import { readHead } from "./data/head";
import { serveDecoding, type DedicatedWorkerScope } from "./decode/worker";
import { runsOf } from "./model/run";
import { Store } from "./store";
import { cleaned } from "./text/names";
import { talkToParent } from "./widget/page";

function showPage(): void {
  const root = document.getElementById("app") as HTMLElement;
  const tooltip = document.createElement("div");
  tooltip.id = "tooltip";
  tooltip.setAttribute("role", "tooltip");
  tooltip.hidden = true;
  document.body.append(tooltip);
  const head = readHead();
  if (typeof head === "string") {
    render(<p class="nothing">{head}</p>, root);
    return;
  }
  document.title = `${head.runs.map((run) => cleaned(run.title)).join(", ")} - ptkit`;
  const runs = runsOf(head);
  const store = new Store(head, runs);
  if (!runs.some((run) => run.head.chunks.length)) store.tab = "recording";
  // The worker decodes while the first screen is painted.
  const loads = runs.map((run) => run.load());
  render(<App store={store} />, root);
  requestAnimationFrame(() => setTimeout(() => performance.mark("ptkit-first-screen")));
  for (const load of loads) void load.then(() => store.changed());
  void Promise.all(loads).then(() =>
    requestAnimationFrame(() => {
      performance.mark("ptkit-decoded");
      document.documentElement.dataset.state = runs.some((run) => run.error) ? "damaged" : "decoded";
      talkToParent(store);
    }),
  );
}

if (typeof document === "undefined") serveDecoding(globalThis as unknown as DedicatedWorkerScope);
else showPage();
