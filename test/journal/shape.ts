// What the writer does to a run. Unit n of a run records call n, a local operation that counts to n, its log line, and every
// eighth time bytes that lie apart from the row.

import type { Unit } from "../../packages/journal/src/index.js";

export const runIds = ["run_0", "run_1", "run_2", "run_3"];

export function bodyOf(n: number): Uint8Array | null {
  return n % 8 === 0 ? new Uint8Array(6_000).fill((n / 8) % 256) : null;
}

export function unitOf(fence: Unit["fence"] & object, n: number): Unit {
  const body = bodyOf(n);
  return {
    fence,
    operations: [
      {
        kind: "call",
        attempts: 1,
        call: {
          position: n,
          name: "kv.set",
          effect: "local",
          digest: "d",
          args: { text: `${n}`, devalue: false, attachments: body === null ? [] : [body] },
          idempotencyKey: `${n}`,
          madeAt: n,
          note: null,
          wait: null,
          dueAt: null,
          callId: null,
        },
      },
      {
        kind: "local",
        order: n,
        guestClockMs: n,
        position: n,
        operation: { kind: "kv.set", key: "count", value: { text: `${n}`, devalue: false, attachments: [] } },
        bytesMax: 1_000,
        at: n,
      },
      { kind: "logs", lines: [{ seq: n, level: "log", guestTimeMs: n, text: `line ${n}` }] },
    ],
  };
}
