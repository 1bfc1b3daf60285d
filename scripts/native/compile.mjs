// The native build's machinery: finds the C compiler, knows the flag sets, compiles and links, and decides what is stale.
//
// Called by scripts/build-native.mjs and, through the context it hands out, by the build steps (engine.mjs,
// prelude.mjs). It trusts the sources of this repository and nothing else about a previous run: a product counts
// as fresh only if the hash of its command line, its compiler and the contents of every file that went into it
// (headers included, from the compiler's own dependency list) is the recorded one. Times are never compared, so a
// checkout, a copied tree or a clock that jumps cannot leave an old object in a worker.
// Products are written under a temporary name and renamed; their record is written last. A build that is killed
// half-way leaves nothing that looks finished.

import { AsyncLocalStorage } from "node:async_hooks";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join, relative, resolve, sep } from "node:path";

/** A failure the user can act on. `exitCode` follows sysexits: 64 usage, 65 sources, 69 something is missing. */
export class BuildError extends Error {
  constructor(message, exitCode = 65) {
    super(message);
    this.name = "BuildError";
    this.exitCode = exitCode;
  }
}

/** Runs a command and resolves to its output; a failure carries the command and exactly what it printed. */
export function run(command, args, { cwd, env } = {}) {
  return new Promise((resolveRun, reject) => {
    const child = spawn(command, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (chunk) => {
      stdout += chunk;
    });
    child.stderr.setEncoding("utf8").on("data", (chunk) => {
      stderr += chunk;
    });
    child.on("error", (error) => reject(new BuildError(`${command}: ${error.message}`, 69)));
    child.on("close", (code, signal) => {
      if (code === 0) resolveRun({ stdout, stderr });
      else {
        const how = signal === null ? `exit ${code}` : signal;
        const said = (stderr + stdout).trimEnd();
        reject(new BuildError(`${command} ${args.join(" ")}\n${said}${said ? "\n" : ""}(${how})`));
      }
    });
  });
}

/**
 * The compiler: $CC (which may carry arguments, as in CC="ccache gcc"), else the first of cc, gcc, clang.
 * `identity` goes into every key, so that a compiler upgrade rebuilds everything.
 */
export async function findCompiler(env = process.env) {
  const candidates = env.CC ? [env.CC] : ["cc", "gcc", "clang"];
  for (const candidate of candidates) {
    const [command, ...prefix] = candidate.trim().split(/\s+/);
    let version;
    let machine;
    try {
      version = (await run(command, [...prefix, "--version"])).stdout;
      machine = (await run(command, [...prefix, "-dumpmachine"])).stdout.trim();
    } catch {
      continue;
    }
    const family = /clang/i.test(version) ? "clang" : "gcc";
    return { command, prefix, family, machine, identity: `${version.split("\n")[0]} ${machine}` };
  }
  throw new BuildError(
    "flowcell: no C compiler found. Install gcc or clang (Debian: apt install gcc), or set CC.",
    69,
  );
}

const OS_OF_MACHINE = [
  [/linux/, "linux"],
  [/darwin|macos/, "darwin"],
  [/mingw|windows/, "windows"],
];
const ARCH_OF_MACHINE = [
  [/^(x86_64|amd64)/, "x64"],
  [/^(aarch64|arm64)/, "arm64"],
];

/** What the compiler makes code for, in the words the sources' suffixes use. Anything else is refused. */
export function platformOf(machine) {
  const os = OS_OF_MACHINE.find(([pattern]) => pattern.test(machine))?.[1];
  const arch = ARCH_OF_MACHINE.find(([pattern]) => pattern.test(machine))?.[1];
  if (os === undefined || arch === undefined) {
    throw new BuildError(
      `flowcell: the C compiler targets ${machine}; workers exist for x86-64 and arm64 on Linux, macOS and Windows. Set CC.`,
      69,
    );
  }
  return { os, arch };
}

const WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wvla", "-Wdate-time", "-Werror"];

// Contraction to fused multiply-add changes results between machines (gcc does it by default on arm64); the guest
// must compute the same numbers everywhere, and a replay on another machine must not diverge.
const COMMON = ["-std=c11", ...WARNINGS, "-ffp-contract=off", "-fno-math-errno"];

const SANITIZERS = [
  "-fsanitize=address,undefined",
  "-fno-sanitize-recover=all",
  "-fno-omit-frame-pointer",
  "-g",
  "-O1",
];

