/** Types of prelude.mjs, for tests. */

export function buildPrelude(options: {
  readonly root: string;
  readonly out?: string;
  readonly log?: (line: string) => void;
}): Promise<string>;

export function templatesToAdditions(source: string, name?: string): string;
