/** Finding tools by words: what a model would ask over the tools of real servers, and what is kept true of any search. */

import { makeToolSet, searchTools, type ToolHit, toolSchema } from "@flowcell/codemode";
import { describe, expect, test } from "vitest";
import { indexTools } from "../../packages/codemode/src/search.js";
import { serverNames, setOfServers } from "./types-servers.js";

const { set } = setOfServers(serverNames);

function names(hits: readonly ToolHit[]): string[] {
  return hits.map(({ tool }) => `${tool.namespace}.${tool.name}`);
}

/** What is asked, and the tool that should be among the first three. */
const asked: readonly (readonly [string, string])[] = [
  ["create an issue in a github repository", "github.create_issue"],
  ["open a pull request", "github.create_pull_request"],
  ["merge PR", "github.merge_pull_request"],
  ["list commits of a branch", "github.list_commits"],
  ["push several files in one commit", "github.push_files"],
  ["search code on github", "github.search_code"],
  ["fork a repo", "github.fork_repository"],
  ["read a text file", "filesystem.read_text_file"],
  ["list what is in a directory", "filesystem.list_directory"],
  ["rename or move a file", "filesystem.move_file"],
  ["recursive tree of folders", "filesystem.directory_tree"],
  ["find files by pattern", "filesystem.search_files"],
  ["replace lines in a file", "filesystem.edit_file"],
  ["take a screenshot of the web page", "playwright.browser_take_screenshot"],
  ["click a button on the page", "playwright.browser_click"],
  ["fill in a form", "playwright.browser_fill_form"],
  ["press a key", "playwright.browser_press_key"],
  ["open a url in the browser", "playwright.browser_navigate"],
  ["network requests of the page", "playwright.browser_network_requests"],
  ["performance trace", "chrome_devtools.performance_start_trace"],
  ["emulate slow network", "chrome_devtools.emulate"],
  ["run lighthouse audit", "chrome_devtools.lighthouse_audit"],
  ["send a message to a slack channel", "slack.slack_post_message"],
  ["reply in a slack thread", "slack.slack_reply_to_thread"],
  ["add emoji reaction", "slack.slack_add_reaction"],
  ["slack users", "slack.slack_get_users"],
  ["directions from one place to another", "google_maps.maps_directions"],
  ["geocode an address", "google_maps.maps_geocode"],
  ["elevation of a location", "google_maps.maps_elevation"],
  ["search the web", "tavily.tavily_search"],
  ["scrape a website", "firecrawl.firecrawl_scrape"],
  ["extract structured data from pages", "firecrawl.firecrawl_extract"],
  ["documentation of a library", "context7.query_docs"],
  ["think step by step", "sequential_thinking.sequentialthinking"],
  ["create relations between entities", "memory.create_relations"],
  ["delete entities from the knowledge graph", "memory.delete_entities"],
  ["run an aggregation on a collection", "mongodb.aggregate"],
  ["count documents", "mongodb.count"],
  ["insert documents into mongodb", "mongodb.insert_many"],
  ["drop a database", "mongodb.drop_database"],
  ["list indexes of a collection", "mongodb.collection_indexes"],
  ["draw a pie chart", "antv_chart.generate_pie_chart"],
  ["make a mind map", "antv_chart.generate_mind_map"],
  ["sankey diagram", "antv_chart.generate_sankey_chart"],
  ["line graph over time", "antv_chart.generate_line_chart"],
  ["get pod logs", "kubernetes.kubectl_logs"],
  ["scale a deployment", "kubernetes.kubectl_scale"],
  ["install a helm chart", "kubernetes.install_helm_chart"],
  ["apply a kubernetes manifest", "kubernetes.kubectl_apply"],
  ["port forward to a service", "kubernetes.port_forward"],
  ["delete a kubernetes resource", "kubernetes.kubectl_delete"],
  ["query a notion database", "notion.API_query_data_source"],
  ["create a page in notion", "notion.API_post_page"],
  ["add a comment to a notion page", "notion.API_create_a_comment"],
  ["retrieve a block's children", "notion.API_get_block_children"],
  ["add two numbers", "everything.get_sum"],
  ["echo a message back", "everything.echo"],
  ["create a merge request", "gitlab.create_merge_request"],
  ["create a branch in gitlab", "gitlab.create_branch"],
  ["delete cookies", "playwright.browser_cookie_delete"],
  ["read localStorage", "playwright.browser_localstorage_get"],
  ["save page as pdf", "playwright.browser_pdf_save"],
  ["heap snapshot for a memory leak", "chrome_devtools.take_heapsnapshot"],
  ["my own notion user", "notion.API_get_self"],
];

/** Too little in common with the tool's own words for the first three; a model that reads on finds them. */
const askedInOtherWords: readonly (readonly [string, string])[] = [
  ["remember facts in the knowledge graph", "memory.create_entities"],
  ["crawl a site with firecrawl", "firecrawl.firecrawl_crawl"],
  ["crawl a whole site", "firecrawl.firecrawl_crawl"],
];

/** What is asked in few words, and the tool that should be the first. */
const askedShortly: readonly (readonly [string, string])[] = [
  ["delete a pod", "kubernetes.kubectl_delete"],
  ["read file", "filesystem.read_file"],
  ["click a button", "playwright.browser_click"],
  ["list directory", "filesystem.list_directory"],
  ["create issue", "github.create_issue"],
];

