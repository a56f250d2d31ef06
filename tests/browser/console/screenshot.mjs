// Picture of the console for README.md and docs/console.md: see ../screenshot.
import { argumentsOf, click, launch, open, settle, visit, waitForText } from "./driver.mjs";

const browser = await launch();
try {
  const page = await open(browser, process.env.LINK);
  await page.setViewport({ width: 1180, height: 740 });
  await visit(page, "#/tools/dice");
  await argumentsOf(page, { count: 600 });
  await click(page, "button", "Run");
  await waitForText(page, "Succeeded after");
  const frame = await (await page.waitForSelector("iframe.app")).contentFrame();
  await frame.waitForSelector("#faces .row");
  await settle(page);
  await page.evaluate(() => window.scrollTo(0, 0));
  await page.screenshot({ path: process.env.PICTURE });
} finally {
  await browser.close();
}
