/**
 * How a command gets at the service of a data folder: by the socket of the process that holds the store, else by holding
 * the store itself.
 *
 * Kept true: a connection is never silently another store than the one that was asked for; between "nobody listens" and
 * "somebody holds the lock" there is a moment in which an owner starts or ends, and it is waited out.
 */

import type { FlowService } from "@flowcell/flows";
import { StoreHeld } from "@flowcell/journal";
import type { DataFolder } from "./data-folder.js";
import {
  commandPatienceMs,
  type Drives,
  handoverMs,
  type Owner,
  type OwnerParts,
  openOwner,
} from "./open.js";
import { readSettings } from "./settings.js";
import { connectOwner } from "./socket-client.js";

export interface Connection {
  readonly service: FlowService;
  /** Null when another process is the owner. */
  readonly owner: Owner | null;
  close(): Promise<void>;
}

const retryMs = 100;

/** `waitMs`: how long a store may be held by somebody who does not answer. */
export async function connect(
  folder: DataFolder,
  drives: Drives,
  parts: OwnerParts,
  waitMs = handoverMs,
): Promise<Connection> {
  const end = performance.now() + waitMs;
  for (;;) {
    const client = await connectOwner(folder.socketFile);
    if (client !== null) return { service: client, owner: null, close: () => client.close() };
    try {
      const owner = await openOwner(folder, readSettings(folder.settingsFile), drives, parts);
      return { service: owner.service, owner, close: () => owner.close(commandPatienceMs) };
    } catch (error) {
      if (!(error instanceof StoreHeld)) throw error;
      if (performance.now() >= end) {
        throw new StoreHeld(
          `the store in ${folder.path} is held by another process, which did not answer at its socket for ${waitMs / 1000} s; if it does not end by itself, end it, or name another folder with --data`,
        );
      }
    }
    await new Promise((resolve) => setTimeout(resolve, retryMs));
  }
}
