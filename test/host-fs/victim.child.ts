// Uses files under attack: by the host functions ("functions"), or by paths, checking each before it is used as one does
// without handles ("paths"): the control that shows that the attack works. Arguments: the ground, the way, and how many
// operations are made ("functions") or how many milliseconds it may take until both attacks worked ("paths"). Prints what was read, counted, and what went wrong.

import { constants, lstatSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join, sep } from "node:path";
import { paths, publicText } from "./attack.js";
import { Scripted } from "./ground.js";

const root = realpathSync(process.argv[2] ?? "");
const isControl = process.argv[3] === "paths";
const most = Number(process.argv[4]);
const data = join(root, "data");

interface Report {
  readonly codes: Record<string, number>;
  leaks: number;
  operations: number;
  descriptorsLeft: number;
}

const report: Report = { codes: {}, leaks: 0, operations: 0, descriptorsLeft: 0 };

function count(code: string): void {
  report.codes[code] = (report.codes[code] ?? 0) + 1;
}

function look(text: unknown): void {
  if (typeof text === "string" && text.includes("SECRET")) report.leaks += 1;
}

/** The path is inside, not denied, a regular file with one name; then it is used. */
async function naiveOpen(path: string, flags: number): Promise<FileHandle | undefined> {
  const real = realpathSync(join(data, path));
  const facts = lstatSync(real);
  const isAllowed = real.startsWith(data + sep) && !real.startsWith(join(data, "private"));
  if (!isAllowed || !facts.isFile() || facts.nlink > 1) return undefined;
  return await open(join(data, path), flags | constants.O_NONBLOCK);
}

async function naively(path: string, turn: number): Promise<void> {
  let handle: FileHandle | undefined;
  try {
    const isRead = turn % 2 === 0;
    handle = await naiveOpen(path, isRead ? constants.O_RDONLY : constants.O_WRONLY | constants.O_APPEND);
    if (handle === undefined) count("denied");
    else if (isRead) look(await handle.readFile("utf8"));
    else await handle.appendFile(publicText);
  } catch (error) {
    count(error instanceof Error && "code" in error ? String(error.code) : "other");
  } finally {
    await handle?.close();
  }
}

async function control(): Promise<void> {
  const outside = join(root, "outside/f");
  const before = readFileSync(outside, "utf8");
  let isChanged = false;
  const end = performance.now() + most;
  while (performance.now() < end && !(report.leaks > 0 && isChanged)) {
    for (const path of paths) await naively(path, report.operations++);
    if (report.operations % 100 < paths.length) isChanged = readFileSync(outside, "utf8") !== before;
  }
  count(isChanged ? "outside changed" : "outside unchanged");
}

async function underAttack(): Promise<void> {
  const script = new Scripted({
    mounts: new Map([["data", data]]),
    rules: [
      { mount: "data", access: "write" },
      { mount: "data", path: "private", access: "deny" },
    ],
    alwaysDenied: [],
    bodyBytes: 1 << 20,
  });
  const before = readdirSync("/proc/self/fd").length;
  const acts: readonly (readonly [string, ...unknown[]])[] = [
    ["read"],
    ["read"],
    ["append", publicText],
    ["read"],
    ["stat"],
    ["append", publicText],
    ["write", publicText],
    ["read"],
    ["list"],
    ["delete"],
    ["write", publicText, { createFolders: true }],
  ];
  while (report.operations < most) {
    const act = acts[report.operations % acts.length];
    if (act === undefined) break;
    const [name, ...rest] = act;
    await Promise.all(
      paths.map(async (path) => {
        const answer = await script.call(name, `/data/${path}`, ...rest);
        count(`${name} ${answer.ok ? "ok" : answer.code}`);
        if (name === "read" && answer.ok) look(answer.value);
      }),
    );
    report.operations += paths.length;
  }
  report.descriptorsLeft = readdirSync("/proc/self/fd").length - before;
  script.close();
}

await (isControl ? control() : underAttack());
console.log(JSON.stringify(report));
