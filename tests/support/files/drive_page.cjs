// Opens a page in Chromium, does what standard input lists, and prints the results:
// drive_page.cjs NODE_MODULES CHROMIUM PAGE < [[action, argument...], ...]
// Results: {"results": [...], "requests": [addresses], "errors": [texts], "dialogs": number}
const path = require("node:path");

const [modules, chromium, file] = process.argv.slice(2);
const puppeteer = require(path.join(modules, "puppeteer-core"));
const actions = JSON.parse(require("node:fs").readFileSync(0, "utf8"));

async function until(page, expression, seconds) {
  for (const end = Date.now() + 1000 * seconds; ; await new Promise((done) => setTimeout(done, 50))) {
    const value = await page.evaluate(expression);
    if (value) return value;
    if (Date.now() > end) throw new Error(`not within ${seconds} s: ${expression}`);
  }
}

// The page, or the frame that `frame` has chosen: values are of its document, and selectors find its elements.
let scope;

const perform = {
  frame: async (page, selector) => {
    scope = selector ? await (await page.waitForSelector(selector)).contentFrame() : page;
  },
  until: (page, expression, seconds = 60) => until(scope, expression, seconds),
  value: (page, expression) => scope.evaluate(expression),
  press: (page, key) => page.keyboard.press(key),
  type: (page, text) => page.keyboard.type(text),
  focus: (page, selector) => scope.focus(selector),
  click: (page, selector) => scope.click(selector),
  drag: async (page, from, to, key) => {
    if (key) await page.keyboard.down(key);
    await page.mouse.move(...from);
    await page.mouse.down();
    await page.mouse.move(...to, { steps: 5 });
    await page.mouse.up();
    if (key) await page.keyboard.up(key);
  },
  move: (page, at) => page.mouse.move(...at),
  wheel: (page, at, by) => page.mouse.move(...at).then(() => page.mouse.wheel({ deltaY: by })),
  size: (page, width, height) => page.setViewport({ width, height }),
  dark: (page) => page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]),
  picture: (page, to) => page.screenshot({ path: to }),
};

(async () => {
  const browser = await puppeteer.launch({
    executablePath: chromium,
    args: ["--no-sandbox", "--disable-gpu"],
    protocolTimeout: 240000,
  });
  const said = { results: [], requests: [], errors: [], dialogs: 0 };
  try {
    const page = await browser.newPage();
    await page.setViewport({ width: 1280, height: 800 });
    page.on("request", (request) => said.requests.push(request.url().slice(0, 200)));
    page.on("pageerror", (error) => said.errors.push(String(error)));
    page.on("dialog", (dialog) => {
      said.dialogs += 1;
      dialog.dismiss();
    });
    page.on("console", (message) => {
      if (message.type() === "error") said.errors.push(message.text());
    });
    await page.goto(`file://${file}`, { waitUntil: "load", timeout: 120000 });
    scope = page;
    for (const [action, ...rest] of actions) {
      const result = await perform[action](page, ...rest);
      if (action === "value" || action === "until") said.results.push(result);
    }
  } finally {
    await browser.close();
  }
  process.stdout.write(JSON.stringify(said));
})().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
