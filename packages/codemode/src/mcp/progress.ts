/**
 * What a client is told while a script runs: console lines and calls as they come, and every few seconds that it still runs.
 * server.ts makes one for each request that has a progress token; clients may then wait longer than they do for a silent one.
 *
 * Kept true: `progress` only grows; a script that logs in a loop costs a few messages a second, not one a line; nothing is sent
 * after `end`.
 * TRUST: lines are a script's.
 */

import type { ProgressToken, ServerNotification } from "@modelcontextprotocol/sdk/types.js";

const stillEveryMs = 5_000;
const betweenMs = 200;
const messageCharsMost = 400;

export class Progress {
  readonly #token: ProgressToken;
  readonly #send: (notification: ServerNotification) => Promise<void>;
  readonly #began = performance.now();
  readonly #still: NodeJS.Timeout;
  #soon: NodeJS.Timeout | undefined;
  #message: string | undefined;
  #sentAt = Number.NEGATIVE_INFINITY;
  #events = 0;
  #calls = 0;

  constructor(token: ProgressToken, send: (notification: ServerNotification) => Promise<void>) {
    this.#token = token;
    this.#send = send;
    this.#still = setInterval(() => {
      const seconds = Math.round((performance.now() - this.#began) / 1000);
      this.#tell(`running for ${seconds} s, ${this.#calls} call${this.#calls === 1 ? "" : "s"} so far`);
    }, stillEveryMs);
    this.#still.unref();
  }

  line(text: string): void {
    this.#tell(text);
  }

  call(name: string): void {
    this.#calls += 1;
    this.#tell(`calls ${name}`);
  }

  end(): void {
    clearInterval(this.#still);
    clearTimeout(this.#soon);
    this.#message = undefined;
  }

  /** At once, or the last of several a little later. */
  #tell(message: string): void {
    this.#events += 1;
    this.#message = message.slice(0, messageCharsMost);
    const waitMs = this.#sentAt + betweenMs - performance.now();
    if (waitMs <= 0) this.#flush();
    else this.#soon ??= setTimeout(() => this.#flush(), waitMs);
  }

  #flush(): void {
    clearTimeout(this.#soon);
    this.#soon = undefined;
    const message = this.#message;
    if (message === undefined) return;
    this.#message = undefined;
    this.#sentAt = performance.now();
    const params = { progressToken: this.#token, progress: this.#events, message };
    // A client that is gone is told nothing; its request is aborted elsewhere.
    this.#send({ method: "notifications/progress", params }).catch(() => undefined);
  }
}
