// Makes a Node program print the options that its parser (commander or yargs) really has, as JSON,
// in place of its help.

const fs = require('node:fs');
const Module = require('node:module');

function finish(flags) {
  fs.writeSync(3, JSON.stringify(flags));
  process.exit(0);
}

function ofCommander(command) {
  const own = command.options.filter((option) => !option.hidden);
  const flags = own.map((option) => [
    [option.short, option.long].filter(Boolean),
    Boolean(option.required || option.optional),
  ]);
  finish(flags);
}

function ofYargs(instance) {
  const options = instance.getOptions();
  const groups = Object.values(instance.getGroups?.() ?? {}).flat();
  const aliases = options.alias;
  const names = new Set([
    ...Object.keys(options.key), ...options.boolean, ...options.string, ...options.array,
    ...options.number, ...options.count, ...groups,
  ]);
  const known = new Set();
  const flags = [];
  for (const name of names) {
    if (known.has(name) || options.hiddenOptions?.includes(name)) continue;
    const same = new Set([name, ...(aliases[name] ?? [])]);
    for (const [other, list] of Object.entries(aliases)) {
      if (list.includes(name)) [other, ...list].forEach((one) => same.add(one));
    }
    same.forEach((one) => known.add(one));
    const spellings = [...same].map((one) => (one.length === 1 ? `-${one}` : `--${one}`));
    const is = (list) => [...same].some((one) => list.includes(one));
    flags.push([spellings, !is(options.boolean) && !is(options.count)]);
  }
  finish(flags);
}

const load = Module._load;
Module._load = function watched(request, ...rest) {
  const loaded = load.call(this, request, ...rest);
  if (loaded?.Command?.prototype?.outputHelp) {
    const { prototype } = loaded.Command;
    prototype.outputHelp = function help() { ofCommander(this); };
    prototype.helpInformation = function help() { ofCommander(this); };
  }
  if (typeof loaded === 'function' && /(^|\/)yargs(\/yargs)?$/.test(request)) {
    return new Proxy(loaded, {
      apply(factory, self, args) {
        const instance = factory.apply(self, args);
        instance.showHelp = () => ofYargs(instance);
        return instance;
      },
    });
  }
  return loaded;
};
