// The native seam: launching workers, asking the kernel and walking files, through the launcher library. Imported by
// pool, sandbox and host.
// Importing it loads no native code; the first call does.

export {
  Descriptor,
  FileCallError,
  FileCalls,
  type FileFacts,
  type FileKind,
  type ListedEntry,
} from "./files.js";
export { type Answer, type HardLimit, type HostFacts, hostFacts } from "./host-facts.js";
export {
  closeFd,
  drainFd,
  LaunchedWorker,
  type LaunchLimits,
  type LaunchRequest,
  launchWorker,
  type WorkerExit,
} from "./launch.js";
export { errnoName, LaunchError } from "./launch-error.js";
export { NativeMissingError, type NativePaths, nativePaths, requireNative } from "./paths.js";
