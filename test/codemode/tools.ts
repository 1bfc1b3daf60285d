// Tools of every manner, and a codemode that has them: what the tests of codemode run scripts against.
import * as z from "zod";
import { type Codemode, type CodemodeOptions, createCodemode } from "../../packages/codemode/src/index.js";

/** What the tests look at afterwards. */
export interface Witness {
  readonly calls: string[];
  readonly aborted: string[];
}

class Thing {
  readonly inside = 1;
}

function boom(): never {
  throw Object.assign(new TypeError("boom"), { code: "E_BOOM" });
}

export const slowMs = 200;

export function manyTools(witness: Witness) {
  const wait = (name: string, ms: number, signal?: AbortSignal): Promise<string> =>
    new Promise((resolve, reject) => {
      const timer = ms === Number.POSITIVE_INFINITY ? undefined : setTimeout(() => resolve(name), ms);
      signal?.addEventListener("abort", () => {
        clearTimeout(timer);
        witness.aborted.push(name);
        reject(signal.reason);
      });
    });
  return {
    echo: async (value: unknown) => value,
    two: (...args: unknown[]) => args.length,
    note: (text: string) => {
      witness.calls.push(text);
    },
    slow: () => wait("slow", slowMs),
    never: {
      description: "Answers never.",
      execute: (_: unknown, { signal }: { signal: AbortSignal }) => {
        witness.calls.push("never");
        return wait("never", Number.POSITIVE_INFINITY, signal);
      },
    },
    slowWrite: {
      description: "Writes slowly and heeds no signal.",
      execute: () => wait("slowWrite", slowMs),
    },
    slowRead: {
      description: "Reads slowly.",
      effect: "read" as const,
      execute: () => wait("slowRead", slowMs),
    },
    boom,
    late: () => new Promise((_, reject) => setTimeout(() => reject(new Error("late")), slowMs)),
    throwsText: () => {
      throw "just text";
    },
    hostPath: () => {
      throw new Error("cannot open /home/somebody/secret.txt");
    },
    badGetter: () => ({
      get x(): never {
        throw new Error("getter");
      },
    }),
    big: () => "x".repeat(20 * 1024 * 1024),
    fn: () => ({ f(): void {} }),
    cls: () => new Thing(),
    "my-tool.v2": () => "sanitised",
    find: {
      description: "Finds things.",
      inputSchema: z.object({ query: z.string().min(2), most: z.number().int().default(3) }),
      outputSchema: z.object({ found: z.array(z.string()) }),
      execute: ({ query, most }: { query: string; most: number }) => ({ found: Array(most).fill(query) }),
    },
    wrongOutput: {
      description: "Answers what it does not promise.",
      inputSchema: { type: "object" },
      outputSchema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
      execute: () => ({ n: "text" }),
    },
    key: {
      description: "Tells the call's key.",
      inputSchema: { type: "object" },
      execute: (
        _: unknown,
        { idempotencyKey, position, runId }: { idempotencyKey: string; position: number; runId: string },
      ) => ({
        idempotencyKey,
        position,
        runId,
      }),
    },
    github: {
      list: (owner: string, options?: { readonly page: number }) => [owner, options?.page ?? 1],
      issue: {
        description: "One issue.",
        inputSchema: {
          type: "object",
          properties: { number: { type: "integer", minimum: 1 } },
          required: ["number"],
          additionalProperties: false,
        },
        execute: ({ number }: { number: number }) => ({ number, title: `issue ${number}` }),
      },
    },
  };
}

export interface Bench {
  readonly codemode: Codemode;
  readonly witness: Witness;
}

export async function openBench(options: CodemodeOptions = {}): Promise<Bench> {
  const witness: Witness = { calls: [], aborted: [] };
  const codemode = await createCodemode({ tools: manyTools(witness), ...options });
  return { codemode, witness };
}
