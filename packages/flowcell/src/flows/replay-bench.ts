/**
 * Replays of recordings for `flowcell test`: the folder as it is now is installed in a store in memory, a recording becomes
 * a finished run of it, and the service replays that run. No call is carried out: mounts, secrets and hosts are stand-ins.
 */

import { realpathSync } from "node:fs";
import {
  type CellPool,
  createFlowService,
  type FlowService,
  OperationError,
  readFlowFolder,
} from "@flowcell/flows";
import { HostError } from "@flowcell/host";
import { MemoryStore } from "@flowcell/journal";
import { mountsOf } from "@flowcell/manifest";
import { decodeValue } from "@flowcell/protocol";
import { ceilings, type OwnerParts } from "../owner/open.js";
import { readRecording, restore } from "./recording.js";

interface Opened {
  readonly service: FlowService;
  readonly store: MemoryStore;
  readonly version: { readonly flow: string; readonly hash: string };
}

export class ReplayBench {
  readonly #folder: string;
  readonly #parts: OwnerParts;
  readonly #pool: CellPool;
  #opened: Promise<Opened> | undefined;
  #count = 0;

  constructor(folder: string, parts: OwnerParts, pool: CellPool) {
    this.#folder = folder;
    this.#parts = parts;
    this.#pool = pool;
  }

  /** Throws HostError for a recording that the flow does not repeat. */
  async replay(json: unknown): Promise<unknown> {
    try {
      const recording = readRecording(json);
      this.#opened ??= this.#open();
      const { service, store, version } = await this.#opened;
      const runId = `run_recording-${String(this.#count++).padStart(12, "0")}`;
      await restore(recording, store, version, runId);
      const { matched, calls, deliveries, divergence } = await service.replay(runId);
      if (!matched) {
        const { where, expected, actual } = divergence ?? { where: "its end", expected: null, actual: null };
        const sides = `recorded ${brief(expected)}, now ${brief(actual)}`;
        throw new HostError("conflict", `the replay differs at ${where}: ${sides}`, {
          detail: { where, expected, actual },
        });
      }
      const { status, result } = recording.run;
      return { calls, deliveries, status, value: result === null ? undefined : decodeValue(result) };
    } catch (error) {
      if (error instanceof OperationError) throw new HostError("invalid_arguments", error.message);
      throw error;
    }
  }

  async close(): Promise<void> {
    const opened = await this.#opened?.catch(() => undefined);
    await opened?.service.close();
    await opened?.store.close();
  }

  async #open(): Promise<Opened> {
    const root = realpathSync(this.#folder);
    const { manifest } = await readFlowFolder(root, ceilings);
    const store = new MemoryStore();
    const service = await createFlowService({
      store,
      pool: this.#pool,
      fingerprint: this.#parts.fingerprint(),
      mounts: new Map(mountsOf(manifest.grants.fs).map((name) => [name, root])),
      secretValue: () => "stand-in",
      privateHosts: [],
      caPem: undefined,
      deniedPaths: [],
      ceilings,
      functions: [],
      activeMost: 1,
      drives: "nothing",
    });
    const by = "flowcell test";
    const { flow, hash } = await service.install({ folder: root, by });
    await service.approve({ flow, hash, by });
    return { service, store, version: { flow, hash } };
  }
}

const briefMax = 200;

function brief(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  return text.length <= briefMax ? text : `${text.slice(0, briefMax - 1)}…`;
}
