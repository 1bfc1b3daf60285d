/**
 * The lines around a script that give it the namespaces of an `execute` of @cloudflare/codemode. Text for the engine.
 *
 * Kept true: namespaces are variables of the script, so that one may have the name of a global; a call is variadic and
 * positional, and of a connector's only the first argument goes; a name that no provider has is a function that fails with
 * `Tool "x" not found`, except for what the language itself asks of any object; what a script fails with has a message.
 */

import type { Surround } from "../guest-names.js";
import type { Bindings } from "./cloudflare-names.js";
import { binaryTag } from "./cloudflare-transport.js";

/**
 * `f` makes the script out of the namespaces, `p` are providers with the names of their functions on the wire, `c` connectors
 * with theirs. `pack` and `unpack` are those of cloudflare-transport.ts. A script may end with calls that it does not wait for;
 * a turn of the parent lets those begin that were sent, since they are not begun once the script has ended.
 */
const guestText = `(f,p,c)=>async(_,h)=>{
const {stringify,parse}=JSON,U=Uint8Array,B=ArrayBuffer,T="${binaryTag}",later=setTimeout;
const pack=(v)=>{
const b=[],t=stringify(v,function(k,w){
const o=this[k];
if(o instanceof U)return{[T]:"Uint8Array",data:b.push(o)-1};
if(o instanceof B)return{[T]:"ArrayBuffer",data:b.push(new U(o))-1};
if(B.isView(o))return{[T]:"ArrayBufferView",data:b.push(new U(o.buffer,o.byteOffset,o.byteLength))-1};
return w
});
return[t,...b]
};
const unpack=([t,...b])=>parse(t,(k,v)=>{
if(v===null||typeof v!=="object"||!Object.hasOwn(v,T)||!(b[v.data] instanceof U))return v;
return v[T]==="ArrayBuffer"?b[v.data].slice().buffer:b[v.data]
});
let open=0;
const send=async(n,a)=>{
let o=h;
for(const k of n.split("."))o=o[k];
open++;
try{return await o(...a)}finally{open--}
};
const space=(call,names)=>new Proxy({},{
get:(t,k)=>{
if(Object.hasOwn(t,k))return t[k];
if(typeof k==="symbol"||(!names.includes(k)&&["then","toJSON","toString","valueOf"].includes(k)))return;
return call(k)
},
set:(t,k,value)=>Reflect.defineProperty(t,k,{value,writable:true,enumerable:true,configurable:true}),
has:(t,k)=>Object.hasOwn(t,k)||names.includes(k),
ownKeys:(t)=>[...new Set([...names,...Reflect.ownKeys(t)])],
getOwnPropertyDescriptor:(t,k)=>Object.getOwnPropertyDescriptor(t,k)??
(names.includes(k)?{value:call(k),writable:true,enumerable:true,configurable:true}:undefined)
});
const provider=([w])=>space((k)=>Object.hasOwn(w,k)?async(...a)=>unpack(await send(w[k],pack(a))).result:
async()=>{throw new Error('Tool "'+k+'" not found')},Object.keys(w));
const connector=([w])=>space((k)=>async(...a)=>{
const r=await send(w,[k,a[0]]);
if(r&&typeof r==="object"){
if(r.__codemode_control__==="pause")throw new Error("__CODEMODE_PAUSE__");
if(r.__codemode_control__==="error")throw new Error(String(r.message))
}
return r
},[]);
const absent=(k,what)=>Object.defineProperty(globalThis,k,{value:()=>{throw new Error(k+" is not available: there is no "+what+" here; call a tool: "+
[...p,...c].flatMap(([w])=>typeof w==="string"?[w]:Object.values(w)).slice(0,12).join(", "))},writable:true,configurable:true});
absent("fetch","network");absent("require","module");
try{
const s=await f(...p.map(provider),...c.map(connector));
const r=await s();
if(open>0)await new Promise((done)=>later(done,0));
return r
}catch(e){
if(Error.isError(e)&&e.message!=="")throw e;
let m;
try{m=Error.isError(e)?e.name:String(e)}catch{m="the script failed with a value that has no text"}
throw new Error(m===""?"the script failed with an empty text":m,Error.isError(e)?{cause:e}:undefined)
}
}`.replaceAll("\n", " ");

/** With a prelude, the script's lines move in the worker; the script's map knows. */
export function surroundOf({ providers, connectors }: Bindings): Surround {
  const names = [...providers, ...connectors].map(({ name }) => name).join(",");
  const functions = providers.map((provider) => [Object.fromEntries(provider.functions)]);
  const wires = connectors.map(({ wire }) => [wire]);
  const data = `${asText(functions)},${asText(wires)}`;
  const preludes = providers.flatMap(({ prelude }) => (prelude === undefined ? [] : [`${prelude}\n;`]));
  const made = preludes.length === 0 ? `(${names})=>(` : `async(${names})=>{${preludes.join("")}return(`;
  return {
    before: `(function(){"use strict";return{default:(${guestText})(${made}`,
    after: `)${preludes.length === 0 ? "" : "}"},${data})}})`,
  };
}

/** JavaScript of a value: a key `__proto__` would be the prototype if it were written as it is. */
function asText(value: unknown): string {
  return `JSON.parse(${JSON.stringify(JSON.stringify(value))})`;
}