/**
 * The flag sets ("flavours") of objects. A source that several targets compile with the same flags is compiled once.
 *  freestanding  the worker and the probe: no C library, no start files, relocates itself, a stack-protector guard
 *                of its own (there is no thread pointer to hold one)
 *  shared        the launcher library, loaded into Node
 *  hosted        unit tests, fixtures, tools
 */
export function flavourFlags(flavour, { arch, sanitize }) {
  switch (flavour) {
    case "freestanding":
      return [
        ...COMMON,
        "-O2",
        "-fPIE",
        "-ffunction-sections",
        "-fdata-sections",
        "-fvisibility=hidden",
        "-fstack-protector-strong",
        ...(arch === "x64" ? ["-mstack-protector-guard=global", "-fcf-protection=none"] : []),
        "-fno-asynchronous-unwind-tables",
        "-fno-unwind-tables",
        // clang turns a memcmp that is only compared with 0 into a call of bcmp, which is nowhere.
        "-fno-builtin-bcmp",
      ];
    case "shared":
      return [
        ...COMMON,
        "-fPIC",
        "-fvisibility=hidden",
        "-fstack-protector-strong",
        ...(sanitize ? SANITIZERS : ["-O2"]),
      ];
    case "hosted":
      return [...COMMON, "-fPIE", "-fstack-protector-strong", ...(sanitize ? SANITIZERS : ["-O2", "-g"])];
    default:
      throw new BuildError(
        `flowcell: no object flavour "${flavour}"; there are freestanding, shared, hosted`,
      );
  }
}

function linkFlags(kind, { os, sanitize }) {
  const hardened = os === "linux" ? ["-Wl,-z,relro,-z,now,-z,noexecstack", "-Wl,--build-id=none"] : [];
  const sanitizers = sanitize ? ["-fsanitize=address,undefined"] : [];
  switch (kind) {
    case "freestanding-exe":
      return [
        "-static-pie",
        "-nostdlib",
        "-nostartfiles",
        ...hardened,
        "-Wl,-z,text,-z,separate-code,--gc-sections,--no-undefined,--fatal-warnings",
        "-s",
      ];
    case "shared-lib":
      return ["-shared", ...hardened, ...sanitizers, ...(os === "linux" && !sanitize ? ["-Wl,-z,defs"] : [])];
    case "hosted-exe":
      return ["-pie", ...hardened, ...sanitizers];
    default:
      throw new BuildError(`flowcell: a target of kind "${kind}" is not linked`);
  }
}

/** "gcc:-fx" and "clang:-fx" are for that compiler only. */
export function flagsFor(family, flags) {
  return flags.flatMap((flag) => {
    const only = /^(gcc|clang):(.*)$/.exec(flag);
    if (only === null) return [flag];
    return only[1] === family ? [only[2]] : [];
  });
}

const SUFFIX = { os: ["linux", "darwin", "windows"], arch: ["x64", "arm64"] };

/**
 * The sources an entry names, relative to worker-native: a folder means every .c and .S file directly in it that
 * fits the platform (`*_linux.c`, `*_arm64.S`), without the unit tests (`*_test.c`) beside them; a file means itself.
 */
export function expandSources(nativeDir, entries, { os, arch }) {
  const fits = (name) => {
    const words = name.replace(/\.[cS]$/, "").split("_");
    return words.every(
      (word) => (!SUFFIX.os.includes(word) || word === os) && (!SUFFIX.arch.includes(word) || word === arch),
    );
  };
  const found = [];
  for (const entry of entries) {
    const path = join(nativeDir, entry);
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined) throw new BuildError(`flowcell: worker-native/${entry} does not exist`);
    if (stat.isFile()) {
      found.push(entry);
      continue;
    }
    const files = readdirSync(path)
      .filter((name) => /\.[cS]$/.test(name) && !/_test\.c$/.test(name) && fits(name))
      .sort();
    if (files.length === 0)
      throw new BuildError(`flowcell: no sources for ${os} ${arch} in worker-native/${entry}`);
    found.push(...files.map((name) => `${entry}/${name}`));
  }
  return found;
}

