// Which addresses are public, in every form in which one can be written or carried.
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalAddress, isOpenableAddress, isPublicAddress } from "./address.js";

describe("isPublicAddress", () => {
  test.each([
    "1.1.1.1",
    "8.8.8.8",
    "93.184.215.14",
    "172.15.255.255",
    "172.32.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "169.253.255.255",
    "192.0.1.1",
    "223.255.255.255",
    "2606:4700::1111",
    "2001:4860:4860::8888",
    "3ffe::1",
    "::ffff:8.8.8.8",
    "::ffff:808:808",
    "64:ff9b::808:808",
    "2002:808:808::1",
    "2001:0:4136:e378:8000:63bf:f7f7:f7f7",
  ])("lets %s through", (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  test.each([
    ["unspecified", ["0.0.0.0", "0.1.2.3", "::", "::0", "0:0:0:0:0:0:0:0"]],
    ["loopback", ["127.0.0.1", "127.255.255.254", "::1", "0:0:0:0:0:0:0:1"]],
    ["private", ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255"]],
    ["carrier-grade NAT", ["100.64.0.1", "100.127.255.255"]],
    ["link-local", ["169.254.0.1", "169.254.255.255", "fe80::1", "febf::1"]],
    ["multicast", ["224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"]],
    ["broadcast and reserved", ["255.255.255.255", "240.0.0.1", "192.0.0.1", "192.88.99.1"]],
    ["documentation", ["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"]],
    ["benchmarks", ["198.18.0.1", "198.19.255.255", "2001:2::1"]],
    ["unique local and site-local", ["fc00::1", "fd12:3456::1", "fec0::1"]],
    [
      "other special ranges",
      ["100::1", "2001:10::1", "2001:20::1", "2001:4:112::1", "5f00::1", "2620:4f:8000::1"],
    ],
    ["unassigned", ["1::1", "4000::1", "8000::1", "fbff::1", "200::1"]],
    ["IPv4-mapped", ["::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:a00:1", "::ffff:169.254.169.254"]],
    ["IPv4-compatible", ["::127.0.0.1", "::7f00:1", "::8.8.8.8"]],
    ["IPv4-translated", ["::ffff:0:127.0.0.1", "::ffff:0:808:808"]],
    ["NAT64", ["64:ff9b::7f00:1", "64:ff9b::10.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::a83f:8110"]],
    ["NAT64 for local use", ["64:ff9b:1::7f00:1", "64:ff9b:1::808:808", "64:ff9b:1:808:8:800::"]],
    ["6to4", ["2002:7f00:1::1", "2002:a00:1::", "2002:c0a8:101::1", "2002:a9fe:a9fe::"]],
    // Server 10.0.0.1 with a public client; a public server with client 127.0.0.1, then 192.168.0.1.
    ["Teredo", ["2001:0:a00:1:0:0:f7f7:f7f7", "2001:0:808:808:0:0:80ff:fffe", "2001:0:808:808::3f57:fffe"]],
    [
      "metadata services",
      [
        "169.254.169.254",
        "169.254.170.2",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "fd00:ec2::254",
      ],
    ],
    ["metadata services inside other addresses", ["::ffff:168.63.129.16", "2002:a83f:8110::1"]],
  ])("refuses %s", (_, addresses) => {
    expect(addresses.filter(isPublicAddress)).toEqual([]);
  });

  test.each([
    "127.1",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "2130706433",
    "127.0.0.1.",
    "fe80::1%eth0",
    "2606:4700::1111%1",
    "::ffff:8.8.8.8%lo",
    "8.8.8.8/32",
    " 8.8.8.8",
    "8.8.8.8\0",
    "[2606:4700::1111]",
    "example.com",
    "",
  ])("refuses %j, which is no address in its usual form", (text) => {
    expect(isPublicAddress(text)).toBe(false);
    expect(isOpenableAddress(text)).toBe(false);
    expect(canonicalAddress(text)).toBeUndefined();
  });

  test("says the same of an IPv4 address and of every IPv6 address that carries it", () => {
    const octets = fc.array(fc.nat(255), { minLength: 4, maxLength: 4 });
    fc.assert(
      fc.property(octets, ([a = 0, b = 0, c = 0, d = 0]) => {
        const plain = isPublicAddress([a, b, c, d].join("."));
        const high = (a * 256 + b).toString(16);
        const low = (c * 256 + d).toString(16);
        const inverted = [a * 256 + b, c * 256 + d].map((part) => (part ^ 0xffff).toString(16)).join(":");
        expect(isPublicAddress(`::ffff:${high}:${low}`)).toBe(plain);
        expect(isPublicAddress(`64:ff9b::${high}:${low}`)).toBe(plain);
        expect(isPublicAddress(`2002:${high}:${low}::1`)).toBe(plain);
        expect(isPublicAddress(`2001:0:808:808:0:0:${inverted}`)).toBe(plain);
      }),
    );
  });
});

describe("isOpenableAddress", () => {
  test("holds for public addresses and for those of private networks", () => {
    for (const address of [
      "8.8.8.8",
      "127.0.0.1",
      "10.1.2.3",
      "192.168.1.1",
      "::1",
      "fd00::1",
      "100.64.0.1",
    ]) {
      expect(isOpenableAddress(address), address).toBe(true);
    }
  });

  test("does not hold for metadata services, nor for what is no host's address", () => {
    const never = ["169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "0.0.0.0", "::"];
    for (const address of [...never, "224.0.0.1", "255.255.255.255", "169.254.1.1", "fe80::1", "::7f00:1"]) {
      expect(isOpenableAddress(address), address).toBe(false);
    }
  });
});

test("canonicalAddress gives all spellings of an address one form", () => {
  expect(canonicalAddress("::ffff:127.0.0.1")).toBe("127.0.0.1");
  expect(canonicalAddress("::127.0.0.1")).toBe("::7f00:1");
  expect(canonicalAddress("0:0:0:0:0:0:0:1")).toBe("::1");
  expect(canonicalAddress("2606:4700:0:0::1111")).toBe("2606:4700::1111");
});
