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

/** In a pattern. */
const askPattern = askNamespace.replace("$", "[$]");
/** Names that an error lists, and tools that it is compared with what a script wrote. */
const listedMost = 12;
const comparedMost = 1000;

/**
 * Compiled when a script first asks for something that is no granted name by itself: a few hundred bytes of text cost the
 * engine more than most scripts do. `h` is the host object, `s` the namespaces, `a` names that tools had before they were made
 * identifiers, `q` tools that may need approval: there the question comes first, and what it was answered goes with the call,
 * which the parent checks (approval-calls.ts). The namespace "" has what a script reaches for and has no use for here.
 */
const rareText = `return(h,s,a,q)=>{"use strict";
const made={__proto__:null};
const ask=(p,k)=>{
const call=h[p][k],question=h.${askNamespace}[p][k];
return async(...x)=>{
const stack=new Error().stack;
try{const r=await question(...x);return await(r===undefined?call(...x):call(x[0],r.ticket))}
catch(e){
const message=e.message.replace(/^(host[.])?${askPattern}[.]/,"");
throw Object.defineProperties(e,{message:{value:message},stack:{value:stack}})
}
}
};
const tools=(p)=>Object.keys(h[p]).map((k)=>p+"."+k);
const spaces=()=>Object.keys(h).filter((p)=>p!=="log"&&p!=="codemode"&&p!=="${askNamespace}");
const listed=(l)=>l.slice(0,${listedMost}).join(", ")+(l.length>${listedMost}?" and "+(l.length-${listedMost})+" more":"");
const gap=(x,y)=>{
let v=[...y,0].map((_,i)=>i);
for(let i=1;i<=x.length;i++){
const w=[i];
for(let j=1;j<=y.length;j++)w[j]=Math.min(v[j]+1,w[j-1]+1,v[j-1]+(x[i-1]===y[j-1]?0:1));
v=w
}
return v[y.length]
};
const near=(p,k)=>{
const all=[...tools(p),...spaces().filter((o)=>o!==p).flatMap(tools)].slice(0,${comparedMost});
const same=all.find((n)=>n.endsWith("."+k));
if(same!==undefined)return same;
const wanted=p+"."+k;
let best,least=3;
for(const n of all){
if(Math.abs(n.length-wanted.length)>2)continue;
const d=gap(wanted,n);
if(d<least){least=d;best=n}
}
return best
};
const refuse=(p,k)=>()=>{
const own=tools(p),meant=near(p,k);
throw new TypeError(p+"."+k+" is not a tool here."+(meant===undefined?"":" Did you mean "+meant+"?")+
(own.length>0?" There are "+listed(own)+".":" The namespaces are "+listed(spaces())+"."))
};
const absent=(k)=>()=>{
const all=spaces().flatMap(tools);
throw new TypeError(k+" is not available: there is no "+(k==="require"?"module":"network")+" here"+(all.length>0?"; call a tool: "+listed(all):""))
};
const make=(p,k)=>{
const own=a[p],name=own!==undefined&&Object.hasOwn(own,k)?own[k]:k,there=p in h;
if(there&&name in h[p])return q.includes(p+"."+name)?ask(p,name):h[p][name];
if(p==="${rootNamespace}"&&Object.hasOwn(s,k))return s[k];
if(p==="${rootNamespace}"&&"codemode" in h&&k in h.codemode)return h.codemode[k];
return h[p][k]===undefined||k in {}?undefined:refuse(p,k)
};
return(p,k)=>made[p+"."+k]??=p===""?absent(k):make(p,k)
}`.replaceAll("\n", "");

/** `f` is the script; what it finds in the realm was put there before it runs. Short: every script is parsed with it. */
function guestText(namespaces: readonly string[], aliases: object, asking: readonly string[]): string {
  const granted = asking.length === 0 ? "k in t" : 'k in t&&!q.includes(p+"."+k)';
  return (
    `f=>(_,h)=>{const F=Function,s={__proto__:null},q=${JSON.stringify(asking)};let r;` +
    // What was found is kept: behind the host object a name is looked up in all that are granted.
    `const R=()=>r??=F(${JSON.stringify(rareText)})()(h,s,${JSON.stringify(aliases)},q);` +
    "const w=p=>{const m={__proto__:null};return new Proxy(h[p],{__proto__:null,get:(t,k)=>" +
    `typeof k==="symbol"?t[k]:m[k]??=${granted}?t[k]:R()(p,k)})};` +
    "const put=(k,value)=>Object.defineProperty(globalThis,k,{__proto__:null,value,writable:true,configurable:true});" +
    namespaces.map((name) => `put("${name}",s.${name}=w("${name}"));`).join("") +
    'for(const k of["fetch","require"])put(k,()=>R()("",k)());' +
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
