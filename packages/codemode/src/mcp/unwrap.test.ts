// What scripts see of answers of MCP servers, rule by rule.
import { HostError } from "@flowcell/protocol";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { expect, test } from "vitest";
import { unwrapResult } from "./unwrap.js";

const text = (value: string) => ({ type: "text", text: value }) as const;
const image = { type: "image", mimeType: "image/png", data: "AAAA" } as const;

test.each<[result: CallToolResult, value: unknown]>([
  [{ content: [] }, undefined],
  [{ content: [text("plain")] }, "plain"],
  [{ content: [text(' {"a":[1]} ')] }, { a: [1] }],
  [{ content: [text("[]")] }, []],
  [{ content: [text("{ not json")] }, "{ not json"],
  [{ content: [text("12345678901234567890")] }, "12345678901234567890"],
  [{ content: [text("true")] }, "true"],
  [{ content: [text("{}"), text("{}")] }, "{}\n{}"],
  [{ content: [text("shown")], structuredContent: { n: 1 } }, { n: 1 }],
  [{ content: [text("shot"), image] }, { text: "shot", content: [image] }],
  [{ content: [image] }, { content: [image] }],
])("%j", (result, value) => {
  expect(unwrapResult(result).value).toEqual(value);
});

test("content beside text is kept, also beside structured content, without what is for clients only", () => {
  const { value, content } = unwrapResult({
    content: [text("shot"), { ...image, _meta: { secret: 1 } }],
    structuredContent: { n: 1 },
  });
  expect([value, content]).toEqual([{ n: 1 }, [image]]);
});

test.each<[result: CallToolResult, message: string]>([
  [{ isError: true, content: [text("a"), image, text("b")] }, "a\nb"],
  [{ isError: true, content: [], structuredContent: { why: "x" } }, '{"why":"x"}'],
  [{ isError: true, content: [text(" ")] }, "the tool failed and said nothing"],
])("%j is thrown", (result, message) => {
  expect(() => unwrapResult(result)).toThrow(new HostError("upstream", message));
});
