// The command and the Python line of a selection, with buttons that copy them.
import { h } from "preact";
import { useState } from "preact/hooks";
import { cleaned } from "../text/names";
import type { Reproduced } from "../text/reproduce";

async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages of file:// and frames of notebooks may have no clipboard.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    return isCopied;
  }
}

function Line({ label, text }: { label: string; text: string }) {
  const [state, setState] = useState("");
  const onCopy = (): void => {
    void copy(text).then((isCopied) => {
      setState(isCopied ? "copied" : "not allowed");
      setTimeout(() => setState(""), 1500);
    });
  };
  return (
    <div class="line">
      <button aria-label={`Copy the ${label}`} onClick={onCopy}>
        {state || "copy"}
      </button>
      <code class={label.replaceAll(" ", "-")}>{cleaned(text)}</code>
    </div>
  );
}

export function Reproduce({ of }: { of: Reproduced | null }) {
  if (!of) return null;
  return (
    <div class="reproduce">
      <Line label="command" text={of.command} />
      <Line label="Python line" text={of.python} />
    </div>
  );
}
