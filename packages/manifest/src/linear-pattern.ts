/**
 * Regular expressions of JSON Schemas (`pattern`, `patternProperties`), tested in time that grows with the length of the
 * text times the length of the pattern and never faster. The platform's own engine backtracks: `^(a+)+$` takes it longer
 * than the machine lives on a text of 100 characters, and both the pattern (a manifest's) and the text (a caller's) can be
 * hostile. Called by json-schema.ts.
 *
 * How: the pattern becomes a program of at most `instructionsMax` instructions, and all places that it can be in are moved
 * over the text together, one character at a time (Thompson's construction). What needs backtracking (references to groups,
 * looking ahead or behind) is refused when the schema is read. The syntax and the meaning are ECMAScript's with the flag
 * `u`; the platform's engine still checks the syntax, and it decides about single characters: a class such as
 * `[^a-z\p{L}]` is a small expression of its own that is asked about one character only.
 */

export type PatternResult =
  | { readonly ok: true; readonly pattern: LinearPattern }
  | { readonly ok: false; readonly message: string };

export interface LinearPattern {
  /** Whether it matches anywhere in the text. `spend` is told of work done and may throw to stop it. */
  test(text: string, spend?: (steps: number) => void): boolean;
}

const patternCharsMax = 1_000;
const nestingMax = 40;
const instructionsMax = 2_000;
const repeatMax = 1_000;

type CharacterTest = (character: string) => boolean;
type Assertion = "start" | "end" | "boundary" | "inside";

type Instruction =
  | { readonly kind: "character"; readonly test: CharacterTest }
  | { readonly kind: "assert"; readonly assertion: Assertion }
  /** Goes on at both offsets from itself. */
  | { readonly kind: "split"; readonly first: number; readonly second: number }
  | { readonly kind: "jump"; readonly by: number };

/** A mistake in the pattern; its message is for the author of the schema. */
class PatternError extends Error {}

export function compilePattern(source: string): PatternResult {
  if (source.length > patternCharsMax) {
    return { ok: false, message: `the pattern is longer than ${patternCharsMax} characters` };
  }
  try {
    new RegExp(source, "u");
  } catch (error) {
    const detail = error instanceof Error ? error.message.replace(/^.*\/u?: /s, "") : "";
    return { ok: false, message: `the pattern is no regular expression: ${detail}` };
  }
  try {
    const program = new PatternParser(source).parse();
    const run = new PatternRun(program);
    return { ok: true, pattern: { test: (text, spend) => run.test(text, spend) } };
  } catch (error) {
    if (error instanceof PatternError) return { ok: false, message: error.message };
    throw error;
  }
}

/** Builds programs bottom up. The platform's engine has accepted the syntax, so that only its well-formed shapes occur. */
class PatternParser {
  readonly #source: string;
  #at = 0;
  #nesting = 0;

  constructor(source: string) {
    this.#source = source;
  }

  parse(): readonly Instruction[] {
    const program = this.#alternatives();
    if (this.#at !== this.#source.length) throw new PatternError("the pattern has a stray )");
    return program;
  }

  #alternatives(): Instruction[] {
    let program = this.#sequence();
    while (this.#take("|")) {
      const right = this.#sequence();
      const left = program;
      program = bounded([
        { kind: "split", first: 1, second: left.length + 2 },
        ...left,
        { kind: "jump", by: right.length + 1 },
        ...right,
      ]);
    }
    return program;
  }

  #sequence(): Instruction[] {
    const program: Instruction[] = [];
    while (this.#at < this.#source.length && !this.#sees("|") && !this.#sees(")")) {
      program.push(...this.#quantified(this.#atom()));
      bounded(program);
    }
    return program;
  }

