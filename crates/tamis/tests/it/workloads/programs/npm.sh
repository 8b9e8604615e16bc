# npm installs a package with an install script from a registry on loopback; with network=none from a file.
export npm_config_cache=$PWD/cache npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false
mkdir tiny user
cat >tiny/package.json <<'P'
{"name": "tiny", "version": "1.2.3", "main": "main.js", "scripts": {"postinstall": "node -e \"require('fs').writeFileSync('built', 'yes')\""}}
P
echo 'module.exports = require("fs").readFileSync(__dirname + "/built", "utf8");' >tiny/main.js
echo '{"name": "user", "version": "1.0.0"}' >user/package.json
(cd tiny && npm pack --silent)
cat >registry.js <<'P'
const http = require("http"), fs = require("fs");
const server = http.createServer((request, response) => {
  if (request.url.endsWith(".tgz")) return response.end(fs.readFileSync("tiny/tiny-1.2.3.tgz"));
  const own = JSON.parse(fs.readFileSync("tiny/package.json"));
  own.dist = { tarball: `http://127.0.0.1:${server.address().port}/tiny-1.2.3.tgz` };
  own.hasInstallScript = true;
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ name: "tiny", "dist-tags": { latest: "1.2.3" }, versions: { "1.2.3": own } }));
}).listen(0, "127.0.0.1", () => console.log(server.address().port));
P
source=$PWD/tiny/tiny-1.2.3.tgz
case $1 in
proxy | full)
    mkfifo port
    node registry.js >port &
    registry=$!
    read -r number <port
    export npm_config_registry=http://127.0.0.1:$number/
    source=tiny ;;
esac
(cd user && npm install --silent "$source"; echo $?; node -e 'console.log(require("tiny"))')
[ -z "$registry" ] || kill "$registry"
