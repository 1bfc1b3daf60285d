/**
 * From the root of a mount to a file, one component at a time, on descriptors. Links are followed here, by their text;
 * the operating system follows none. What each handle is, is checked before the next step is made below it.
 *
 * TRUST: what lies in a mount, names and texts of links among it, comes from whoever can write there.
 * Kept true: the way never leaves the mount: an absolute link and one that climbs above the root end it; so does a
 * denied folder, before anything below it is looked up. Whatever is swapped meanwhile, every handle was reached from
 * the one before by one name that was there, and what was checked is the handle that is used.
 */

import type { Descriptor, FileCalls, FileFacts } from "@flowcell/native";
import type { HostError } from "@flowcell/protocol";
import type { Guard, Guards } from "./guards.js";
import type { Mount } from "./mounts.js";
import { errnoOf, problem, type Subject, systemProblem } from "./problems.js";
import { depthMax } from "./script-path.js";

const linksMax = 16;
/** Folders above a mount on the host. */
const heightMax = 256;

export interface Walked {
  /** Where the way ended: components below the mount, without links. */
  readonly names: readonly string[];
  /** The folder of the last name that exists or is to be created first; undefined for the mount itself. */
  readonly parent: Handle | undefined;
  readonly entry: Handle | undefined;
  /** Names below `parent` that do not exist, in order; none when there is an entry. */
  readonly missing: readonly string[];
  /** What stands where a folder would have to be. */
  readonly obstacle: FileFacts["kind"] | undefined;
  /** Guards with `protect` that were met on the way, the entry among them. */
  readonly protectors: readonly Guard[];
}

export interface Handle {
  readonly descriptor: Descriptor;
  readonly facts: FileFacts;
}

interface Step extends Handle {
  readonly name: string;
  readonly protectors: readonly Guard[];
}

export interface WalkOptions {
  readonly calls: FileCalls;
  readonly guards: Guards;
  readonly mount: Mount;
  readonly subject: Subject;
  /** Whether a link in the last place is followed. */
  readonly followLast: boolean;
}

/** Descriptors in the result are the caller's to close. Throws HostError; then nothing is left open. */
export function walk(names: readonly string[], options: WalkOptions): Walked {
  const walker = new Walker(options, names);
  try {
    return walker.run();
  } catch (error) {
    throw systemProblem(options.subject, error);
  } finally {
    walker.close();
  }
}

class Walker {
  readonly #options: WalkOptions;
  /** Components still to go, the next one last. */
  readonly #pending: string[];
  readonly #stack: Step[] = [];
  /** Protection above the mount. */
  #above: readonly Guard[] = [];
  #links = 0;

  constructor(options: WalkOptions, names: readonly string[]) {
    this.#options = options;
    this.#pending = [...names].reverse();
  }

  run(): Walked {
    const { calls, mount } = this.#options;
    this.#above = guardsAbove(this.#options);
    refuseDenied(this.#above, this.#options.subject);
    this.#push(calls.same(mount.root), "", []);
    for (;;) {
      const name = this.#pending.pop();
      if (name === undefined) return this.#ended();
      if (name === "" || name === ".") continue;
      if (name === "..") this.#climb();
      else {
        const result = this.#down(name);
        if (result !== undefined) return result;
      }
    }
  }

  /** What was not handed out. */
  close(): void {
    for (const { descriptor } of this.#stack.splice(0)) descriptor.close();
  }

  get #top(): Step {
    const top = this.#stack.at(-1);
    if (top === undefined) throw new RangeError("the walk has no folder");
    return top;
  }

  /** One step. Undefined: go on. */
  #down(name: string): Walked | undefined {
    const { calls } = this.#options;
    const top = this.#top;
    if (top.facts.kind !== "folder") return this.#absent(name, top.facts.kind);
    if (this.#stack.length > depthMax + 1) {
      throw this.#problem("denied", `leads by links to more than ${depthMax} components`);
    }
    let child: Descriptor;
    try {
      child = calls.step(top.descriptor, name);
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return this.#absent(name, undefined);
      throw error;
    }
    this.#push(child, name, top.protectors);
    if (this.#top.facts.kind === "link" && (this.#pending.length > 0 || this.#options.followLast)) {
      this.#followLink();
    }
    return undefined;
  }

  /** Takes ownership of the descriptor. */
  #push(descriptor: Descriptor, name: string, inherited: readonly Guard[]): void {
    let facts: FileFacts;
    let own: readonly Guard[];
    try {
      facts = this.#options.calls.facts(descriptor);
      this.#checkFileSystem(facts);
      own = this.#options.guards.of(facts.identity);
      refuseDenied(own, this.#options.subject);
    } catch (error) {
      descriptor.close();
      throw error;
    }
    const protectors = own.length === 0 ? inherited : [...inherited, ...own];
    this.#stack.push({ descriptor, facts, name, protectors });
  }

