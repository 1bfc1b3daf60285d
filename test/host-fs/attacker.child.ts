// Swaps what lies under the names of attack.ts, as fast as it can, until its standard input ends. Arguments: the ground and
// which of the attacks: "swap" for folders and files, "link" for the second name that comes and goes. Prints its rounds.

import { linkSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { publicText } from "./attack.js";

const root = process.argv[2] ?? "";
const at = (path: string): string => join(root, path);

/** The victim acts on the same names: an act may find them taken or gone, and the next round goes on from there. */
function attempt(act: () => void): void {
  try {
    act();
  } catch (error) {
    if (!(error instanceof Error) || !("code" in error)) throw error;
  }
}

function swapFolder(): void {
  attempt(() => renameSync(at("data/dir"), at("spare/dir")));
  attempt(() => symlinkSync("../outside", at("data/dir")));
  attempt(() => unlinkSync(at("data/dir")));
  attempt(() => symlinkSync(at("outside"), at("data/dir")));
  attempt(() => unlinkSync(at("data/dir")));
  attempt(() => renameSync(at("spare/dir"), at("data/dir")));
}

function swapWay(): void {
  for (const target of ["sub", "private", "../outside"]) {
    attempt(() => symlinkSync(target, at("spare/way")));
    attempt(() => renameSync(at("spare/way"), at("data/way")));
  }
}

const fileAttacks: readonly (() => void)[] = [
  () => symlinkSync("../outside/f", at("spare/file")),
  () => symlinkSync("private/f", at("spare/file")),
  () => linkSync(at("outside/f"), at("spare/file")),
  () => linkSync(at("data/private/f"), at("spare/file")),
  () => linkSync(at("spare/fifo"), at("spare/file")),
];

function swapFile(): void {
  for (const attack of fileAttacks) {
    for (const act of [attack, () => writeFileSync(at("spare/file"), publicText)]) {
      attempt(() => rmSync(at("spare/file"), { force: true }));
      attempt(act);
      attempt(() => renameSync(at("spare/file"), at("data/file")));
    }
  }
}

/** The victim may have made a folder of that name, which then gives way. */
function moveDenied(): void {
  attempt(() => renameSync(at("data/moved"), at("spare/made")));
  attempt(() => rmSync(at("spare/made"), { recursive: true, force: true }));
  attempt(() => renameSync(at("data/private"), at("data/moved")));
  attempt(() => renameSync(at("data/moved"), at("data/private")));
}

function toggleTwin(): void {
  for (let time = 0; time < 10; time += 1) {
    attempt(() => unlinkSync(at("data/twin")));
    attempt(() => linkSync(at("outside/f"), at("data/twin")));
  }
}

const attacks = process.argv[3] === "link" ? [toggleTwin] : [swapFolder, swapWay, swapFile, moveDenied];
let rounds = 0;
let isOver = false;
process.stdin.on("end", () => {
  isOver = true;
});
process.stdin.resume();

function burst(): void {
  for (let time = 0; time < 20; time += 1) for (const attack of attacks) attack();
  rounds += 20;
  // The event loop hears the end of the input in between.
  if (!isOver) setImmediate(burst);
  else process.stdout.write(JSON.stringify(rounds));
}

process.stdout.write("\n", burst);
