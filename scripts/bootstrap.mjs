#!/usr/bin/env node
// The one entry behind `npm start`, `npm test`, `npm run build` …: installs what the lock file says, builds what is
// stale, then runs the task. Uses Node's own modules only, since nothing is installed when it first runs.
// Usage: node scripts/bootstrap.mjs start|test|quick|build|generate|bench [arguments for the task]
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { withLock } from "./lib/lock.mjs";
import { makeSqlite } from "./lib/sqlite.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const stampFile = join(root, "node_modules/.flowcell-stamp");

/**
 * The tasks: what each runs once the clone is installed and built. Without SQLite the cell works and flows do not, so that
 * only the tests insist on it.
 */
const tasks = {
  start: { build: true, command: ["node", "scripts/start.mjs"] },
  test: { build: true, sqlite: true, command: ["node", "scripts/test.mjs"] },
  quick: { build: true, sqlite: true, command: ["node", "scripts/test.mjs", "--quick"] },
  build: { build: true, command: undefined },
  generate: { build: false, command: ["node", "scripts/generate.mjs"] },
  bench: { build: true, command: ["node", "test/bench/bench.mjs"] },
};

function die(code, message) {
  process.stderr.write(`flowcell: ${message}\n`);
  process.exit(code);
}

function say(message) {
  process.stderr.write(`${message}\n`);
}

/** npm's own settings that name the registry and its trust; every other npm_* variable of the outer npm is dropped. */
const keptNpmSettings =
  /^npm_config_(registry|cafile|ca|proxy|https_proxy|noproxy|userconfig|globalconfig|cache|offline|prefer_offline)$/i;

function cleanEnvironment() {
  const env = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (!/^npm_/i.test(name) || keptNpmSettings.test(name)) env[name] = value;
  }
  delete env.NODE_ENV;
  env.FLOWCELL_BOOTSTRAP = "1";
  return env;
}

function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: "inherit", ...options });
    child.on("error", reject);
    child.on("exit", (code, signal) => resolve(signal === null ? (code ?? 70) : 70));
  });
}

async function must(what, command, args, options) {
  const code = await run(command, args, options);
  if (code !== 0) die(code === 69 ? 69 : 70, `${what} failed (exit ${code}); the reason is above.`);
}

function checkMachine() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    die(69, `Node ${process.versions.node} is too old: flowcell needs Node 20.19 or newer.`);
  }
  if (process.platform !== "linux") {
    die(69, "flowcell runs on Linux today; on this machine use a Linux virtual machine or container.");
  }
  if (process.arch !== "x64" && process.arch !== "arm64") {
    die(69, `flowcell runs on x86-64 and arm64; this processor is ${process.arch}.`);
  }
}

function installStamp() {
  const hash = createHash("sha256");
  hash.update(readFileSync(join(root, "package-lock.json")));
  hash.update(`${process.platform} ${process.arch} ${process.versions.modules}`);
  for (const name of readdirSync(join(root, "packages")).sort()) {
    const file = join(root, "packages", name, "package.json");
    if (existsSync(file)) hash.update(readFileSync(file));
  }
  return hash.digest("hex");
}

function npmCommand() {
  const execPath = process.env.npm_execpath;
  return execPath?.endsWith("npm-cli.js") ? [process.execPath, execPath] : ["npm"];
}

async function install() {
  const stamp = installStamp();
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === stamp) return;
  say("flowcell: installing npm packages …");
  const npm = npmCommand();
  const flags = ["--ignore-scripts", "--include=dev", "--include=optional", "--no-audit", "--no-fund"];
  await must("npm ci", npm[0], [...npm.slice(1), "ci", ...flags, "--loglevel=error"], {
    env: cleanEnvironment(),
    stdio: ["ignore", "ignore", "inherit"],
  });
  writeFileSync(stampFile, stamp);
}

async function build({ sqlite: needsSqlite = false }) {
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const native = must("the native build", process.execPath, ["scripts/build-native.mjs"]);
  const sqlite = makeSqlite({ root, npm: npmCommand(), env: cleanEnvironment(), say });
  await must("the TypeScript build", process.execPath, [tsc, "-b"]);
  await native;
  // It runs a first script: what V8 compiles for that is stored.
  await must("bundling", process.execPath, ["scripts/native/bundle-cli.mjs"]);
  const missing = await sqlite;
  if (missing === null) return;
  if (needsSqlite) die(69, `${missing}.`);
  say(`flowcell: flows are off in this clone: ${missing}.`);
}

async function main() {
  const [name = "", ...rest] = process.argv.slice(2);
  if (process.env.FLOWCELL_BOOTSTRAP) die(70, "the bootstrap called itself (a lifecycle script loops).");
  if (!Object.hasOwn(tasks, name)) {
    die(2, `unknown task "${name}". Tasks: ${Object.keys(tasks).join(", ")}.`);
  }
  const task = tasks[name];
  checkMachine();
  await withLock(
    join(root, ".cache/bootstrap.lock"),
    async () => {
      await install();
      if (task.build) await build(task);
    },
    () => say("flowcell: another build of this clone is running; waiting for it …"),
  );
  if (task.command === undefined) return;
  const [command, ...args] = task.command;
  process.exitCode = await run(command === "node" ? process.execPath : command, [...args, ...rest]);
}

await main();
