/**
 * The named errors of the wire, one table for both languages: `scripts/generate.mjs` writes the same names into
 * worker-native/generated/protocol.h and the golden vectors demand that both decoders give the same one.
 *
 * Thrown by everything in this package that reads bytes or header text from the other side of a pipe. Whoever catches a
 * ProtocolError about a worker kills that worker: there is no error after which reading goes on.
 */

/** Rows are append-only; a row's place is its number in C (from 1, 0 is "no error"). */
export const protocolErrors = {
  short_length: "a frame's length is less than its fixed fields need",
  unknown_type: "a frame has a type that is not in the message table",
  wrong_sender: "a frame has a type that only the other side may send",
  unexpected_message: "a message arrived in a phase in which it may not be sent",
  repeated_message: "a message that may come once came twice",
  unknown_flags: "a frame has flag bits that its message may not have",
  too_long: "a frame is longer than its message may be under these limits",
  too_many_attachments: "a frame has more attachments than its message may have",
  missing_attachments: "a frame has fewer attachments than its message must have",
  text_too_long: "a frame's text is longer than its message's may be under these limits",
  attachments_too_long:
    "a frame's attachments are together longer than its message's may be under these limits",
  length_mismatch: "a frame's text and attachments do not add up to its length",
  not_utf8: "a frame's text is not UTF-8",
  truncated: "the stream ended inside a frame",
  bad_header: "a frame's header is not the JSON object that its message wants",
  missing_value: "a message that must carry a value carries none",
  unexpected_value: "a message that carries no value carries one",
  bad_struct: "a fixed structure in an attachment has a wrong size or wrong constant fields",
} as const;

export type ProtocolErrorName = keyof typeof protocolErrors;

/** What a peer on the pipe did wrong. `name` is the row's; `detail` says which field, never what the bytes were. */
export class ProtocolError extends Error {
  override readonly name: ProtocolErrorName;
  readonly detail: string;

  constructor(name: ProtocolErrorName, detail = "") {
    super(detail === "" ? protocolErrors[name] : `${protocolErrors[name]}: ${detail}`);
    this.name = name;
    this.detail = detail;
  }
}
