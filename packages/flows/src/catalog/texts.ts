/** What the operations on versions answer when a name is wrong: what it is, what was probably meant, what to do. */

import { didYouMean } from "@flowcell/protocol";
import { OperationError } from "../ports.js";

const wholeHash = /^[0-9a-f]{64}$/;

export function unknownFlow(flow: string, known: readonly string[]): OperationError {
  const shown = JSON.stringify(flow.slice(0, 80));
  const near = didYouMean(flow, known);
  const advice =
    near === undefined
      ? known.length === 0
        ? "nothing is installed; install a folder with: flowcell install FOLDER"
        : "see: flowcell list"
      : `did you mean ${near}?`;
  return new OperationError("not_found", `there is no flow ${shown}: ${advice}`);
}

export function nearestHash(
  flow: string,
  hash: string,
  versions: readonly { readonly hash: string; readonly number: number; readonly state: string }[],
): OperationError {
  const newest = versions.at(-1);
  const near = didYouMean(
    hash,
    versions.map((version) => version.hash),
  );
  const meant = versions.find((version) => version.hash === near) ?? newest;
  const shown = JSON.stringify(hash.slice(0, 64));
  const advice =
    meant === undefined
      ? "it has no version; install one"
      : `${meant === newest ? "the newest" : "the nearest"} is ${meant.hash} (version ${meant.number}, ${meant.state})`;
  return new OperationError("not_found", `flow ${flow} has no version ${shown}; ${advice}`);
}

/** An approval is about every byte: the whole hash says that the reviewer saw this very version. */
export function mustBeWhole(
  flow: string,
  hash: string,
  versions: readonly { readonly hash: string }[],
): void {
  if (wholeHash.test(hash)) return;
  const meant = versions.find((version) => hash !== "" && version.hash.startsWith(hash));
  const advice = meant === undefined ? `see: flowcell show ${flow}` : `this one is ${meant.hash}`;
  throw new OperationError("invalid", `an approval wants the whole hash of 64 digits; ${advice}`);
}
