// What the scripts of this folder's tests use, bundled into one file that a process of any user can load.
export { type LaunchedWorker, launchWorker } from "@flowcell/native";
export { FrameDecoder, untrusted, welcomeHeader } from "@flowcell/protocol";
export { acceptWorker } from "../../packages/sandbox/src/accept.js";
export { Child, endOf } from "../../packages/sandbox/src/child.js";
export { compile } from "../../packages/sandbox/src/compile.js";
export { runDoctor } from "../../packages/sandbox/src/doctor.js";
export { renderDoctor } from "../../packages/sandbox/src/doctor-text.js";
export { launchPlanned, launchState } from "../../packages/sandbox/src/launch.js";
export { defaultPolicy } from "../../packages/sandbox/src/policy.js";
export { preparePlan } from "../../packages/sandbox/src/prepare.js";
export { hostSources, probe } from "../../packages/sandbox/src/probe.js";
