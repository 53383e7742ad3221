import { expect } from "chai";
import { isGlobalUnicast } from "../../../executor/fetcher/addresses";

/** The IANA special-purpose registries, block by block, with adjacent public addresses. */
const REFUSED = `
  0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254
  169.254.169.254 172.16.0.1 172.31.255.255
  192.0.0.1 192.0.0.8 192.0.0.170 192.0.2.1 192.31.196.1 192.52.193.1 192.88.99.1 192.168.0.1 192.175.48.1
  198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1
  224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
  :: ::1 ::2 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1 ::ffff:169.254.169.254
  ::ffff:a9fe:a9fe ::ffff:0.0.0.0 ::ffff:0:127.0.0.1
  64:ff9b::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 100::1
  2001::1 2001:0:53aa:64c:0:fbf3:8080:8080 2001:2::1 2001:10::1 2001:20::1 2001:db8::1
  2002:7f00:1:: 2002:a00:1::1 2002:808:808::1 2620:4f:8000::1 3fff::1 5f00::1
  fc00::1 fd12:3456::1 fe80::1 fe80::1%eth0 febf::1 fec0::1 ff02::1 ff0e::1 4000::1 8000::1
`
  .trim()
  .split(/\s+/);

const REACHED = `
  1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.1 100.63.255.255 100.128.0.1 126.255.255.255 128.0.0.1 169.253.255.255
  169.255.0.1 172.15.255.255 172.32.0.1
  191.255.255.255 192.0.1.1 192.0.3.1 192.88.98.1 192.88.100.1 192.167.255.255 192.169.0.1
  198.17.255.255 198.20.0.1 198.51.99.1 203.0.112.1 223.255.255.255
  2001:4860:4860::8888 2606:4700:4700::1111 2a00:1450:4001::1 2003::1 ::ffff:8.8.8.8 ::ffff:808:808
  64:ff9b::8.8.8.8 2620:4f:7fff::1 2001:200::1
`
  .trim()
  .split(/\s+/);

describe("addresses a guest may reach", () => {
  for (const address of REFUSED) it(`${address} is refused`, () => expect(isGlobalUnicast(address)).to.equal(false));
  for (const address of REACHED) it(`${address} is public`, () => expect(isGlobalUnicast(address)).to.equal(true));
  for (const text of ["", "localhost", "1.2.3", "1.2.3.4.5", "0x7f.0.0.1x", "[::1]", "256.1.1.1", "fe80::1%"]) {
    it(`${JSON.stringify(text)} is not an address`, () => expect(isGlobalUnicast(text)).to.equal(false));
  }
});
