// Installs the peers of codemode into a folder of their own and measures each beside flowcell, turn by turn, every measurement in
// a process of its own. isolated-vm is compiled by its install script, which takes a minute or two the first time.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { median } from "./statistics.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const folder = join(here, "peers");
const rounds = 3;

function npm(args) {
  const { status } = spawnSync("npm", args, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  return status === 0;
}

/** Names of the peers that can be measured here. */
function install() {
  if (!existsSync(join(folder, "node_modules"))) {
    process.stderr.write("bench: installing the peers …\n");
    if (!npm(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])) return [];
  }
  const compiled = join(folder, "node_modules/isolated-vm/out/isolated_vm.node");
  if (!existsSync(compiled)) {
    process.stderr.write("bench: compiling isolated-vm …\n");
    npm(["rebuild", "isolated-vm", "--ignore-scripts=false", "--loglevel=error"]);
  }
  return ["run", "sebastianwessel", ...(existsSync(compiled) ? ["isolated-vm"] : [])];
}

function measure(args, cwd) {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd, encoding: "utf8" });
  if (status !== 0) throw new Error(`${args.join(" ")}: ${stderr}`);
  return JSON.parse(stdout);
}

/** `{name: {warmP50, hundredCallsP50}}` in milliseconds, medians over the rounds. */
export function comparePeers() {
  const names = install();
  const measured = { flowcell: [] };
  for (const name of names) measured[name] = [];
  for (let round = 0; round < rounds; round += 1) {
    measured.flowcell.push(measure([join(here, "codemode.mjs")], here));
    for (const name of names) {
      const flags = name === "isolated-vm" ? ["--no-node-snapshot"] : [];
      measured[name].push(measure([...flags, "measure.mjs", name], folder));
    }
  }
  return Object.fromEntries(
    Object.entries(measured).map(([name, all]) => [
      name,
      {
        warmP50: median(all.map(({ warmP50 }) => warmP50)),
        hundredCallsP50: median(all.map(({ hundredCallsP50 }) => hundredCallsP50)),
      },
    ]),
  );
}