  #checkFileSystem(facts: FileFacts): void {
    if (facts.kernel) {
      throw this.#problem("denied", "is on a file system that is an interface of the kernel");
    }
    const above = this.#stack.at(-1)?.facts;
    if (above === undefined || facts.mount === above.mount || facts.kind === "link") return;
    // A second mount of the same device may begin anywhere in it, also inside a denied folder that is then never passed.
    if (this.#options.guards.guardsOn(facts.device)) {
      throw this.#problem(
        "denied",
        "lies on another mount of a device that holds denied or protected folders; the operator can give that folder a mount name of its own",
      );
    }
  }

  #followLink(): void {
    const link = this.#stack.pop();
    if (link === undefined) return;
    try {
      this.#links += 1;
      if (this.#links > linksMax) throw this.#problem("denied", `leads through more than ${linksMax} links`);
      const text = this.#options.calls.linkText(link.descriptor);
      if (text === undefined) throw this.#problem("denied", "leads through a link whose text is not UTF-8");
      if (text.startsWith("/")) throw this.#problem("denied", "leads through a link to an absolute path");
      this.#pending.push(...text.split("/").reverse());
    } finally {
      link.descriptor.close();
    }
  }

  #climb(): void {
    if (this.#stack.length < 2) throw this.#problem("denied", "leads through a link to outside of the mount");
    if (this.#top.facts.kind !== "folder")
      throw this.#problem("not_found", "leads through something that is no folder");
    this.#stack.pop()?.descriptor.close();
  }

  #ended(): Walked {
    const names = this.#names();
    const entry = this.#stack.pop();
    if (entry === undefined) throw new RangeError("the walk has no folder");
    return {
      names,
      parent: this.#stack.pop(),
      entry,
      missing: [],
      obstacle: undefined,
      protectors: [...this.#above, ...entry.protectors],
    };
  }

  /** Nothing bears `name`, or it would lie below something that is no folder. */
  #absent(name: string, obstacle: FileFacts["kind"] | undefined): Walked {
    const missing = [name, ...this.#pending.reverse()].filter((next) => next !== "" && next !== ".");
    // Only the text of a link holds one. Where it would lead is decided by a folder that does not exist.
    if (missing.includes("..")) throw this.#problem("not_found", "does not exist");
    const names = [...this.#names(), ...missing];
    const parent = this.#stack.pop();
    if (parent === undefined) throw new RangeError("the walk has no folder");
    const protectors = [...this.#above, ...parent.protectors];
    return { names, parent, entry: undefined, missing, obstacle, protectors };
  }

  #names(): string[] {
    return this.#stack.slice(1).map((step) => step.name);
  }

  #problem(code: HostError["code"], what: string): HostError {
    return problem(code, this.#options.subject, what);
  }
}

/** Guards of the folders above a mount: the operator may have mapped a mount into a folder that another one denies. */
export function guardsAbove({
  calls,
  guards,
  mount,
}: Pick<WalkOptions, "calls" | "guards" | "mount">): readonly Guard[] {
  const found: Guard[] = [];
  let here = calls.same(mount.root);
  let identity = mount.facts.identity;
  try {
    for (let height = 0; height < heightMax; height += 1) {
      const next = calls.above(here);
      here.close();
      here = next;
      const above = calls.facts(here).identity;
      if (above === identity) return found;
      identity = above;
      found.push(...guards.of(identity));
    }
    throw new RangeError(`a mount lies more than ${heightMax} folders deep`);
  } finally {
    here.close();
  }
}

export function refuseDenied(guards: readonly Guard[], subject: Subject): void {
  const guard = guards.find(({ access }) => access === "deny");
  if (guard !== undefined) throw deniedBy(guard, subject);
}

/** The same for what is to be changed. */
export function refuseGuarded(guards: readonly Guard[], subject: Subject): void {
  refuseDenied(guards, subject);
  const [protector] = guards;
  if (protector !== undefined) throw deniedBy(protector, subject);
}

export function deniedBy({ rule, access }: Guard, subject: Subject): HostError {
  if (rule === null)
    return problem("denied", subject, "is one of flowcell's own files, which no grant reaches");
  const what = access === "deny" ? "is denied" : "is protected from writing";
  return problem("denied", subject, `${what} by the rule ${JSON.stringify(rule)} of grants.fs`, {
    detail: { rule },
  });
}
