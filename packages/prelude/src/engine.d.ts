/**
 * What the guest realm has beyond the es2023 library: intrinsics of this engine that TypeScript's library of that year does
 * not know, and the object that C leaves on the global while the image is made. The prelude is compiled without the DOM
 * library and without Node's types: a name that is not declared here or in es2023 does not exist in the guest.
 */

interface ErrorConstructor {
  isError(value: unknown): value is Error;
}

interface ObjectConstructor {
  hasOwn(object: object, key: PropertyKey): boolean;
}

interface InternalError extends Error {}
declare var InternalError: { new (message?: string): InternalError; readonly prototype: InternalError };

interface Float16Array extends Float32Array {}
declare var Float16Array: {
  new (buffer: ArrayBufferLike, byteOffset?: number, length?: number): Float16Array;
  readonly prototype: Float16Array;
};

/** `(text, attachments)`; attachments are concatenated as u32 LE length and bytes. */
type NativeSender = (text: string, attachments?: ArrayBuffer) => void;

interface FlowcellNative {
  readonly send: {
    readonly hostCall0: NativeSender;
    readonly hostCall1: NativeSender;
    readonly cancelCall: NativeSender;
    readonly console: NativeSender;
    readonly blocked: NativeSender;
    readonly finished0: NativeSender;
    readonly finished1: NativeSender;
    readonly refused: NativeSender;
  };
  /** The engine's last refusal: "" | "memory" | "stack". */
  readonly lastFailure: () => string;
}

declare var __flowcell_native: FlowcellNative | undefined;