  #quantified(atom: Instruction[]): Instruction[] {
    const counts = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/.exec(this.#source.slice(this.#at));
    if (counts === null) return atom;
    this.#at += counts[0].length;
    const [text, least, comma, most] = counts;
    if (text.startsWith("*")) return star(atom);
    if (text.startsWith("+")) return bounded([...atom, ...star(atom)]);
    if (text.startsWith("?")) return optional(atom);
    const from = Number(least);
    const to = comma === "" ? from : most === "" ? undefined : Number(most);
    if (from > repeatMax || (to ?? 0) > repeatMax) {
      throw new PatternError(`the pattern repeats something more than ${repeatMax} times; use maxLength`);
    }
    if (atom.length * Math.max(from, to ?? 0) > instructionsMax) throw tooLarge();
    const required = Array.from({ length: from }, () => atom).flat();
    if (to === undefined) return bounded([...required, ...star(atom)]);
    let tail: Instruction[] = [];
    for (let count = from; count < to; count++) tail = optional([...atom, ...tail]);
    return bounded([...required, ...tail]);
  }

  #atom(): Instruction[] {
    const character = this.#next();
    switch (character) {
      case "^":
        return [{ kind: "assert", assertion: "start" }];
      case "$":
        return [{ kind: "assert", assertion: "end" }];
      case "(":
        return this.#group();
      case "[":
        return [{ kind: "character", test: characterTest(this.#classSource()) }];
      case ".":
        return [{ kind: "character", test: characterTest(".") }];
      case "\\":
        return this.#escape();
      default:
        return [{ kind: "character", test: (other) => other === character }];
    }
  }

  #group(): Instruction[] {
    const opening = /^\?(?::|<[^=!][^>]*>)/.exec(this.#source.slice(this.#at));
    if (opening !== null) this.#at += opening[0].length;
    else if (this.#sees("?")) {
      throw new PatternError(
        "the pattern looks ahead or behind, or sets flags inside, which cannot be tested in bounded time; use allOf and not with several patterns",
      );
    }
    this.#nesting++;
    if (this.#nesting > nestingMax)
      throw new PatternError(`the pattern has more than ${nestingMax} levels of groups`);
    const program = this.#alternatives();
    this.#nesting--;
    if (!this.#take(")")) throw new PatternError("the pattern has an unclosed group");
    return program;
  }

  /** From `[` to its `]`; inside a class with the flag `u` only a backslash hides a bracket. */
  #classSource(): string {
    const match = /^(?:[^\]\\]|\\.)*\]/su.exec(this.#source.slice(this.#at));
    if (match === null) throw new PatternError("the pattern has an unclosed [");
    this.#at += match[0].length;
    return `[${match[0]}`;
  }

  #escape(): Instruction[] {
    const rest = this.#source.slice(this.#at);
    if (rest.startsWith("b") || rest.startsWith("B")) {
      this.#at++;
      return [{ kind: "assert", assertion: rest.startsWith("b") ? "boundary" : "inside" }];
    }
    if (/^(?:[1-9]|k<)/.test(rest)) {
      throw new PatternError(
        "the pattern refers back to a group, which cannot be tested in bounded time; write the pattern without it",
      );
    }
    const token =
      /^(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[dD][89aAbB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[A-Za-z]|.)/su.exec(
        rest,
      );
    if (token === null) throw new PatternError("the pattern ends with a backslash");
    this.#at += token[0].length;
    return [{ kind: "character", test: characterTest(`\\${token[0]}`) }];
  }

  #sees(character: string): boolean {
    return this.#source.startsWith(character, this.#at);
  }

  #take(character: string): boolean {
    const seen = this.#sees(character);
    if (seen) this.#at += character.length;
    return seen;
  }

  #next(): string {
    const character = String.fromCodePoint(this.#source.codePointAt(this.#at) ?? 0);
    this.#at += character.length;
    return character;
  }
}

function star(program: readonly Instruction[]): Instruction[] {
  return bounded([
    { kind: "split", first: 1, second: program.length + 2 },
    ...program,
    { kind: "jump", by: -program.length - 1 },
  ]);
}

