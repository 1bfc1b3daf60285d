// The repository's own files, as the rules in this folder see them: what git tracks or would track, never build outputs.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const repositoryRoot = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

export interface RepositoryFile {
  /** Path from the repository's root, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

/** Paths of the files that git tracks or that are new and not ignored, below `folder`. */
export function repositoryPaths(folder = "."): string[] {
  const output = execFileSync(
    "git",
    ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", folder],
    {
      cwd: repositoryRoot,
      encoding: "utf8",
      maxBuffer: 64 * 1024 * 1024,
    },
  );
  return output
    .split("\0")
    .filter((path) => path !== "" && existsSync(join(repositoryRoot, path)))
    .sort();
}

/** The text files below `folder` whose names end in one of `extensions`. */
export function sourceFiles(folder: string, extensions: readonly string[]): RepositoryFile[] {
  return repositoryPaths(folder)
    .filter((path) => extensions.some((extension) => path.endsWith(extension)))
    .map((path) => ({ path, text: readFileSync(join(repositoryRoot, path), "utf8") }));
}
