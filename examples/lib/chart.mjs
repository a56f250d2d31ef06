#!/usr/bin/env node
import { fail, log, tool } from "./mcpd.mjs";

tool({
  description: "Draws a bar of stars for each number.",
  annotations: { read_only: true },
  options: {
    numbers: {
      description: "Numbers to draw, at most 100 each",
      required: true,
      value_type: "array",
      items: { value_type: "integer" },
    },
  },
  run: ({ numbers }) => {
    if (numbers.some((number) => number < 0 || number > 100)) fail("a number is out of range");
    log.debug(`${numbers.length} bars`);
    return numbers.map((number) => "*".repeat(number)).join("\n");
  },
});
