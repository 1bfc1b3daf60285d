/** The part of WebAssembly that the harness uses: the library that has it is the DOM's, which this repository leaves out. */

declare namespace WebAssembly {
  class Memory {
    constructor(descriptor: { readonly initial: number; readonly maximum: number });
    readonly buffer: ArrayBuffer;
    grow(pages: number): number;
  }
  class Table {
    grow(rows: number): number;
    set(index: number, value: unknown): void;
  }
  interface Instance {
    readonly exports: { readonly [name: string]: unknown };
  }
  function instantiate(bytes: Uint8Array, imports: object): Promise<{ readonly instance: Instance }>;
}
