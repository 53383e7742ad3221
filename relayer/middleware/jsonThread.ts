/** Worker thread that parses large bodies. */
import { free } from "../../protocol/free";
import { answerEach } from "../../protocol/threadOf";
import { parseJsonText } from "./jsonText";

answerEach((bytes: Uint8Array) => {
  const parsed = parseJsonText(bytes);
  free(bytes);
  return parsed;
});
