/** Model-written code against tools, in a cell. */
export {};
