/**
 * `host.kv`: a flow's own keys and values, which outlive its runs. Every row is of effect `local`: it says what is to be
 * done, and the store does it in the transaction that records the call. What each operation means is `applyLocal` of
 * packages/protocol.
 *
 * A value is anything that can be sent. `undefined` stands for "no value" throughout: `get` of an absent key returns it,
 * `compareAndSet` expects and sets it; `set` refuses it, because it could not be told from a deletion.
 */

import { HostError } from "@flowcell/protocol";
import * as z from "zod/mini";
import { defineHostFunction, type HostFunction } from "./registry.js";
import { encodedArgument, optionsArgument, textArgument } from "./row-arguments.js";

export const kvKeyBytes = 256;
export const kvValueBytes = 64 * 1024;
export const kvListMax = 1000;

const grant = "kv";
const key = textArgument(1, kvKeyBytes);
const limitProblem = `must be a whole number from 1 to ${kvListMax}`;
const listOptions = optionsArgument({
  prefix: z.optional(textArgument(0, kvKeyBytes)),
  after: z.optional(textArgument(0, kvKeyBytes)),
  limit: z.optional(
    z
      .number({ error: limitProblem })
      .check(z.multipleOf(1, limitProblem), z.minimum(1, limitProblem), z.maximum(kvListMax, limitProblem)),
  ),
});

const get = defineHostFunction({
  name: "kv.get",
  doc: "The value of a key of this flow, or undefined.",
  effect: "local",
  grant,
  signature: "(key: string): Promise<unknown>",
  input: z.tuple([key]),
  local: ([key]) => ({ kind: "kv.get", key }),
});

const set = defineHostFunction({
  name: "kv.set",
  doc: `Sets a key (1 to ${kvKeyBytes} bytes) to a value (at most ${kvValueBytes / 1024} KiB).`,
  effect: "local",
  grant,
  signature: "(key: string, value: unknown): Promise<void>",
  input: z.tuple([key, z.unknown()]),
  acceptsRegExps: true,
  local: ([key, value]) => {
    if (value === undefined) {
      throw new HostError("invalid_arguments", "kv.set: the value is undefined; kv.delete removes a key");
    }
    return { kind: "kv.set", key, value: encodedArgument("kv.set: the value", value, kvValueBytes) };
  },
});

const remove = defineHostFunction({
  name: "kv.delete",
  doc: "Removes a key; true if it was there.",
  effect: "local",
  grant,
  signature: "(key: string): Promise<boolean>",
  input: z.tuple([key]),
  local: ([key]) => ({ kind: "kv.delete", key }),
});

const list = defineHostFunction({
  name: "kv.list",
  doc: `Keys in the order of their bytes, at most ${kvListMax}: those with a prefix, those after a key.`,
  effect: "local",
  grant,
  signature: "(options?: { prefix?: string; after?: string; limit?: number }): Promise<string[]>",
  input: z.tuple([listOptions]),
  local: ([{ prefix = "", after, limit = kvListMax } = {}]) => ({
    kind: "kv.list",
    prefix,
    after: after ?? null,
    limit,
  }),
});

const compareAndSet = defineHostFunction({
  name: "kv.compareAndSet",
  doc: "Sets a key if its value is the expected one; true if it did. undefined is no value, on both sides.",
  effect: "local",
  grant,
  signature: "(key: string, expected: unknown, value: unknown): Promise<boolean>",
  input: z.tuple([key, z.unknown(), z.unknown()]),
  acceptsRegExps: true,
  local: ([key, expected, value]) => ({
    kind: "kv.compareAndSet",
    key,
    expected: optional("kv.compareAndSet: the expected value", expected),
    value: optional("kv.compareAndSet: the value", value),
  }),
});

function optional(what: string, value: unknown): ReturnType<typeof encodedArgument> | null {
  return value === undefined ? null : encodedArgument(what, value, kvValueBytes);
}

const rows: readonly HostFunction[] = Object.freeze([get, set, remove, list, compareAndSet]);

/** The rows behind the grant `kv`. */
export function kvFunctions(): readonly HostFunction[] {
  return rows;
}
