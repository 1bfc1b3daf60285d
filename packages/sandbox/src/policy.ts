// SandboxPolicy: what an operator requires of the place where a script runs, as portable, versioned JSON.
//
// Called by the configuration reader and by embedders; the compiler (compile.ts) turns a policy into a plan.
// Trust: a policy is the operator's. No manifest, flow, script or caller of a flow can supply or change one; but it
// is read from a file, so every key, type, range and path is checked and the unknown is refused.
// Kept true: a value of type SandboxPolicy that this module returned is complete, normalised, deeply frozen and
// known to `isNormalisedPolicy`. The policy says what must hold, never how: that is the backend's part.
//
// The schema is wider than what any one backend can do. What it can say and a backend cannot hold is answered with
// a typed blocker by the compiler, not by leaving it out here: a policy that asks for too much must be refused for
// its reason, not for a spelling.
import { didYouMean, limitTable, profileLimits } from "@flowcell/protocol";
import { CONTROLS, type Control, isControl } from "./controls.js";
import { duplicateKey } from "./json-keys.js";
import {
  flag,
  list,
  object,
  oneOf,
  optional,
  readShape,
  record,
  type ShapeIssue,
  text,
  whole,
  withDefault,
} from "./shape.js";

/** The format this build reads and writes. */
export const POLICY_VERSION = 1;

/**
 * How far apart script and host must be, weakest first.
 * - `compartment`: the engine's own WebAssembly compartment
 * - `process`: the compartment inside a process that the operating system confines
 * - `machine`: a separate kernel
 */
export const ISOLATION_LEVELS = ["compartment", "process", "machine"] as const;
export type IsolationLevel = (typeof ISOLATION_LEVELS)[number];

/** What the worker may do with files. Precedence: denied, protected (read-only), writable, readable, nothing. */
export interface FilesystemPolicy {
  readonly mode: "denied" | "restricted" | "full";
  readonly readable: readonly string[];
  readonly writable: readonly string[];
  readonly protectedReadOnly: readonly string[];
  readonly denied: readonly string[];
}

/** One rule of a filtered network; the first that matches decides. A missing port means every port. */
export interface NetworkRule {
  readonly action: "allow" | "deny";
  /** `*`, `*.name` (exactly one label), `**.name` (the name and any depth), a host name, or an IP literal. */
  readonly host: string;
  readonly port?: number | undefined;
}

/** What the worker may do with the network. */
export interface NetworkPolicy {
  readonly mode: "denied" | "filtered" | "unrestricted";
  readonly defaultAction: "deny" | "allow";
  readonly rules: readonly NetworkRule[];
}

/** The environment variables of the worker. */
export interface EnvironmentPolicy {
  readonly inherit: boolean;
  readonly variables: Readonly<Record<string, string>>;
}

/** The highest figures that any activation of a worker may be given; the operating system's limits follow from them. */
export interface PolicyLimits {
  /** Bytes of the engine's linear memory. */
  readonly heapBytes: number;
  /** Milliseconds of processor time of one activation. */
  readonly cpuMs: number;
  /** Milliseconds of processor time that one activation may spend on replaying what was recorded. */
  readonly replayCpuMs: number;
  /** Activations before a worker is retired. */
  readonly activations: number;
  /** Processes per worker, itself included. */
  readonly processes: number;
}

