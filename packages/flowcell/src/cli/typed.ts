/** What was typed, as commander hands it over: read by name, so that no command trusts a shape that nothing checked. */

import { UsageError } from "./usage.js";

/** Where a command writes and whom it can ask; a process's streams, or a test's. */
export interface Streams {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly outIsTerminal: boolean;
  /** Asks on the terminal; absent where nobody sits. */
  readonly ask?: (question: string) => Promise<string>;
}

export class Typed {
  readonly #arguments: readonly string[];
  readonly #options: Readonly<Record<string, unknown>>;

  constructor(args: readonly unknown[], options: Readonly<Record<string, unknown>>) {
    this.#arguments = args.filter((one) => typeof one === "string");
    this.#options = options;
  }

  /** One that the command's row requires. */
  argument(index: number): string {
    return this.#arguments[index] ?? "";
  }

  optional(index: number): string | undefined {
    return this.#arguments[index];
  }

  flag(name: string): boolean {
    return this.#options[name] === true;
  }

  /** `--no-wait` makes `wait` false; it is true otherwise. */
  get wait(): boolean {
    return this.#options["wait"] !== false;
  }

  text(name: string): string | undefined {
    const value = this.#options[name];
    return typeof value === "string" ? value : undefined;
  }

  list(name: string): readonly string[] {
    const value = this.#options[name];
    return Array.isArray(value) ? value.map(String) : [];
  }

  whole(name: string, flag: string, least: number, most: number): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const number = /^[0-9]{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (number >= least && number <= most) return number;
    throw new UsageError(
      "request",
      `${flag} must be a whole number from ${least} to ${most}, not ${JSON.stringify(text)}`,
    );
  }

  /** Whether any of these was given. */
  given(names: readonly string[]): string | undefined {
    return names.find((name) => {
      const value = this.#options[name];
      return value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0);
    });
  }
}
