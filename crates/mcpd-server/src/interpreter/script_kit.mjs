// What Script Kit declares for its scripts, as far as it means anything without its windows.

import { readFileSync } from "node:fs"
import * as modules from "node:module"

let given
let said

const input = async () => (given ??= JSON.parse(readFileSync(0, "utf8") || "{}"))
const output = values => {
  said = { ...said, ...values }
}
const defineSchema = () => ({ input, output })

// A module may assign to what is there already. Scripts ask `metadata.mcp` before they open a window.
let described
Object.assign(globalThis, { defineSchema, input, output, schema: undefined })
Object.defineProperty(globalThis, "metadata", {
  configurable: true,
  enumerable: true,
  get: () => ({ ...described, mcp: true }),
  set: metadata => {
    described = metadata
  },
})

process.on("exit", () => {
  if (said !== undefined) process.stdout.write(JSON.stringify(said) + "\n")
})

// Scripts import its packages for what they declare; where they are not installed, this is what they declare.
const packages = ["@scriptkit/sdk", "@johnlindquist/kit"]
const kit =
  "data:text/javascript,export const { defineSchema, input, output } = globalThis; export default globalThis"

const stand_in = (name, error) => {
  if (!packages.includes(name)) throw error
  return { url: kit, format: "module", shortCircuit: true }
}

const source = readFileSync(process.argv[1], "utf8")
if (packages.some(name => source.includes(name))) {
  if (modules.registerHooks) {
    const resolve = (name, context, next) => {
      try {
        return next(name, context)
      } catch (error) {
        return stand_in(name, error)
      }
    }
    modules.registerHooks({ resolve })
  } else {
    const hook = `
      const packages = ${JSON.stringify(packages)}
      const kit = ${JSON.stringify(kit)}
      const stand_in = ${stand_in}
      export const resolve = (name, context, next) => next(name, context).catch(error => stand_in(name, error))`
    modules.register?.(`data:text/javascript,${encodeURIComponent(hook)}`)
  }
}
