// Build of ../python/ptkit/view/page.html, one file of markup, style and script, and of widget.js beside it, the module
// that shows it in a notebook's widget. The output depends on the sources and the lock file alone.
import { build } from "esbuild";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(root, "../python/ptkit/view/page.html");

async function bundle(entry, options = {}) {
  const result = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: "es2022",
    charset: "ascii",
    legalComments: "none",
    jsx: "transform",
    jsxFactory: "h",
    jsxFragment: "Fragment",
    logLevel: "warning",
    ...options,
  });
  return result.outputFiles[0].text.trim();
}

// Licences of the parts, each text once.
const licences = new Map();
for (const part of ["preact", "uplot"]) {
  const { version } = JSON.parse(readFileSync(join(root, "node_modules", part, "package.json"), "utf8"));
  const text = readFileSync(join(root, "node_modules", part, "LICENSE"), "utf8");
  const [, title, copyright, terms] = text.match(/^(.*?)\n\s*(Copyright[^\n]*)\n(.*)$/s);
  const key = `${title.trim()}\n\n${terms.replace(/([^\n])\r?\n(?=[^\n])/g, "$1 ").trim()}`;
  licences.set(key, [...(licences.get(key) ?? []), `${part} ${version}: ${copyright}`]);
}
const script = await bundle("src/main.tsx");
const style = await bundle("src/style.css");
if (script.includes("<!--") || /<\/script/i.test(script) || /<\/style/i.test(style)) {
  throw new Error("the script or the style would end its element");
}
const parts = {
  LICENCES: [...licences]
    .map(([terms, parts]) => `${parts.join("\n")}\n\n${terms}`)
    .join("\n\n")
    .replaceAll("--", "- -"),
  STYLE: style,
  SCRIPT: script,
};
const shell = readFileSync(join(root, "src/shell.html"), "utf8");
const page = shell.replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);
mkdirSync(dirname(target), { recursive: true });
writeFileSync(target, page);
console.log(`${target}: ${(page.length / 1000).toFixed(1)} kB`);
const widget = await bundle("src/widget/notebook.ts", { format: "esm", minify: false });
writeFileSync(join(dirname(target), "widget.js"), `${widget}\n`);
