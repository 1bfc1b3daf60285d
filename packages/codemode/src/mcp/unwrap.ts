/**
 * What an MCP server answered to a call, as a script sees it. upstreams.ts calls it for every answer.
 *
 *   isError                          throws its text
 *   structuredContent                that
 *   one text that is a JSON object   the object; the same for an array. A text that is a number or `true` stays a text, since
 *   or array                         "1.10" and "12345678901234567890" are versions and identifiers more often than numbers
 *   only texts                       the text, several joined by a line break
 *   anything else                    { text, content }: content holds images, sound and resources as the server sent them
 *
 * Whatever is not text is also kept for the result of the execution, so that a model sees it without its script returning it.
 */

import { HostError } from "@flowcell/protocol";
import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/sdk/types.js";

export interface Unwrapped {
  readonly value: unknown;
  /** All that is not text. */
  readonly content: readonly ContentBlock[];
}

/** The tool itself failed. Its text is the server's answer to the script, paths and all: a script of `files` knows no other names. */
export function toolFailed(message: string): HostError {
  return new HostError("upstream", message);
}

export function unwrapResult(result: CallToolResult): Unwrapped {
  const texts: string[] = [];
  const content: ContentBlock[] = [];
  for (const block of result.content) {
    if (block.type === "text") texts.push(block.text);
    else content.push(withoutMeta(block));
  }
  const { structuredContent } = result;
  const text = texts.join("\n");
  if (result.isError === true) throw toolFailed(errorText(text, structuredContent));
  if (structuredContent !== undefined) return { value: structuredContent, content };
  if (content.length > 0) return { value: texts.length === 0 ? { content } : { text, content }, content };
  return { value: texts.length === 1 ? parsed(text) : texts.length === 0 ? undefined : text, content };
}

function errorText(text: string, structured: unknown): string {
  if (text.trim() !== "") return text;
  return structured === undefined ? "the tool failed and said nothing" : JSON.stringify(structured);
}

function parsed(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    return text;
  }
}

/** Annotations and _meta are for clients. */
function withoutMeta(block: ContentBlock): ContentBlock {
  const { _meta, ...shown } = block;
  return shown;
}
