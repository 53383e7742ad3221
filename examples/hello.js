// The smallest action: parameters in, a value out. Whatever `main` returns becomes `response`, with its type kept.
async function main({ name = "world" }) {
  console.log(`greeting ${name}`);
  return { greeting: `Hello, ${name}!` };
}
