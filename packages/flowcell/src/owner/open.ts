/**
 * The owner of a store: this process, from when it got the store's lock until it closes. `serve` is one for as long as it
 * runs; a command that finds nobody is one for as long as it takes. Either way other commands find it by its socket.
 */

import type { CellPool, FlowService, FlowServiceOptions } from "@flowcell/flows";
import type { Store } from "@flowcell/journal";
import { type Limits, limitCeilings } from "@flowcell/protocol";
import { defaultCeilings } from "../options.js";
import type { DataFolder } from "./data-folder.js";
import { readPem, type Settings, secretLookup } from "./settings.js";
import { SocketServer } from "./socket-server.js";

/** What an owner is made of; unit tests bring their own. */
export interface OwnerParts {
  /** Rejects with StoreHeld when somebody else has it. */
  readonly openStore: (file: string) => Promise<Store>;
  readonly openPool: (ceilings: Limits) => CellPool & { close(): Promise<void> };
  readonly fingerprint: () => string;
  readonly createService: (options: FlowServiceOptions) => FlowService | Promise<FlowService>;
  /** Folders that no mount reaches, beside the data folder. */
  readonly deniedPaths: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  /** An exception that nobody expects, while serving. */
  readonly onBug: (error: unknown) => void;
}

export type Drives = NonNullable<FlowServiceOptions["drives"]>;

export interface Owner {
  readonly service: FlowService;
  /** Suspends what waits, gives running activations `patienceMs`, then lets go of socket, service, workers and store. */
  close(patienceMs: number): Promise<void>;
}

/** The most that a flow may ask for. */
export const ceilings: Limits = Object.freeze({ ...limitCeilings, ...defaultCeilings });

const activeMost = 256;
/** For what was asked by the socket when this process is about to end. */
const answerMs = 10_000;
/** For activations that run when a command has what it wanted. */
export const commandPatienceMs = 10_000;
/** For workers that end, and for the store to write down and let go of what it has. */
const letGoMs = 10_000;

/** How long an owner that ends may hold the store while nobody listens at its socket. */
export const handoverMs = answerMs + commandPatienceMs + letGoMs;

export async function openOwner(
  folder: DataFolder,
  settings: Settings,
  drives: Drives,
  parts: OwnerParts,
): Promise<Owner> {
  const store = await parts.openStore(folder.storeFile);
  const open: { close(): Promise<void> }[] = [store];
  try {
    const pool = parts.openPool(ceilings);
    open.unshift(pool);
    const service = await parts.createService({
      ...serviceSettings(settings, parts.environment),
      store,
      pool,
      fingerprint: parts.fingerprint(),
      deniedPaths: [folder.path, ...parts.deniedPaths],
      ceilings,
      functions: [],
      activeMost,
      drives,
    });
    open.unshift(service);
    const socket = await SocketServer.listen({ path: folder.socketFile, service, onBug: parts.onBug });
    return {
      service,
      close: async (patienceMs) => {
        // Who asks a service that goes down is told so. A command that has what it wanted is nobody to be refused by: it takes
        // no more questions, and whoever has one becomes the owner.
        if (drives !== "all") await socket.close(answerMs);
        // A store that has failed can suspend nothing; everything is let go of all the same.
        try {
          if (drives !== "nothing") await service.drain(patienceMs);
        } finally {
          await socket.close(answerMs);
          await closeAll(open);
        }
      },
    };
  } catch (error) {
    await closeAll(open);
    throw error;
  }
}

/** What the settings mean to a service. */
export function serviceSettings(
  settings: Settings,
  environment: NodeJS.ProcessEnv,
): Pick<FlowServiceOptions, "mounts" | "secretValue" | "privateHosts" | "caPem" | "storeBytesMost"> {
  return {
    mounts: new Map(Object.entries(settings.mounts)),
    secretValue: secretLookup(settings, environment),
    privateHosts: settings.privateHosts,
    caPem: settings.caFile === null ? undefined : readPem(settings.caFile),
    ...(settings.storeBytes === undefined ? {} : { storeBytesMost: settings.storeBytes }),
  };
}

/** In order, every one of them; the first failure is told when all are closed. */
async function closeAll(open: readonly { close(): Promise<void> }[]): Promise<void> {
  const failures: unknown[] = [];
  for (const one of open) {
    try {
      await one.close();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
