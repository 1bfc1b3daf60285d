/** The prelude's copies of the protocol's bounds are the protocol's. */
import {
  bigintDigits,
  headerBounds,
  numericKeys,
  regExpChars,
  valueAttachmentsMost,
  valueBounds,
} from "@flowcell/protocol";
import { expect, test } from "vitest";
import { headerBounds as guestHeaderBounds, valueBounds as guestValueBounds } from "./bounds.js";

test("bounds of headers are those that the parent enforces", () => {
  for (const [name, value] of Object.entries(guestHeaderBounds)) {
    expect(headerBounds, name).toHaveProperty(name, value);
  }
});

test("bounds of values are those that the parent enforces", () => {
  expect(guestValueBounds).toEqual({
    depth: valueBounds.depth,
    nodes: valueBounds.nodes,
    bigintDigits,
    regExpChars,
    numericKeys,
    attachments: valueAttachmentsMost,
  });
});
