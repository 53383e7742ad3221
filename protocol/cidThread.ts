/** The thread of CidComputer. */
import { cidOfCode } from "./cid";
import { answerEach } from "./threadOf";

answerEach(cidOfCode);
