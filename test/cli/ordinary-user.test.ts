// The commands for flows as an ordinary user: from a copy of the product that such a user can read, in a home of its own.
// As root the tests drop to a user that owns nothing; else they run as who they are.
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { at } from "./flow-bench.js";
import { node, type Ran, root } from "./run-cli.js";

const isRoot = process.geteuid?.() === 0;
const nobody = 65_534;

let copy: string;
let home: string;
beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), "flowcell-copy-"));
  chmodSync(copy, 0o755);
  for (const path of [
    "packages/flowcell/bin",
    "packages/flowcell/dist",
    "packages/flowcell/guest",
    "packages/flowcell/package.json",
    "worker-native/build",
    "examples/flows",
  ]) {
    cpSync(join(root, path), join(copy, path), { recursive: true, dereference: true });
  }
  for (const name of packages([
    "koffi",
    "@koromix",
    "esbuild",
    "@esbuild",
    "better-sqlite3",
    "better-sqlite3-node20",
  ])) {
    cpSync(join(root, "node_modules", name), join(copy, "node_modules", name), {
      recursive: true,
      dereference: true,
    });
  }
  home = join(copy, "home");
  mkdirSync(home);
  if (isRoot) chownSync(home, nobody, nobody);
});
afterAll(() => rmSync(copy, { recursive: true, force: true }));

/** These, as far as they are installed, and what they depend on. */
function packages(names: readonly string[]): readonly string[] {
  const found = new Set<string>();
  const open = [...names];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    const folder = join(root, "node_modules", name);
    if (found.has(name) || !existsSync(folder)) continue;
    found.add(name);
    const manifest = join(folder, "package.json");
    if (!existsSync(manifest)) continue;
    const { dependencies }: { dependencies?: Record<string, string> } = createRequire(import.meta.url)(
      manifest,
    ); // npm's own form
    open.push(...Object.keys(dependencies ?? {}));
  }
  return [...found];
}

async function run(...args: readonly string[]): Promise<Ran> {
  return await node([join(copy, "packages/flowcell/bin/flowcell.mjs"), ...args], {
    cwd: copy,
    env: { PATH: process.env["PATH"], HOME: home, TMPDIR: home },
    ...(isRoot ? { uid: nobody, gid: nobody } : {}),
  });
}

async function json(...args: readonly string[]): Promise<unknown> {
  const { out, err } = await run(...args, "--json");
  if (out === "") throw new Error(err);
  return JSON.parse(out);
}

test("installs, approves, runs and replays in the user's state folder, which nobody else may enter", async () => {
  const installed = await json("install", "examples/flows/branch-total");
  const hash = String(at(installed, "hash"));
  const data = join(home, ".local/state/flowcell");
  expect(statSync(data).mode & 0o777).toBe(0o700);
  expect(readdirSync(data)).toContain("flows.db");
  expect(await json("approve", "branch-total", "--hash", hash)).toMatchObject({ ok: true });
  const started = await json("start", "branch-total", "--input", '{"branch":"kiel","bookings":[3,4]}');
  expect(started).toMatchObject({ ok: true, value: { total: 7 } });
  expect(at(started, "confinement.layers")).toEqual(
    expect.arrayContaining([expect.objectContaining({ layer: "seccomp" })]),
  );
  expect(await json("replay", String(at(started, "runId")))).toMatchObject({ matched: true });
  expect(await json("test", "examples/flows/price-watch")).toMatchObject({ ok: true });
});

test("another user's data folder is refused", async () => {
  const other = isRoot ? mkdtempSync(join(realpathSync(tmpdir()), "flowcell-other-")) : "/";
  try {
    const { code, err } = await run("list", "--data", other);
    expect(code).toBe(78);
    expect(err).toMatch(
      /belongs to user 0, this is user \d+; run flowcell as that user, or name another folder with --data\n$/,
    );
  } finally {
    if (isRoot) rmSync(other, { recursive: true });
  }
});
