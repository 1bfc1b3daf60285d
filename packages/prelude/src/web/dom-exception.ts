/**
 * DOMException. A real error of the engine (with a stack), unlike the candidates from packages; name and message are own
 * data properties, so that whoever reads errors without running getters finds them.
 */

import { trimStack } from "../boundary.js";
import {
  defineData,
  ErrorPrototype,
  NativeError,
  ObjectCreate,
  ObjectDefineProperty,
  ReflectConstruct,
} from "../primordials.js";

/** Legacy codes by name; names without one have 0. */
const codes: { readonly [name: string]: number } = {
  __proto__: null as unknown as number, // the prototype itself: names are looked up in this table alone
  IndexSizeError: 1,
  HierarchyRequestError: 3,
  WrongDocumentError: 4,
  InvalidCharacterError: 5,
  NoModificationAllowedError: 7,
  NotFoundError: 8,
  NotSupportedError: 9,
  InUseAttributeError: 10,
  InvalidStateError: 11,
  SyntaxError: 12,
  InvalidModificationError: 13,
  NamespaceError: 14,
  InvalidAccessError: 15,
  TypeMismatchError: 17,
  SecurityError: 18,
  NetworkError: 19,
  AbortError: 20,
  URLMismatchError: 21,
  QuotaExceededError: 22,
  TimeoutError: 23,
  InvalidNodeTypeError: 24,
  DataCloneError: 25,
};

interface DOMExceptionConstructor {
  new (message?: string, name?: string): Error & { readonly code: number };
  readonly prototype: object;
}

function create(this: unknown, message?: unknown, name?: unknown): object {
  const target = new.target;
  if (target === undefined) throw trimStack(new TypeError("Constructor DOMException requires 'new'"));
  const text = message === undefined ? "" : `${message as string}`; // converted, as the web does
  const error = trimStack(ReflectConstruct(NativeError, [text], target) as object); // Error's constructor makes one
  defineData(error, "name", name === undefined ? "Error" : `${name as string}`, false); // converted
  return error;
}

create.prototype = ObjectCreate(ErrorPrototype, {
  constructor: { value: create, writable: true, configurable: true },
  code: {
    get(this: { name?: unknown }): number {
      return codes[`${this.name as string}`] ?? 0; // any value has a text
    },
    enumerable: true,
    configurable: true,
  },
  [Symbol.toStringTag]: { value: "DOMException", configurable: true },
});
ObjectDefineProperty(create, "prototype", { writable: false });

const constantNames: readonly (readonly [string, number])[] = [
  ["INDEX_SIZE_ERR", 1],
  ["DOMSTRING_SIZE_ERR", 2],
  ["HIERARCHY_REQUEST_ERR", 3],
  ["WRONG_DOCUMENT_ERR", 4],
  ["INVALID_CHARACTER_ERR", 5],
  ["NO_DATA_ALLOWED_ERR", 6],
  ["NO_MODIFICATION_ALLOWED_ERR", 7],
  ["NOT_FOUND_ERR", 8],
  ["NOT_SUPPORTED_ERR", 9],
  ["INUSE_ATTRIBUTE_ERR", 10],
  ["INVALID_STATE_ERR", 11],
  ["SYNTAX_ERR", 12],
  ["INVALID_MODIFICATION_ERR", 13],
  ["NAMESPACE_ERR", 14],
  ["INVALID_ACCESS_ERR", 15],
  ["VALIDATION_ERR", 16],
  ["TYPE_MISMATCH_ERR", 17],
  ["SECURITY_ERR", 18],
  ["NETWORK_ERR", 19],
  ["ABORT_ERR", 20],
  ["URL_MISMATCH_ERR", 21],
  ["QUOTA_EXCEEDED_ERR", 22],
  ["TIMEOUT_ERR", 23],
  ["INVALID_NODE_TYPE_ERR", 24],
  ["DATA_CLONE_ERR", 25],
];
for (const [name, value] of constantNames) {
  ObjectDefineProperty(create, name, { value, enumerable: true });
  ObjectDefineProperty(create.prototype, name, { value, enumerable: true });
}

/** `new DOMException(message, name)`. */
export const DOMException = create as unknown as DOMExceptionConstructor; // a function that is only ever constructed
