/** What owners of this system are made of: SQLite, confined workers, the service of packages/flows. */

import { createFlowService } from "@flowcell/flows";
import { openSqliteStore } from "@flowcell/journal";
import { packageFolder } from "../assets.js";
import { bugText } from "../cli/human.js";
import type { Streams } from "../cli/typed.js";
import type { OwnerParts } from "../owner/open.js";
import { engineFingerprint, LazyPool } from "../owner/worker-pool.js";

export function systemParts(streams: Streams): OwnerParts {
  return {
    openStore: (path) => openSqliteStore({ path }),
    openPool: ({ heapBytes, cpuMs }) => new LazyPool({ ceilings: { heapBytes, cpuMs } }),
    fingerprint: engineFingerprint,
    createService: createFlowService,
    // What starts workers stands there: no flow reads or writes in it.
    deniedPaths: [packageFolder()],
    environment: process.env,
    onBug: (error) => streams.err(bugText(error)),
  };
}
