/** Worker thread that parses large bodies. */
import { answerEach } from "../../protocol/threadOf";
import { parseJsonText } from "./jsonText";

answerEach(parseJsonText);
