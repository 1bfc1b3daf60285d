/** Files that this package brings beside its code: found from the sources, from their build and from the bundle alike. */

import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of this package. */
export function packageFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "package.json"))) {
    const above = dirname(folder);
    if (above === folder) throw new Error("the folder of this package is not there");
    folder = above;
  }
  return folder;
}

export function asset(path: string): string {
  return join(packageFolder(), path);
}