/** One build: compiler, folders, the job limit and the record of what was hashed. Handed to every build step. */
export class BuildContext {
  /** Hashes of file contents seen in this build; products are re-hashed after they are made. */
  #hashes = new Map();
  #running = 0;
  #waiting = [];
  #idle = [];
  /** What went wrong, in order. After the first failure nothing new starts. */
  #failures = [];
  /** Objects and products made by this build under a key, so that two targets never build one file twice at once. */
  #inFlight = new Map();
  #counter = new AsyncLocalStorage();

  /** Whether fresh targets are mentioned too. */
  verbose = false;

  constructor({ root, compiler, sanitize = false, log = (line) => process.stdout.write(`${line}\n`) }) {
    this.root = root;
    this.nativeDir = join(root, "worker-native");
    this.compiler = compiler;
    this.platform = platformOf(compiler.machine);
    this.sanitize = sanitize;
    this.log = log;
    this.jobs = availableParallelism();
    const host = { linux: "linux", darwin: "darwin", win32: "windows" }[process.platform];
    const isHost = this.platform.os === host && this.platform.arch === process.arch;
    const base = join(this.nativeDir, "build", isHost ? "" : `cross-${compiler.machine}`);
    this.buildDir = sanitize ? join(base, "sanitize") : base;
  }