/** What is required of the place where a script runs. Complete and normalised when it comes from this module. */
export interface SandboxPolicy {
  readonly version: typeof POLICY_VERSION;
  readonly isolation: IsolationLevel;
  readonly filesystem: FilesystemPolicy;
  readonly network: NetworkPolicy;
  readonly environment: EnvironmentPolicy;
  readonly limits: PolicyLimits;
  /** `dangerOptional` lets a worker start on a kernel that has no Landlock; where the kernel has it, it is used. */
  readonly landlock: "required" | "dangerOptional";
  /** Controls required beyond those that the rest of the policy implies. */
  readonly require: readonly Control[];
  /** Notes of the host. They grant and change nothing. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** One thing that is wrong with a policy. */
export interface PolicyProblem {
  /** Where, such as `limits.cpuMs`; empty for the policy as a whole. */
  readonly path: string;
  /** What is wrong and what would be right. */
  readonly message: string;
}

/** A policy, or everything that is wrong with it. */
export type PolicyResult =
  | { readonly ok: true; readonly policy: SandboxPolicy }
  | { readonly ok: false; readonly problems: readonly PolicyProblem[] };

const POLICY_TEXT_MAX = 64 * 1024;
const LIST_MAX = 256;
const PATH_MAX = 4096;
const NAME_MAX = 256;
const VALUE_MAX = 4096;

/** Activations before a worker is retired, unless a policy says otherwise. */
const ACTIVATIONS = 256;

/** Ceilings when a policy names none: what an activation of this budget profile gets by itself. */
function profileCeilings(profile: "flow" | "codemode"): Pick<PolicyLimits, "heapBytes" | "cpuMs"> {
  const { heapBytes, cpuMs } = profileLimits(profile);
  return { heapBytes, cpuMs };
}

/** Replay of a recorded prefix is allowed twice the recorded time and a second. */
function replayAllowance(cpuMs: number): number {
  return 2 * cpuMs + 1_000;
}

const paths = withDefault(list(text(0, PATH_MAX), LIST_MAX), []);

const filesystemShape = {
  mode: withDefault(oneOf("denied", "restricted", "full"), "denied"),
  readable: paths,
  writable: paths,
  protectedReadOnly: paths,
  denied: paths,
};

const networkRuleShape = {
  action: oneOf("allow", "deny"),
  host: text(1, NAME_MAX),
  port: optional(whole(1, 65_535)),
};

const networkShape = {
  mode: withDefault(oneOf("denied", "filtered", "unrestricted"), "denied"),
  defaultAction: withDefault(oneOf("deny", "allow"), "deny"),
  rules: withDefault(list(object(networkRuleShape), LIST_MAX), []),
};

const textRecord = withDefault(record(text(0, NAME_MAX), text(0, VALUE_MAX)), {});

const environmentShape = { inherit: withDefault(flag, false), variables: textRecord };

const limitsShape = {
  heapBytes: withDefault(
    whole(limitTable.heapBytes.least, limitTable.heapBytes.most),
    profileCeilings("flow").heapBytes,
  ),
  cpuMs: withDefault(whole(limitTable.cpuMs.least, limitTable.cpuMs.most), profileCeilings("flow").cpuMs),
  replayCpuMs: optional(whole(1, replayAllowance(limitTable.cpuMs.most))),
  activations: withDefault(whole(1, 1_000_000), ACTIVATIONS),
  processes: withDefault(whole(1, 4_096), 1),
};

const policyShape = {
  version: oneOf(POLICY_VERSION),
  isolation: withDefault(oneOf(...ISOLATION_LEVELS), "process"),
  filesystem: withDefault(object(filesystemShape), {}),
  network: withDefault(object(networkShape), {}),
  environment: withDefault(object(environmentShape), {}),
  limits: withDefault(object(limitsShape), {}),
  landlock: withDefault(oneOf("required", "dangerOptional"), "required"),
  require: withDefault(list(text(0, NAME_MAX), LIST_MAX), []),
  metadata: textRecord,
};

const wholePolicy = object(policyShape);

/** The keys that are known at each place, for suggestions. `[]` stands for any element of a list. */
const KNOWN_KEYS: Readonly<Record<string, readonly string[]>> = {
  "": Object.keys(policyShape),
  filesystem: Object.keys(filesystemShape),
  network: Object.keys(networkShape),
  "network.rules.[]": Object.keys(networkRuleShape),
  environment: Object.keys(environmentShape),
  limits: Object.keys(limitsShape),
};

/** Names that stand for the same thing in the operator's configuration. */
const OTHER_SPELLINGS: Readonly<Record<string, string>> = Object.assign(Object.create(null), {
  dangerLandlockOptional: 'landlock": "dangerOptional',
});

const normalised = new WeakSet<object>();

/** Whether this module made the policy, so that it need not be checked again. */
export function isNormalisedPolicy(value: unknown): value is SandboxPolicy {
  return typeof value === "object" && value !== null && normalised.has(value);
}

/** Checks and normalises a policy given as data. A policy that this module made is returned as it is. */
export function parsePolicy(value: unknown): PolicyResult {
  if (isNormalisedPolicy(value)) return { ok: true, policy: value };
  const parsed = readShape(wholePolicy, value);
  if (!parsed.ok) {
    return { ok: false, problems: parsed.issues.flatMap((issue) => describeIssue(issue, value)) };
  }
  const problems: PolicyProblem[] = [];
  const data = parsed.value;
  const policy: SandboxPolicy = {
    version: data.version,
    isolation: data.isolation,
    filesystem: normaliseFilesystem(data.filesystem, problems),
    network: normaliseNetwork(data.network, problems),
    environment: normaliseEnvironment(data.environment, problems),
    limits: { ...data.limits, replayCpuMs: data.limits.replayCpuMs ?? replayAllowance(data.limits.cpuMs) },
    landlock: data.landlock,
    require: normaliseRequired(data.require, problems),
    metadata: { ...data.metadata },
  };
  if (problems.length > 0) return { ok: false, problems };
  deepFreeze(policy);
  normalised.add(policy);
  return { ok: true, policy };
}

/** Reads a policy from JSON text. Refuses what it does not know, duplicate keys and texts above 64 KiB. */
export function policyFromJson(text: string): PolicyResult {
  if (text.length > POLICY_TEXT_MAX) {
    return problem("", `the policy has ${text.length} characters; the limit is ${POLICY_TEXT_MAX}`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return problem("", `the policy is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  const twice = duplicateKey(text);
  if (twice !== undefined) return problem(twice, "this key is written twice; keep one");
  return parsePolicy(value);
}

/** Writes a policy as JSON text that `policyFromJson` reads back to an equal policy. */
export function policyToJson(policy: SandboxPolicy): string {
  return JSON.stringify(policy, null, 2);
}

/** What an operator's configuration may change of a default policy. */
export interface DefaultPolicyOptions {
  /** Ceilings of the operator; those not named keep the profile's. */
  readonly limits?: Partial<PolicyLimits> | undefined;
  /** Lets workers start where the kernel has no Landlock. Never from a flow, a script or a caller. */
  readonly dangerLandlockOptional?: boolean | undefined;
}

/**
 * The policy for flows or for codemode: everything denied, the profile's ceilings, Landlock required.
 * Throws a RangeError when a given limit is out of range; that is a mistake of the calling program.
 */
export function defaultPolicy(
  profile: "flow" | "codemode",
  options: DefaultPolicyOptions = {},
): SandboxPolicy {
  const result = parsePolicy({
    version: POLICY_VERSION,
    limits: { ...profileCeilings(profile), ...options.limits },
    landlock: options.dangerLandlockOptional === true ? "dangerOptional" : "required",
    metadata: { profile },
  });
  if (!result.ok) throw new RangeError(result.problems.map(formatProblem).join("; "));
  return result.policy;
}

/** A control that a policy requires, and the part of the policy that requires it. */
export interface RequiredControl {
  readonly control: Control;
  readonly because: string;
}

/**
 * The controls that a confined process must have on every operating system. A backend adds those that its system
 * can hold and that it therefore always demands (Linux: the system call filter, threads, executable memory).
 */
const PROCESS_CONTROLS: readonly Control[] = [
  "process_deny",
  "signal_deny",
  "ptrace_deny",
  "descriptor_closed",
  "parent_death",
];

/** Every control that a policy requires, by name or by implication, each once and in the order of `CONTROLS`. */
export function requiredControls(policy: SandboxPolicy): readonly RequiredControl[] {
  const reasons = new Map<Control, string>();
  const add = (control: Control, because: string): void => {
    if (!reasons.has(control)) reasons.set(control, because);
  };
  for (const control of policy.require) add(control, "policy.require");
  add("engine_compartment", `policy.isolation ${policy.isolation}`);
  if (policy.isolation !== "compartment") {
    for (const control of PROCESS_CONTROLS) add(control, `policy.isolation ${policy.isolation}`);
  }
  if (policy.filesystem.mode === "denied") add("filesystem_deny", "policy.filesystem.mode denied");
  if (policy.network.mode !== "unrestricted")
    add("network_deny", `policy.network.mode ${policy.network.mode}`);
  if (policy.network.mode === "filtered") add("network_filter", "policy.network.mode filtered");
  if (!policy.environment.inherit) add("environment_empty", "policy.environment.inherit false");
  add("memory_limit", "policy.limits.heapBytes");
  add("cpu_limit", "policy.limits.cpuMs");
  return CONTROLS.flatMap((control) => {
    const because = reasons.get(control);
    return because === undefined ? [] : [{ control, because }];
  });
}

/** One line for a problem: where, what, what to do. */
export function formatProblem(one: PolicyProblem): string {
  return one.path === "" ? one.message : `${one.path}: ${one.message}`;
}

function problem(path: string, message: string): PolicyResult {
  return { ok: false, problems: [{ path, message }] };
}

function joinPath(parts: readonly PropertyKey[]): string {
  return parts.map((part) => (typeof part === "number" ? `[${part}]` : String(part))).join(".");
}

/** What stands at a path of the value that was parsed; undefined when nothing does. */
function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let current = value;
  for (const part of path) {
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, part)) return undefined;
    current = (current as Record<PropertyKey, unknown>)[part]; // an object by the line above
  }
  return current;
}

/** A short, bounded rendering of a value from a policy file. */
function show(value: unknown): string {
  const text = JSON.stringify(value) ?? typeof value;
  return text.length <= 60 ? text : `${text.slice(0, 57)}...`;
}

function describeIssue(issue: ShapeIssue, root: unknown): PolicyProblem[] {
  const path = joinPath(issue.path);
  const found = valueAt(root, issue.path);
  switch (issue.code) {
    case "unknown_keys": {
      const place = joinPath(issue.path.map((part) => (typeof part === "number" ? "[]" : part)));
      const known = KNOWN_KEYS[place] ?? [];
      return issue.keys.map((key) => {
        const near = OTHER_SPELLINGS[key] ?? didYouMean(key, known);
        const hint = near === undefined ? `known: ${known.join(", ")}` : `did you mean "${near}"?`;
        return { path: joinPath([...issue.path, key.slice(0, NAME_MAX)]), message: `unknown key; ${hint}` };
      });
    }
    case "wrong_value": {
      if (path === "version") return [{ path, message: versionMessage(found) }];
      const values = issue.values.map(String);
      const near = typeof found === "string" ? didYouMean(found, values) : undefined;
      const hint = near === undefined ? "" : `; did you mean "${near}"?`;
      return [{ path, message: `${show(found)} is not one of ${values.join(", ")}${hint}` }];
    }
    case "wrong_type":
      if (found === undefined) return [{ path, message: `is missing; expected ${issue.expected}` }];
      return [{ path, message: `expected ${issue.expected}, found ${show(found)}` }];
    case "too_small":
      return [{ path, message: `${sizeOf(found)} is below the smallest allowed value ${issue.least}` }];
    case "too_big":
      return [{ path, message: `${sizeOf(found)} is above the largest allowed value ${issue.most}` }];
    case "wrong_form":
      return [{ path, message: `${show(found)} is not valid here` }];
  }
}

function versionMessage(found: unknown): string {
  const what = found === undefined ? "is missing" : `${show(found)} is not known`;
  return `${what}; this build reads version ${POLICY_VERSION}`;
}

function sizeOf(value: unknown): string {
  if (typeof value === "string" || Array.isArray(value)) return `the length ${value.length}`;
  return show(value);
}

/**
 * Lexical normalisation of an absolute path: no `.`, `..`, doubled or trailing slash. It makes policies comparable;
 * it is no protection against links or mounts, which only a backend that holds handles can give.
 */
function normalisePath(path: string): string | undefined {
  if (!path.startsWith("/") || path.includes("\0")) return undefined;
  const kept: string[] = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    if (part === "..") kept.pop();
    else kept.push(part);
  }
  return `/${kept.join("/")}`;
}

function normalisePaths(list: readonly string[], path: string, problems: PolicyProblem[]): string[] {
  const kept = new Set<string>();
  list.forEach((entry, index) => {
    const normal = normalisePath(entry);
    if (normal === undefined) {
      problems.push({ path: `${path}.[${index}]`, message: `${show(entry)} is not an absolute path` });
    } else {
      kept.add(normal);
    }
  });
  return [...kept];
}

function normaliseFilesystem(
  given: { mode: FilesystemPolicy["mode"] } & Record<
    "readable" | "writable" | "protectedReadOnly" | "denied",
    string[]
  >,
  problems: PolicyProblem[],
): FilesystemPolicy {
  const list = (name: "readable" | "writable" | "protectedReadOnly" | "denied"): string[] => {
    const kept = normalisePaths(given[name], `filesystem.${name}`, problems);
    if (given.mode === "denied" && given[name].length > 0) {
      problems.push({
        path: `filesystem.${name}`,
        message: 'names paths while filesystem.mode is "denied"; remove them or choose "restricted"',
      });
    }
    return kept;
  };
  return {
    mode: given.mode,
    readable: list("readable"),
    writable: list("writable"),
    protectedReadOnly: list("protectedReadOnly"),
    denied: list("denied"),
  };
}

const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.|$)){4}$/;
const HOST_LABELS =
  /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*$/;
/** Only the characters are checked: an address that does not exist matches nothing. */
const IPV6 = /^(?=[0-9a-f:.]*:[0-9a-f:.]*:)[0-9a-f:.]{2,45}$/;

/** The pattern in lower case, or undefined when it is a URL, a path, has a port, or is no host at all. */
function normaliseHost(host: string): string | undefined {
  const lower = host.toLowerCase();
  if (lower === "*") return lower;
  const name = lower.startsWith("**.") ? lower.slice(3) : lower.startsWith("*.") ? lower.slice(2) : lower;
  if (name === lower && (IPV4.test(lower) || IPV6.test(lower))) return lower;
  return HOST_LABELS.test(name) ? lower : undefined;
}

function normaliseNetwork(
  given: { mode: NetworkPolicy["mode"]; defaultAction: "deny" | "allow"; rules: NetworkRule[] },
  problems: PolicyProblem[],
): NetworkPolicy {
  const rules = given.rules.map((rule, index): NetworkRule => {
    const host = normaliseHost(rule.host);
    if (host === undefined) {
      problems.push({
        path: `network.rules.[${index}].host`,
        message: `${show(rule.host)} is not a host pattern; write a host, *, *.host, **.host or an IP address`,
      });
    }
    return {
      action: rule.action,
      host: host ?? rule.host,
      ...(rule.port === undefined ? {} : { port: rule.port }),
    };
  });
  // Ignored rules would look like protection; a mode that has none may not carry any.
  if (given.mode !== "filtered" && rules.length > 0) {
    problems.push({
      path: "network.rules",
      message: `rules need network.mode "filtered", not "${given.mode}"`,
    });
  }
  if (given.mode !== "filtered" && given.defaultAction !== "deny") {
    problems.push({
      path: "network.defaultAction",
      message: `"allow" needs network.mode "filtered", not "${given.mode}"`,
    });
  }
  return { mode: given.mode, defaultAction: given.defaultAction, rules };
}

function normaliseEnvironment(given: EnvironmentPolicy, problems: PolicyProblem[]): EnvironmentPolicy {
  for (const [name, value] of Object.entries(given.variables)) {
    if (name === "" || name.includes("=") || name.includes("\0")) {
      problems.push({ path: `environment.variables.${name}`, message: "is not a name for a variable" });
    }
    if (value.includes("\0")) {
      problems.push({ path: `environment.variables.${name}`, message: "the value has a zero byte" });
    }
  }
  return { inherit: given.inherit, variables: { ...given.variables } };
}

function normaliseRequired(names: readonly string[], problems: PolicyProblem[]): Control[] {
  const kept = new Set<Control>();
  names.forEach((name, index) => {
    if (isControl(name)) {
      kept.add(name);
      return;
    }
    const near = didYouMean(name, CONTROLS);
    const hint = near === undefined ? `known: ${CONTROLS.join(", ")}` : `did you mean "${near}"?`;
    problems.push({ path: `require.[${index}]`, message: `unknown control ${show(name)}; ${hint}` });
  });
  return [...kept];
}

function deepFreeze(value: object): void {
  Object.freeze(value);
  for (const inner of Object.values(value)) {
    if (typeof inner === "object" && inner !== null && !Object.isFrozen(inner)) deepFreeze(inner);
  }
}
