// Build steps of the script engine: WebAssembly → C → objects, and the pristine image that the worker maps.
//
// Called by build-native.mjs with a BuildContext (compile.mjs). Everything is made below worker-native/build/engine,
// which git ignores; what goes in is pinned by the lockfile and by engine/generate.mjs. A step is made again when the
// contents of its inputs, its flags or its compiler changed.
//
//   buildEngineCode   the engine's objects and headers, without an image
//   buildEngine       those and the worker's image, from build/prelude.js
//   buildEngineTest   those and the image of the engine's own tests, from src/engine/testing/prelude.js
//
// FLOWCELL_RUN is put before the image maker when it was built for another machine, as in
// FLOWCELL_RUN="qemu-aarch64 -L /usr/aarch64-linux-gnu".

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { BuildError, run } from "./compile.mjs";
import { engineInputs, findWasm2c, generatedFiles, generateEngine } from "./engine/generate.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const GENERATOR_SOURCES = [
  "generate.mjs",
  "glue.mjs",
  "transform.mjs",
  "wasm-module.mjs",
  "wasm2c-stack.cjs",
].map((name) => join(HERE, "engine", name));

/**
 * The generated code's own flags. It is no C that a person would write, so its warnings are not ours; but a frame of
 * more than 2 KiB stops the build, and a large frame touches its pages in order, or the guard below the C stack could be
 * jumped over. No stack protector: there is no array on a frame to overflow.
 */
function generatedFlags({ family }) {
  return [
    "-std=gnu11",
    "-DENGINE_GENERATED_CODE",
    "-O2",
    "-fno-stack-protector",
    "-fstack-clash-protection",
    // The interpreter's jumps (threadDispatch in engine/transform.mjs) must stay as many as they are written.
    "gcc:-fno-gcse",
    "gcc:--param=max-goto-duplication-insns=40",
    "-Wno-all",
    "-Wno-extra",
    "-Wno-conversion",
    "-Wno-shadow",
    "-Wno-unused",
    ...(family === "clang" ? ["-Wno-everything"] : []),
    "-Wframe-larger-than=2048",
  ];
}

function folderOf(context) {
  return join(context.buildDir, "engine");
}

/** Writes the generated C unless it is up to date. It is the same for every compiler. */
async function generate(context) {
  const folder = join(folderOf(context), "code");
  const { sources, headers } = generatedFiles(folder);
  const wasm2c = await findWasm2c(context.root);
  const started = Date.now();
  await context.step({
    name: "engine-code",
    command: ["wasm2c", wasm2c.identity],
    inputs: [...Object.values(engineInputs(context.root)), ...GENERATOR_SOURCES],
    outputs: [...sources, ...headers],
    make: () =>
      context.job(async () => {
        context.log("engine: translating WebAssembly to C");
        await generateEngine({ root: context.root, folder, wasm2c });
        const seconds = ((Date.now() - started) / 1000).toFixed(1);
        context.log(`engine: translated (${seconds} s); compiling it takes half a minute of processor time`);
      }),
  });
  return { folder, sources };
}

/** The engine's objects: { objects, includeDirs }. They hold nothing of a flavour and go into every executable. */
export async function buildEngineCode(context) {
  const { folder, sources } = await generate(context);
  const includeDirs = [folder, "src/engine/wasm"];
  const { objects } = await context.compile({
    label: "engine",
    flavour: "freestanding",
    sources,
    includeDirs,
    flags: generatedFlags(context.compiler),
  });
  return { objects, includeDirs };
}

/** What the image maker is built from besides the generated code: this folder's C but for the mapping of an image. */
const MAKER_SOURCES = [
  "src/engine/allocator.c",
  "src/engine/fault_linux.c",
  "src/engine/imports.c",
  "src/engine/memory.c",
  "src/engine/stack.c",
  "src/engine/values.c",
  "src/engine/image/make_image.c",
  "src/engine/image/placement.c",
];

async function buildImageMaker(context, code) {
  const { objects } = await context.compile({
    label: "engine",
    flavour: "hosted",
    sources: MAKER_SOURCES,
    includeDirs: ["src", "generated", ...code.includeDirs],
    flags: ["-DENGINE_IMAGE_MAKER"],
  });
  const output = join(folderOf(context), "make_image");
  await context.link({
    kind: "hosted-exe",
    output,
    objects: [...objects, ...code.objects],
    libraries: ["-lm"],
  });
  return output;
}

const IMAGE_FILES = ["image.bin", "engine_image.c", "engine_image.S"];

/** The image twice: the section that becomes linear memory, and what is restored from. Its hash makes the object stale. */
function imageSections(folder) {
  const hash = createHash("sha256").update(readFileSync(join(folder, "image.bin")));
  const section = (name, symbol, align) => [
    `  .section ${name}, "a", %progbits`,
    `  .balign ${align}`,
    `  .hidden ${symbol}`,
    `  .globl ${symbol}`,
    `${symbol}:`,
    '  .incbin "image.bin"',
  ];
  return [
    `/* Written by scripts/native/engine.mjs. Do not edit. image.bin: ${hash.digest("hex")} */`,
    ...section(".engine_image", "engine_image_start", 65536),
    ...section(".rodata.engine_pristine", "engine_pristine", 4096),
    '  .section .note.GNU-stack, "", %progbits',
    "",
  ].join("\n");
}

/** Runs the image maker on a prelude and compiles what it wrote. Resolves to { objects, includeDirs, folder }. */
export async function buildImage(context, { name, prelude, folder }) {
  const code = await buildEngineCode(context);
  const maker = await buildImageMaker(context, code);
  const sample = join(context.nativeDir, "src", "engine", "image", "sample.js");
  const runner = (process.env.FLOWCELL_RUN ?? "").split(/\s+/).filter((word) => word !== "");
  await context.step({
    name: `engine-image-${name}`,
    command: ["make_image", ...runner],
    inputs: [maker, prelude, sample],
    outputs: IMAGE_FILES.map((file) => join(folder, file)),
    make: () =>
      context.job(async () => {
        mkdirSync(folder, { recursive: true });
        const [command, ...args] = [...runner, maker, prelude, sample, folder];
        const { stdout } = await run(command, args);
        writeFileSync(join(folder, "engine_image.S.new"), imageSections(folder));
        renameSync(join(folder, "engine_image.S.new"), join(folder, "engine_image.S"));
        context.log(`engine: image for ${name}: ${stdout.trim()}`);
      }),
  });
  const { objects } = await context.compile({
    label: "engine",
    flavour: "freestanding",
    sources: [join(folder, "engine_image.c"), join(folder, "engine_image.S")],
    includeDirs: ["src", "generated", ...code.includeDirs, folder],
  });
  return { objects: [...code.objects, ...objects], includeDirs: code.includeDirs, folder };
}

/** The worker's engine with its image. build/prelude.js is made by the prelude's own step. */
export async function buildEngine(context) {
  const prelude = join(context.nativeDir, "build", "prelude.js");
  try {
    readFileSync(prelude);
  } catch {
    throw new BuildError(`flowcell: ${prelude} is missing; the target "prelude" makes it`, 69);
  }
  return buildImage(context, { name: "worker", prelude, folder: join(folderOf(context), "image") });
}

/** The engine with the image of its own tests, whose prelude is part of them. */
export async function buildEngineTest(context) {
  return buildImage(context, {
    name: "tests",
    prelude: join(context.nativeDir, "src", "engine", "testing", "prelude.js"),
    folder: join(folderOf(context), "test-image"),
  });
}
