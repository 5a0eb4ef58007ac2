// Builds the page into ../dist. The same sources and lock file give the same bytes on every machine: no hash, no time,
// no path of this machine gets into the output.
import { build } from "esbuild";
import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, "..", "dist");

await rm(dist, { recursive: true, force: true });
await mkdir(dist, { recursive: true });

const shared = {
  absWorkingDir: here,
  bundle: true,
  charset: "utf8",
  legalComments: "none", // the licences go into LICENSES.txt, whole
  logLevel: "warning",
  minify: true,
  sourcemap: false,
  target: ["chrome110", "firefox115", "safari16.4"],
};
await build({ ...shared, entryPoints: ["src/main.ts"], outfile: join(dist, "app.js"), format: "iife" });
await build({ ...shared, entryPoints: ["src/style/app.css"], outfile: join(dist, "app.css"), external: ["./inter.woff2"] });

for (const name of ["index.html", "login.html", "favicon.svg"]) {
  await copyFile(join(here, "static", name), join(dist, name));
}
const inter = join(here, "node_modules", "@fontsource-variable", "inter");
await copyFile(join(inter, "files", "inter-latin-wght-normal.woff2"), join(dist, "inter.woff2"));

// What is shipped, not what builds it.
const parts = [
  ["uPlot", "uplot"],
  ["d3-force", "d3-force"],
  ["d3-dispatch", "d3-dispatch"],
  ["d3-quadtree", "d3-quadtree"],
  ["d3-timer", "d3-timer"],
  ["Inter", "@fontsource-variable/inter"],
];
let licenses = "The page contains parts of these packages.\n";
for (const [name, pkg] of parts) {
  const { version } = JSON.parse(await readFile(join(here, "node_modules", pkg, "package.json"), "utf8"));
  const text = (await readFile(join(here, "node_modules", pkg, "LICENSE"), "utf8")).replaceAll("\r\n", "\n").trim();
  licenses += `\n${"=".repeat(78)}\n${name} (npm package ${pkg} ${version})\n${"=".repeat(78)}\n\n${text}\n`;
}
await writeFile(join(dist, "LICENSES.txt"), licenses);
