/** The manifest of a flow: its schema, what it grants, and the hash that an approval binds to. */

export { type FsDecision, mountsOf, pathComponents, rulesAt, strongestAccess } from "./fs-policy.js";
export type { FsAccess, FsRule, Grants, NetRule, SecretGrant } from "./grant-types.js";
export {
  formatHostPattern,
  type HostName,
  type HostPattern,
  hostMatches,
  parseHost,
  parseHostPattern,
} from "./host-pattern.js";
export { defaultMethods, evaluateNet, type NetDecision, type NetTarget } from "./net-policy.js";
