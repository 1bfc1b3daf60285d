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
 * Compiled when a script first asks for something that is no granted name by itself: a few hundred bytes of text cost the
 * engine more than most scripts do. `h` is the host object, `s` the namespaces, `a` names that tools had before they were made
 * identifiers, `q` tools that may need approval: there the question comes first, and what it was answered goes with the call,
 * which the parent checks (approval-calls.ts). `h` answers names that are not granted with a function that throws, which words
 * the error here too.
 */
const rareText = `return(h,s,a,q)=>{"use strict";
const made={__proto__:null};
const ask=(p,k)=>{
const call=h[p][k],question=h.${askNamespace}[p][k];
return async(...x)=>{
const stack=new Error().stack;
try{const r=await question(...x);return await(r===undefined?call(...x):call(x[0],r.ticket))}
catch(e){throw Object.defineProperty(e,"stack",{value:stack})}
}
};
const refuse=(name,denied)=>()=>{
let text=name+" is not a tool here";
try{denied()}catch(e){text=e.message.replaceAll(/(, )?${askNamespace}[.][\\w$.]+/g,"").replaceAll("host.","").replace(/^\\S+ is not granted to this script/,()=>text)}
throw new TypeError(text)
};
const make=(p,k)=>{
const own=a[p],name=own!==undefined&&Object.hasOwn(own,k)?own[k]:k,there=p in h;
if(there&&name in h[p])return q.includes(p+"."+name)?ask(p,name):h[p][name];
if(p==="${rootNamespace}"&&Object.hasOwn(s,k))return s[k];
const denied=h[p][k];
return denied===undefined||k in {}?undefined:refuse(p+"."+k,denied)
};
return(p,k)=>made[p+"."+k]??=make(p,k)
}`.replaceAll("\n", "");

/** `f` is the script; what it finds in the realm was put there before it runs. Short: every script is parsed with it. */
function guestText(namespaces: readonly string[], aliases: object, asking: readonly string[]): string {
  const granted = asking.length === 0 ? "k in t" : 'k in t&&!q.includes(p+"."+k)';
  return (
    `f=>(_,h)=>{const F=Function,s={__proto__:null},q=${JSON.stringify(asking)};let r;` +
    // What was found is kept: behind the host object a name is looked up in all that are granted.
    "const w=p=>{const m={__proto__:null};return new Proxy(h[p],{__proto__:null,get:(t,k)=>" +
    `typeof k==="symbol"?t[k]:m[k]??=${granted}?t[k]:` +
    `(r??=F(${JSON.stringify(rareText)})()(h,s,${JSON.stringify(aliases)},q))(p,k)})};` +
    "const put=(k,value)=>Object.defineProperty(globalThis,k,{__proto__:null,value,writable:true,configurable:true});" +
    namespaces.map((name) => `put("${name}",s.${name}=w("${name}"));`).join("") +
    `const t=w("${rootNamespace}");put("${rootNamespace}",t);put("codemode",t);return f()}`
  );
}

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
  const text = guestText([...namespaces], aliases, asking);
  return { before: `(function(){"use strict";return{default:(${text})(`, after: ")}})" };
}
