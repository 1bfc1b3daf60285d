/** The manifest of a flow: its schema, what it grants, and the hash that an approval binds to. */

export { type ApprovalInput, type ApprovalParts, approvalHash } from "./approval-hash.js";
export { docComment, indented, quotedText } from "./doc-comment.js";
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
export { flowTsconfig, type GrantedFunction, type HostTypesOptions, hostTypes } from "./host-types.js";
export { type JsonValue, manifestBytesMax } from "./json-document.js";
export { type CompiledSchema, type CompileResult, compileSchema, type SchemaVerdict } from "./json-schema.js";
export type { Concurrency, Manifest, Retry, Trigger } from "./manifest-types.js";
export { defaultMethods, evaluateNet, type NetDecision, type NetTarget } from "./net-policy.js";
export { type ManifestResult, manifestJson, type ParseManifestOptions, parseManifest } from "./parse.js";
export { type Finding, formatManifestProblem, type ManifestProblem, pathText } from "./problem.js";
export type { JsonSchema, JsonSchemaObject } from "./schema-check.js";
export { formatNames } from "./schema-formats.js";
export { keywordNames } from "./schema-keywords.js";
export {
  type SchemaTypeParts,
  schemaDeclarations,
  schemaType,
  schemaTypeParts,
} from "./schema-types.js";