function optional(program: readonly Instruction[]): Instruction[] {
  return bounded([{ kind: "split", first: 1, second: program.length + 1 }, ...program]);
}

function bounded(program: Instruction[]): Instruction[] {
  if (program.length > instructionsMax) throw tooLarge();
  return program;
}

function tooLarge(): PatternError {
  return new PatternError(
    `the pattern needs more than ${instructionsMax} steps; repeat less, or use maxLength for lengths`,
  );
}

/** One character against a piece of a pattern; the answers for ASCII are kept. */
function characterTest(source: string): CharacterTest {
  const expression = new RegExp(`^(?:${source})$`, "u");
  const ascii = Array.from({ length: 128 }, (_, code) => expression.test(String.fromCharCode(code)));
  return (character) => {
    const code = character.charCodeAt(0);
    return code < 128 ? ascii[code] === true : expression.test(character);
  };
}

/** The places a program can be in, in the order in which they were reached; each once. */
class Places {
  readonly list: number[] = [];
  readonly #held: Uint8Array;

  constructor(size: number) {
    this.#held = new Uint8Array(size);
  }

  add(place: number): boolean {
    if (this.#held[place] === 1) return false;
    this.#held[place] = 1;
    this.list.push(place);
    return true;
  }

  clear(): void {
    for (const place of this.list) this.#held[place] = 0;
    this.list.length = 0;
  }
}

/** One program and the memory of its runs, which do not overlap. */
class PatternRun {
  readonly #program: readonly Instruction[];
  #current: Places;
  #next: Places;

  constructor(program: readonly Instruction[]) {
    this.#program = program;
    this.#current = new Places(program.length + 1);
    this.#next = new Places(program.length + 1);
  }

  test(text: string, spend: ((steps: number) => void) | undefined): boolean {
    try {
      return this.#run(text, spend);
    } finally {
      this.#current.clear();
      this.#next.clear();
    }
  }

  #run(text: string, spend: ((steps: number) => void) | undefined): boolean {
    let before: string | undefined;
    let character = characterAt(text, 0);
    let at = 0;
    for (;;) {
      // A match may begin at every character.
      if (this.#follow(0, this.#current, before, character)) return true;
      spend?.(2 * (this.#current.list.length + 1));
      if (character === undefined) return false;
      at += character.length;
      const following = characterAt(text, at);
      for (const place of this.#current.list) {
        const instruction = this.#program[place];
        if (instruction?.kind !== "character" || !instruction.test(character)) continue;
        if (this.#follow(place + 1, this.#next, character, following)) return true;
      }
      this.#current.clear();
      [this.#current, this.#next] = [this.#next, this.#current];
      before = character;
      character = following;
    }
  }

  /** Adds what is reached from a place without reading a character; true when that is the program's end. */
  #follow(from: number, places: Places, before: string | undefined, character: string | undefined): boolean {
    const open = [from];
    for (let place = open.pop(); place !== undefined; place = open.pop()) {
      if (!places.add(place)) continue;
      const instruction = this.#program[place];
      if (instruction === undefined) return true;
      switch (instruction.kind) {
        case "character":
          break;
        case "assert":
          if (holds(instruction.assertion, before, character)) open.push(place + 1);
          break;
        case "split":
          open.push(place + instruction.second, place + instruction.first);
          break;
        case "jump":
          open.push(place + instruction.by);
          break;
      }
    }
    return false;
  }
}

function characterAt(text: string, at: number): string | undefined {
  const code = text.codePointAt(at);
  return code === undefined ? undefined : String.fromCodePoint(code);
}

function holds(assertion: Assertion, before: string | undefined, character: string | undefined): boolean {
  switch (assertion) {
    case "start":
      return before === undefined;
    case "end":
      return character === undefined;
    case "boundary":
      return isWord(before) !== isWord(character);
    case "inside":
      return isWord(before) === isWord(character);
  }
}

function isWord(character: string | undefined): boolean {
  return character !== undefined && /^\w$/.test(character);
}
