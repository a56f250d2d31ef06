// Hostile names, descriptions and outputs: all of it is text, and a huge line leaves the page usable.
import assert from "node:assert/strict";
import { accessible, click, copied, launch, nothingHappened, open, text, visit, waitForText } from "./driver.mjs";

const browser = await launch();
try {
  const page = await open(browser, process.env.LINK);
  await waitForText(page, "hostile", ".side");
  for (const tool of ["hostile", "pictures"]) {
    await visit(page, `#/tools/${tool}`);
    await click(page, "button", "Run");
    await waitForText(page, "Succeeded after");
    await page.$$eval("details", (all) => all.forEach((details) => (details.open = true)));
    assert.equal(await page.evaluate(() => window.hacked), undefined, tool);
    // Elements that scripts could only make by markup, and links to anywhere else.
    assert.deepEqual(await page.$$eval("main img, main iframe, main script, main b, main object, main base, main form[action]", (all) => all.map((element) => element.outerHTML)), []);
    const links = await page.$$eval("a", (all) => all.map((link) => link.getAttribute("href")));
    assert.deepEqual(links.filter((link) => !link.startsWith("#")), [], "no link of a script");
    await accessible(page, `hostile-${tool}`);
  }
  await visit(page, "#/tools/hostile");
  const shown = await text(page);
  for (const part of ["<script>window.hacked=1</script>", "<img src=x onerror=", "](javascript:window.hacked=1)", "[U+202E]", "[U+200B]"]) {
    assert.ok(shown.includes(part), `${part} in:\n${shown}`);
  }
  assert.ok(!/[\u202e\u001b]/.test(shown));
  // What is shown and copied for a shell can't end a paste, or be read in another order.
  assert.equal(JSON.parse(await page.$eval("#json", (editor) => editor.value)).paste, "\u202e\u001b[201~\u0003");
  assert.match(await page.$eval("#json", (editor) => editor.value), /"\\u202e\\u001b\[201~\\u0003"/);
  await click(page, "summary", "Call it from a shell");
  const lines = await page.$$eval("pre.command", (all) => all.map((line) => line.textContent));
  assert.equal(lines.length, 2);
  for (const [at, line] of lines.entries()) {
    assert.match(line, /\\u202e\\u001b\[201~\\u0003/);
    assert.equal(await copied(page, "pre.command + .bar button", at), line, "what is copied is what is shown");
    assert.match(line, /^[\n\x20-\x7e]*$/);
  }

  // The same in runs.
  await visit(page, "#/runs");
  await page.$$eval(".card details", (all) => all.forEach((details) => (details.open = true)));
  await waitForText(page, "<script>window.hacked=1</script>");
  await visit(page, "#/tools/!%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D1%3E");
  await visit(page, "#/tools/%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D1%3E");
  await visit(page, "#/<img src=x onerror=window.hacked=1>/%");
  assert.equal(await page.evaluate(() => window.hacked), undefined);

  // A line of 10 MB.
  await visit(page, "#/tools/huge");
  await click(page, "button", "Run");
  await waitForText(page, "Succeeded after");
  const began = Date.now();
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0))));
  assert.ok(Date.now() - began < 5000, "the page answers");
  assert.ok((await page.$eval("pre.text", (pre) => pre.textContent.length)) < 300_000);
  nothingHappened(page);
} finally {
  await browser.close();
}
