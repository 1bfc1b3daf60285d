/** The journal: what a store keeps and promises, and the stores that are there. */

export { encodedBytes, headsOf } from "./heads.js";
export { MemoryStore } from "./memory/store.js";
export { exportRun, importRun, journalFormat, RecordingError } from "./recording.js";
export {
  type RecoveryAction,
  type RecoveryKind,
  type RecoveryRow,
  recoveryActions,
  recoveryOf,
  recoveryTable,
} from "./recovery.js";
export { openSqliteStore, type SqliteStoreOptions } from "./sqlite/store.js";
export {
  type AuditRow,
  type CallHead,
  type CallRow,
  type Delivery,
  type DeliveryHead,
  type Fence,
  type FlowRow,
  type FreeOperation,
  type LogRow,
  type NewCall,
  type NewRun,
  type NewVersion,
  type OpenWait,
  type Operation,
  type OperationResult,
  type OutcomeHead,
  type QuarantineRow,
  type Retention,
  type RunHeads,
  type RunHistory,
  type RunOperation,
  type RunPatch,
  type RunProgress,
  type RunQuery,
  type RunRow,
  type RunState,
  type Store,
  StoreFailure,
  StoreHeld,
  type StoreStats,
  StoreUnreadable,
  type Trigger,
  type Unit,
  type UnitResult,
  type VersionRow,
  type VersionState,
} from "./store.js";