/** Whose words only stand for the namespace. */
const askedByNamespace: readonly (readonly [string, string])[] = [
  ["remember something", "memory"],
  ["recall what I know", "memory"],
];

describe("over the tools of real servers", () => {
  test.each(askedShortly)("%s, first", (query, wanted) => {
    expect(names(searchTools(set, query, { limit: 3 }))[0]).toBe(wanted);
  });

  test.each(askedByNamespace)("%s, in the first three", (query, wanted) => {
    const hits = searchTools(set, query, { limit: 3 });
    expect(hits.map(({ tool }) => tool.namespace)).toContain(wanted);
  });

  test.each(asked)("%s", (query, wanted) => {
    expect(names(searchTools(set, query, { limit: 3 }))).toContain(wanted);
  });

  test.each(askedInOtherWords)("%s, further down", (query, wanted) => {
    expect(names(searchTools(set, query, { limit: 8 }))).toContain(wanted);
  });

  test("a tool is among the first three for its own name, in any writing", () => {
    const missed: string[] = [];
    for (const { namespace, name, originalName } of set.tools) {
      for (const writing of [originalName, name.replaceAll("_", " "), `${name}()`]) {
        const hits = searchTools(set, `${namespace} ${writing}`, { limit: 3 });
        if (!names(hits).includes(`${namespace}.${name}`)) missed.push(writing);
      }
    }
    expect(missed).toEqual([]);
  });
});

describe("an index", () => {
  test("that is made ahead lets other things happen meanwhile, and finds the same as one that a search made", async () => {
    const { set: other } = setOfServers(serverNames);
    let turns = 0;
    let made = false;
    const count = (): void => {
      turns += 1;
      if (!made) setImmediate(count);
    };
    setImmediate(count);
    await indexTools(other);
    made = true;
    expect(turns).toBeGreaterThan(10);
    for (const query of ["delete a pod", "remember something", "create an issue"]) {
      const ahead = searchTools(other, query, { limit: 50 });
      expect(ahead.map(({ score }) => score)).toEqual(
        searchTools(set, query, { limit: 50 }).map(({ score }) => score),
      );
      expect(names(ahead)).toEqual(names(searchTools(set, query, { limit: 50 })));
    }
  });

  test("that is half made when a search comes is whole for it", async () => {
    const { set: other } = setOfServers(serverNames);
    const indexed = indexTools(other);
    const early = names(searchTools(other, "recursive tree of folders"));
    await indexed;
    expect(early).toEqual(names(searchTools(set, "recursive tree of folders")));
  });
});

describe("a hit", () => {
  test("has a score, a signature on one line and a declaration", () => {
    const [hit] = searchTools(set, "list_issues", { limit: 1 });
    expect(hit?.score).toBeGreaterThan(0);
    expect(hit?.signature).toMatch(
      /^github\.list_issues\(input: \{ owner: string; repo: string; .*\}\): Promise<unknown>$/,
    );
    expect(hit?.declaration).toMatch(
      /^declare namespace github \{\n {2}\/\*\* .* \*\/\n {2}function list_issues\(/,
    );
  });
});

describe("any search", () => {
  const tools = {
    b: { find: { description: "Same words.", inputSchema: {}, execute: () => 1 } },
    a: { find: { description: "Same words.", inputSchema: {}, execute: () => 1 } },
    c: {
      other: {
        description: "Else.",
        inputSchema: {
          properties: { zebra: { type: "string", description: "A giraffe.", enum: ["okapi"] } },
        },
        execute: () => 1,
      },
      HTTPGetter2: { description: "", inputSchema: {}, execute: () => 1 },
    },
  };
  const small = makeToolSet(tools, toolSchema);

  test("puts equals in the order of their names, whatever order they came in", () => {
    const back = makeToolSet({ c: tools.c, a: tools.a, b: tools.b }, toolSchema);
    expect(names(searchTools(small, "same words"))).toEqual(["a.find", "b.find"]);
    expect(names(searchTools(back, "same words"))).toEqual(["a.find", "b.find"]);
  });

  test("looks at parameters, their descriptions and their values", () => {
    for (const word of ["zebras", "giraffe", "okapi"])
      expect(names(searchTools(small, word))).toEqual(["c.other"]);
  });

  test("reads names as words", () => {
    for (const query of ["http getter", "HTTPGetter2", "getter"]) {
      expect(names(searchTools(small, query))).toContain("c.HTTPGetter2");
    }
  });

  test.each(["", "the of and", "☃ ☃", "qqqqqqq"])("finds nothing for %j", (query) => {
    expect(searchTools(small, query)).toEqual([]);
  });

  test("is bounded for a query of any length", () => {
    const query = Array.from({ length: 100_000 }, (_each, index) => `word${index}`).join(" ");
    expect(searchTools(set, `create issue ${query}`, { limit: 50 }).length).toBeLessThanOrEqual(50);
  });

  test.each([0, 51, 1.5])("refuses a limit of %d", (limit) => {
    expect(() => searchTools(small, "find", { limit })).toThrow(RangeError);
  });
});
