// Bundles the pages' script and style into the Python package; `make web` calls this.
import { build } from "esbuild";

await build({
  entryPoints: { viewer: "src/main.ts" },
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "ascii",
  legalComments: "none",
  outdir: "../src/mcveto/viewer/assets",
});
