// The ground of the racing attack, shared by attackers, victim and test: what lies where, and how a process is started.
//
//   data/dir        folder with f = public, or a link to outside
//   data/file       a file, or a fifo, a link to the secret outside or to the denied one, a second name of either
//   data/twin       a second name of the secret outside that comes and goes
//   data/way        a link to the folder `sub`, or to the denied one
//   data/private    denied; holds f = secret; away at data/moved now and then
//   outside         holds f = secret
//   spare           what the attackers swap in

import { execFileSync } from "node:child_process";
import { linkSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const publicText = "public ";
export const secretText = "SECRET ".repeat(1000);

export function layOut(root: string): void {
  for (const folder of ["data/dir", "data/private", "data/sub", "outside", "spare"]) {
    mkdirSync(join(root, folder), { recursive: true });
  }
  for (const file of ["data/dir/f", "data/file", "data/sub/f"]) writeFileSync(join(root, file), publicText);
  for (const file of ["data/private/f", "outside/f"]) writeFileSync(join(root, file), secretText);
  execFileSync("mkfifo", [join(root, "spare/fifo")]);
  linkSync(join(root, "outside/f"), join(root, "data/twin"));
}

export const paths = ["dir/f", "file", "twin", "way/f", "moved/f", "dir/new", "way/new"];