  /** Runs `task` when fewer than `jobs` tasks run. */
  async job(task) {
    if (this.#running >= this.jobs) await new Promise((go) => this.#waiting.push(go));
    else this.#running += 1;
    try {
      if (this.#failures.length > 0) throw this.#failures[0];
      return await task();
    } catch (error) {
      if (!this.#failures.includes(error)) this.#failures.push(error);
      throw error;
    } finally {
      const next = this.#waiting.shift();
      if (next !== undefined) next();
      else {
        this.#running -= 1;
        if (this.#running === 0) for (const wake of this.#idle.splice(0)) wake();
      }
    }
  }

  /** Resolves when no task runs any more, which after a failure is later than the rejection of the build. */
  async settled() {
    if (this.#running > 0) await new Promise((wake) => this.#idle.push(wake));
  }

  get failures() {
    return this.#failures;
  }

  /** Runs `body` and counts what it made by step(), in the `made` of the object that is passed to it. */
  counted(body) {
    const count = { made: 0 };
    return this.#counter.run(count, () => body(count));
  }

  hashFile(path) {
    let hash = this.#hashes.get(path);
    if (hash === undefined) {
      hash = existsSync(path) ? createHash("sha256").update(readFileSync(path)).digest("hex") : "absent";
      this.#hashes.set(path, hash);
    }
    return hash;
  }

  #fingerprint(command, inputs) {
    const hash = createHash("sha256");
    hash.update(JSON.stringify(command));
    for (const input of inputs) hash.update(`\0${relative(this.root, input)}\0${this.hashFile(input)}`);
    return hash.digest("hex");
  }

  /**
   * Makes `outputs` by `make` unless the record says that this command with these inputs already made them.
   * `make` may return further inputs that it discovered (headers); they are part of the record.
   * Resolves to true when something was made.
   */
  async step({ name, command, inputs, outputs, make }) {
    const pending = this.#inFlight.get(name);
    if (pending !== undefined) return pending;
    const work = this.#step({ name, command, inputs, outputs, make });
    this.#inFlight.set(name, work);
    return work;
  }

  async #step({ name, command, inputs, outputs, make }) {
    const record = join(this.buildDir, "records", `${name.replaceAll(/[^A-Za-z0-9._-]/g, "+")}.json`);
    if (outputs.every((output) => existsSync(output))) {
      try {
        const old = JSON.parse(readFileSync(record, "utf8"));
        const all = [...inputs, ...old.discovered.map((path) => resolve(this.root, path))];
        if (old.fingerprint === this.#fingerprint(command, all)) return false;
      } catch {
        // No record, or one that cannot be read: the outputs are of unknown origin and are made again.
      }
    }
    rmSync(record, { force: true });
    for (const output of outputs) mkdirSync(dirname(output), { recursive: true });
    const discovered = (await make()) ?? [];
    const count = this.#counter.getStore();
    if (count !== undefined) count.made += 1;
    for (const output of outputs) this.#hashes.delete(output);
    const body = {
      fingerprint: this.#fingerprint(command, [...inputs, ...discovered]),
      discovered: discovered.map((path) => relative(this.root, path).split(sep).join("/")),
    };
    mkdirSync(dirname(record), { recursive: true });
    writeFileSync(`${record}.new`, JSON.stringify(body));
    renameSync(`${record}.new`, record);
    return true;
  }

  /**
   * Compiles sources of one flavour and resolves to their objects, in order.
   *  label        the word on progress lines
   *  sources      absolute paths, or paths relative to worker-native
   *  includeDirs  the same
   *  flags        added after the flavour's (a later -W or -O wins); a set of its own gets objects of its own;
   *               "gcc:-fx" and "clang:-fx" are for that compiler only
   *  fileFlags    by source path relative to worker-native
   */
  async compile({ label, flavour, sources, includeDirs = [], flags = [], fileFlags = {} }) {
    const base = flavourFlags(flavour, { arch: this.platform.arch, sanitize: this.sanitize });
    const includes = includeDirs.map((dir) => `-I${relative(this.root, resolve(this.nativeDir, dir))}`);
    let done = 0;
    const started = Date.now();
    let told = started;
    const objects = await Promise.all(
      sources.map(async (entry) => {
        const source = resolve(this.nativeDir, entry);
        const inNative = relative(this.nativeDir, source).split(sep).join("/");
        const own = flagsFor(this.compiler.family, [...flags, ...(fileFlags[inNative] ?? [])]);
        const args = [...base, ...includes, ...own];
        const distinct = createHash("sha256").update(JSON.stringify(args)).digest("hex").slice(0, 8);
        const folder = join(this.buildDir, "obj", `${flavour}-${distinct}`);
        const object = join(folder, `${inNative.replaceAll("..", "_")}.o`);
        await this.#compileOne(source, object, args);
        done += 1;
        if (Date.now() - told > 5000) {
          told = Date.now();
          this.log(`${label}: ${done} of ${sources.length} files, ${Math.round((told - started) / 1000)} s`);
        }
        return object;
      }),
    );
    return { objects };
  }

  #compileOne(source, object, args) {
    const { command, prefix, identity } = this.compiler;
    const depfile = `${object}.d`;
    return this.step({
      name: relative(this.buildDir, object),
      command: [identity, ...prefix, ...args],
      inputs: [source],
      outputs: [object],
      make: () =>
        this.job(async () => {
          await run(
            command,
            [
              ...prefix,
              ...args,
              `-ffile-prefix-map=${this.root}=.`,
              "-MD",
              "-MF",
              depfile,
              "-c",
              relative(this.root, source),
              "-o",
              `${object}.new`,
            ],
            { cwd: this.root },
          );
          renameSync(`${object}.new`, object);
          return parseDepfile(readFileSync(depfile, "utf8"), this.root).filter((path) => path !== source);
        }),
    });
  }

  /** Links objects into `output` (absolute). `kind` is that of the target table. Resolves to true when it was made. */
  link({ kind, output, objects, flags = [], libraries = [] }) {
    const { command, prefix, identity } = this.compiler;
    const args = [...linkFlags(kind, { os: this.platform.os, sanitize: this.sanitize }), ...flags];
    return this.step({
      name: `link-${relative(this.buildDir, output)}`,
      command: [
        identity,
        ...prefix,
        ...args,
        ...libraries,
        ...objects.map((path) => relative(this.root, path)),
      ],
      inputs: objects,
      outputs: [output],
      make: () =>
        this.job(async () => {
          const paths = objects.map((path) => relative(this.root, path));
          await run(command, [...prefix, ...args, ...paths, ...libraries, "-o", `${output}.new`], {
            cwd: this.root,
          });
          renameSync(`${output}.new`, output);
        }),
    });
  }

  /** Where a target's product lies: bin/worker, lib/launcher.so, test/frame-test. */
  productPath(target) {
    if (target.kind === "shared-lib") {
      const extension = { linux: ".so", darwin: ".dylib", windows: ".dll" }[this.platform.os];
      return join(this.buildDir, "lib", `${target.name}${extension}`);
    }
    const suffix = this.platform.os === "windows" ? ".exe" : "";
    return join(this.buildDir, target.folder ?? "bin", `${target.name}${suffix}`);
  }
}

/** The files of a make dependency list, absolute, without the object itself. */
export function parseDepfile(text, root) {
  const body = text.slice(text.indexOf(": ") + 2).replaceAll(/\\\r?\n/g, " ");
  const words = body.match(/(?:\\ |[^\s])+/g) ?? [];
  return words.map((word) => resolve(root, word.replaceAll("\\ ", " ")));
}
