#!/usr/bin/env node
// Builds everything that is C: the launcher library, the worker, the probe, their unit tests.
//
//   node scripts/build-native.mjs                    all products (not the tests)
//   node scripts/build-native.mjs --target worker    one product and what it needs; may be repeated
//   node scripts/build-native.mjs --tests            the C unit tests and fixtures too
//   node scripts/build-native.mjs --sanitize --tests those that can run under ASan and UBSan, into build/sanitize
//   node scripts/build-native.mjs --list             the target table
//
// Products lie in worker-native/build/{bin,lib,test}. CC chooses the compiler; a cross compiler builds into
// worker-native/build/cross-<machine>. The target table is scripts/native/targets.mjs, the machinery
// scripts/native/compile.mjs.

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { withLock } from "./lib/lock.mjs";
import { BuildContext, BuildError, expandSources, findCompiler } from "./native/compile.mjs";
import { targets } from "./native/targets.mjs";

const FLAVOUR = {
  "freestanding-exe": "freestanding",
  "shared-lib": "shared",
  "hosted-exe": "hosted",
  "object-set": "hosted",
};

/**
 * Builds the named targets (default: every product for this platform) and what they depend on. Resolves to a map
 * from target name to { output?, objects, includeDirs }.
 */
export async function buildNative({ names, tests = false, sanitize = false, log } = {}) {
  const root = dirname(dirname(fileURLToPath(import.meta.url)));
  const compiler = await findCompiler();
  const context = new BuildContext({ root, compiler, sanitize, ...(log === undefined ? {} : { log }) });
  const wanted = names ?? defaultNames(context, tests);
  context.verbose = names !== undefined;
  const results = new Map();
  await withLock(
    join(context.nativeDir, "build", "lock"),
    async () => {
      try {
        await Promise.all(wanted.map((name) => buildTarget(context, findTarget(name), results)));
      } finally {
        await context.settled();
      }
    },
    () => context.log("waiting for another native build of this clone"),
  ).catch((error) => {
    // Several files may have failed at once; all of them are shown.
    throw context.failures.length > 1 ? joinFailures(context.failures) : error;
  });
  return results;
}

function joinFailures(failures) {
  const foreign = failures.find((error) => !(error instanceof BuildError));
  if (foreign !== undefined) return foreign;
  return new BuildError(failures.map((error) => error.message).join("\n\n"), failures[0].exitCode);
}

function exists(target, context) {
  return target.os === undefined || target.os.includes(context.platform.os);
}

function defaultNames(context, tests) {
  return targets
    .filter((target) => exists(target, context) && (tests || target.test !== true))
    .filter((target) => !context.sanitize || (target.test === true && canBeSanitized(target)))
    .map((target) => target.name);
}

/** Without a C library there is no sanitizer; the engine's C is bounded by its own construction and takes minutes. */
function canBeSanitized(target) {
  return target.kind === "hosted-exe" && target.plainOnly !== true;
}

function findTarget(name) {
  const target = targets.find((entry) => entry.name === name);
  if (target === undefined) {
    const known = targets.map((entry) => entry.name).join(", ");
    throw new BuildError(`flowcell: no native target "${name}"; there are ${known}`, 64);
  }
  return target;
}

/** Builds one target once, its dependencies first. `results` holds promises, which is what makes it once. */
function buildTarget(context, target, results) {
  const known = results.get(target.name);
  if (known !== undefined) return known;
  const work = makeTarget(context, target, results);
  results.set(target.name, work);
  return work.then((result) => {
    results.set(target.name, result);
    return result;
  });
}

async function makeTarget(context, target, results) {
  if (!exists(target, context)) {
    throw new BuildError(`flowcell: the target ${target.name} does not exist on ${context.platform.os}`, 64);
  }
  if (context.sanitize && target.kind === "freestanding-exe") {
    throw new BuildError(`flowcell: ${target.name} has no C library and therefore no sanitizer build`, 64);
  }
  const needed = await Promise.all(
    (target.dependsOn ?? []).map((name) => buildTarget(context, findTarget(name), results)),
  );
  const started = Date.now();
  return context.counted(async (count) => {
    const result = await makeProduct(context, target, needed);
    const what = count.made === 0 ? "up to date" : `${count.made} made (${seconds(started)})`;
    // A plain build of a fresh tree says nothing: it runs before every `npm start`.
    if (count.made > 0 || context.verbose) context.log(`${target.name}: ${what}`);
    return result;
  });
}

async function makeProduct(context, target, needed) {
  if (target.kind === "step") {
    const module = await import(new URL(target.module, new URL("./native/", import.meta.url)).href);
    const made = (await module[target.entry](context)) ?? {};
    return { objects: made.objects ?? [], includeDirs: made.includeDirs ?? [] };
  }
  const { objects } = await context.compile({
    label: target.name,
    flavour: target.flavour ?? FLAVOUR[target.kind],
    sources: expandSources(context.nativeDir, target.sources, context.platform),
    includeDirs: [
      "src",
      "generated",
      ...(target.includeDirs ?? []),
      ...needed.flatMap((one) => one.includeDirs),
    ],
    flags: target.flags,
    fileFlags: target.fileFlags,
  });
  if (target.kind === "object-set") return { objects, includeDirs: [] };
  const output = context.productPath(target);
  await context.link({
    kind: target.kind,
    output,
    objects: [...objects, ...needed.flatMap((one) => one.objects)],
    flags: target.linkFlags,
    libraries: target.libraries,
  });
  return { output, objects: [], includeDirs: [] };
}

function seconds(started) {
  return `${((Date.now() - started) / 1000).toFixed(1)} s`;
}

function parseArguments(argv) {
  const options = { tests: false, sanitize: false, list: false };
  for (let at = 0; at < argv.length; at += 1) {
    const word = argv[at];
    if (word === "--tests" || word === "--sanitize" || word === "--list") options[word.slice(2)] = true;
    else if (word === "--target") {
      at += 1;
      if (argv[at] === undefined)
        throw new BuildError("flowcell: --target needs a name; --list shows them", 64);
      options.names = [...(options.names ?? []), argv[at]];
    } else {
      throw new BuildError(
        `flowcell: unknown argument "${word}". Usage: build-native.mjs [--target NAME]... [--tests] [--sanitize] [--list]`,
        64,
      );
    }
  }
  return options;
}

async function main() {
  const { list, ...options } = parseArguments(process.argv.slice(2));
  if (list) {
    for (const target of targets)
      console.log(`${target.name.padEnd(16)} ${target.kind}${target.test ? "  test" : ""}`);
    return;
  }
  await buildNative(options);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    await main();
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = error.exitCode;
  }
}
