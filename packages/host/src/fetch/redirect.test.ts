// What a redirect makes of a request.
import { describe, expect, test } from "vitest";
import { type HopRequest, isRedirect, redirected } from "./redirect.js";

const body = new TextEncoder().encode("body");
const start: HopRequest = {
  url: new URL("https://a.test/dir/page?q=1#part"),
  method: "POST",
  headers: [
    ["authorization", "Bearer own"],
    ["x-key", "{{secret:key}}"],
    ["content-type", "text/plain"],
    ["idempotency-key", "k"],
    ["x-other", "1"],
  ],
  body,
};

function reply(status: number, location?: string) {
  return {
    status,
    statusText: "",
    headers: location === undefined ? [] : ([["location", location]] as const),
  };
}

function next(status: number, location: string, change: Partial<HopRequest> = {}): HopRequest {
  const result = redirected({ ...start, ...change }, reply(status, location));
  if ("refused" in result) throw new Error(result.refused);
  return result.request;
}

describe("isRedirect", () => {
  test("holds for the five statuses with a location", () => {
    const all = Array.from({ length: 500 }, (_, n) => n + 100);
    expect(all.filter((status) => isRedirect(reply(status, "/")))).toEqual([301, 302, 303, 307, 308]);
    expect(all.filter((status) => isRedirect(reply(status)))).toEqual([]);
  });
});

describe("redirected", () => {
  test.each([
    ["POST", 301, "GET"],
    ["POST", 302, "GET"],
    ["POST", 303, "GET"],
    ["POST", 307, "POST"],
    ["POST", 308, "POST"],
    ["PUT", 303, "GET"],
    ["PUT", 307, "PUT"],
    ["DELETE", 303, "GET"],
    ["DELETE", 301, "DELETE"],
    ["GET", 301, "GET"],
    ["GET", 303, "GET"],
    ["HEAD", 303, "HEAD"],
    ["HEAD", 302, "HEAD"],
  ])(
    "%s with %i becomes %s, with its body only if it stays as it is by 307 or 308",
    (method, status, then) => {
      const hasBody = method === "POST" || status === 307 || status === 308;
      const request = next(status, "/next", { method, ...(hasBody ? {} : { body: undefined }) });
      expect(request.method).toBe(then);
      expect(request.body).toBe(status === 307 || status === 308 ? body : undefined);
    },
  );

  test.each([301, 302])("a body that is no POST's is not sent again for %i, nor left out", (status) => {
    expect(redirected({ ...start, method: "PUT" }, reply(status, "/next"))).toEqual({
      refused: "would send the body of a PUT request again",
    });
  });

  test("what describes a body goes when the body goes", () => {
    expect(next(303, "/next").headers.map(([name]) => name)).toEqual(["authorization", "x-key", "x-other"]);
    expect(next(307, "/next").headers).toEqual(start.headers);
  });

  test.each(["https://b.test/", "https://a.test:444/", "https://sub.a.test/", "https://a.test./"])(
    "secrets and authorization do not follow to %s",
    (location) => {
      const names = next(307, location).headers.map(([name]) => name);
      expect(names).toEqual(["content-type", "idempotency-key", "x-other"]);
    },
  );

  test("they do not come back with a redirect to the first origin", () => {
    const away = next(307, "https://b.test/");
    const home = redirected(away, reply(307, "https://a.test/"));
    expect("request" in home && home.request.headers.map(([name]) => name)).toEqual([
      "content-type",
      "idempotency-key",
      "x-other",
    ]);
  });

  test.each([
    ["/root", "https://a.test/root"],
    ["sibling?x", "https://a.test/dir/sibling?x"],
    ["../up", "https://a.test/up"],
    ["//b.test/x", "https://b.test/x"],
    ["?only", "https://a.test/dir/page?only"],
    ["#other", "https://a.test/dir/page?q=1#other"],
    ["https://A.TEST:443/%zz", "https://a.test/%zz"],
  ])("%s is read relative to the request", (location, url) => {
    expect(next(307, location).url.href).toBe(url);
  });

  test.each([
    ["http://a.test/", "https: to http:"],
    ["file:///etc/passwd", "only http: and https:"],
    ["data:,x", "only http: and https:"],
    ["javascript:1", "only http: and https:"],
    ["https://user@b.test/", "user name"],
    ["https://", "no URL"],
    ["https://[::1%25eth0]/", "no URL"],
    ["http://a.test:99999/", "no URL"],
  ])("%s is refused", (location, words) => {
    const result = redirected(start, reply(302, location));
    expect("refused" in result && result.refused).toContain(words);
  });

  test("several locations are refused", () => {
    const headers = [
      ["location", "https://b.test/"],
      ["location", "https://c.test/"],
    ] as const;
    expect(redirected(start, { status: 302, statusText: "", headers })).toEqual({
      refused: "names several places",
    });
  });
});
