export { verifyMessage } from "ethers";
