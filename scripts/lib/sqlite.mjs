// Makes SQLite ready for the running Node. Called by scripts/bootstrap.mjs inside its lock, beside the other builds.
//
// Node 22 and later use better-sqlite3 13, whose package holds the binary. On Node 20 the last release that runs there is
// compiled here, once: a copy named by version and ABI stays under .cache, since `npm ci` removes what lies in the package.
// Its own install script would download an unsigned binary first; it is told to build from the sources that npm verified.
import { spawn } from "node:child_process";
import {
  accessSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { delimiter, dirname, join } from "node:path";
import process from "node:process";

const packageName = "better-sqlite3-node20";
const product = "build/Release/better_sqlite3.node";
const remedy =
  "install them (Debian, Ubuntu: apt-get install -y python3 make g++), or use Node 22 or newer, which needs none of them";

/**
 * Null when SQLite is ready, else one line that says what is missing and what to do. `npm` is the command and arguments
 * that run npm, `env` the environment for it, `say` tells that something slow begins.
 */
export async function makeSqlite({ root, npm, env, say }) {
  if (Number(process.versions.node.split(".")[0]) >= 22) {
    return existsSync(join(root, "node_modules/better-sqlite3"))
      ? null
      : "npm left out better-sqlite3: remove node_modules and try again";
  }
  const home = join(root, "node_modules", packageName);
  if (!existsSync(home)) return `npm left out ${packageName}: remove node_modules and try again`;
  const binary = join(home, product);
  // Written last: a build that was cut off leaves none.
  const mark = `${binary}.ready`;
  if (existsSync(mark)) return null;

  const { version } = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
  const cache = join(root, ".cache/sqlite");
  const kept = join(
    cache,
    `${version}-abi${process.versions.modules}-${process.platform}-${process.arch}.node`,
  );
  mkdirSync(cache, { recursive: true });
  if (!(await works(home)) && existsSync(kept)) {
    mkdirSync(dirname(binary), { recursive: true });
    copyFileSync(kept, binary);
  }
  // The copy may be of another system, for example from before an upgrade: then it is made anew.
  if (await works(home)) {
    if (!existsSync(kept)) keep(binary, kept);
    writeFileSync(mark, "");
    return null;
  }

  const tools = findTools();
  if (tools.missing.length > 0)
    return `SQLite needs ${tools.missing.join(", ")} to be compiled on Node 20: ${remedy}`;
  say("flowcell: compiling SQLite for Node 20, once (about a minute) …");
  const log = join(root, ".cache/sqlite/build.log");
  const code = await compile({ root, npm, log, env: { ...env, ...tools.env, ...nodeHeaders() } });
  if (code !== 0 || !(await works(home)))
    return `SQLite could not be compiled (exit ${code}); the reason is in ${log}`;
  keep(binary, kept);
  writeFileSync(mark, "");
  return null;
}

function keep(binary, kept) {
  copyFileSync(binary, `${kept}.new`);
  renameSync(`${kept}.new`, kept);
}

/** What node-gyp needs, and the compiler to name to it when g++ is not there. */
function findTools() {
  const missing = ["python3", "make"].filter((tool) => !onPath(tool));
  const named = process.env.CXX;
  if (named !== undefined && named !== "") return { missing, env: {} };
  if (onPath("g++")) return { missing, env: {} };
  if (onPath("clang++") && onPath("clang")) return { missing, env: { CC: "clang", CXX: "clang++" } };
  return { missing: [...missing, "g++"], env: {} };
}

function onPath(tool) {
  return (process.env.PATH ?? "").split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, tool), constants.X_OK);
      return folder !== "";
    } catch {
      return false;
    }
  });
}

/** The headers of this very Node where it has them; npm 10 reads the first name, later ones the second. */
function nodeHeaders() {
  const prefix = dirname(dirname(process.execPath));
  if (!existsSync(join(prefix, "include/node/node_api.h"))) return {};
  return { npm_config_nodedir: prefix, npm_package_config_node_gyp_nodedir: prefix };
}

function compile({ root, npm, log, env }) {
  const [command, ...first] = npm;
  const args = [...first, "rebuild", packageName, "--ignore-scripts=false", "--foreground-scripts"];
  const out = openSync(log, "w");
  const child = spawn(command, args, {
    cwd: root,
    env: { ...env, npm_config_build_from_source: "true" },
    stdio: ["ignore", out, out],
    detached: true,
  });
  // Whatever ends the bootstrap ends the compiler too: two of them in one folder would spoil it.
  const end = () => {
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // It has ended.
    }
  };
  process.once("exit", end);
  const signals = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };
  for (const [name, code] of Object.entries(signals)) process.once(name, () => process.exit(code));
  return exitOf(child).finally(() => {
    process.off("exit", end);
    for (const name of Object.keys(signals)) process.removeAllListeners(name);
  });
}

/** Whether it loads and runs, tried in a process of its own, since a wrong binary can end one. */
async function works(home) {
  const script = `const d = new (require(${JSON.stringify(home)}))(":memory:"); process.exit(d.prepare("SELECT 1 AS n").get().n === 1 ? 0 : 1)`;
  return (await exitOf(spawn(process.execPath, ["-e", script], { stdio: "ignore" }))) === 0;
}

function exitOf(child) {
  return new Promise((resolve) => {
    child.on("error", () => resolve(70));
    child.on("exit", (code) => resolve(code ?? 70));
  });
}
