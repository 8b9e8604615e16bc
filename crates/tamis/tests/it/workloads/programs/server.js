// Files, child processes, workers, and an HTTP server on the sockets of the setting.
const fs = require("fs"), http = require("http"), os = require("os"), path = require("path");
const { execFile, fork, spawnSync } = require("child_process");
const { Worker } = require("worker_threads");
const network = process.argv[2];
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "node-"));

async function request(listen, options) {
  const server = http.createServer((_, response) => response.end("page"));
  await new Promise((done) => server.listen(listen, done));
  if (listen.port === 0) options.port = server.address().port;
  const text = await new Promise((done, fail) => {
    http.get(options, (answer) => answer.on("data", (data) => done(`${answer.statusCode} ${data}`))).on("error", fail);
  });
  server.close();
  return text;
}

async function main() {
  const file = path.join(folder, "file");
  await fs.promises.writeFile(file, "text");
  await fs.promises.rename(file, file + "2");
  console.log(await fs.promises.readFile(file + "2", "utf8"), (await fs.promises.stat(file + "2")).size);
  console.log(spawnSync("sh", ["-c", "echo out; exit 4"]).status);
  console.log(await new Promise((done) => execFile("echo", ["a", "b"], (_, out) => done(out.trim()))));
  const worker = new Worker("require('worker_threads').parentPort.postMessage(6 * 7)", { eval: true });
  console.log(await new Promise((done) => worker.once("message", done)));
  fs.writeFileSync(path.join(folder, "child.js"), "process.on('message', (m) => { process.send(m + 1); process.disconnect(); })");
  const child = fork(path.join(folder, "child.js"));
  child.send(1);
  console.log(await new Promise((done) => child.once("message", done)));
  if (network !== "none") {
    const socketPath = path.join(folder, "socket");
    console.log(await request({ path: socketPath }, { socketPath, path: "/" }));
  }
  if (network === "proxy" || network === "full")
    console.log(await request({ host: "127.0.0.1", port: 0 }, { host: "127.0.0.1", path: "/" }));
  if (network === "full") console.log(os.networkInterfaces().lo !== undefined);
}
main().finally(() => fs.rmSync(folder, { recursive: true }));
