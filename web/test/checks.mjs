// Checks of the pages in a real Chromium. Called with a folder of reports and a server's address; prints one line of JSON for each check.
import { chromium } from "playwright-core";

const [folder, executablePath, serverUrl] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--no-first-run"] });

function expect(condition, message) {
  if (!condition) throw new Error(message);
}

const same = (left, right, what) => expect(JSON.stringify(left) === JSON.stringify(right), `${what}: ${JSON.stringify(left)}, not ${JSON.stringify(right)}`);

// A page of a report, with every error and every request it makes.
async function open(name, hash = "", options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(20000);
  const problems = [], requests = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(`file://${folder}/${name}.html${hash}`);
  await page.waitForSelector("main > *");
  return { page, problems, requests, close: () => context.close() };
}

const hashOf = (page) => page.evaluate(() => location.hash);
const texts = (page, selector) => page.$$eval(selector, (found) => found.map((item) => item.textContent));
const drawn = (page) => page.waitForFunction(() => Number(document.querySelector("canvas.graph").dataset.drawn) > 0);

// Pixels that are not background.
const inkOf = (page) => page.$eval("canvas.graph", (canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let ink = 0;
  for (let i = 0; i < data.length; i += 4) if (Math.abs(data[i] - data[0]) + Math.abs(data[i + 1] - data[1]) > 12) ink++;
  return ink;
});

