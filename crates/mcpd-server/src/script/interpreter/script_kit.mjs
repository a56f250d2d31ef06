// Names that Script Kit declares for its scripts, as far as they mean anything without its windows.
// Node.js, tsx, Bun and Deno load this module before a script.

import { readFileSync } from "node:fs"
import * as modules from "node:module"
import { pathToFileURL } from "node:url"

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
// Bun would install them at a call, and Deno looks for them before it runs anything, so that an import
// map has to tell it: both get what is here in any case.
const packages = ["@scriptkit/sdk", "@johnlindquist/kit"]
const stand_in =
  "data:text/javascript,export const { defineSchema, input, output } = globalThis; export default globalThis"

const script = process.argv[1]
const main = pathToFileURL(script).href
const source = readFileSync(script, "utf8")
const imports_package = packages.some(name => source.includes(name))

// tsx takes a file for CommonJS unless a package.json says otherwise, and CommonJS neither awaits at
// the top nor loads the stand-in. Files that are written for CommonJS stay so.
const is_common = /\brequire\s*\(|\bmodule\.exports\b|\b__(?:dir|file)name\b/.test(source)
const is_module = !is_common && (imports_package || /\bawait\b/.test(source))

const refine = found =>
  is_module && found.format === "commonjs" && found.url.split("?")[0] === main
    ? { ...found, format: "module" }
    : found
const replace = (name, error) => {
  if (!packages.includes(name)) throw error
  return { url: stand_in, format: "module", shortCircuit: true }
}

const replace_in_bun = () => {
  const exports = { defineSchema, input, output, default: globalThis }
  const setup = build => {
    for (const name of packages) build.module(name, () => ({ exports, loader: "object" }))
  }
  Bun.plugin({ name: "Script Kit", setup })
}

if (globalThis.Bun) {
  if (imports_package) replace_in_bun()
} else if (globalThis.Deno) {
  // Nothing is left to do.
} else if (imports_package || is_module) {
  if (modules.registerHooks) {
    const resolve = (name, context, next) => {
      try {
        return refine(next(name, context))
      } catch (error) {
        return replace(name, error)
      }
    }
    modules.registerHooks({ resolve })
  } else {
    const values = { packages, stand_in, main, is_module }
    const hook = `
      const { packages, stand_in, main, is_module } = ${JSON.stringify(values)}
      const refine = ${refine}
      const replace = ${replace}
      export const resolve = (name, context, next) =>
        next(name, context).then(refine, error => replace(name, error))`
    modules.register?.(`data:text/javascript,${encodeURIComponent(hook)}`)
  }
}
