/**
 * The few lines that stand around a script inside the worker: they make `tools`, `codemode` (the same) and every namespace
 * global, then run the script. Written here as text for the engine; normalize.ts puts it before the script, on the first line,
 * so that no line of the script moves.
 *
 * Kept true: what a script finds under a name is a host function that was granted, another namespace, nothing for names that
 * JavaScript asks of any object, and for every other name a function that says what is there. It runs before the script, and
 * what a script does to its own realm afterwards costs it the wording of an error at most: calls are made by the host object.
 */

import { callName, mayAsk, rootNamespace } from "./tool-set.js";
import type { ToolSet } from "./tools.js";

/**
 * Where the questions of tools that may need approval are: `<here>.<namespace>.<name>`. No tool's namespace is called so, and
 * in lists of names it comes last.
 */
export const askNamespace = "zz$ask";

/**
 * `f` is the script, `h` the host object. `h` answers names that are not granted with a function that throws, which words the
 * error here too. `a` are names that tools had before they were made identifiers, `q` tools that may need approval: the
 * question comes first, and what it was answered goes with the call, which the parent checks (approval-calls.ts).
 */
const guestText = `(f,n,a,q)=>(_,h)=>{
const s={__proto__:null};
const ask=(p,k)=>{
const g=h[p][k],w=h.${askNamespace}[p][k];
return Object.defineProperty(async(...x)=>{
const at=new Error().stack;
try{const r=await w(...x);return await(r===undefined?g(...x):g(x[0],r.ticket))}
catch(e){throw Object.defineProperty(e,"stack",{value:at})}
},"name",{value:k})
};
const make=(p)=>{
const there=p in h,g=there?h[p]:h,m={__proto__:null},own=a[p];
const name=(k)=>own!==undefined&&Object.hasOwn(own,k)?own[k]:k;
const has=(k)=>typeof k==="string"&&there&&name(k) in g;
const refuse=(k)=>()=>{
let t=p+"."+k+" is not a tool here";
try{g[k]()}catch(e){t=e.message.replaceAll(/(, )?${askNamespace}[.][\\w$.]+/g,"").replaceAll("host.","").replace(/^\\S+ is not granted to this script/,()=>t)}
throw new TypeError(t)
};
const get=(_,k)=>{
if(typeof k==="symbol")return;
if(m[k]!==undefined)return m[k];
const v=has(k)?q.includes(p+"."+name(k))?ask(p,name(k)):g[name(k)]:p==="${rootNamespace}"&&s[k]!==undefined?s[k]:g[k]===undefined||k in {}?undefined:refuse(k);
if(v!==undefined)m[k]=v;
return v
};
const no=()=>false;
return new Proxy({__proto__:null},{__proto__:null,get,has:(_,k)=>has(k),set:no,defineProperty:no,deleteProperty:no,
ownKeys:()=>there?Reflect.ownKeys(g):[],
getOwnPropertyDescriptor:(t,k)=>has(k)?{value:get(t,k),enumerable:true,configurable:true}:undefined})
};
const put=(k,value)=>Object.defineProperty(globalThis,k,{__proto__:null,value,writable:true,configurable:true});
for(const p of n)s[p]=make(p);
for(const p of n)put(p,s[p]);
const t=make("${rootNamespace}");
put("${rootNamespace}",t);put("codemode",t);
return f()
}`.replaceAll("\n", "");

/** What stands before and after an expression that is the script's function. */
export interface Surround {
  readonly before: string;
  readonly after: string;
}

export function surroundOf({ tools }: ToolSet): Surround {
  const namespaces = new Set<string>();
  const aliases: Record<string, Record<string, string>> = {};
  for (const { namespace, name, originalName } of tools) {
    if (namespace !== rootNamespace) namespaces.add(namespace);
    if (name === originalName || originalName === "__proto__") continue;
    aliases[namespace] = { ...aliases[namespace], [originalName]: name };
  }
  const asking = tools.filter(mayAsk).map(callName);
  const data = [[...namespaces], aliases, asking].map((part) => `,${JSON.stringify(part)}`).join("");
  return {
    before: `(function(){"use strict";return{default:(${guestText})(`,
    after: `${data})}})`,
  };
}
