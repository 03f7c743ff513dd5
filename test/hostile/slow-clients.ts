/** Holds a number of connections open, each of which sends a byte per second. It runs in a separate process. */
import { connect, type Socket } from "node:net";

const [url = "", count = "0", kind = "headers"] = process.argv.slice(2);
const { hostname, port } = new URL(url);
const everyMs = 1_000;
const first = {
  headers: "POST /v1/namespace/kept/describe HTTP/1.1\r\nhost: a\r\nx-a: ",
  body: "POST /v1/namespace/kept/describe HTTP/1.1\r\nhost: a\r\ncontent-length: 60000\r\n\r\n",
};

/** Holds a connection and reconnects when the service closes it. */
function hold(): void {
  const socket: Socket = connect(Number(port), hostname);
  const dripping = setInterval(() => socket.write("x"), everyMs);
  socket.on("error", () => {}).resume();
  socket.once("connect", () => socket.write(kind === "body" ? first.body : first.headers));
  socket.once("close", () => {
    clearInterval(dripping);
    setTimeout(hold, everyMs);
  });
}

for (let index = 0; index < Number(count); index += 1) hold();
process.send?.("holding");
