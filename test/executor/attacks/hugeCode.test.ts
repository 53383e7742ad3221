import { RUN_LIMITS } from "../../../protocol/limits";
import { attack } from "../../support/attack";

const line = "a=[b=>({c:d}),e?.f??g];";

attack("code of the largest size, all of it syntax", {
  code: line.repeat(Math.floor(RUN_LIMITS.codeBytes / line.length)),
  ends: ["timed_out", "out_of_memory", "threw", "sandbox_crashed"],
  logs: "",
  limits: { wallMs: 2_000 },
});
