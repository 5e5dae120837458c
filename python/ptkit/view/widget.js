// src/widget/messages.ts
var MARK = 1;
function membersOf(data) {
  if (typeof data !== "object" || data === null) return null;
  const members = data;
  return members["ptkit"] === MARK ? members : null;
}

// src/widget/notebook.ts
function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts");
  Object.assign(frame.style, { width: "100%", border: "0", background: "#fff" });
  frame.title = model.get("title");
  let isReady = false;
  let performed = model.get("_performed");
  const send = (request) => frame.contentWindow?.postMessage({ ptkit: MARK, ...request }, "*");
  const sendRequests = () => {
    const waiting = model.get("_requests").filter(({ number }) => number > performed);
    if (!isReady || !waiting.length) return;
    for (const { number, request } of waiting) {
      send(request);
      performed = number;
    }
    model.set("_performed", performed);
    model.save_changes();
  };
  const setHeight = () => {
    frame.style.height = `${model.get("height")}px`;
  };
  const onMessage = (event) => {
    if (!frame.contentWindow || event.source !== frame.contentWindow) return;
    const message = membersOf(event.data);
    if (message?.["type"] === "selection") {
      model.set("selection", message["selection"]);
      model.save_changes();
    } else if (message?.["type"] === "ready") {
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
var notebook_default = { render };
export {
  notebook_default as default
};