const checks = {
  async verdict() {
    const { page, problems, requests, close } = await open("demo");
    same(await texts(page, ".inputs tbody .value"), ["103", "32", "25"], "inputs");
    const story = (await texts(page, ".story li")).join(" ");
    expect(story.includes("103, 32, 25"), `the story names the inputs: ${story}`);
    expect(story.includes("961*in0 + 31*in1 + in2 = 0x186a0"), `the story names the condition: ${story}`);
    expect((await page.textContent(".command")).includes("--inputs=103,32,25"), "the command repeats the run");
    same(problems, [], "problems");
    same(requests.filter((url) => !url.startsWith("file:")), [], "requests to the network");
    await close();
  },
  async folding() {
    const { page, close } = await open("demo", "#/traces");
    const rows = await page.$$eval(".row", (found) => found.length);
    const folds = await page.$$(".fold");
    expect(folds.length > 0 && rows < 20, `${rows} rows, ${folds.length} folds`);
    await folds[0].click();
    const unfolded = await page.$$eval(".row", (found) => found.length);
    expect(unfolded > rows, "unfolding shows steps");
    await page.click(".unfolded .fold");
    same(await page.$$eval(".row", (found) => found.length), rows, "folded again");
    await page.click("text=fold steps without effect");
    same(await page.$$eval(".row", (found) => found.length), 36, "all states of the run");
    expect((await hashOf(page)).includes("fold=0"), "the address says so");
    await page.reload();
    await page.waitForSelector(".row");
    same(await page.$$eval(".row", (found) => found.length), 36, "and the address is enough");
    same(await texts(page, ".row .kind").then((found) => found.filter((kind) => kind.includes("call")).length), 4, "calls");
    await close();
  },
  async selection() {
    const { page, close } = await open("model", "#/traces");
    const boxes = await page.$$(".trace input");
    same(boxes.length, 2, "counterexamples");
    expect((await page.textContent("[role=status]")).startsWith("2 counterexamples"), "both are chosen");
    expect((await page.$$(".row.common .mark")).length > 1, "common steps are marked");
    same((await page.$$(".branch")).length, 2, "branches of the tree");
    const marks = await texts(page, ".row.common .mark");
    expect(marks.every((mark) => mark === "◆"), "marked by a sign, not by colour alone");
    await boxes[1].click();
    same((await page.$$(".branch")).length, 0, "one trace has no branches");
    expect((await hashOf(page)).includes("sel=1"), "the address names the choice");
    await page.click("text=full stacks");
    expect((await page.$$(".row .stack")).length > 0, "whole stacks");
    await page.click("button:text-is('none')");
    expect((await page.textContent("[role=status]")).includes("Choose"), "nothing chosen");
    await page.click("button:text-is('all')");
    same((await page.$$(".branch")).length, 2, "all chosen again");
    await close();
  },
  async shortest_first() {
    const { page, close } = await open("model", "#/traces");
    const lengths = (await texts(page, ".trace label")).map((text) => Number(/(\d+) steps?/.exec(text)[1]));
    same(lengths, [...lengths].sort((a, b) => a - b), "lengths");
    await close();
  },
  async code() {
    const { page, close } = await open("demo", "#/code/0x8048159?trace=1&step=33");
    await page.waitForSelector(".line.current");
    same(await page.getAttribute(".line.current", "data-address"), "0x8048159", "the step of the address");
    const registers = (await texts(page, ".register")).join(" ");
    expect(registers.includes("EAX 0x186a0"), registers);
    await page.keyboard.press("n");
    same(await page.getAttribute(".line.current", "data-address"), "0x804815b", "the next step");
    expect((await hashOf(page)).includes("step=34"), "the address follows");
    await page.keyboard.press("p");
    await page.keyboard.press("p");
    same(await page.getAttribute(".line.current", "data-address"), "0x8048154", "two steps back");
    expect((await texts(page, ".line.executed .cover")).every((sign) => sign.startsWith("●")), "coverage has a sign");
    await page.fill("input[type=search]", "shl");
    same((await page.$$(".line.found")).length, 1, "found");
    await close();
  },
  async invariants() {
    const { page, close } = await open("proved", "");
    expect((await page.textContent(".banner")).includes("PROVED"), "proved");
    await page.goto(`file://${folder}/proved.html#/code`);
    await page.waitForSelector(".listing .invariant");
    expect((await texts(page, ".invariant")).some((text) => text.includes("always holds here")), "invariants in the listing");
    await close();
  },
  async deep_links() {
    for (const [hash, selector] of [["#/verdict", ".banner"], ["#/traces?sel=1", ".tree"], ["#/code/0x8048140", ".line.target"],
      ["#/graph/0x8048130?node=0x8048154", ".details .line"], ["#/nonsense/%E0%A4%A", ".banner"], ["#/code/0xdeadbeef?trace=99&step=-7", ".listing"],
      ["#/traces?sel=abc,7", ".tree"], ["#/timeline/999999", "h1"]]) {
      const { page, problems, close } = await open("demo", hash);
      await page.waitForSelector(selector, { state: "attached" });
      same(problems, [], hash);
      await close();
    }
    const { page, close } = await open("demo");
    await page.click("nav >> text=Code");
    await page.waitForSelector(".listing");
    await page.goBack();
    await page.waitForSelector(".banner");
    await close();
  },
  async graph() {
    const { page, problems, close } = await open("demo", "#/graph/0x8048130");
    await drawn(page);
    const count = () => page.$eval("canvas.graph", (canvas) => canvas.mcvetoView.count);
    same(await count(), 6, "blocks");
    expect(await inkOf(page) > 2000, "something is drawn");
    await page.focus("canvas.graph");
    await page.keyboard.press("ArrowDown");
    await page.waitForSelector(".details .line");
    same((await page.textContent(".details h2")), "0x8048130", "the entry is chosen first");
    await page.keyboard.press("ArrowDown");
    same((await page.textContent(".details h2")), "0x8048140", "then along the edge");
    await page.keyboard.press("c");
    expect(await count() < 6, "collapsed");
    expect((await hashOf(page)).includes("collapsed=0x8048140"), "the address keeps it");
    await page.click("text=expand all");
    same(await count(), 6, "expanded");
    await page.click("text=join straight lines");
    expect(await count() < 6, "straight lines are joined");
    const before = await page.getAttribute("canvas.graph", "data-scale");
    await page.focus("canvas.graph");
    await page.keyboard.press("+");
    await page.waitForFunction((old) => document.querySelector("canvas.graph").dataset.scale !== old, before);
    await page.keyboard.press("Enter");
    await page.waitForSelector(".listing");
    same(problems, [], "problems");
    await close();
  },
  async large_graph() {
    const { page, problems, close } = await open("large", "#/graph");
    await drawn(page);
    const view = (what) => page.$eval("canvas.graph", (canvas, name) => canvas.mcvetoView[name], what);
    same(await view("count"), 5000, "nodes");
    const layout = await view("layoutMilliseconds");
    // Limits are for an idle machine, stretched by how long a fixed loop (100 ms there) takes on this one.
    const slowness = await page.evaluate(() => {
      const started = performance.now();
      let sum = 0;
      for (let i = 0; i < 60_000_000; i++) sum = (Math.imul(sum, 31) + i) | 0;
      return Math.max(1, (performance.now() - started + (sum & 1)) / 100);
    });
    expect(layout < 2500 * slowness, `placing took ${layout} ms (slowness ${slowness})`);
    // A frame until its pixels are there, of everything at once and of a part.
    const frames = (factor) => page.evaluate((factor) => {
      const canvas = document.querySelector("canvas.graph"), view = canvas.mcvetoView;
      view.zoom(factor);
      const times = [];
      for (let i = 0; i < 5; i++) {
        view.pan(i % 2 ? 9 : -9, 5);
        const started = performance.now();
        view.paint();
        canvas.getContext("2d").getImageData(0, 0, 1, 1);
        times.push(performance.now() - started);
      }
      return { milliseconds: times.sort((a, b) => a - b)[2], nodes: view.paintedNodes };
    }, factor);
    same(await inkOf(page) > 2000, true, "something is drawn");
    await page.click("text=fit");
    const far = await frames(1);
    same(await inkOf(page) > 2000, true, "everything is drawn from afar");
    const near = await frames(40);
    expect(far.nodes > 4500, `${far.nodes} of 5000 nodes in the view of everything`);
    expect(near.nodes > 0 && near.nodes < 1000, `${near.nodes} nodes in a part`);
    expect(far.milliseconds < 400 * slowness, `a frame of everything took ${far.milliseconds} ms (slowness ${slowness})`);
    expect(near.milliseconds < 100 * slowness, `a frame of a part took ${near.milliseconds} ms (slowness ${slowness})`);
    const started = Date.now();
    await page.fill("input[type=search]", "needle");
    await page.waitForFunction(() => document.querySelector(".details h2")?.textContent.includes("large_4321"));
    const search = Date.now() - started;
    expect(search < 1500 * slowness, `searching took ${search} ms (slowness ${slowness})`);
    await page.goto(`file://${folder}/large.html#/graph/0x100000`);
    await page.waitForFunction(() => document.querySelector("select")?.selectedOptions[0]?.textContent.startsWith("tall"));
    await drawn(page);
    expect(await inkOf(page) > 500, "a graph that is too tall for the view begins at its entry");
    same(problems, [], "problems");
    await close();
    return `placed in ${Math.round(layout)} ms, frames ${Math.round(far.milliseconds)} and ${Math.round(near.milliseconds)} ms, search ${search} ms, slowness ${slowness.toFixed(1)}`;
  },
  async timeline() {
    const { page, problems, close } = await open("timeline", "#/timeline/0");
    await drawn(page);
    const total = (await page.$$("button.event")).length;
    expect(total > 3, `${total} events`);
    const nodes = async () => Number(/([\d,]+) nodes?/.exec(await page.textContent(".caption"))[1]);
    same(await nodes(), 0, "nothing at the beginning");
    same(await inkOf(page), 0, "and nothing drawn");
    await page.keyboard.press("n");
    expect(await nodes() > 0, "the first run adds nodes");
    await page.waitForTimeout(100);
    expect(await inkOf(page) > 1000, "and draws them");
    expect((await hashOf(page)).startsWith("#/timeline/1"), "the address follows");
    await page.click("button[title='last event']");
    const left = Number(/([\d,]+) steps? into/.exec(await page.textContent(".caption"))[1]);
    same(left, 0, "proved: no step into the unexplored is left");
    expect((await texts(page, "button.event .kind")).some((kind) => kind.includes("÷")), "a split has a sign");
    await page.click("button[title='first event']");
    await page.click("text=play");
    await page.waitForFunction(() => location.hash !== "#/timeline/0");
    same(problems, [], "problems");
    await close();
  },
  async hostile() {
    for (const hash of ["", "#/traces?fold=0&stack=full", "#/code", "#/graph", "#/timeline", "#/code/%3Cimg%20src=x%20onerror=window.pwned=1%3E",
      "#/traces?sel=%3Cscript%3E", "#/graph?q=%3Cimg%20src=x%20onerror=window.pwned=1%3E&node=%22%3E%3Cscript%3E"]) {
      const { page, problems, requests, close } = await open("hostile", hash);
      await page.waitForTimeout(150);
      const state = await page.evaluate(() => ({ pwned: window.pwned, images: document.images.length, frames: document.querySelectorAll("iframe, object, embed").length,
        scripts: document.scripts.length, handlers: document.querySelectorAll("[onerror], [onclick], [onload]").length,
        links: [...document.links].filter((item) => !item.getAttribute("href").startsWith("#")).length, bidi: /[\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText) }));
      same(state, { images: 0, frames: 0, scripts: 2, handlers: 0, links: 0, bidi: false }, `${hash} (pwned: ${state.pwned})`);
      same(problems, [], hash);
      same(requests.length, 1, `${hash}: requests`);
      await close();
    }
  },
  async policy() {
    const { page, close } = await open("demo");
    const blocked = await page.evaluate(async () => {
      const script = document.createElement("script");
      script.textContent = "window.pwned = 1";
      document.body.append(script);
      const fetched = await fetch("https://example.org/").then(() => "fetched", () => "refused");
      return [window.pwned ?? "no", fetched];
    });
    same(blocked, ["no", "refused"], "other scripts and the network");
    await close();
  },
  async keyboard() {
    const { page, close } = await open("demo");
    for (const [key, selector] of [["2", ".tree"], ["3", ".listing"], ["4", "canvas.graph"], ["5", ".events, h1"], ["1", ".banner"]]) {
      await page.keyboard.press(key);
      await page.waitForSelector(selector, { state: "attached" });
    }
    await page.keyboard.press("2");
    await page.waitForSelector(".row");
    await page.focus(".row");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".unfolded");
    await page.keyboard.press("End");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".listing");
    await page.keyboard.press("/");
    same(await page.evaluate(() => document.activeElement.type), "search", "search has the focus");
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    expect(await page.$eval("dialog", (dialog) => dialog.open), "help is shown");
    await page.keyboard.press("Escape");
    await page.keyboard.press("1");
    await page.waitForSelector(".banner");
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("Tab");
    same(await page.evaluate(() => document.activeElement.className), "skip", "the first stop skips the navigation");
    await close();
  },
  async dark() {
    const colours = [];
    for (const colorScheme of ["light", "dark"]) {
      const { page, close } = await open("demo", "", { colorScheme });
      const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      colours.push(await background());
      if (colorScheme === "light") {
        await page.keyboard.press("t");
        same(await page.textContent(".theme"), "theme: light", "light");
        await page.keyboard.press("t");
        same(await page.textContent(".theme"), "theme: dark", "dark");
        colours.push(await background());
        const contrast = await page.evaluate(() => {
          const light = (text) => { const [r, g, b] = text.match(/\d+/g).map((v) => { const c = v / 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
          const style = getComputedStyle(document.querySelector(".quiet") ?? document.body);
          const pair = [light(style.color), light(getComputedStyle(document.body).backgroundColor)].sort((a, b) => b - a);
          return (pair[0] + 0.05) / (pair[1] + 0.05);
        });
        expect(contrast >= 4.5, `contrast ${contrast}`);
      }
      await close();
    }
    expect(colours[0] !== colours[1] && colours[1] === colours[2], `backgrounds ${colours}`);
  },
  async narrow() {
    for (const hash of ["", "#/traces", "#/code", "#/graph", "#/timeline"]) {
      const { page, close } = await open("demo", hash, { viewport: { width: 380, height: 700 } });
      const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(over <= 1, `${hash || "verdict"} is ${over} pixels too wide`);
      await close();
    }
  },
  async unknown() {
    const { page, close } = await open("unknown");
    expect((await page.textContent(".banner")).includes("Not known"), "not known");
    expect((await page.textContent("main")).includes("--timeout"), "what to try");
    await close();
  },
  async served() {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`${serverUrl}#/code`);
    await page.waitForSelector(".listing");
    await context.close();
  },
};

const wanted = process.argv[5] ? process.argv[5].split(",") : Object.keys(checks);
for (const name of wanted) {
  const started = Date.now();
  let problem = null, note = null;
  try {
    note = (await checks[name]()) ?? null;
  } catch (error) {
    problem = String(error.stack ?? error);
  }
  console.log(JSON.stringify({ name, problem, note, seconds: (Date.now() - started) / 1000 }));
}
await browser.close();
