/** Globals of the web that the prelude itself defines and its own web classes use, once they are in place. */

interface URLSearchParams {
  toString(): string;
}
declare var URLSearchParams: { new (init?: unknown): URLSearchParams; readonly prototype: URLSearchParams };

interface URL {
  readonly href: string;
  readonly username: string;
  readonly password: string;
}
declare var URL: { new (url: string, base?: string): URL; readonly prototype: URL };

interface TextEncoder {
  encode(text: string): Uint8Array;
}
declare var TextEncoder: { new (): TextEncoder };

interface TextDecoder {
  decode(bytes: Uint8Array): string;
}
declare var TextDecoder: { new (): TextDecoder };

interface AbortSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
}
declare var AbortSignal: { any(signals: AbortSignal[]): AbortSignal };

declare var AbortController: { new (): { readonly signal: AbortSignal } };
