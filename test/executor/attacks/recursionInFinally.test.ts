import { attack } from "../../support/attack";

attack("recursion that goes on from finally", {
  code: `async function main() {
    console.log("before");
    const dive = () => {
      try {
        dive();
      } finally {
        dive();
      }
    };
    dive();
  }`,
  ends: ["timed_out", "threw"],
});
