// The notebook's side: a module as anywidget takes it, which shows the page of a `PageWidget` in a frame.
import { MARK, membersOf, type Request, type Selected, type ToPage } from "./messages";

interface Numbered {
  number: number;
  request: Request;
}

interface Traits {
  _page: DataView;
  _requests: Numbered[];
  _performed: number; // number of the last request that a page got
  height: number; // CSS pixels
  title: string;
  selection: Selected | null;
}

/** A model of a widget, as far as this module uses it. */
export interface Model {
  get<Name extends keyof Traits>(name: Name): Traits[Name];
  set<Name extends keyof Traits>(name: Name, value: Traits[Name]): void;
  on(event: string, listener: () => void): void;
  off(event: string, listener: () => void): void;
  save_changes(): void;
}

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const frame = document.createElement("iframe");
  // Without the notebook's origin: the page reaches nothing but its own document.
  frame.setAttribute("sandbox", "allow-scripts");
  Object.assign(frame.style, { width: "100%", border: "0", background: "#fff" });
  frame.title = model.get("title");
  let isReady = false;
  let performed = model.get("_performed");

  const send = (request: Request): void =>
    frame.contentWindow?.postMessage({ ptkit: MARK, ...request } satisfies ToPage, "*"); // its origin is opaque
  const sendRequests = (): void => {
    const waiting = model.get("_requests").filter(({ number }) => number > performed);
    if (!isReady || !waiting.length) return;
    for (const { number, request } of waiting) {
      send(request);
      performed = number;
    }
    model.set("_performed", performed);
    model.save_changes();
  };
  const setHeight = (): void => {
    frame.style.height = `${model.get("height")}px`;
  };
  const onMessage = (event: MessageEvent<unknown>): void => {
    if (!frame.contentWindow || event.source !== frame.contentWindow) return;
    const message = membersOf(event.data);
    if (message?.["type"] === "selection") {
      model.set("selection", message["selection"] as Selected | null);
      model.save_changes();
    } else if (message?.["type"] === "ready") {
      // A frame that was moved in the document, as notebooks do when they scroll, has a new page.
      isReady = true;
      const selection = model.get("selection");
      if (selection) send({ type: "select", selection });
      sendRequests();
    }
  };

  addEventListener("message", onMessage);
  model.on("change:_requests", sendRequests);
  model.on("change:height", setHeight);
  setHeight();
  frame.srcdoc = new TextDecoder().decode(model.get("_page"));
  el.append(frame);
  return () => {
    removeEventListener("message", onMessage);
    model.off("change:_requests", sendRequests);
    model.off("change:height", setHeight);
    frame.remove();
  };
}

export default { render };
