/** The typed array classes by name: their intrinsic prototypes, for recognising values, and constructors, for making them. */

import { record } from "./primordials.js";

export type ViewConstructor = new (
  buffer: ArrayBuffer,
  byteOffset: number,
  length: number,
) => ArrayBufferView;

export const viewConstructors = record<ViewConstructor>();
export const typedArrayPrototypes = record<object>();

const classes = {
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float16Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
};

for (const [name, value] of Object.entries(classes)) {
  viewConstructors[name] = value;
  typedArrayPrototypes[name] = value.prototype;
}
viewConstructors["DataView"] = DataView;
